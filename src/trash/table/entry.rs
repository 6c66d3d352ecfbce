//! The place of one entry in a [`TrashTable`], filled or not, and entries by the numbers of their
//! slots.

use core::fmt;
use core::iter::FusedIterator;
use core::mem;

use super::TrashTable;
use crate::memory::{Allocator, Global};
use crate::table::error::TryReserveError;
use crate::table::{Position, Room, Table};

impl<T, A: Allocator + Clone> TrashTable<T, A> {
    /// Returns the entry with this hash for which `eq` returns true: it can be changed or removed.
    ///
    /// # Errors
    ///
    /// The table, if there is none.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table = flowtable::TrashTable::new();
    /// match table.find_entry(7, |entry| *entry == "a") {
    ///     Ok(_) => unreachable!("the table is empty"),
    ///     Err(absent) => drop(absent.into_table().insert_unique(7, "a", |_| 7)),
    /// }
    /// let entry = table.find_entry(7, |entry| *entry == "a").unwrap();
    /// assert_eq!(entry.remove(|_| 7), "a");
    /// ```
    pub fn find_entry(
        &mut self,
        hash: u64,
        eq: impl FnMut(&T) -> bool,
    ) -> Result<OccupiedEntry<'_, T, A>, AbsentEntry<'_, T, A>> {
        match self.table.locate(hash, eq) {
            Some(at) => Ok(OccupiedEntry { table: &mut self.table, at }),
            None => Err(AbsentEntry { table: self }),
        }
    }

    /// Returns the entry with this hash for which `eq` returns true, or room for it. `hasher`
    /// returns the hashes of entries that have to move.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::trash::table::Entry;
    ///
    /// let mut packets = flowtable::TrashTable::new();
    /// let hash = |&(port, _): &(u64, u32)| port.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    /// for port in [443, 53, 443] {
    ///     let flow = packets.entry(hash(&(port, 0)), |flow| flow.0 == port, hash);
    ///     flow.or_insert((port, 0)).get_mut().1 += 1;
    /// }
    /// let entry = packets.entry(hash(&(443, 0)), |flow| flow.0 == 443, hash);
    /// let Entry::Occupied(flow) = entry else { panic!("two packets") };
    /// assert_eq!(flow.remove(hash), (443, 2));
    /// ```
    pub fn entry(
        &mut self,
        hash: u64,
        eq: impl FnMut(&T) -> bool,
        hasher: impl Fn(&T) -> u64,
    ) -> Entry<'_, T, A> {
        self.try_entry(hash, eq, hasher).unwrap_or_else(|error| error.raise())
    }

    /// Returns the entry with this hash for which `eq` returns true, or room for it, if there is
    /// memory.
    ///
    /// # Errors
    ///
    /// If there is no such entry, and memory is needed for one and cannot be allocated; the table
    /// is as it was.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table = flowtable::TrashTable::new();
    /// match table.try_entry(7, |entry| *entry == "a", |_| 7) {
    ///     Ok(entry) => drop(entry.or_insert("a")), // takes no memory
    ///     Err(error) => println!("{error}"),
    /// }
    /// assert_eq!(table.len(), 1);
    /// ```
    pub fn try_entry(
        &mut self,
        hash: u64,
        eq: impl FnMut(&T) -> bool,
        hasher: impl Fn(&T) -> u64,
    ) -> Result<Entry<'_, T, A>, TryReserveError> {
        Ok(match self.table.locate(hash, eq) {
            Some(at) => Entry::Occupied(OccupiedEntry { table: &mut self.table, at }),
            None => Entry::Vacant(VacantEntry { room: self.table.make_room(hash, &hasher)? }),
        })
    }
}

/// An entry of a table, or room for one. See [`TrashTable::entry`].
///
/// # Example
///
/// ```
/// let mut table = flowtable::TrashTable::new();
/// let mut visit = |name: &'static str| {
///     let entry = table.entry(7, |(own, _)| *own == name, |_| 7);
///     *entry.and_modify(|(_, visits)| *visits += 1).or_insert_with(|| (name, 1)).get()
/// };
/// assert_eq!((visit("a"), visit("b"), visit("a")), (("a", 1), ("b", 1), ("a", 2)));
/// let changed = table.entry(7, |(own, _)| *own == "a", |_| 7).insert(("a", 5));
/// assert_eq!(changed.into_mut(), &mut ("a", 5));
/// ```
pub enum Entry<'a, T, A: Allocator + Clone = Global> {
    /// There is an entry.
    Occupied(OccupiedEntry<'a, T, A>),
    /// There is room for one.
    Vacant(VacantEntry<'a, T, A>),
}

/// An entry of a table.
pub struct OccupiedEntry<'a, T, A: Allocator + Clone = Global> {
    pub(super) table: &'a mut Table<T, A>,
    pub(super) at: Position,
}

/// Room for an entry, for which all memory is allocated.
pub struct VacantEntry<'a, T, A: Allocator + Clone = Global> {
    pub(super) room: Room<'a, T, A>,
}

/// The error of [`TrashTable::find_entry`]: no entry matches. Returns the table.
pub struct AbsentEntry<'a, T, A: Allocator + Clone = Global> {
    pub(super) table: &'a mut TrashTable<T, A>,
}

impl<'a, T, A: Allocator + Clone> AbsentEntry<'a, T, A> {
    /// Returns the table.
    #[must_use]
    pub fn into_table(self) -> &'a mut TrashTable<T, A> {
        self.table
    }
}

impl<'a, T, A: Allocator + Clone> Entry<'a, T, A> {
    /// Replaces the entry or inserts it.
    pub fn insert(self, entry: T) -> OccupiedEntry<'a, T, A> {
        match self {
            Self::Occupied(mut place) => {
                *place.get_mut() = entry;
                place
            }
            Self::Vacant(place) => place.insert(entry),
        }
    }

    /// Inserts an entry if there is none.
    pub fn or_insert(self, default: T) -> OccupiedEntry<'a, T, A> {
        self.or_insert_with(|| default)
    }

    /// Inserts the result of `default` if there is no entry.
    pub fn or_insert_with(self, default: impl FnOnce() -> T) -> OccupiedEntry<'a, T, A> {
        match self {
            Self::Occupied(entry) => entry,
            Self::Vacant(entry) => entry.insert(default()),
        }
    }

    /// Changes the entry if there is one. Its hash must stay the same.
    #[must_use]
    pub fn and_modify(mut self, change: impl FnOnce(&mut T)) -> Self {
        if let Self::Occupied(entry) = &mut self {
            change(entry.get_mut());
        }
        self
    }
}

/// Why an occupied entry has an entry.
const OCCUPIED: &str = "the table cannot change while its entry is borrowed";

impl<'a, T, A: Allocator + Clone> OccupiedEntry<'a, T, A> {
    /// Returns a reference to the entry.
    #[must_use]
    pub fn get(&self) -> &T {
        self.table.get(self.at).expect(OCCUPIED)
    }

    /// Returns a mutable reference to the entry, whose hash must stay the same.
    #[must_use]
    pub fn get_mut(&mut self) -> &mut T {
        self.table.get_mut(self.at).expect(OCCUPIED)
    }

    /// Converts into a mutable reference for the lifetime of the table's borrow.
    #[must_use]
    pub fn into_mut(self) -> &'a mut T {
        self.table.get_mut(self.at).expect(OCCUPIED)
    }

    /// Replaces the entry by one with the same hash, and returns it.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table = flowtable::TrashTable::new();
    /// let mut entry = table.insert_unique(7, "a", |_| 7);
    /// assert_eq!((entry.replace("b"), *entry.get()), ("a", "b"));
    /// ```
    pub fn replace(&mut self, entry: T) -> T {
        mem::replace(self.get_mut(), entry)
    }

    /// Removes the entry. `hasher` returns the hashes of other entries, of which some may move.
    pub fn remove(self, hasher: impl Fn(&T) -> u64) -> T {
        let Self { table, at } = self;
        let entry = table.take(at, &hasher).expect(OCCUPIED);
        table.shrink_around(at.hash(), &hasher);
        entry
    }
}

impl<'a, T, A: Allocator + Clone> VacantEntry<'a, T, A> {
    /// Inserts an entry. Takes no memory.
    pub fn insert(self, entry: T) -> OccupiedEntry<'a, T, A> {
        let (table, at) = self.room.insert_at(entry);
        OccupiedEntry { table, at }
    }
}

impl<T: fmt::Debug, A: Allocator + Clone> fmt::Debug for Entry<'_, T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Occupied(entry) => f.debug_tuple("Occupied").field(entry).finish(),
            Self::Vacant(entry) => f.debug_tuple("Vacant").field(entry).finish(),
        }
    }
}

impl<T: fmt::Debug, A: Allocator + Clone> fmt::Debug for OccupiedEntry<'_, T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OccupiedEntry").field("entry", self.get()).finish_non_exhaustive()
    }
}

impl<T, A: Allocator + Clone> fmt::Debug for VacantEntry<'_, T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VacantEntry").finish_non_exhaustive()
    }
}

impl<T, A: Allocator + Clone> fmt::Debug for AbsentEntry<'_, T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbsentEntry").finish_non_exhaustive()
    }
}

/// # Slots by number
///
/// An entry is in a slot, called *bucket* in these names, which are hashbrown's. The number of the
/// slot stays the same until the next insertion, removal or change of capacity. Numbers are as
/// compact as an index that a program can keep for the time of one packet; they are no handles.
impl<T, A: Allocator + Clone> TrashTable<T, A> {
    /// Returns the number of the slot with the entry with this hash for which `eq` returns true.
    ///
    /// # Example
    ///
    /// ```
    /// let mut table = flowtable::TrashTable::new();
    /// for name in ["a", "b"] {
    ///     table.insert_unique(7, name, |_| 7);
    /// }
    /// let slot = table.find_bucket_index(7, |name| *name == "b").unwrap();
    /// *table.get_bucket_mut(slot).unwrap() = "c";
    /// assert_eq!((table.get_bucket(slot), table.get_bucket(usize::MAX)), (Some(&"c"), None));
    /// assert!(table.iter_buckets().all(|slot| slot < table.num_buckets()));
    /// assert_eq!((table.iter_buckets().count(), table.iter_hash_buckets(7).count()), (2, 2));
    ///
    /// let entry = table.get_bucket_entry(slot).unwrap();
    /// assert_eq!((entry.bucket_index(), entry.remove(|_| 7)), (slot, "c"));
    /// ```
    pub fn find_bucket_index(&self, hash: u64, eq: impl FnMut(&T) -> bool) -> Option<usize> {
        self.table.locate(hash, eq).map(|at| self.table.number_of(at))
    }

    /// Returns a reference to the entry in a slot.
    #[must_use]
    pub fn get_bucket(&self, index: usize) -> Option<&T> {
        self.table.get(self.table.at_number(index)?)
    }

    /// Returns a mutable reference to the entry in a slot. Its hash must stay the same.
    #[must_use]
    pub fn get_bucket_mut(&mut self, index: usize) -> Option<&mut T> {
        self.table.get_mut(self.table.at_number(index)?)
    }

    /// Returns the entry in a slot: it can be changed or removed.
    ///
    /// # Errors
    ///
    /// The table, if there is no entry.
    pub fn get_bucket_entry(
        &mut self,
        index: usize,
    ) -> Result<OccupiedEntry<'_, T, A>, AbsentEntry<'_, T, A>> {
        match self.table.at_number(index) {
            Some(at) => Ok(OccupiedEntry { table: &mut self.table, at }),
            None => Err(AbsentEntry { table: self }),
        }
    }

    /// Returns a number that all numbers of slots are below.
    #[must_use]
    pub fn num_buckets(&self) -> usize {
        self.table.end_of_numbers()
    }

    /// Returns an iterator over the numbers of the occupied slots.
    pub fn iter_buckets(&self) -> impl FusedIterator<Item = usize> {
        self.table.numbers().fuse()
    }

    /// Returns an iterator over the numbers of the slots whose entries may have this hash: see
    /// [`iter_hash`](Self::iter_hash).
    pub fn iter_hash_buckets(&self, hash: u64) -> impl FusedIterator<Item = usize> {
        self.table.numbers_of_hash(hash).fuse()
    }
}

impl<T, A: Allocator + Clone> OccupiedEntry<'_, T, A> {
    /// Returns the number of the slot: see [`TrashTable::get_bucket`].
    #[must_use]
    pub fn bucket_index(&self) -> usize {
        self.table.number_of(self.at)
    }
}
