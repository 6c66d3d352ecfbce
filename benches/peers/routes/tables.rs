//! The tables, as contestants.

use flowtable::{Prefix, RouteTable};
use ip_network_table_deps_treebitmap::IpLookupTable;
use ipnet::IpNet;
use poptrie::Poptrie;
use prefix_trie::{Prefix as _, PrefixMap};
use ts_bart::{RoutingTable, SimpleTable};

use super::Contestants;
use super::contestant::{Live, Match, Route, Table, filled, fixed, live};
use super::family::Family;
use crate::contestant::BURST;
use crate::entrant::{ours, peer};

/// All that know both families.
pub(crate) fn contestants<A: Family>() -> Contestants<A> {
    vec![
        ours("routes", "RouteTable", live::<A, RouteTable<A, u32>>()),
        peer("prefix-trie", live::<A, PrefixMap<A::Key, u32>>()),
        peer("treebitmap", live::<A, IpLookupTable<A, u32>>()),
        peer("ts_bart", live::<A, SimpleTable<u32>>()),
        peer("poptrie", fixed::<A, Poptrie<A::Key, u32>>()),
    ]
}

impl<A: Family> Table<A> for RouteTable<A, u32> {
    #[inline]
    fn build(routes: &[Route<A>]) -> Self {
        filled(routes)
    }

    #[inline]
    fn lookup(&self, address: A) -> Option<Match> {
        RouteTable::lookup(self, &address)
            .map(|(prefix, &value)| Match { len: prefix.len(), value })
    }

    #[inline]
    fn burst(&self, addresses: &[A; BURST]) -> u64 {
        let mut found = [None; BURST];
        self.lookup_batch(addresses, &mut found);
        let digest =
            |(prefix, &value): (Prefix<A>, &u32)| Match { len: prefix.len(), value }.digest();
        found.into_iter().flatten().map(digest).fold(0, u64::wrapping_add)
    }

    fn shape(&self) -> Option<String> {
        Some(RouteTable::shape(self).to_string())
    }
}

impl<A: Family> Live<A> for RouteTable<A, u32> {
    #[inline]
    fn announce(&mut self, prefix: &Prefix<A>, value: u32) {
        self.insert(*prefix, value);
    }

    #[inline]
    fn withdraw(&mut self, prefix: &Prefix<A>) -> Option<u32> {
        self.remove(prefix)
    }
}

/// With pairs of a number and a length, which cost it less than the types of `ipnet`.
impl<A: Family> Table<A> for PrefixMap<A::Key, u32> {
    #[inline]
    fn build(routes: &[Route<A>]) -> Self {
        filled(routes)
    }

    #[inline]
    fn lookup(&self, address: A) -> Option<Match> {
        let found = self.get_lpm(&address.key(A::BITS))?;
        Some(Match { len: found.0.prefix_len().into(), value: *found.1 })
    }
}

impl<A: Family> Live<A> for PrefixMap<A::Key, u32> {
    #[inline]
    fn announce(&mut self, prefix: &Prefix<A>, value: u32) {
        self.insert(prefix.address().key(prefix.len()), value);
    }

    #[inline]
    fn withdraw(&mut self, prefix: &Prefix<A>) -> Option<u32> {
        self.remove(&prefix.address().key(prefix.len()))
    }
}

impl<A: Family> Table<A> for IpLookupTable<A, u32> {
    #[inline]
    fn build(routes: &[Route<A>]) -> Self {
        filled(routes)
    }

    #[inline]
    fn lookup(&self, address: A) -> Option<Match> {
        self.longest_match(address).map(|(_, len, &value)| Match { len, value })
    }
}

impl<A: Family> Live<A> for IpLookupTable<A, u32> {
    #[inline]
    fn announce(&mut self, prefix: &Prefix<A>, value: u32) {
        self.insert(prefix.address(), prefix.len(), value);
    }

    #[inline]
    fn withdraw(&mut self, prefix: &Prefix<A>) -> Option<u32> {
        self.remove(prefix.address(), prefix.len())
    }
}

fn net<A: Family>(prefix: &Prefix<A>) -> IpNet {
    IpNet::new(prefix.address().into(), prefix.len() as u8).expect("no prefix is longer than that")
}

/// The table for one family, which need not ask which one it is. Its look-up that tells the prefix is
/// another, slower one.
impl<A: Family> Table<A> for SimpleTable<u32> {
    #[inline]
    fn build(routes: &[Route<A>]) -> Self {
        filled(routes)
    }

    #[inline]
    fn lookup(&self, address: A) -> Option<Match> {
        RoutingTable::lookup(self, address.into()).map(|&value| Match::silent(value))
    }
}

impl<A: Family> Live<A> for SimpleTable<u32> {
    #[inline]
    fn announce(&mut self, prefix: &Prefix<A>, value: u32) {
        self.insert(net(prefix), value);
    }

    #[inline]
    fn withdraw(&mut self, prefix: &Prefix<A>) -> Option<u32> {
        self.remove(net(prefix))
    }
}

/// Its look-up that tells the prefix reads one more line.
impl<A: Family> Table<A> for Poptrie<A::Key, u32> {
    #[inline]
    fn build(routes: &[Route<A>]) -> Self {
        let key = |route: &Route<A>| (route.prefix.address().key(route.prefix.len()), route.value);
        routes.iter().map(key).collect()
    }

    #[inline]
    fn lookup(&self, address: A) -> Option<Match> {
        Poptrie::lookup(self, address.number()).map(|&value| Match::silent(value))
    }
}
