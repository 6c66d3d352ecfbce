//! Construction, lookups, insertions and removals of `TrashTable`, and removal of the entries that
//! a predicate picks.

use core::fmt;
use core::iter::FusedIterator;

use super::{OccupiedEntry, TrashTable, VacantEntry};
use crate::invariant::InvariantError;
use crate::memory::{Allocator, Global};
use crate::raw::prefetch::BURST;
use crate::table::error::TryReserveError;
use crate::table::{Burst, Cursor, IntoIter, Iter, IterHash, IterHashMut, IterMut, Table};
use crate::trash::insert::TryInsertError;
use crate::trash::shape::TableShape;

impl<T> TrashTable<T> {
    /// Creates a table without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self::new_in(Global)
    }

    /// Creates a table with room for `capacity` entries: see [`reserve`](Self::reserve).
    ///
    /// # Panics
    ///
    /// If the entries take more bytes than the address space has.
    ///
    /// # Example
    ///
    /// ```
    /// let table: flowtable::TrashTable<u64> = flowtable::TrashTable::with_capacity(1000);
    /// assert!(table.is_empty() && table.capacity() >= 1000);
    /// assert!(table.allocation_size() > 1000 * 8);
    /// ```
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_in(capacity, Global)
    }
}

impl<T, A: Allocator + Clone> TrashTable<T, A> {
    /// Creates a table without memory, whose memory is from `memory`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::TrashTable;
    ///
    /// let arena = bumpalo::Bump::new();
    /// let mut table = TrashTable::new_in(&arena);
    /// table.insert_unique(7, "an entry", |_| 7);
    /// let other: TrashTable<u64, _> = TrashTable::with_capacity_in(1000, table.allocator());
    /// assert!(arena.allocated_bytes() >= table.allocation_size() + other.allocation_size());
    /// ```
    #[must_use]
    pub const fn new_in(memory: A) -> Self {
        Self { table: Table::new_in(memory) }
    }

    /// Creates a table with room for `capacity` entries, whose memory is from `memory`.
    ///
    /// # Panics
    ///
    /// If the entries take more bytes than the address space has.
    #[must_use]
    pub fn with_capacity_in(capacity: usize, memory: A) -> Self {
        let mut table = Self::new_in(memory);
        // There is no entry to be hashed.
        table.reserve(capacity, |_| 0);
        table
    }

    /// Returns the allocator that the table was created with.
    #[must_use]
    pub fn allocator(&self) -> &A {
        self.table.allocator()
    }

    /// Returns the number of entries.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are no entries.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of entries that fit before the next step of growth, if they are spread as
    /// evenly as chance does it.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.table.capacity().max(self.len())
    }

    /// Returns the bytes allocated, free slots included. Memory that entries own does not count.
    #[must_use]
    pub fn allocation_size(&self) -> usize {
        self.table.allocation_size()
    }

    /// Whether hashes have been found that are not random: see [the module](super). It stays true
    /// until the table is cleared.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::TrashTable;
    ///
    /// // Hashes with entropy in the low bits only.
    /// let mut weak = TrashTable::new();
    /// (0..5000_u64).for_each(|number| drop(weak.insert_unique(number, number, |&number| number)));
    /// assert!(weak.is_flooded());
    /// assert_eq!(weak.find(77, |&number| number == 77), Some(&77));
    ///
    /// let hash = |&number: &u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    /// let mut table = TrashTable::new();
    /// weak.drain().for_each(|number| drop(table.insert_unique(hash(&number), number, hash)));
    /// assert_eq!((weak.len(), table.len(), table.is_flooded()), (0, 5000, false));
    /// ```
    #[must_use]
    pub fn is_flooded(&self) -> bool {
        self.table.is_flooded()
    }

    /// Returns the entry with this hash for which `eq` returns true.
    #[inline]
    pub fn find(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<&T> {
        self.table.find(hash, eq)
    }

    /// Returns a mutable reference to the entry with this hash for which `eq` returns true. Its
    /// hash must stay the same.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table = flowtable::TrashTable::new();
    /// table.insert_unique(7, ("a", 1), |_| 7);
    /// table.find_mut(7, |(key, _)| *key == "a").unwrap().1 += 1;
    /// assert_eq!(table.remove(7, |(key, _)| *key == "a", |_| 7), Some(("a", 2)));
    /// ```
    #[inline]
    pub fn find_mut(&mut self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<&mut T> {
        self.table.find_mut(hash, eq)
    }

    /// Inserts an entry, without a search for one that is equal.
    #[inline]
    pub fn insert_unique(
        &mut self,
        hash: u64,
        entry: T,
        hasher: impl Fn(&T) -> u64,
    ) -> OccupiedEntry<'_, T, A> {
        let room = self.table.make_room(hash, &hasher).unwrap_or_else(|error| error.raise());
        VacantEntry { room }.insert(entry)
    }

    /// Inserts an entry, like [`insert_unique`](Self::insert_unique), or returns it if there is no
    /// memory.
    ///
    /// # Errors
    ///
    /// If memory is needed and cannot be allocated; the table is as it was.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table = flowtable::TrashTable::new();
    /// let inserted = table.try_insert_unique(7, "an entry", |_| 7);
    /// assert_eq!(inserted.map(|entry| *entry.get()), Ok("an entry"));
    /// ```
    pub fn try_insert_unique(
        &mut self,
        hash: u64,
        entry: T,
        hasher: impl Fn(&T) -> u64,
    ) -> Result<OccupiedEntry<'_, T, A>, TryInsertError<T>> {
        match self.table.make_room(hash, &hasher) {
            Ok(room) => Ok(VacantEntry { room }.insert(entry)),
            Err(reason) => Err(TryInsertError { refused: entry, reason }),
        }
    }

    /// Removes and returns the entry with this hash for which `eq` returns true.
    pub fn remove(
        &mut self,
        hash: u64,
        eq: impl FnMut(&T) -> bool,
        hasher: impl Fn(&T) -> u64,
    ) -> Option<T> {
        self.table.remove(hash, eq, &hasher)
    }

    /// Returns mutable references to several entries: for each hash the one for which `eq` with the
    /// index of the hash returns true.
    ///
    /// # Panics
    ///
    /// If two of them are the same entry.
    ///
    /// # Example
    ///
    /// ```
    /// let mut tokens = flowtable::TrashTable::new();
    /// let hash = |&(key, _): &(u64, i32)| key << 57;
    /// for entry in [(1, 5), (2, 0)] {
    ///     tokens.insert_unique(hash(&entry), entry, hash);
    /// }
    /// let keys = [1, 2, 3];
    /// let hashes = keys.map(|key| key << 57);
    /// let found = tokens.get_disjoint_mut(hashes, |i, entry| entry.0 == keys[i]);
    /// let [Some(from), Some(to), None] = found else { panic!("two entries of three") };
    /// (from.1, to.1) = (from.1 - 2, to.1 + 2);
    /// assert_eq!(tokens.find(2 << 57, |entry| entry.0 == 2), Some(&(2, 2)));
    /// ```
    #[must_use]
    pub fn get_disjoint_mut<const N: usize>(
        &mut self,
        hashes: [u64; N],
        mut eq: impl FnMut(usize, &T) -> bool,
    ) -> [Option<&mut T>; N] {
        for hashes in hashes.chunks(BURST) {
            // For its prefetches.
            self.table.find_candidates(hashes.iter().copied(), &mut Burst::new());
        }
        let mut indices = 0..N;
        let at = hashes.map(|hash| {
            let index = indices.next()?;
            self.table.locate(hash, |entry| eq(index, entry))
        });
        self.table.get_many_mut(at)
    }

    /// Calls `each` with the index of each hash and the entry with that hash for which `eq` with
    /// the index returns true, in the order of the slice. The misses of 32 searches overlap.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table = flowtable::TrashTable::new();
    /// let hash = |&(key, _): &(u64, char)| key << 57;
    /// for entry in [(1, 'a'), (2, 'b')] {
    ///     table.insert_unique(hash(&entry), entry, hash);
    /// }
    /// let keys = [2, 3, 1];
    /// let mut found = vec![];
    /// table.find_batch(&keys.map(|key| key << 57), |i, entry| entry.0 == keys[i], |_, entry| {
    ///     found.push(entry.map(|entry| entry.1));
    /// });
    /// assert_eq!(found, [Some('b'), None, Some('a')]);
    /// ```
    pub fn find_batch<'a>(
        &'a self,
        hashes: &[u64],
        mut eq: impl FnMut(usize, &T) -> bool,
        mut each: impl FnMut(usize, Option<&'a T>),
    ) {
        let mut burst = Burst::new();
        for (chunk, hashes) in hashes.chunks(BURST).enumerate() {
            self.table.find_candidates(hashes.iter().copied(), &mut burst);
            for (at, (&hash, candidate)) in hashes.iter().zip(&burst.candidates).enumerate() {
                let index = chunk * BURST + at;
                let first = candidate.filter(|entry| eq(index, entry));
                let found = first.or_else(|| self.table.find(hash, |entry| eq(index, entry)));
                each(index, found);
            }
        }
    }

    /// Returns an iterator over references to the entries, in no order that means anything.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table = flowtable::TrashTable::new();
    /// (1..5_u64).for_each(|number| drop(table.insert_unique(number << 57, number, |n| n << 57)));
    /// assert_eq!(table.iter().sum::<u64>(), 10);
    /// assert_eq!(table.iter_hash(3 << 57).filter(|&&number| number == 3).count(), 1);
    /// // Changes must not change the hash.
    /// table.iter_mut().for_each(|number| *number |= 0x100);
    /// table.iter_hash_mut(3 << 57).for_each(|number| *number |= 0x200);
    /// assert_eq!(table.into_iter().max(), Some(0x303));
    /// ```
    #[must_use]
    pub fn iter(&self) -> Iter<'_, T> {
        self.table.iter()
    }

    /// Returns an iterator over mutable references to the entries. Their hashes must stay the same.
    #[must_use]
    pub fn iter_mut(&mut self) -> IterMut<'_, T> {
        self.table.iter_mut()
    }

    /// Returns an iterator over the entries that may have this hash: all that have it, and some
    /// that do not. O(1), if hashes are random.
    #[must_use]
    pub fn iter_hash(&self, hash: u64) -> IterHash<'_, T> {
        self.table.iter_hash(hash)
    }

    /// Returns an iterator over mutable references to the entries that may have this hash: see
    /// [`iter_hash`](Self::iter_hash).
    #[must_use]
    pub fn iter_hash_mut(&mut self, hash: u64) -> IterHashMut<'_, T> {
        self.table.iter_hash_mut(hash)
    }

    /// Removes all entries and returns an iterator over them, which drops the rest. Frees the
    /// memory.
    pub fn drain(&mut self) -> IntoIter<T, A> {
        self.table.replace_by_empty().into_entries()
    }

    /// Removes all entries and frees their memory. If the drop of an entry panics, the table is
    /// empty, and the others are dropped.
    pub fn clear(&mut self) {
        // Nothing is half removed if the drop of an entry panics.
        drop(self.table.replace_by_empty());
    }

    /// Keeps the entries for which `keep` returns true. If `keep` or the drop of an entry panics,
    /// those that it has not visited stay.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table = flowtable::TrashTable::new();
    /// let hash = |&number: &u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    /// (0..10_u64).for_each(|number| drop(table.insert_unique(hash(&number), number, hash)));
    /// table.retain(|number| *number % 3 == 0, hash);
    /// assert_eq!(table.len(), 4);
    /// ```
    pub fn retain(&mut self, keep: impl FnMut(&mut T) -> bool, hasher: impl Fn(&T) -> u64) {
        self.table.retain(keep, &hasher);
        self.table.shrink_all(&hasher);
    }

    /// Makes room for `additional` entries more, and keeps it until
    /// [`shrink_to_fit`](Self::shrink_to_fit).
    ///
    /// # Panics
    ///
    /// If the entries take more bytes than the address space has.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table: flowtable::TrashTable<u64> = flowtable::TrashTable::new();
    /// table.reserve(5000, |&number| number);
    /// assert!(table.capacity() >= 5000);
    /// table.shrink_to(1000, |&number| number);
    /// assert!((1000..5000).contains(&table.capacity()));
    /// table.shrink_to_fit(|&number| number);
    /// assert_eq!(table.allocation_size(), 0);
    /// assert!(table.try_reserve(usize::MAX / 2, |&number| number).is_err());
    /// ```
    pub fn reserve(&mut self, additional: usize, hasher: impl Fn(&T) -> u64) {
        self.try_reserve(additional, hasher).unwrap_or_else(|error| error.raise());
    }

    /// Makes room for `additional` entries more, like [`reserve`](Self::reserve), if there is
    /// memory.
    ///
    /// # Errors
    ///
    /// If the allocation fails. It is tried in one piece first, so that an attempt that must fail
    /// takes nothing.
    pub fn try_reserve(
        &mut self,
        additional: usize,
        hasher: impl Fn(&T) -> u64,
    ) -> Result<(), TryReserveError> {
        self.table.reserve(additional, &hasher)?;
        self.table.set_reserved(self.len().saturating_add(additional));
        Ok(())
    }

    /// Frees the memory that is not needed for `capacity` entries and those that there are.
    pub fn shrink_to(&mut self, capacity: usize, hasher: impl Fn(&T) -> u64) {
        self.table.shrink_to_at_most(capacity, &hasher);
    }

    /// Cancels the reserved capacity, and shrinks the table as far as its entries stay below the
    /// load of growth.
    pub fn shrink_to_fit(&mut self, hasher: impl Fn(&T) -> u64) {
        self.shrink_to(0, hasher);
    }

    /// Returns segments, load, distances and memory at this moment. O(slots), and hashes every
    /// entry.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table = flowtable::TrashTable::new();
    /// table.insert_unique(7, "an entry", |_| 7);
    /// let shape = table.shape(|_| 7);
    /// assert_eq!((shape.entries, shape.segments, shape.slots), (1, 1, 4));
    /// ```
    #[must_use]
    pub fn shape(&self, hasher: impl Fn(&T) -> u64) -> TableShape {
        TableShape::of(&self.table, &hasher)
    }

    /// Checks every invariant, for tests. O(slots).
    ///
    /// # Errors
    ///
    /// The invariant that does not hold: a bug in this crate, or a hasher that returns other hashes
    /// than before.
    #[doc(hidden)]
    pub fn validate(&self, hasher: impl Fn(&T) -> u64) -> Result<(), InvariantError> {
        self.table.validate(&hasher)
    }
}

/// Removes and returns the entries for which a predicate returns true. See
/// [`TrashTable::extract_if`].
pub struct ExtractIf<'a, T, F, H, A: Allocator + Clone = Global> {
    table: &'a mut TrashTable<T, A>,
    cursor: Cursor,
    predicate: F,
    hasher: H,
}

impl<T, A: Allocator + Clone> TrashTable<T, A> {
    /// Returns an iterator that removes the entries for which `predicate` returns true. Entries
    /// that it has not visited when it is dropped stay.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table = flowtable::TrashTable::new();
    /// let hash = |&number: &u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    /// (0..10_u64).for_each(|number| drop(table.insert_unique(hash(&number), number, hash)));
    /// assert_eq!(table.extract_if(|number| *number % 2 == 1, hash).sum::<u64>(), 25);
    /// assert_eq!(table.len(), 5);
    /// ```
    pub fn extract_if<F, H>(&mut self, predicate: F, hasher: H) -> ExtractIf<'_, T, F, H, A>
    where
        F: FnMut(&mut T) -> bool,
        H: Fn(&T) -> u64,
    {
        ExtractIf { table: self, cursor: Cursor::default(), predicate, hasher }
    }
}

impl<T, F: FnMut(&mut T) -> bool, H: Fn(&T) -> u64, A: Allocator + Clone> Iterator
    for ExtractIf<'_, T, F, H, A>
{
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let Self { table, cursor, predicate, hasher } = self;
        table.table.extract_next(cursor, predicate, hasher)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.table.len()))
    }
}

impl<T, F: FnMut(&mut T) -> bool, H: Fn(&T) -> u64, A: Allocator + Clone> FusedIterator
    for ExtractIf<'_, T, F, H, A>
{
}

impl<T, F, H, A: Allocator + Clone> fmt::Debug for ExtractIf<'_, T, F, H, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtractIf").finish_non_exhaustive()
    }
}
