//! `TrashSet`: the keys of a [`TrashMap`], as in `std::collections::HashSet`.
//!
//! ```text
//!     TrashSet<T>  =  TrashMap<T, ()>      the same table, growth, bursts and answer to floods
//! ```
//!
//! Operators return new sets: `&a | &b` is the union, `&a & &b` the intersection, `&a - &b` the
//! difference, `&a ^ &b` the symmetric difference. `a |= &b` and the others change a set. The
//! methods of these names return iterators.

// First, so that the documentation of the type begins with its methods.
mod methods;

mod entry;
mod operations;

use core::fmt;
use core::hash::{BuildHasher, Hash};

use super::{IntoKeys, Keys, TrashMap};
use crate::hash::DefaultHashBuilder;
use crate::memory::{Allocator, Global};

pub use entry::{Entry, OccupiedEntry, VacantEntry};

/// A set of values without pauses: a [`TrashMap`] without values.
///
/// It has the methods of
/// [`std::collections::HashSet`](https://doc.rust-lang.org/std/collections/struct.HashSet.html) and
/// of [`TrashMap`]. They cost as much as the methods of the map:
///
/// | method | cost |
/// |---|---|
/// | `contains`, `get` | O(1): the cache lines of the tags and of the value |
/// | `insert`, `replace` | a lookup, and one step of at most two segments, about 1000 values |
/// | `remove`, `take` | a lookup; from a full group, the hashes of the displaced values of the next one |
/// | `contains_batch` | a lookup each, the cache misses of 32 overlapped |
/// | `union`, `intersection`, `difference` and the others of two sets | a lookup for each value of one of them |
/// | `iter`, `retain`, `extract_if`, `drain`, `clear`, `clone` | O(slots) |
/// | `len`, `capacity`, `allocation_size` | O(1) |
///
/// # Example
///
/// ```
/// use flowtable::TrashSet;
/// use std::net::Ipv4Addr;
///
/// let mut blocked = TrashSet::new();
/// assert!(blocked.insert(Ipv4Addr::new(192, 0, 2, 7)));
/// assert!(!blocked.insert(Ipv4Addr::new(192, 0, 2, 7))); // it is there
/// assert!(blocked.contains(&Ipv4Addr::new(192, 0, 2, 7)));
/// assert!(blocked.remove(&Ipv4Addr::new(192, 0, 2, 7)));
/// assert!(blocked.is_empty() && blocked.len() == 0);
/// ```
#[doc(alias("HashSet", "hash set"))]
pub struct TrashSet<T, S = DefaultHashBuilder, A: Allocator + Clone = Global> {
    map: TrashMap<T, (), S, A>,
}

impl<T, S: Default> Default for TrashSet<T, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

/// A copy has the same hasher, seed and shape.
impl<T: Clone, S: Clone, A: Allocator + Clone> Clone for TrashSet<T, S, A> {
    fn clone(&self) -> Self {
        Self { map: self.map.clone() }
    }

    /// See [`TrashMap::clone_from`].
    fn clone_from(&mut self, source: &Self) {
        self.map.clone_from(&source.map);
    }
}

impl<T: fmt::Debug, S, A: Allocator + Clone> fmt::Debug for TrashSet<T, S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

/// Equal values; seeds do not count. The types are equal, so that `set == iterator.collect()`
/// infers them, as in `std`.
impl<T, S, A> PartialEq for TrashSet<T, S, A>
where
    T: Eq + Hash,
    S: BuildHasher,
    A: Allocator + Clone,
{
    fn eq(&self, other: &Self) -> bool {
        self.map == other.map
    }
}

impl<T: Eq + Hash, S: BuildHasher, A: Allocator + Clone> Eq for TrashSet<T, S, A> {}

impl<T: Eq + Hash, S: BuildHasher, A: Allocator + Clone> Extend<T> for TrashSet<T, S, A> {
    /// Inserts all values, in bursts.
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        self.map.extend(values.into_iter().map(|value| (value, ())));
    }
}

impl<'a, T: Eq + Hash + Copy, S: BuildHasher, A: Allocator + Clone> Extend<&'a T>
    for TrashSet<T, S, A>
{
    fn extend<I: IntoIterator<Item = &'a T>>(&mut self, values: I) {
        self.extend(values.into_iter().copied());
    }
}

impl<T: Eq + Hash, S: BuildHasher + Default> FromIterator<T> for TrashSet<T, S> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut set = Self::default();
        set.extend(values);
        set
    }
}

impl<T: Eq + Hash, const N: usize> From<[T; N]> for TrashSet<T> {
    fn from(values: [T; N]) -> Self {
        values.into_iter().collect()
    }
}

/// The keys of a map without values. O(1).
impl<T, S, A: Allocator + Clone> From<TrashMap<T, (), S, A>> for TrashSet<T, S, A> {
    fn from(map: TrashMap<T, (), S, A>) -> Self {
        Self { map }
    }
}

impl<T, S, A: Allocator + Clone> IntoIterator for TrashSet<T, S, A> {
    type Item = T;
    type IntoIter = IntoKeys<T, (), A>;

    fn into_iter(self) -> IntoKeys<T, (), A> {
        self.map.into_keys()
    }
}

impl<'a, T, S, A: Allocator + Clone> IntoIterator for &'a TrashSet<T, S, A> {
    type Item = &'a T;
    type IntoIter = Keys<'a, T, ()>;

    fn into_iter(self) -> Keys<'a, T, ()> {
        self.iter()
    }
}
