//! TRASH built for speed: a hash table of segments that split, over the bits of a keyed hash.
//!
//! The [LC-trie](crate::trie) over headed keys, which is the paper's TRASH, follows two or three
//! pointers. Here the trie is level-compressed to the end: a directory, which low bits of the hash
//! index, of *segments* with groups of 16 slots.
//!
//! ```text
//!  hash   │ top 8 bits: tag │ … group in the segment … │ … low bits: segment │
//!
//!  directory  ┌──┬──┬──┬──┐  a pointer for each value of the low bits
//!             └──┴┬─┴──┴──┘
//!  segment        ▼  1024 slots in 64 groups; one that is too full splits by the next low bit
//!   …entries of group 1 │ entries of group 0 │ 16 tags │ 16 tags │ …
//! ```
//!
//! - **A lookup** reads the directory, which is small, 16 tags with one comparison, and the entry.
//!   One wrong entry in 255 passes the comparison. It ends at a group with a free slot.
//! - **Growth** is a step for one insertion in some hundred: one segment splits into two, in place.
//!   Shrinking is the same backwards. So there are no pauses, and no other table is needed for a
//!   moment.
//! - **Removal** frees the slot, and moves an entry back that the group was too full for. There
//!   are no tombstones: churn does not degrade a map.
//! - **A burst** of lookups prefetches all tags, then all entries, and then compares: the misses
//!   of 32 lookups overlap. See [`get_batch`](TrashMap::get_batch).
//!
//! # Hashes
//!
//! All 64 bits of a hash count: the lowest choose the segment, bits 32 to 37 the group, and the
//! highest eight are the tag. A hash of 32 bits must be spread over all of them, as by one
//! multiplication by a random odd number; [`Rss`](crate::hash::Rss) does so. The other hashes of
//! [`hash`](crate::hash) do not: a map with them reseeds when it has some 50 entries.
//!
//! # Hostile keys
//!
//! The default hash is keyed with a seed for each map. If the hash is not ([`with_hasher`]), or an
//! attacker has its seed, keys that collide can be sent. The map detects that: hashes that many
//! splits do not separate, an entry that would be more than eight groups from home although half of
//! its segment is free, or tags that hardly differ, happen by chance once in many billion
//! insertions. It then *reseeds*: it draws a seed of its own, hashes keys with that from then on,
//! and moves the entries over, some with each operation on a mutable reference; lookups search both
//! tables until it is done. Weak hashes, such as small numbers that are their own hash, are
//! answered in the same way.
//!
//! A map that has reseeded hashes a key twice: by its hasher, as the hash may be the caller's, and
//! by the seed. While entries move from a table that has a seed, it hashes by that seed, too. A
//! burst of `get_batch` needs the hash of the hasher only while entries move; a burst of changes
//! hashes by the seed once more, to prefetch.
//!
//! Keys whose [`Hash`] implementations feed equal bytes to every hasher cannot be separated: the
//! map stays correct, its lookups are linear, and it tries another seed each time that it has
//! doubled.
//!
//! # Differences from `hashbrown::HashMap`
//!
//! The map is a replacement of hashbrown's by another name, but for
//!
//! - `try_insert`, which fails without memory here, and not if the key is there (2 of hashbrown's
//!   examples do not compile with this map);
//! - `get_disjoint_unchecked_mut`, which is unsafe for the sake of the comparison of positions
//!   (1 example);
//! - methods named `…_unchecked`, which are not unsafe: a key that is wrong may not be found; sets
//!   have none;
//! - the map of an entry: `into_map`, and `into_table` of tables;
//! - `clear` and `drain`, which free the memory;
//! - allocators, which must be `Clone`; `Default`, `FromIterator` and `From` are for the global
//!   one.
//!
//! The iterators over two sets (`union`, `difference`) have no names, and no `Debug`: a program
//! that stores one in a struct needs a type parameter. In parallel, sets have `par_iter` and
//! `par_drain`: `a.par_iter().filter(|value| !b.contains(*value))` is the difference. For tables
//! see [`table`].
//!
//! # Costs
//!
//! Nine bits of tag and mark for a slot, and 24 bytes for a segment; segments are filled
//! to 60 % on average. For entries of 24 bytes that is 41 bytes each on average over sizes, 58 when
//! most segments have just split, and up to 80 after removals. A map under churn at one size gets
//! up to a third larger. An insertion that splits a segment hashes and moves up to 1000 entries. So
//! the hash of a key should be cheap.
//!
//! The directory is doubled and halved at once: that copies 8 bytes for some 600 entries.
//!
//! # Papers
//!
//! Olsson and Nilsson, *TRASH: a dynamic LC-trie and hash data structure* (2006), for the idea.
//! Segments that split are extendible hashing (Fagin et al. 1979). Tags compared at once and groups
//! of 16 are from Swiss tables (Kulukundis 2017); to record the entries that a full group has
//! displaced, instead of leaving tombstones, is after Bronson and Shi's F14 (2019), which counts
//! them.
//!
//! [`with_hasher`]: TrashMap::with_hasher

// First, so that the documentation of the type begins with its methods.
mod methods;

mod insert;

mod burst;
mod entry;
mod iter;
mod memory;
mod occupied;
#[cfg(feature = "rayon")]
mod parallel;
mod reseed;
pub mod set;
mod shape;
pub mod table;
mod vacant;

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::ops::Index;

use equivalent::Equivalent;

use crate::hash::DefaultHashBuilder;
use crate::memory::{Allocator, Box, Global};
use crate::table::Table;
use reseed::Reseeded;

pub use crate::table::error::TryReserveError;
pub use entry::{Entry, EntryRef};
pub use insert::TryInsertError;
pub(crate) use iter::ExtractCursor;
pub use iter::{ExtractIf, IntoIter, IntoKeys, IntoValues, Iter, IterMut, Keys, Values, ValuesMut};
pub use occupied::OccupiedEntry;
#[cfg(feature = "rayon")]
pub use parallel::Parallel;
pub use set::TrashSet;
pub use shape::TableShape;
pub use table::TrashTable;
pub use vacant::{BorrowedKey, IntoKey, OwnedKey, VacantEntry, VacantEntryRef, VacantKey};

/// A map from keys to values that never pauses: the state of a packet's flow by the flow's key.
///
/// It has the interface of
/// [`std::collections::HashMap`](https://doc.rust-lang.org/std/collections/struct.HashMap.html),
/// with bursts. Where it takes a borrowed key it takes a [`Prehashed`](crate::Prehashed) as well, a
/// key with the hash that the caller already has.
///
/// | method | cost |
/// |---|---|
/// | `get`, `get_mut`, `get_key_value`, `get_observed`, `contains_key`, `entry`, `entry_ref`, `try_entry` | O(1): the cache lines of the tags and of the entry |
/// | `insert`, `try_insert` | a lookup, and one step of at most two segments, about 1000 entries |
/// | `remove`, `remove_entry` | a lookup; a removal from a full group hashes the displaced keys of the next one |
/// | `get_batch`, `get_batch_mut`, `get_disjoint_mut`, `insert_batch` | a lookup or insertion a key, the cache misses of 32 overlapped |
/// | `iter`, `keys`, `values`, `retain`, `extract_if`, `drain`, `clear`, `clone`, `drop`, `shape`, `reserve`, `shrink_to` | O(slots) |
/// | `len`, `capacity`, `reseeds`, `allocation_size` | O(1) |
///
/// An entry of key and value is in its slot up to 64 bytes, else in a box of its own.
///
/// # Example
///
/// ```
/// use flowtable::{FourTuple, TrashMap};
/// use std::net::Ipv4Addr;
///
/// let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
/// let flow = FourTuple { src, dst, sport: 40_000, dport: 443 };
/// let mut bytes = TrashMap::new();
/// assert_eq!(bytes.insert(flow, 60), None);
/// *bytes.get_mut(&flow).unwrap() += 1500;
/// assert_eq!(bytes.get(&flow), Some(&1560));
/// assert!(!bytes.contains_key(&flow.reversed())); // the other direction is another key
/// assert_eq!(bytes.remove_entry(&flow), Some((flow, 1560)));
/// ```
#[doc(alias("HashMap", "hash map", "hash table", "flow table"))]
pub struct TrashMap<K, V, S = DefaultHashBuilder, A: Allocator + Clone = Global> {
    table: Table<(K, V), A>,
    hasher: S,
    /// The tables after a reseeding.
    reseeded: Option<Box<Reseeded<K, V, A>, A>>,
}

/// The current table and the old one.
type Tables<K, V, A> = (Table<(K, V), A>, Option<Table<(K, V), A>>);

impl<K, V, S: Default> Default for TrashMap<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

/// A copy has the same hasher, seed and shape.
impl<K: Clone, V: Clone, S: Clone, A: Allocator + Clone> Clone for TrashMap<K, V, S, A> {
    fn clone(&self) -> Self {
        let (table, reseeded) = (self.table.clone(), self.reseeded.clone());
        Self { table, hasher: self.hasher.clone(), reseeded }
    }

    /// Makes the map a copy of `source`, in its own memory as far as that is of use. If the drop or
    /// the clone of an entry panics, the map is empty.
    fn clone_from(&mut self, source: &Self) {
        // The map is empty until all entries are there.
        let (mut table, reseeded) = (self.table.replace_by_empty(), self.reseeded.take());
        drop(reseeded);
        table.clone_from(&source.table);
        self.reseeded = source.reseeded.clone();
        self.hasher.clone_from(&source.hasher);
        self.table = table;
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S, A: Allocator + Clone> fmt::Debug for TrashMap<K, V, S, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// Equal keys with equal values; seeds do not count. The types are equal, so that
/// `map == iterator.collect()` infers them, as in `std`.
impl<K, V, S, A> PartialEq for TrashMap<K, V, S, A>
where
    K: Eq + Hash,
    V: PartialEq,
    S: BuildHasher,
    A: Allocator + Clone,
{
    fn eq(&self, other: &Self) -> bool {
        let same = |(key, value): (&K, &V)| other.get(key).is_some_and(|other| value == other);
        self.len() == other.len() && self.iter().all(same)
    }
}

impl<K: Eq + Hash, V: Eq, S: BuildHasher, A: Allocator + Clone> Eq for TrashMap<K, V, S, A> {}

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> Extend<(K, V)>
    for TrashMap<K, V, S, A>
{
    /// Inserts all entries, in bursts. Reserves capacity for the lower bound of `size_hint`,
    /// until entries are removed.
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        let entries = entries.into_iter();
        // Without the memory, or with a bound that is too large, the map grows in steps.
        let additional = entries.size_hint().0;
        if self.capacity() - self.len() < additional {
            let _ = self.make_room(additional);
        }
        self.insert_batch(entries, |_, _| ());
    }
}

impl<'a, K: Eq + Hash + Copy, V: Copy, S: BuildHasher, A: Allocator + Clone> Extend<(&'a K, &'a V)>
    for TrashMap<K, V, S, A>
{
    fn extend<I: IntoIterator<Item = (&'a K, &'a V)>>(&mut self, entries: I) {
        self.extend(entries.into_iter().map(|(&key, &value)| (key, value)));
    }
}

impl<'a, K: Eq + Hash + Copy, V: Copy, S: BuildHasher, A: Allocator + Clone> Extend<&'a (K, V)>
    for TrashMap<K, V, S, A>
{
    fn extend<I: IntoIterator<Item = &'a (K, V)>>(&mut self, entries: I) {
        self.extend(entries.into_iter().copied());
    }
}

impl<K: Eq + Hash, V, S: BuildHasher + Default> FromIterator<(K, V)> for TrashMap<K, V, S> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        map.extend(entries);
        map
    }
}

impl<K: Eq + Hash, V, const N: usize> From<[(K, V); N]> for TrashMap<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<K, V, S, A: Allocator + Clone, Q> Index<&Q> for TrashMap<K, V, S, A>
where
    K: Eq + Hash,
    S: BuildHasher,
    Q: Hash + Equivalent<K> + ?Sized,
{
    type Output = V;

    /// The value of `key`.
    ///
    /// # Panics
    ///
    /// If the map does not have the key.
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("the map does not have the key")
    }
}

impl<K, V, S, A: Allocator + Clone> IntoIterator for TrashMap<K, V, S, A> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V, A>;

    fn into_iter(mut self) -> IntoIter<K, V, A> {
        let (current, old) = self.take_tables();
        IntoIter::new(current, old)
    }
}

impl<'a, K, V, S, A: Allocator + Clone> IntoIterator for &'a TrashMap<K, V, S, A> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

impl<'a, K, V, S, A: Allocator + Clone> IntoIterator for &'a mut TrashMap<K, V, S, A> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> IterMut<'a, K, V> {
        self.iter_mut()
    }
}
