//! Sets of prefixes, of one address family and of both.

use core::fmt;
use core::iter::{Chain, Map};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{IntoIter, Iter, NoMemory, RouteTable, Routes};
use crate::key::any_prefix::AnyPrefix;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::{Allocator, Global};

/// A set of prefixes: a [`RouteTable`] without values, for access lists and the like.
///
/// | method | cost |
/// |---|---|
/// | `contains_address`, `lookup` | as [`RouteTable::lookup`] |
/// | `insert`, `remove`, `contains`, `covers`, `overlaps` | the path to the prefix, as in a [`RouteTable`] |
/// | `lookup_prefix`, `covering`, `covered` | the path to the prefix, and the prefixes that are read |
/// | `lookup_batch` | as [`RouteTable::lookup_batch`] |
/// | `remove_covered` | the path, and all prefixes below |
/// | `aggregated` | O(bits of all prefixes) |
/// | `iter`, `retain`, `extract_if`, `union`, `intersection`, `difference`, `clone`, `==` | O(prefixes), of both sets |
/// | `len`, `is_empty` | O(1) |
///
/// # Example
///
/// ```
/// use flowtable::{Prefix, routes::PrefixSet};
/// use std::net::Ipv4Addr;
///
/// let mut private = PrefixSet::<Ipv4Addr>::new();
/// assert!(private.insert("10.0.0.0/8".parse()?));
/// assert!(private.insert("192.168.0.0/16".parse()?) && private.len() == 2);
/// assert!(private.contains_address(&Ipv4Addr::new(10, 1, 2, 3)));
/// assert_eq!(private.lookup(&Ipv4Addr::new(8, 8, 8, 8)), None);
/// assert!(private.contains(&"10.0.0.0/8".parse()?));
/// assert!(private.covers(&"10.1.0.0/16".parse()?));
/// assert!(private.overlaps(&"0.0.0.0/0".parse()?));
/// assert_eq!(private.iter().next(), Some("10.0.0.0/8".parse()?));
///
/// let other = PrefixSet::from(["10.0.0.0/8".parse()?]);
/// assert_eq!(private.union(&other), private);
/// assert_eq!(private.intersection(&other), other);
/// assert_eq!(private.difference(&other).len(), 1);
/// private.retain(|prefix| prefix.len() < 16);
/// assert_eq!(private, other);
/// assert!(private.clone().into_iter().eq(["10.0.0.0/8".parse()?]));
/// assert!(private.remove(&"10.0.0.0/8".parse()?) && private.is_empty());
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
#[doc(alias("acl", "IpSet"))]
pub struct PrefixSet<A: Address, M: Allocator + Clone = Global> {
    table: RouteTable<A, (), M>,
}

impl<A: Address> PrefixSet<A> {
    /// Creates an empty set, which allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { table: RouteTable::new() }
    }
}

impl<A: Address, M: Allocator + Clone> PrefixSet<A, M> {
    /// Creates an empty set whose memory is from `memory`. Allocates nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, routes::PrefixSet};
    ///
    /// let arena = bumpalo::Bump::new();
    /// let mut ports = PrefixSet::new_in(&arena);
    /// assert!(ports.insert(Prefix::new(0_u16, 6)?));
    /// assert!(ports.contains_address(&80) && arena.allocated_bytes() > 0);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn new_in(memory: M) -> Self {
        Self { table: RouteTable::new_in(memory) }
    }

    /// Creates a set of these prefixes in the same memory.
    fn with(&self, prefixes: impl Iterator<Item = Prefix<A>>) -> Self {
        let mut set = Self::new_in(self.table.allocator().clone());
        set.extend(prefixes);
        set
    }

    /// Returns the number of prefixes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns the bytes that the set has allocated: see [`RouteTable::allocation_size`].
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.table.allocation_size()
    }

    /// Inserts a prefix. Returns whether it is new.
    ///
    /// Aborts like other collections if there is no memory: see [`try_insert`](Self::try_insert).
    pub fn insert(&mut self, prefix: Prefix<A>) -> bool {
        self.table.insert(prefix, ()).is_none()
    }

    /// Inserts a prefix, if there is memory. Returns whether it is new.
    ///
    /// # Errors
    ///
    /// As for [`RouteTable::try_insert`]: the error has the prefix, and the set is as it was.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, routes::PrefixSet};
    ///
    /// let mut ports = PrefixSet::<u16>::new();
    /// assert_eq!(ports.try_insert(Prefix::new(0, 6)?), Ok(true));
    /// assert_eq!(ports.try_insert(Prefix::new(0, 6)?), Ok(false));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn try_insert(&mut self, prefix: Prefix<A>) -> Result<bool, NoMemory<Prefix<A>>> {
        let inserted = self.table.try_insert(prefix, ());
        inserted.map(|old| old.is_none()).map_err(|_| NoMemory { refused: prefix })
    }

    /// Removes a prefix. Returns whether the set had it.
    pub fn remove(&mut self, prefix: &Prefix<A>) -> bool {
        self.table.remove(prefix).is_some()
    }

    /// Removes the prefixes that `prefix` covers, itself included. Returns their number.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, routes::PrefixSet};
    ///
    /// let mut hosts: PrefixSet<u8> = (0..6).map(Prefix::host).collect();
    /// assert_eq!(hosts.remove_covered(&Prefix::new(4, 7)?), 2);
    /// assert_eq!(hosts.len(), 4);
    /// hosts.clear();
    /// assert!(hosts.is_empty());
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[doc(alias("remove_children"))]
    pub fn remove_covered(&mut self, prefix: &Prefix<A>) -> usize {
        self.table.remove_covered(prefix)
    }

    /// Removes all prefixes and releases the memory.
    pub fn clear(&mut self) {
        self.table.clear();
    }

    /// Retains the prefixes for which `keep` returns true. It is called in order; if it panics,
    /// some that it has rejected may remain. O(prefixes).
    pub fn retain(&mut self, mut keep: impl FnMut(Prefix<A>) -> bool) {
        self.table.retain(|prefix, ()| keep(prefix));
    }

    /// Returns an iterator that removes the prefixes for which `predicate` returns true, in order.
    /// See [`RouteTable::extract_if`].
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, routes::PrefixSet};
    ///
    /// let mut hosts: PrefixSet<u8> = (0..6).map(Prefix::host).collect();
    /// let odd = hosts.extract_if(|prefix| prefix.address() % 2 == 1);
    /// assert!(odd.eq([1, 3, 5].map(Prefix::host)));
    /// assert_eq!(hosts.len(), 3);
    /// ```
    pub fn extract_if(
        &mut self,
        mut predicate: impl FnMut(Prefix<A>) -> bool,
    ) -> impl Iterator<Item = Prefix<A>> {
        self.table.extract_if(move |prefix, ()| predicate(prefix)).map(|(prefix, ())| prefix)
    }

    /// Returns whether the set has exactly this prefix.
    #[must_use]
    pub fn contains(&self, prefix: &Prefix<A>) -> bool {
        self.table.contains(prefix)
    }

    /// Returns whether a prefix of the set contains `address`.
    #[must_use]
    pub fn contains_address(&self, address: &A) -> bool {
        self.lookup(address).is_some()
    }

    /// Returns the longest prefix that contains `address`.
    #[must_use]
    pub fn lookup(&self, address: &A) -> Option<Prefix<A>> {
        self.table.lookup(address).map(|(prefix, ())| prefix)
    }

    /// Returns the longest prefix that covers `prefix`, which may be `prefix` itself.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, routes::PrefixSet};
    ///
    /// let [short, long, host] = [(0x40_u8, 2), (0x48, 5), (0x49, 8)].map(|(address, len)| {
    ///     Prefix::new(address, len).unwrap()
    /// });
    /// let set = PrefixSet::from([short, long]);
    /// assert_eq!(set.lookup_prefix(&host), Some(long));
    /// assert!(set.covering(&host).eq([short, long]));
    /// assert!(set.covered(&short).eq([short, long]) && set.covered(&host).next().is_none());
    /// ```
    #[doc(alias("get_lpm"))]
    #[must_use]
    pub fn lookup_prefix(&self, prefix: &Prefix<A>) -> Option<Prefix<A>> {
        self.table.lookup_prefix(prefix).map(|(prefix, ())| prefix)
    }

    /// Returns an iterator over the prefixes that cover `prefix`, the shortest first; the last one
    /// may be `prefix` itself.
    #[doc(alias("supernets"))]
    pub fn covering(&self, prefix: &Prefix<A>) -> impl Iterator<Item = Prefix<A>> {
        self.table.covering(prefix).map(|(prefix, ())| prefix)
    }

    /// Returns an iterator over the prefixes that `prefix` covers, in order; the first one may be
    /// `prefix` itself.
    #[doc(alias("children", "subnets"))]
    pub fn covered(&self, prefix: &Prefix<A>) -> impl Iterator<Item = Prefix<A>> {
        self.table.covered(prefix).map(|(prefix, ())| prefix)
    }

    /// Calls `found` with the index of each address and the longest prefix that contains it. The
    /// cache misses of 32 addresses overlap.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, routes::PrefixSet};
    ///
    /// let ports: PrefixSet<u16> = [Prefix::new(0, 6)?].into();
    /// let mut found = [None; 2];
    /// ports.lookup_batch(&[80, 8080], |i, prefix| found[i] = prefix);
    /// assert_eq!(found, [Some(Prefix::new(0, 6)?), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn lookup_batch(&self, addresses: &[A], mut found: impl FnMut(usize, Option<Prefix<A>>)) {
        self.table.lookup_batch(addresses, |i, route| found(i, route.map(|(prefix, ())| prefix)));
    }

    /// Returns whether a prefix of the set covers `prefix`.
    #[must_use]
    pub fn covers(&self, prefix: &Prefix<A>) -> bool {
        self.table.covering(prefix).next().is_some()
    }

    /// Returns whether a prefix of the set has an address in common with `prefix`.
    #[must_use]
    pub fn overlaps(&self, prefix: &Prefix<A>) -> bool {
        self.table.overlaps(prefix)
    }

    /// Returns an iterator over the prefixes in order.
    pub fn iter(&self) -> impl Iterator<Item = Prefix<A>> {
        self.table.prefixes()
    }

    /// Returns the smallest set that contains the same addresses: without prefixes that others
    /// cover, and with two halves as one.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{Prefix, routes::PrefixSet};
    ///
    /// let hosts: PrefixSet<u8> = (1..8).map(Prefix::host).collect();
    /// let prefixes = [(1, 8), (2, 7), (4, 6)].map(|(at, len)| Prefix::new(at, len).unwrap());
    /// assert!(hosts.aggregated().iter().eq(prefixes));
    /// ```
    #[doc(alias("compress", "simplify"))]
    #[must_use]
    pub fn aggregated(&self) -> Self {
        Self { table: self.table.aggregated() }
    }

    /// Returns the prefixes that are in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.with(self.table.union(&other.table).map(|(prefix, ())| prefix))
    }

    /// Returns the prefixes that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.with(self.table.intersection(&other.table).map(|(prefix, ..)| prefix))
    }

    /// Returns the prefixes that are in this set and not in the other one.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.with(self.table.difference(&other.table).map(|(prefix, ())| prefix))
    }
}

impl<A: Address, M: Allocator + Clone> Clone for PrefixSet<A, M> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone() }
    }
}

impl<A: Address, M: Allocator + Clone> PartialEq for PrefixSet<A, M> {
    fn eq(&self, other: &Self) -> bool {
        self.table == other.table
    }
}

impl<A: Address, M: Allocator + Clone> Eq for PrefixSet<A, M> {}

impl<A: Address> Default for PrefixSet<A> {
    fn default() -> Self {
        Self::new()
    }
}

/// Formats the prefixes in order, as a set.
impl<A: Address + fmt::Debug, M: Allocator + Clone> fmt::Debug for PrefixSet<A, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The prefixes in order.
impl<A: Address, M: Allocator + Clone> IntoIterator for PrefixSet<A, M> {
    type Item = Prefix<A>;
    type IntoIter = Map<IntoIter<A, (), M>, fn((Prefix<A>, ())) -> Prefix<A>>;

    fn into_iter(self) -> Self::IntoIter {
        self.table.into_iter().map(|(prefix, ())| prefix)
    }
}

/// The prefixes in order.
impl<'t, A: Address, M: Allocator + Clone> IntoIterator for &'t PrefixSet<A, M> {
    type Item = Prefix<A>;
    type IntoIter = Map<Iter<'t, A, (), M>, fn((Prefix<A>, &'t ())) -> Prefix<A>>;

    fn into_iter(self) -> Self::IntoIter {
        self.table.iter().map(|(prefix, ())| prefix)
    }
}

impl<A: Address, M: Allocator + Clone> Extend<Prefix<A>> for PrefixSet<A, M> {
    fn extend<I: IntoIterator<Item = Prefix<A>>>(&mut self, prefixes: I) {
        self.table.extend(prefixes.into_iter().map(|prefix| (prefix, ())));
    }
}

impl<A: Address> FromIterator<Prefix<A>> for PrefixSet<A> {
    fn from_iter<I: IntoIterator<Item = Prefix<A>>>(prefixes: I) -> Self {
        Self { table: prefixes.into_iter().map(|prefix| (prefix, ())).collect() }
    }
}

impl<A: Address, const N: usize> From<[Prefix<A>; N]> for PrefixSet<A> {
    fn from(prefixes: [Prefix<A>; N]) -> Self {
        prefixes.into_iter().collect()
    }
}

/// A set of prefixes of IPv4 and IPv6: a [`PrefixSet`] of each.
///
/// The sets of the families, [`v4`](Self::v4) and [`v6`](Self::v6), have all other methods.
///
/// # Example
///
/// ```
/// use flowtable::{AnyPrefix, routes::AnyPrefixSet};
///
/// let [ten, lab]: [AnyPrefix; 2] = ["10.0.0.0/8".parse()?, "2001:db8::/32".parse()?];
/// let mut private = AnyPrefixSet::new();
/// assert!(private.insert(ten) && private.insert(lab) && !private.insert(lab));
/// assert!(private.contains(&lab) && private.contains_address("10.1.2.3".parse().unwrap()));
/// assert_eq!(private.lookup("2001:db8::1".parse().unwrap()), Some(lab));
/// assert!(private.iter().eq([ten, lab]) && private.clone().into_iter().eq([ten, lab]));
///
/// private.v4.insert("192.168.0.0/16".parse()?);
/// private.retain(|prefix| prefix.len() != 16);
/// assert_eq!((private.len(), private.v4.len(), private.v6.len()), (2, 1, 1));
/// assert!(private.remove(&ten) && private.v6.iter().count() == 1);
/// private.clear();
/// assert!(private.is_empty());
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AnyPrefixSet {
    /// The prefixes of IPv4.
    pub v4: PrefixSet<Ipv4Addr>,
    /// The prefixes of IPv6.
    pub v6: PrefixSet<Ipv6Addr>,
}

impl AnyPrefixSet {
    /// Creates an empty set, which allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { v4: PrefixSet::new(), v6: PrefixSet::new() }
    }

    /// Returns the number of prefixes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Inserts a prefix. Returns whether it is new.
    pub fn insert(&mut self, prefix: AnyPrefix) -> bool {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.insert(prefix),
            AnyPrefix::V6(prefix) => self.v6.insert(prefix),
        }
    }

    /// Removes a prefix. Returns whether the set had it.
    pub fn remove(&mut self, prefix: &AnyPrefix) -> bool {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.remove(prefix),
            AnyPrefix::V6(prefix) => self.v6.remove(prefix),
        }
    }

    /// Returns whether the set has exactly this prefix.
    #[must_use]
    pub fn contains(&self, prefix: &AnyPrefix) -> bool {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.contains(prefix),
            AnyPrefix::V6(prefix) => self.v6.contains(prefix),
        }
    }

    /// Returns whether a prefix of the set contains `address`.
    #[must_use]
    pub fn contains_address(&self, address: IpAddr) -> bool {
        self.lookup(address).is_some()
    }

    /// Returns the longest prefix that contains `address`.
    #[must_use]
    pub fn lookup(&self, address: IpAddr) -> Option<AnyPrefix> {
        match address {
            IpAddr::V4(address) => self.v4.lookup(&address).map(AnyPrefix::V4),
            IpAddr::V6(address) => self.v6.lookup(&address).map(AnyPrefix::V6),
        }
    }

    /// Returns an iterator over the prefixes in order: IPv4 before IPv6.
    pub fn iter(&self) -> impl Iterator<Item = AnyPrefix> {
        self.v4.iter().map(AnyPrefix::V4).chain(self.v6.iter().map(AnyPrefix::V6))
    }

    /// Retains the prefixes for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(AnyPrefix) -> bool) {
        self.v4.retain(|prefix| keep(prefix.into()));
        self.v6.retain(|prefix| keep(prefix.into()));
    }

    /// Removes all prefixes and releases the memory.
    pub fn clear(&mut self) {
        *self = Self::new();
    }
}

/// Formats the prefixes in order, as a set.
impl fmt::Debug for AnyPrefixSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The prefixes in order: IPv4 before IPv6.
impl IntoIterator for AnyPrefixSet {
    type Item = AnyPrefix;
    type IntoIter = Chain<
        Map<<PrefixSet<Ipv4Addr> as IntoIterator>::IntoIter, fn(Prefix<Ipv4Addr>) -> AnyPrefix>,
        Map<<PrefixSet<Ipv6Addr> as IntoIterator>::IntoIter, fn(Prefix<Ipv6Addr>) -> AnyPrefix>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        let v4 = self.v4.into_iter().map(AnyPrefix::V4 as fn(_) -> _);
        v4.chain(self.v6.into_iter().map(AnyPrefix::V6 as fn(_) -> _))
    }
}

impl Extend<AnyPrefix> for AnyPrefixSet {
    fn extend<I: IntoIterator<Item = AnyPrefix>>(&mut self, prefixes: I) {
        prefixes.into_iter().for_each(|prefix| _ = self.insert(prefix));
    }
}

impl FromIterator<AnyPrefix> for AnyPrefixSet {
    fn from_iter<I: IntoIterator<Item = AnyPrefix>>(prefixes: I) -> Self {
        let routes: Routes<()> = prefixes.into_iter().map(|prefix| (prefix, ())).collect();
        Self { v4: PrefixSet { table: routes.v4 }, v6: PrefixSet { table: routes.v6 } }
    }
}
