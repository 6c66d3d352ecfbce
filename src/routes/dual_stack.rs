//! A table of the routes of both address families.
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
use core::iter::FusedIterator;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{IntoIter, Iter, IterMut, RouteTable};
use crate::key::any_prefix::AnyPrefix;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::memory::{Allocator, Global};
use crate::raw::prefetch::BURST;

/// A routing table for IPv4 and IPv6: a [`RouteTable`] of each.
///
/// A method costs as much as in the [`RouteTable`] of the family, and a branch. The tables of
/// the families, [`v4`](Self::v4) and [`v6`](Self::v6), have all other methods.
///
/// | method | cost |
/// |---|---|
/// | `lookup`, `lookup_mut` | IPv4: a slot and a value; IPv6: entries of three levels at once, and a value |
/// | `lookup_batch` | each burst of 32 addresses in two parts, with overlapped cache misses |
/// | `insert`, `remove` | the path to the node, up to 126 values; for some, 64 or 4096 slots |
/// | `get`, `get_mut` | the path to the node |
/// | `iter`, `iter_mut`, `retain`, `clone` | O(routes), of both families |
/// | `len` | O(1) |
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
/// assert_eq!(routes.insert(ten, 3), Some(1));
/// *routes.get_mut(&lab).unwrap() += 10;
/// assert_eq!(routes.get(&lab), Some(&12));
///
/// let address = "10.1.2.3".parse().unwrap();
/// assert_eq!(routes.lookup(address), Some((ten, &3)));
/// *routes.lookup_mut(address).unwrap().1 = 4;
/// assert!(routes.iter().eq([(ten, &4), (lab, &12)]));
/// routes.iter_mut().for_each(|(prefix, value)| *value += u32::from(prefix.len()));
/// routes.retain(|_, value| *value != 44);
/// assert!(routes.clone().into_iter().eq([(ten, 12)]));
///
/// // All other methods are those of one family.
/// *routes.v4.entry("192.0.2.0/24".parse()?).or_insert(0) += 5;
/// assert!(routes.v4.covered(&"0.0.0.0/0".parse()?).map(|(_, value)| value).eq(&[12, 5]));
/// assert_eq!((routes.remove(&ten), routes.v6.len()), (Some(12), 0));
/// routes.clear();
/// assert!(routes.is_empty() && routes.v6.is_empty());
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
#[doc(alias("fib", "lpm", "rib"))]
pub struct Routes<V, M: Allocator + Clone = Global> {
    /// The routes of IPv4.
    pub v4: RouteTable<Ipv4Addr, V, M>,
    /// The routes of IPv6.
    pub v6: RouteTable<Ipv6Addr, V, M>,
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
    /// assert_eq!(routes.insert("10.0.0.0/8".parse()?, 'a'), None);
    /// assert!(arena.allocated_bytes() >= routes.v4.allocation_size());
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

    /// Inserts a route. Returns the previous value of the prefix.
    ///
    /// Aborts like other collections if there is no memory: see [`RouteTable::try_insert`].
    pub fn insert(&mut self, prefix: AnyPrefix, value: V) -> Option<V> {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.insert(prefix, value),
            AnyPrefix::V6(prefix) => self.v6.insert(prefix, value),
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

    /// Returns the longest route that contains `address`.
    #[inline]
    #[must_use]
    pub fn lookup(&self, address: IpAddr) -> Option<(AnyPrefix, &V)> {
        match address {
            IpAddr::V4(address) => self.v4.lookup(&address).map(any),
            IpAddr::V6(address) => self.v6.lookup(&address).map(any),
        }
    }

    /// Calls `found` with the index of each address and the longest route that contains it.
    ///
    /// Of each 32 addresses, the IPv4 addresses come first. The addresses of one family are looked
    /// up like a [batch](RouteTable::lookup_batch) of its table, with overlapping cache misses.
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
    /// let mut via = [None; 3];
    /// routes.lookup_batch(&burst, |i, route| via[i] = route.map(|(_, via)| *via));
    /// assert_eq!(via, [Some("lab"), Some("core"), None]);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn lookup_batch<'t>(
        &'t self,
        addresses: &[IpAddr],
        mut found: impl FnMut(usize, Option<(AnyPrefix, &'t V)>),
    ) {
        for (first, addresses) in (0..).step_by(BURST).zip(addresses.chunks(BURST)) {
            let (v4, v6) = (Family::of(addresses, v4_of), Family::of(addresses, v6_of));
            let mut found = |nth, route| found(first + nth, route);
            self.v4.lookup_batch(v4.addresses(), |i, route| found(v4.places[i], route.map(any)));
            self.v6.lookup_batch(v6.addresses(), |i, route| found(v6.places[i], route.map(any)));
        }
    }

    /// Returns the longest route that contains `address`, with a mutable reference to its value.
    pub fn lookup_mut(&mut self, address: IpAddr) -> Option<(AnyPrefix, &mut V)> {
        match address {
            IpAddr::V4(address) => self.v4.lookup_mut(&address).map(any),
            IpAddr::V6(address) => self.v6.lookup_mut(&address).map(any),
        }
    }

    /// Returns an iterator over all routes in order: IPv4 before IPv6.
    #[must_use]
    pub fn iter(&self) -> Both<Iter<'_, Ipv4Addr, V, M>, Iter<'_, Ipv6Addr, V, M>> {
        Both { v4: self.v4.iter(), v6: self.v6.iter() }
    }

    /// Returns an iterator over all routes in order, with mutable references to their values.
    pub fn iter_mut(&mut self) -> Both<IterMut<'_, Ipv4Addr, V, M>, IterMut<'_, Ipv6Addr, V, M>> {
        Both { v4: self.v4.iter_mut(), v6: self.v6.iter_mut() }
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

/// The addresses of one family in a burst.
struct Family<A> {
    addresses: [A; BURST],
    /// The index of each in the burst.
    places: [usize; BURST],
    count: usize,
}

impl<A: Address> Family<A> {
    /// Returns the addresses for which `of` returns one.
    fn of(burst: &[IpAddr], of: impl Fn(IpAddr) -> Option<A>) -> Self {
        let unused = A::from_windows(|_| 0);
        let mut family = Self { addresses: [unused; BURST], places: [0; BURST], count: 0 };
        for (place, address) in burst.iter().enumerate() {
            if let Some(address) = of(*address) {
                family.addresses[family.count] = address;
                family.places[family.count] = place;
                family.count += 1;
            }
        }
        family
    }

    fn addresses(&self) -> &[A] {
        &self.addresses[..self.count]
    }
}

/// An iterator over routes of both families: IPv4 before IPv6.
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
