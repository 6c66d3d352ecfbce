//! Routes of both address families in one table.
//!
//! ```
//! use flowtable::routes::Routes;
//! use std::net::IpAddr;
//!
//! let mut routes = Routes::new();
//! routes.insert("10.0.0.0/8".parse()?, "core");
//! routes.insert("2001:db8::/32".parse()?, "lab");
//!
//! let via = |text: &str| routes.lookup(text.parse().unwrap()).map(|(_, via)| *via);
//! assert_eq!(via("10.1.2.3"), Some("core"));
//! assert_eq!(via("2001:db8::1"), Some("lab"));
//! assert_eq!(via("::ffff:10.1.2.3"), None); // see IpAddr::to_canonical
//! # Ok::<(), flowtable::PrefixError>(())
//! ```

use alloc::vec::Vec;
use core::fmt;
use core::iter::{self, FusedIterator};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::extract::Extraction;
use super::{AnyEntry, IntoIter, Iter, IterMut, NoMemory, RouteTable};
use crate::key::any_prefix::AnyPrefix;
use crate::key::prefix::Prefix;
use crate::memory::{Allocator, Global};
use crate::raw::prefetch::BURST;
use crate::raw::results::results_for;

/// A routing table for IPv4 and IPv6: a [`RouteTable`] of each.
///
/// Methods cost what they cost in the [`RouteTable`] of the family, and a branch. [`v4`](Self::v4)
/// and [`v6`](Self::v6) have all other methods.
///
/// | method | cost |
/// |---|---|
/// | `lookup`, `lookup_mut` | IPv4: a slot and a value; IPv6: entries of three levels at once, and a value |
/// | `lookup_batch`, `lookup_batch_values` | each burst of 32 addresses in two parts, with overlapped cache misses |
/// | `insert`, `try_insert`, `remove`, `entry` | the path to the node, up to 126 values; for some, 64 or 4096 slots |
/// | `get`, `get_mut`, `contains`, `matches`, `covering` | the path to the node |
/// | `covered`, `remove_covered` | the path, and all routes below |
/// | `iter`, `iter_mut`, `values`, `retain`, `extract_if`, `clone` | O(routes), of both families |
/// | `len`, `v4`, `v6` | O(1) |
///
/// IPv4-mapped addresses of IPv6 are addresses of IPv6 here: pass
/// [`to_canonical`](IpAddr::to_canonical) of an address to look them up as IPv4.
///
/// # Example
///
/// ```
/// use flowtable::{AnyPrefix, RouteTable, routes::Routes};
///
/// let (ten, lab): (AnyPrefix, AnyPrefix) = ("10.0.0.0/8".parse()?, "2001:db8::/32".parse()?);
/// let mut routes = Routes::from([(ten, 1), (lab, 2)]);
/// assert_eq!((routes.len(), routes.is_empty()), (2, false));
/// assert_eq!((routes.get(&ten), routes.contains(&lab)), (Some(&1), true));
/// assert_eq!(routes.try_insert(ten, 3).unwrap(), Some(1));
/// *routes.get_mut(&lab).unwrap() += 10;
///
/// let address = "10.1.2.3".parse().unwrap();
/// assert_eq!(routes.lookup(address), Some((ten, &3)));
/// *routes.lookup_mut(address).unwrap().1 = 4;
/// assert!(routes.matches(address).eq([(ten, &4)]));
/// assert!(routes.covered(&AnyPrefix::parse_lenient("::/0")?).eq([(lab, &12)]));
/// assert!(routes.covering(&ten).eq([(ten, &4)]));
/// assert!(routes.iter().eq([(ten, &4), (lab, &12)]));
/// assert!(routes.values().eq(&[4, 12]) && routes.prefixes().eq([ten, lab]));
/// assert_eq!((routes.v4().len(), routes.v6_mut().len()), (1, 1));
///
/// routes.iter_mut().for_each(|(prefix, value)| *value += u32::from(prefix.len()));
/// routes.values_mut().for_each(|value| *value *= 2);
/// assert!(routes.values().eq(&[24, 88]));
/// assert_eq!(routes.remove_covered(&AnyPrefix::parse_lenient("2001::/16")?), 1);
/// routes.insert(lab, 12);
/// routes.retain(|_, value| *value != 12);
/// *routes.entry(ten).or_insert(0) += 1;
/// for (_, value) in &mut routes {
///     *value += 1;
/// }
/// assert!(routes.clone().into_iter().eq([(ten, 26)]));
/// assert_eq!((routes.remove(&lab), routes.remove(&ten)), (None, Some(26)));
/// routes.v4_mut().insert("192.0.2.0/24".parse()?, 5);
/// routes.clear();
/// assert_eq!((routes.v6().len(), routes.allocation_size()), (0, 0));
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
#[doc(alias("fib", "lpm", "rib"))]
pub struct Routes<V, M: Allocator + Clone = Global> {
    v4: RouteTable<Ipv4Addr, V, M>,
    v6: RouteTable<Ipv6Addr, V, M>,
}

impl<V> Routes<V> {
    /// Creates an empty table, which allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { v4: RouteTable::new(), v6: RouteTable::new() }
    }
}

impl<V, M: Allocator + Clone> Routes<V, M> {
    /// Creates an empty table whose memory is from `memory`. Allocates nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::Routes;
    ///
    /// let arena = bumpalo::Bump::new();
    /// let mut routes = Routes::new_in(&arena);
    /// assert_eq!(routes.try_insert("10.0.0.0/8".parse()?, 'a'), Ok(None));
    /// assert!(arena.allocated_bytes() >= routes.allocation_size());
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn new_in(memory: M) -> Self {
        Self { v4: RouteTable::new_in(memory.clone()), v6: RouteTable::new_in(memory) }
    }

    /// Returns the number of routes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Returns whether the table has no routes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the routes of IPv4.
    #[must_use]
    pub const fn v4(&self) -> &RouteTable<Ipv4Addr, V, M> {
        &self.v4
    }

    /// Returns a mutable reference to the routes of IPv4.
    pub const fn v4_mut(&mut self) -> &mut RouteTable<Ipv4Addr, V, M> {
        &mut self.v4
    }

    /// Returns the routes of IPv6.
    #[must_use]
    pub const fn v6(&self) -> &RouteTable<Ipv6Addr, V, M> {
        &self.v6
    }

    /// Returns a mutable reference to the routes of IPv6.
    pub const fn v6_mut(&mut self) -> &mut RouteTable<Ipv6Addr, V, M> {
        &mut self.v6
    }

    /// Inserts a route. Returns the previous value of the prefix.
    ///
    /// Aborts like other collections if there is no memory: see [`try_insert`](Self::try_insert).
    pub fn insert(&mut self, prefix: AnyPrefix, value: V) -> Option<V> {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.insert(prefix, value),
            AnyPrefix::V6(prefix) => self.v6.insert(prefix, value),
        }
    }

    /// Inserts a route, if there is memory. Returns the previous value of the prefix.
    ///
    /// # Errors
    ///
    /// As those of [`RouteTable::try_insert`].
    pub fn try_insert(&mut self, prefix: AnyPrefix, value: V) -> Result<Option<V>, NoMemory<V>> {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.try_insert(prefix, value),
            AnyPrefix::V6(prefix) => self.v6.try_insert(prefix, value),
        }
    }

    /// Removes a route. Returns its value, if it existed.
    pub fn remove(&mut self, prefix: &AnyPrefix) -> Option<V> {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.remove(prefix),
            AnyPrefix::V6(prefix) => self.v6.remove(prefix),
        }
    }

    /// Returns the value of the route of exactly this prefix.
    #[must_use]
    pub fn get(&self, prefix: &AnyPrefix) -> Option<&V> {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.get(prefix),
            AnyPrefix::V6(prefix) => self.v6.get(prefix),
        }
    }

    /// Returns a mutable reference to the value of the route of exactly this prefix.
    pub fn get_mut(&mut self, prefix: &AnyPrefix) -> Option<&mut V> {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.get_mut(prefix),
            AnyPrefix::V6(prefix) => self.v6.get_mut(prefix),
        }
    }

    /// Returns whether there is a route of exactly this prefix.
    #[must_use]
    pub fn contains(&self, prefix: &AnyPrefix) -> bool {
        self.get(prefix).is_some()
    }

    /// Returns the entry of a prefix.
    pub fn entry(&mut self, prefix: AnyPrefix) -> AnyEntry<'_, V, M> {
        match prefix {
            AnyPrefix::V4(prefix) => AnyEntry::V4(self.v4.entry(prefix)),
            AnyPrefix::V6(prefix) => AnyEntry::V6(self.v6.entry(prefix)),
        }
    }

    /// Returns the longest route that contains `address`.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: IpAddr) -> Option<(AnyPrefix, &V)> {
        match address {
            IpAddr::V4(address) => self.v4.lookup(&address).map(any),
            IpAddr::V6(address) => self.v6.lookup(&address).map(any),
        }
    }

    /// Looks up a batch of addresses: writes the longest route that contains each address to
    /// `found`. What that has beyond the addresses is set to `None`.
    ///
    /// Of each 32 addresses, those of one family are looked up like a
    /// [batch](RouteTable::lookup_batch) of its table, with overlapping cache misses.
    ///
    /// # Panics
    ///
    /// If `found` is shorter than `addresses`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::routes::Routes;
    ///
    /// let mut routes = Routes::new();
    /// routes.insert("10.0.0.0/8".parse()?, "core");
    /// routes.insert("2001:db8::/32".parse()?, "lab");
    /// let burst = ["2001:db8::1", "10.1.2.3", "2001:db9::1"].map(|text| text.parse().unwrap());
    /// let mut found = [None; 3];
    /// routes.lookup_batch(&burst, &mut found);
    /// let via = found.map(|route| route.map(|(_, via)| *via));
    /// assert_eq!(via, [Some("lab"), Some("core"), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn lookup_batch<'t>(
        &'t self,
        addresses: &[IpAddr],
        found: &mut [Option<(AnyPrefix, &'t V)>],
    ) {
        let found = results_for(addresses.len(), found);
        for (addresses, found) in addresses.chunks(BURST).zip(found.chunks_mut(BURST)) {
            found.fill(None);
            let look_up = |own: &[_], routes: &mut [_]| self.v4.lookup_batch(own, routes);
            batch_of(v4_of, Ipv4Addr::UNSPECIFIED, addresses, found, look_up, any);
            let look_up = |own: &[_], routes: &mut [_]| self.v6.lookup_batch(own, routes);
            batch_of(v6_of, Ipv6Addr::UNSPECIFIED, addresses, found, look_up, any);
        }
    }

    /// Looks up the values of a batch of addresses, as [`lookup_batch`](Self::lookup_batch) without
    /// prefixes.
    ///
    /// # Panics
    ///
    /// If `found` is shorter than `addresses`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::routes::Routes;
    ///
    /// let mut routes = Routes::new();
    /// routes.insert("10.0.0.0/8".parse()?, "core");
    /// routes.insert("2001:db8::/32".parse()?, "lab");
    /// let burst = ["2001:db8::1", "10.1.2.3", "2001:db9::1"].map(|text| text.parse().unwrap());
    /// let mut found = [None; 3];
    /// routes.lookup_batch_values(&burst, &mut found);
    /// assert_eq!(found, [Some(&"lab"), Some(&"core"), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn lookup_batch_values<'t>(&'t self, addresses: &[IpAddr], found: &mut [Option<&'t V>]) {
        let found = results_for(addresses.len(), found);
        for (addresses, found) in addresses.chunks(BURST).zip(found.chunks_mut(BURST)) {
            found.fill(None);
            let look_up = |own: &[_], values: &mut [_]| self.v4.lookup_batch_values(own, values);
            batch_of(v4_of, Ipv4Addr::UNSPECIFIED, addresses, found, look_up, |value| value);
            let look_up = |own: &[_], values: &mut [_]| self.v6.lookup_batch_values(own, values);
            batch_of(v6_of, Ipv6Addr::UNSPECIFIED, addresses, found, look_up, |value| value);
        }
    }

    /// Returns the longest route that contains `address`, with a mutable reference to its value.
    pub fn lookup_mut(&mut self, address: IpAddr) -> Option<(AnyPrefix, &mut V)> {
        match address {
            IpAddr::V4(address) => self.v4.lookup_mut(&address).map(any),
            IpAddr::V6(address) => self.v6.lookup_mut(&address).map(any),
        }
    }

    /// Returns an iterator over the routes that contain `address`, the shortest first.
    #[doc(alias("less specific"))]
    pub fn matches(&self, address: IpAddr) -> impl Iterator<Item = (AnyPrefix, &V)> {
        self.covering(&AnyPrefix::host(address))
    }

    /// Returns an iterator over the routes that cover `prefix`, the shortest first; the last one
    /// may be of `prefix` itself.
    #[doc(alias("less specific", "supernets"))]
    pub fn covering<'t>(
        &'t self,
        prefix: &AnyPrefix,
    ) -> impl Iterator<Item = (AnyPrefix, &'t V)> + use<'t, V, M> {
        let (v4, v6) = match prefix {
            AnyPrefix::V4(prefix) => (Some(self.v4.covering(prefix)), None),
            AnyPrefix::V6(prefix) => (None, Some(self.v6.covering(prefix))),
        };
        v4.into_iter().flatten().map(any).chain(v6.into_iter().flatten().map(any))
    }

    /// Returns an iterator over the routes that `prefix` covers, in order; the first one may be of
    /// `prefix` itself.
    #[doc(alias("more specific", "subnets"))]
    pub fn covered<'t>(
        &'t self,
        prefix: &AnyPrefix,
    ) -> impl Iterator<Item = (AnyPrefix, &'t V)> + use<'t, V, M> {
        let (v4, v6) = match prefix {
            AnyPrefix::V4(prefix) => (Some(self.v4.covered(prefix)), None),
            AnyPrefix::V6(prefix) => (None, Some(self.v6.covered(prefix))),
        };
        v4.into_iter().flatten().map(any).chain(v6.into_iter().flatten().map(any))
    }

    /// Returns whether a route and a prefix have addresses in common: if the route covers the
    /// prefix, or the other way round.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::routes::Routes;
    ///
    /// let mut routes = Routes::new();
    /// routes.insert("10.1.0.0/16".parse()?, ());
    /// let overlaps = ["10.0.0.0/8", "10.1.2.0/24", "10.2.0.0/16", "::/0"]
    ///     .map(|prefix| routes.overlaps(&prefix.parse().unwrap()));
    /// assert_eq!(overlaps, [true, true, false, false]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn overlaps(&self, prefix: &AnyPrefix) -> bool {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.overlaps(prefix),
            AnyPrefix::V6(prefix) => self.v6.overlaps(prefix),
        }
    }

    /// Returns an iterator over all routes in order: those of IPv4, then those of IPv6.
    #[must_use]
    pub fn iter(&self) -> Both<Iter<'_, Ipv4Addr, V, M>, Iter<'_, Ipv6Addr, V, M>> {
        Both { v4: self.v4.iter(), v6: self.v6.iter() }
    }

    /// Returns an iterator over the prefixes of all routes in order.
    pub fn prefixes(&self) -> impl Iterator<Item = AnyPrefix> {
        self.iter().map(|(prefix, _)| prefix)
    }

    /// Returns an iterator over the values of all routes in the order of their prefixes.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Returns an iterator over all routes in order, with mutable references to their values.
    pub fn iter_mut(&mut self) -> Both<IterMut<'_, Ipv4Addr, V, M>, IterMut<'_, Ipv6Addr, V, M>> {
        Both { v4: self.v4.iter_mut(), v6: self.v6.iter_mut() }
    }

    /// Returns an iterator over mutable references to the values of all routes in the order of
    /// their prefixes.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }

    /// Removes the routes that `prefix` covers, itself included. Returns their number.
    #[doc(alias("remove_children", "more specific"))]
    pub fn remove_covered(&mut self, prefix: &AnyPrefix) -> usize {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.remove_covered(prefix),
            AnyPrefix::V6(prefix) => self.v6.remove_covered(prefix),
        }
    }

    /// Returns an iterator that removes the routes for which `predicate` returns true, in order:
    /// those of IPv4, then those of IPv6; `predicate` may change their values. See
    /// [`RouteTable::extract_if`].
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::Routes;
    ///
    /// let mut routes = Routes::new();
    /// for prefix in ["10.0.0.0/8", "192.0.2.0/24", "2001:db8::/32"] {
    ///     routes.insert(prefix.parse()?, prefix.len());
    /// }
    /// let long = routes.extract_if(|_, length| *length > 10).map(|(prefix, _)| prefix);
    /// assert!(long.eq(["192.0.2.0/24".parse()?, "2001:db8::/32".parse()?]));
    /// assert!(routes.values().eq(&[10]));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn extract_if(
        &mut self,
        mut predicate: impl FnMut(AnyPrefix, &mut V) -> bool,
    ) -> impl Iterator<Item = (AnyPrefix, V)> {
        let (mut v4, mut v6) = (Extraction::new(&mut self.v4), Extraction::new(&mut self.v6));
        iter::from_fn(move || {
            let first = v4.next(|prefix, value| predicate(prefix.into(), value)).map(any);
            first.or_else(|| v6.next(|prefix, value| predicate(prefix.into(), value)).map(any))
        })
    }

    /// Retains the routes for which `keep` returns true; `keep` may change their values.
    pub fn retain(&mut self, mut keep: impl FnMut(AnyPrefix, &mut V) -> bool) {
        self.v4.retain(|prefix, value| keep(prefix.into(), value));
        self.v6.retain(|prefix, value| keep(prefix.into(), value));
    }

    /// Removes all routes and releases the memory. If the drop of a value panics, both tables are
    /// empty, and the others are dropped.
    pub fn clear(&mut self) {
        *self = Self {
            v4: RouteTable::new_in(self.v4.allocator().clone()),
            v6: RouteTable::new_in(self.v6.allocator().clone()),
        };
    }

    /// Returns the bytes that the tables have allocated; without what values own.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.v4.allocation_size() + self.v6.allocation_size()
    }
}

/// Returns a route with its prefix as one of either family.
fn any<P: Into<AnyPrefix>, V>((prefix, value): (P, V)) -> (AnyPrefix, V) {
    (prefix.into(), value)
}

impl<V: Clone, M: Allocator + Clone> Clone for Routes<V, M> {
    fn clone(&self) -> Self {
        Self { v4: self.v4.clone(), v6: self.v6.clone() }
    }
}

impl<V: PartialEq, M: Allocator + Clone> PartialEq for Routes<V, M> {
    fn eq(&self, other: &Self) -> bool {
        self.v4 == other.v4 && self.v6 == other.v6
    }
}

impl<V: Eq, M: Allocator + Clone> Eq for Routes<V, M> {}

impl<V> Default for Routes<V> {
    fn default() -> Self {
        Self::new()
    }
}

/// Formats the routes in order, as a map.
impl<V: fmt::Debug, M: Allocator + Clone> fmt::Debug for Routes<V, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<V, M: Allocator + Clone> Extend<(AnyPrefix, V)> for Routes<V, M> {
    fn extend<I: IntoIterator<Item = (AnyPrefix, V)>>(&mut self, routes: I) {
        routes.into_iter().for_each(|(prefix, value)| drop(self.insert(prefix, value)));
    }
}

/// Sorts the routes first, as for a [`RouteTable`].
impl<V> FromIterator<(AnyPrefix, V)> for Routes<V> {
    fn from_iter<I: IntoIterator<Item = (AnyPrefix, V)>>(routes: I) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (prefix, value) in routes {
            match prefix {
                AnyPrefix::V4(prefix) => v4.push((prefix, value)),
                AnyPrefix::V6(prefix) => v6.push((prefix, value)),
            }
        }
        Self { v4: v4.into_iter().collect(), v6: v6.into_iter().collect() }
    }
}

impl<V, const N: usize> From<[(AnyPrefix, V); N]> for Routes<V> {
    fn from(routes: [(AnyPrefix, V); N]) -> Self {
        routes.into_iter().collect()
    }
}

const fn v4_of(address: IpAddr) -> Option<Ipv4Addr> {
    if let IpAddr::V4(address) = address { Some(address) } else { None }
}

const fn v6_of(address: IpAddr) -> Option<Ipv6Addr> {
    if let IpAddr::V6(address) = address { Some(address) } else { None }
}

/// Looks up the addresses of one family, which are those that `of` returns, by `look_up`, and
/// writes what `result` makes of each. `unused` is any address of the family.
fn batch_of<A: Copy, R: Copy, T>(
    of: impl Fn(IpAddr) -> Option<A>,
    unused: A,
    addresses: &[IpAddr],
    found: &mut [Option<T>],
    look_up: impl FnOnce(&[A], &mut [Option<R>]),
    result: impl Fn(R) -> T,
) {
    let (mut own, mut places, mut count) = ([unused; BURST], [0; BURST], 0);
    for (place, address) in addresses.iter().enumerate() {
        if let Some(address) = of(*address) {
            (own[count], places[count]) = (address, place);
            count += 1;
        }
    }
    let mut routes = [None; BURST];
    look_up(&own[..count], &mut routes);
    for (place, route) in places[..count].iter().zip(routes) {
        found[*place] = route.map(&result);
    }
}

/// An iterator over routes of both families: those of IPv4, then those of IPv6.
///
/// Created by [`Routes::iter`], [`Routes::iter_mut`] and `into_iter` of a [`Routes`].
#[derive(Clone, Debug)]
pub struct Both<I4, I6> {
    v4: I4,
    v6: I6,
}

impl<I4, I6, T> Iterator for Both<I4, I6>
where
    I4: Iterator<Item = (Prefix<Ipv4Addr>, T)> + FusedIterator,
    I6: Iterator<Item = (Prefix<Ipv6Addr>, T)>,
{
    type Item = (AnyPrefix, T);

    fn next(&mut self) -> Option<Self::Item> {
        self.v4.next().map(any).or_else(|| self.v6.next().map(any))
    }

    /// Returns exact bounds.
    fn size_hint(&self) -> (usize, Option<usize>) {
        let ((least4, most4), (least6, most6)) = (self.v4.size_hint(), self.v6.size_hint());
        let most = most4.zip(most6).and_then(|(most4, most6)| most4.checked_add(most6));
        (least4.saturating_add(least6), most)
    }
}

impl<I4, I6, T> FusedIterator for Both<I4, I6>
where
    I4: Iterator<Item = (Prefix<Ipv4Addr>, T)> + FusedIterator,
    I6: Iterator<Item = (Prefix<Ipv6Addr>, T)> + FusedIterator,
{
}

impl<V, M: Allocator + Clone> IntoIterator for Routes<V, M> {
    type Item = (AnyPrefix, V);
    type IntoIter = Both<IntoIter<Ipv4Addr, V, M>, IntoIter<Ipv6Addr, V, M>>;

    fn into_iter(self) -> Self::IntoIter {
        Both { v4: self.v4.into_iter(), v6: self.v6.into_iter() }
    }
}

impl<'t, V, M: Allocator + Clone> IntoIterator for &'t Routes<V, M> {
    type Item = (AnyPrefix, &'t V);
    type IntoIter = Both<Iter<'t, Ipv4Addr, V, M>, Iter<'t, Ipv6Addr, V, M>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'t, V, M: Allocator + Clone> IntoIterator for &'t mut Routes<V, M> {
    type Item = (AnyPrefix, &'t mut V);
    type IntoIter = Both<IterMut<'t, Ipv4Addr, V, M>, IterMut<'t, Ipv6Addr, V, M>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
