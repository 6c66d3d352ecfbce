//! The route tables: implementations of [`LpmTable`] and [`Updatable`].

use std::net::{Ipv4Addr, Ipv6Addr};

use flowtable::{Prefix, RouteTable};
use ip_network_table_deps_treebitmap::IpLookupTable;
use ipnet::IpNet;
use poptrie::Poptrie;
use prefix_trie::{Prefix as _, PrefixMap};
use ts_bart::{RoutingTable, SimpleTable};

use super::Subjects;
use super::dir::Dir;
use super::family::Family;
use super::subject::{LpmTable, Match, Route, Updatable, filled, fixed, updatable};
use crate::subject::{BURST, ours, peer};

/// A family with the route tables that are compared.
pub(crate) trait Compared: Family {
    fn subjects() -> Subjects<Self>;
}

impl Compared for Ipv4Addr {
    fn subjects() -> Subjects<Self> {
        let mut subjects = of_both_families();
        subjects.push(peer("DIR-24-8 array", fixed::<_, Dir>()));
        subjects
    }
}

impl Compared for Ipv6Addr {
    fn subjects() -> Subjects<Self> {
        of_both_families()
    }
}

/// Returns the subjects that have both families, ours first.
fn of_both_families<A: Family>() -> Subjects<A> {
    vec![
        ours("routes", "RouteTable", updatable::<A, RouteTable<A, u32>>()),
        peer("prefix-trie", updatable::<A, PrefixMap<A::Key, u32>>()),
        peer("treebitmap", updatable::<A, IpLookupTable<A, u32>>()),
        peer("ts_bart", updatable::<A, SimpleTable<u32>>()),
        peer("poptrie", fixed::<A, Poptrie<A::Key, u32>>()),
    ]
}

impl<A: Family> LpmTable<A> for RouteTable<A, u32> {
    #[inline]
    fn build(routes: &[Route<A>]) -> Self {
        routes.iter().map(|route| (route.prefix, route.value)).collect()
    }

    #[inline]
    fn lookup(&self, address: A) -> Option<Match> {
        RouteTable::lookup(self, &address)
            .map(|(prefix, &value)| Match { len: prefix.len(), value })
    }

    #[inline]
    fn burst(&self, addresses: &[A; BURST]) -> u64 {
        let mut sum = 0_u64;
        self.lookup_batch(addresses, |_, route| {
            if let Some((prefix, &value)) = route {
                sum = sum.wrapping_add(Match { len: prefix.len(), value }.digest());
            }
        });
        sum
    }

    #[inline]
    fn burst_of_values(&self, addresses: &[A; BURST]) -> u64 {
        let mut sum = 0_u64;
        self.lookup_batch_values(addresses, |_, value| {
            if let Some(&value) = value {
                sum = sum.wrapping_add(Match::without_length(value).digest());
            }
        });
        sum
    }

    fn shape(&self) -> Option<String> {
        Some(RouteTable::shape(self).to_string())
    }
}

impl<A: Family> Updatable<A> for RouteTable<A, u32> {
    #[inline]
    fn announce(&mut self, prefix: &Prefix<A>, value: u32) {
        self.insert(*prefix, value);
    }

    #[inline]
    fn withdraw(&mut self, prefix: &Prefix<A>) -> Option<u32> {
        self.remove(prefix)
    }
}

/// With pairs of an integer and a length, which are faster than the types of `ipnet`.
impl<A: Family> LpmTable<A> for PrefixMap<A::Key, u32> {
    #[inline]
    fn build(routes: &[Route<A>]) -> Self {
        let key = |route: &Route<A>| (route.prefix.address().key(route.prefix.len()), route.value);
        routes.iter().map(key).collect()
    }

    #[inline]
    fn lookup(&self, address: A) -> Option<Match> {
        let found = self.get_lpm(&address.key(A::BITS))?;
        Some(Match { len: found.0.prefix_len().into(), value: *found.1 })
    }
}

impl<A: Family> Updatable<A> for PrefixMap<A::Key, u32> {
    #[inline]
    fn announce(&mut self, prefix: &Prefix<A>, value: u32) {
        self.insert(prefix.address().key(prefix.len()), value);
    }

    #[inline]
    fn withdraw(&mut self, prefix: &Prefix<A>) -> Option<u32> {
        self.remove(&prefix.address().key(prefix.len()))
    }
}

impl<A: Family> LpmTable<A> for IpLookupTable<A, u32> {
    #[inline]
    fn build(routes: &[Route<A>]) -> Self {
        filled(routes)
    }

    #[inline]
    fn lookup(&self, address: A) -> Option<Match> {
        self.longest_match(address).map(|(_, len, &value)| Match { len, value })
    }
}

impl<A: Family> Updatable<A> for IpLookupTable<A, u32> {
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
    IpNet::new(prefix.address().into(), prefix.len() as u8).expect("the length of a prefix")
}

/// The table for one family, without dispatch on the family. Its lookup that returns the prefix is
/// slower.
impl<A: Family> LpmTable<A> for SimpleTable<u32> {
    #[inline]
    fn build(routes: &[Route<A>]) -> Self {
        filled(routes)
    }

    #[inline]
    fn lookup(&self, address: A) -> Option<Match> {
        RoutingTable::lookup(self, address.into()).map(|&value| Match::without_length(value))
    }
}

impl<A: Family> Updatable<A> for SimpleTable<u32> {
    #[inline]
    fn announce(&mut self, prefix: &Prefix<A>, value: u32) {
        self.insert(net(prefix), value);
    }

    #[inline]
    fn withdraw(&mut self, prefix: &Prefix<A>) -> Option<u32> {
        self.remove(net(prefix))
    }
}

/// Its lookup that returns the prefix reads one more cache line.
impl<A: Family> LpmTable<A> for Poptrie<A::Key, u32> {
    #[inline]
    fn build(routes: &[Route<A>]) -> Self {
        let key = |route: &Route<A>| (route.prefix.address().key(route.prefix.len()), route.value);
        routes.iter().map(key).collect()
    }

    #[inline]
    fn lookup(&self, address: A) -> Option<Match> {
        Poptrie::lookup(self, address.integer()).map(|&value| Match::without_length(value))
    }
}
