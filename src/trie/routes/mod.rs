//! A route table on a level-compressed trie, with longest-prefix match as in Linux.
//!
//! ```text
//!     10.0.0.0  ─┬─ /24  a       a lookup of 10.0.1.99 reaches the leaf 10.0.1.0: its /28 does
//!                └─ /8   b       not match. With one more bit of the address cleared it reaches
//!     10.0.1.0  ─── /28  c       10.0.0.0: the /24 does not match, the /8 does.
//! ```
//!
//! A leaf is an address with the list of its routes, longest prefix first. A lookup descends to the
//! leaf of the address, then backtracks through the addresses that result from clearing its 1 bits,
//! last bit first. `trie/backtrack.rs` shows this search, `trie/suffix.rs` the suffix lengths in
//! the nodes that keep it short.
//!
//! [`LcRouteTable`] is the reference structure: safe, small, and written to be read. It serves to
//! study the structure, or as a reference model in tests of other route tables;
//! [`RouteTable`](crate::RouteTable) is the table for production.
//!
//! # Cost
//!
//! On the Internet's routes of 2025, 900 thousand IPv4 routes at 840 thousand addresses, a lookup
//! of an address within a route visits 2.4 nodes and one leaf; a lookup of a random address, which
//! may backtrack several times, visits 5.9 nodes and 1.6 leaves. With 160 thousand IPv6 routes,
//! whose first bits are all alike, it visits 5.7 nodes. Each address has a list, which is an
//! allocation, though most have a single route. Occasionally an update doubles or halves the root,
//! and then reads every leaf and its list: a tenth of a second and more on such a table. This pause
//! is the paper's; `RouteTable` has none.
//!
//! # Papers
//!
//! Nilsson and Karlsson, *IP-address lookup using LC-tries*, 1999, has the longest match in a
//! static trie; Nilsson and Tikkanen, *An experimental study of compression methods for dynamic
//! tries*, 2002, the dynamic trie. Backtracking follows Linux, whose nodes have stored the longest
//! suffix since 2015; `trie/backtrack.rs` and `trie/suffix.rs` name the differences.

mod leaves;

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use crate::invariant::{InvariantError, ensure};
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::probes::Observer;
use crate::trie::{FORWARD, SearchResult, Suffixes, Trie, TrieShape, Tuning};

use leaves::Aliases;
pub use leaves::Iter;

/// The length of the longest suffix below a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slen(u32);

impl<V> Suffixes<Aliases<V>> for Slen {
    const TRACKED: bool = true;

    fn new(slen: u32) -> Self {
        Self(slen)
    }

    fn get(self) -> u32 {
        self.0
    }

    fn longest_of(aliases: &Aliases<V>) -> u32 {
        aliases.longest_suffix()
    }
}

/// A map from prefixes to values with longest-prefix match, on a level-compressed trie.
///
/// | method | cost |
/// |---|---|
/// | `get` | as in an [`LcTrieMap`](crate::LcTrieMap), and a binary search in the leaf's list |
/// | `lookup` | as `get`, and at worst once more for each 1 bit, from the node of that bit |
/// | `insert` | as in an `LcTrieMap`, and updates of suffix lengths in the nodes above |
/// | `remove` | as in an `LcTrieMap`, and at worst half of the slots of the nodes above |
/// | `iter` | a step in the list, or to the next leaf |
/// | `len` | O(1) |
///
/// Paper: Olsson and Nilsson, *TRASH*, section 2, for the trie; routes match as in Linux.
///
/// # Example
///
/// ```
/// use flowtable::trie::routes::LcRouteTable;
/// use flowtable::Prefix;
/// use std::net::Ipv4Addr;
///
/// let mut routes = LcRouteTable::new();
/// routes.insert("0.0.0.0/0".parse::<Prefix<Ipv4Addr>>()?, "upstream");
/// routes.insert("10.0.0.0/8".parse()?, "inside");
/// routes.insert("10.1.0.0/16".parse()?, "laboratory");
///
/// let (prefix, name) = routes.lookup(&Ipv4Addr::new(10, 2, 0, 1)).unwrap();
/// assert_eq!((prefix.to_string().as_str(), *name), ("10.0.0.0/8", "inside"));
/// routes.remove(&"10.0.0.0/8".parse()?);
/// assert_eq!(routes.lookup(&Ipv4Addr::new(10, 2, 0, 1)).unwrap().1, &"upstream");
/// # Ok::<(), flowtable::PrefixError>(())
/// ```
#[derive(Clone)]
pub struct LcRouteTable<A, V> {
    trie: Trie<A, Aliases<V>, Slen>,
    /// Total number of routes in all lists.
    len: usize,
}

impl<A: Address, V> LcRouteTable<A, V> {
    /// Creates an empty table with the default tuning. Allocates nothing.
    ///
    /// # Example
    ///
    /// ```
    /// let routes = flowtable::trie::routes::LcRouteTable::<u32, ()>::new();
    /// assert_eq!((routes.len(), routes.allocation_size()), (0, 0));
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self::with_tuning(Tuning::LINUX)
    }

    /// Creates an empty table with the given tuning.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trie::routes::LcRouteTable;
    /// use flowtable::trie::Tuning;
    ///
    /// let routes: LcRouteTable<u32, ()> = LcRouteTable::with_tuning(Tuning::TRASH_2006);
    /// assert_eq!(routes.tuning(), Tuning::TRASH_2006);
    /// ```
    #[must_use]
    pub const fn with_tuning(tuning: Tuning) -> Self {
        Self { trie: Trie::new(tuning), len: 0 }
    }

    /// Returns the parameters for doubling and halving nodes.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trie::routes::LcRouteTable;
    /// use flowtable::trie::Tuning;
    ///
    /// let routes: LcRouteTable<u32, ()> = LcRouteTable::new();
    /// assert_eq!(routes.tuning(), Tuning::LINUX);
    /// ```
    #[must_use]
    pub const fn tuning(&self) -> Tuning {
        self.trie.tuning()
    }

    /// Returns the number of routes.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trie::routes::LcRouteTable;
    /// use flowtable::Prefix;
    ///
    /// let all = Prefix::default_route();
    /// let routes = LcRouteTable::from([(all, 'a'), (Prefix::new(0_u8, 4)?, 'b'), (all, 'c')]);
    /// assert_eq!(routes.len(), 2);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no routes.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trie::routes::LcRouteTable;
    /// use flowtable::Prefix;
    ///
    /// let mut routes = LcRouteTable::new();
    /// routes.insert(Prefix::host(7_u16), 'a');
    /// assert!(!routes.is_empty());
    /// ```
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts or replaces the value of `prefix` and returns the previous one.
    ///
    /// # Panics
    ///
    /// If the table has routes of 2^31 - 1 addresses already.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trie::routes::LcRouteTable;
    /// use flowtable::Prefix;
    ///
    /// let mut routes = LcRouteTable::new();
    /// assert_eq!(routes.insert(Prefix::host(7_u16), 'a'), None);
    /// assert_eq!(routes.insert(Prefix::host(7_u16), 'b'), Some('a'));
    /// ```
    pub fn insert(&mut self, prefix: Prefix<A>, value: V) -> Option<V> {
        let suffix = suffix_of(&prefix);
        let replaced = match self.trie.locate(&prefix.address()) {
            SearchResult::Found(position) => {
                self.trie.update_at(position, |aliases| aliases.insert(suffix, value))
            }
            SearchResult::Vacant(point) => {
                self.trie.insert_at(point, prefix.address(), Aliases::new(suffix, value));
                None
            }
        };
        self.len += usize::from(replaced.is_none());
        replaced
    }

    /// Removes the route of exactly this prefix and returns its value.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trie::routes::LcRouteTable;
    /// use flowtable::Prefix;
    ///
    /// let prefix = Prefix::new(0b1010_0000_u8, 3)?;
    /// let mut routes = LcRouteTable::from([(prefix, 'a')]);
    /// assert_eq!(routes.remove(&Prefix::new(0b1010_0000, 4)?), None);
    /// assert_eq!(routes.remove(&prefix), Some('a'));
    /// assert!(routes.is_empty());
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn remove(&mut self, prefix: &Prefix<A>) -> Option<V> {
        let suffix = suffix_of(prefix);
        let SearchResult::Found(position) = self.trie.locate(&prefix.address()) else {
            return None;
        };
        let (_, aliases) = self.trie.leaf(position.leaf);
        aliases.get(suffix)?;
        self.len -= 1;
        if aliases.len() > 1 {
            return self.trie.update_at(position, |aliases| aliases.remove(suffix));
        }
        let (_, mut last) = self.trie.remove_at(position);
        last.remove(suffix)
    }

    /// Returns the value of exactly this prefix.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trie::routes::LcRouteTable;
    /// use flowtable::Prefix;
    ///
    /// let routes = LcRouteTable::from([(Prefix::new(0x0a00_0000_u32, 8)?, "ten")]);
    /// assert_eq!(routes.get(&Prefix::new(0x0a00_0000, 8)?), Some(&"ten"));
    /// assert_eq!(routes.get(&Prefix::new(0x0a00_0000, 9)?), None);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn get(&self, prefix: &Prefix<A>) -> Option<&V> {
        let leaf = self.trie.find(&prefix.address(), &mut ())?;
        self.trie.leaf(leaf).1.get(suffix_of(prefix))
    }

    /// Returns whether there is a route of exactly this prefix.
    #[must_use]
    pub fn contains(&self, prefix: &Prefix<A>) -> bool {
        self.get(prefix).is_some()
    }

    /// Returns a mutable reference to the value of exactly this prefix.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trie::routes::LcRouteTable;
    /// use flowtable::Prefix;
    ///
    /// let prefix = Prefix::new(0x0a00_0000_u32, 8)?;
    /// let mut routes = LcRouteTable::from([(prefix, 1)]);
    /// *routes.get_mut(&prefix).unwrap() += 1;
    /// assert_eq!(routes.get(&prefix), Some(&2));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn get_mut(&mut self, prefix: &Prefix<A>) -> Option<&mut V> {
        let leaf = self.trie.find(&prefix.address(), &mut ())?;
        self.trie.leaf_with_same_suffixes(leaf).1.get_mut(suffix_of(prefix))
    }

    /// Retains the routes for which `keep` returns true; `keep` may change their values. It is
    /// called in order; if it panics, all routes remain. O(routes).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trie::routes::LcRouteTable;
    /// use flowtable::Prefix;
    ///
    /// let routes = [(0x40_u8, 2), (0x40, 3), (0x80, 1)];
    /// let routes = routes.map(|(address, len)| (Prefix::new(address, len).unwrap(), len));
    /// let mut routes = LcRouteTable::from(routes);
    /// routes.retain(|_, len| *len != 3);
    /// assert!(routes.iter().map(|(_, len)| *len).eq([2, 1]));
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(Prefix<A>, &mut V) -> bool) {
        let mut walk = self.trie.walk();
        let mut rejected = Vec::new();
        while let Some(leaf) = self.trie.next_leaf::<FORWARD>(&mut walk) {
            let (address, aliases) = self.trie.leaf_with_same_suffixes(leaf);
            for (suffix, value) in aliases.iter_mut() {
                let prefix = Prefix::of(address, A::BITS - suffix);
                if !keep(prefix, value) {
                    rejected.push(prefix);
                }
            }
        }
        rejected.iter().for_each(|prefix| drop(self.remove(prefix)));
    }

    /// Removes all routes, and releases all memory. O(routes).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trie::routes::LcRouteTable;
    /// use flowtable::Prefix;
    ///
    /// let mut routes = LcRouteTable::from([(Prefix::host(7_u16), 'a')]);
    /// assert!(routes.contains(&Prefix::host(7)));
    /// routes.clear();
    /// assert!(routes.is_empty() && !routes.contains(&Prefix::host(7)));
    /// assert_eq!(routes.allocation_size(), 0);
    /// ```
    pub fn clear(&mut self) {
        *self = Self::with_tuning(self.tuning());
    }

    /// Returns the route with the longest prefix that contains `address`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trie::routes::LcRouteTable;
    /// use flowtable::Prefix;
    ///
    /// let (short, long) = (Prefix::new(0b1000_0000_u8, 1)?, Prefix::new(0b1010_0000_u8, 3)?);
    /// let routes = LcRouteTable::from([(short, 'a'), (long, 'b')]);
    /// assert_eq!(routes.lookup(&0b1011_1111), Some((long, &'b')));
    /// assert_eq!(routes.lookup(&0b1100_0000), Some((short, &'a')));
    /// assert_eq!(routes.lookup(&0b0100_0000), None);
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[must_use]
    pub fn lookup(&self, address: &A) -> Option<(Prefix<A>, &V)> {
        self.lookup_observed(address, &mut ())
    }

    /// Returns the route with the longest prefix that contains `address`, and reports the visited
    /// nodes and leaves to `observer`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trie::routes::LcRouteTable;
    /// use flowtable::Prefix;
    /// use flowtable::probes::Probes;
    ///
    /// let (zero, ones) = (Prefix::new(0_u8, 1)?, Prefix::new(0b1110_0000, 3)?);
    /// let routes = LcRouteTable::from([(zero, 'a'), (ones, 'b')]);
    /// let mut probes = Probes::default();
    /// assert_eq!(routes.lookup_observed(&0b1111_1111, &mut probes), Some((ones, &'b')));
    /// assert_eq!(probes, Probes { nodes: 1, entries: 1 });
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    pub fn lookup_observed(
        &self,
        address: &A,
        observer: &mut impl Observer,
    ) -> Option<(Prefix<A>, &V)> {
        let matching = |first: &A, aliases, common| {
            let (suffix, value) = Aliases::first_from(aliases, A::BITS - common)?;
            Some((Prefix::of(first, A::BITS - suffix), value))
        };
        self.trie.lookup(address, matching, observer)
    }

    /// Iterates over the routes by address, shorter prefixes first.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trie::routes::LcRouteTable;
    /// use flowtable::Prefix;
    ///
    /// let mut prefixes =
    ///     [(0b1000_0000_u8, 1), (0, 4), (0, 2)].map(|(a, l)| Prefix::new(a, l).unwrap());
    /// let routes: LcRouteTable<u8, ()> = prefixes.map(|prefix| (prefix, ())).into();
    /// prefixes.sort();
    /// assert!(routes.iter().map(|(prefix, ())| prefix).eq(prefixes));
    /// ```
    #[must_use]
    pub fn iter(&self) -> Iter<'_, A, V> {
        Iter::new(&self.trie, self.len)
    }

    /// Returns the number of bytes allocated, free slots included, without memory owned by values.
    /// O(slots).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trie::routes::LcRouteTable;
    /// use flowtable::Prefix;
    ///
    /// let routes = LcRouteTable::from([(Prefix::host(7_u16), 'a')]);
    /// assert!(routes.allocation_size() >= size_of::<u16>() + size_of::<char>());
    /// ```
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        let lists = self.lists().map(Aliases::allocation_size);
        self.trie.allocation_size() + lists.sum::<usize>()
    }

    /// Measures depths, node sizes and memory. Leaves are addresses. O(slots).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trie::routes::LcRouteTable;
    /// use flowtable::Prefix;
    ///
    /// let routes: LcRouteTable<u8, ()> =
    ///     (0..=8).map(|len| (Prefix::new(0, len).unwrap(), ())).collect();
    /// assert_eq!((routes.len(), routes.shape().leaves), (9, 1));
    /// ```
    #[must_use]
    pub fn shape(&self) -> TrieShape {
        TrieShape { bytes: self.allocation_size(), ..self.trie.shape() }
    }

    /// Checks all invariants, for tests. O(slots).
    ///
    /// # Errors
    ///
    /// The first invariant that does not hold: a bug in this crate, or an address type that
    /// violates the contract of [`Address`].
    ///
    /// # Example
    ///
    /// ```
    /// let mut routes = flowtable::trie::routes::LcRouteTable::new();
    /// routes.insert("10.0.0.0/8".parse::<flowtable::Prefix<std::net::Ipv4Addr>>()?, 1);
    /// assert_eq!(routes.validate(), Ok(()));
    /// # Ok::<(), flowtable::PrefixError>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        self.trie.validate()?;
        ensure(self.lists().all(Aliases::is_sorted), || "the routes of a leaf are not sorted")?;
        let count: usize = self.lists().map(Aliases::len).sum();
        ensure(count == self.len, || format!("{count} routes are counted as {}", self.len))?;
        let are_first = self.iter().all(|(prefix, _)| self.get(&prefix).is_some());
        ensure(are_first, || "the address of a leaf is not the first one of its routes")
    }

    /// The lists of all leaves.
    fn lists(&self) -> impl Iterator<Item = &Aliases<V>> {
        let mut walk = self.trie.walk();
        core::iter::from_fn(move || {
            self.trie.next_leaf::<FORWARD>(&mut walk).map(|leaf| self.trie.leaf(leaf).1)
        })
    }
}

/// Returns the number of bits after a prefix.
fn suffix_of<A: Address>(prefix: &Prefix<A>) -> u32 {
    A::BITS - prefix.len()
}

impl<A: Address, V> Default for LcRouteTable<A, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Address + fmt::Debug, V: fmt::Debug> fmt::Debug for LcRouteTable<A, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// Equal prefixes with equal values.
impl<A: Address, V: PartialEq> PartialEq for LcRouteTable<A, V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<A: Address, V: Eq> Eq for LcRouteTable<A, V> {}

impl<A: Address, V> Extend<(Prefix<A>, V)> for LcRouteTable<A, V> {
    fn extend<I: IntoIterator<Item = (Prefix<A>, V)>>(&mut self, routes: I) {
        routes.into_iter().for_each(|(prefix, value)| drop(self.insert(prefix, value)));
    }
}

impl<A: Address, V> FromIterator<(Prefix<A>, V)> for LcRouteTable<A, V> {
    fn from_iter<I: IntoIterator<Item = (Prefix<A>, V)>>(routes: I) -> Self {
        let mut table = Self::new();
        table.extend(routes);
        table
    }
}

impl<A: Address, V, const N: usize> From<[(Prefix<A>, V); N]> for LcRouteTable<A, V> {
    fn from(routes: [(Prefix<A>, V); N]) -> Self {
        routes.into_iter().collect()
    }
}

impl<'a, A: Address, V> IntoIterator for &'a LcRouteTable<A, V> {
    type Item = (Prefix<A>, &'a V);
    type IntoIter = Iter<'a, A, V>;

    fn into_iter(self) -> Iter<'a, A, V> {
        self.iter()
    }
}
