//! `TrashTable`: the table of [`TrashMap`](crate::TrashMap), with hashes and comparisons given.
//!
//! A table has entries, and neither keys nor a hasher. Each method takes the hashes and functions
//! that it needs:
//!
//! ```text
//!     find(hash, eq)                    the hash of the entry, and whether an entry is the one
//!     insert_unique(hash, entry, hasher)   the hash of any entry, as some may have to move
//! ```
//!
//! So entries can have their key in an array elsewhere, or several keys, or be borrowed; and a hash
//! can be stored in the entry, as one that a packet has brought. The table grows as the map does:
//! a segment at a time, without pauses.
//!
//! # Contract
//!
//! The hash that an entry is inserted with is the one that `hasher` returns for it, each time. With
//! others an entry may not be found, or be found twice; nothing worse. A method that takes a
//! `hasher` calls it for entries in the table only, and not more than once for an entry in a step.
//!
//! # Hashes that are not random
//!
//! A table uses bits from all over the hash: the upper eight, the lowest ones, and those between. A
//! map answers weak or hostile hashes by hashing with a seed of its own, which a table cannot do.
//! It stays correct, keeps entries that it cannot separate in a list, and its
//! [`is_flooded`](TrashTable::is_flooded) returns true: then move the entries to a table with
//! other hashes.
//!
//! # Differences from `hashbrown::HashTable`
//!
//! Of hashbrown's examples, these do not compile with this table:
//!
//! - *Removal without a hasher*: `OccupiedEntry::remove`, `retain` and `extract_if`. An entry that
//!   a full group has not had room for moves back, and its hash tells where to. So they take a
//!   `hasher`, and `remove` returns the entry alone. There is no `replace_entry_with`, which would
//!   need one, too. (8 examples)
//! - *Unsafe methods*: `get_bucket_unchecked`, `get_bucket_unchecked_mut`,
//!   `get_bucket_entry_unchecked` and `unsafe_iter`. The ones that check cost a comparison of a
//!   tag. (4 examples)
//!
//! [`TrashTable::clear`] and [`drain`](TrashTable::drain) free the memory. The numbers of slots
//! ([`find_bucket_index`](TrashTable::find_bucket_index)) have gaps, since a segment that has split
//! less often than others has its slots at one of several indices.

// First, so that the documentation of the type begins with its methods.
mod methods;

mod entry;

use core::fmt;

use crate::memory::{Allocator, Global};
use crate::table::Table;

pub use crate::table::{IntoIter, Iter, IterHash, IterHashMut, IterMut};
pub use entry::{AbsentEntry, Entry, OccupiedEntry, VacantEntry};
pub use methods::ExtractIf;

/// A hash table without pauses whose hashes and comparisons the caller gives.
///
/// | method | cost |
/// |---|---|
/// | `find`, `find_mut`, `find_entry`, `iter_hash`, `iter_hash_mut` | O(1): the cache lines of the tags and of the entry |
/// | `entry`, `insert_unique`, `try_entry`, `try_insert_unique`, `remove` | a lookup, and one step of at most two segments, about 1000 entries |
/// | `find_batch`, `get_disjoint_mut` | a lookup a hash, the cache misses of 32 overlapped |
/// | `iter`, `retain`, `extract_if`, `drain`, `clear`, `clone`, `drop`, `reserve`, `shrink_to`, `shape` | O(slots) |
/// | `len`, `capacity`, `allocation_size`, `is_flooded` | O(1) |
///
/// # Example
///
/// ```
/// use core::hash::BuildHasher;
/// use flowtable::{DefaultHashBuilder, TrashTable};
///
/// // Names are in an array; the table has their numbers.
/// let names = ["https", "domain", "ntp"];
/// let hasher = DefaultHashBuilder::with_seed(7);
/// let hash = |name: &str| hasher.hash_one(name);
/// let mut numbers = TrashTable::new();
/// for (number, name) in names.iter().enumerate() {
///     numbers.insert_unique(hash(name), number, |&number| hash(names[number]));
/// }
/// let number_of = |name| numbers.find(hash(name), |&number| names[number] == name);
/// assert_eq!((number_of("ntp"), number_of("ssh")), (Some(&2), None));
/// ```
#[doc(alias("HashTable", "RawTable"))]
pub struct TrashTable<T, A: Allocator + Clone = Global> {
    table: Table<T, A>,
}

impl<T> Default for TrashTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A copy has the same shape.
impl<T: Clone, A: Allocator + Clone> Clone for TrashTable<T, A> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone() }
    }

    /// Makes the table a copy of `source`, in its own memory as far as that is of use. If the drop
    /// or the clone of an entry panics, the table is empty.
    fn clone_from(&mut self, source: &Self) {
        self.table.clone_from(&source.table);
    }
}

impl<T: fmt::Debug, A: Allocator + Clone> fmt::Debug for TrashTable<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

impl<T, A: Allocator + Clone> IntoIterator for TrashTable<T, A> {
    type Item = T;
    type IntoIter = IntoIter<T, A>;

    fn into_iter(self) -> IntoIter<T, A> {
        self.table.into_entries()
    }
}

impl<'a, T, A: Allocator + Clone> IntoIterator for &'a TrashTable<T, A> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T, A: Allocator + Clone> IntoIterator for &'a mut TrashTable<T, A> {
    type Item = &'a mut T;
    type IntoIter = IterMut<'a, T>;

    fn into_iter(self) -> IterMut<'a, T> {
        self.iter_mut()
    }
}
