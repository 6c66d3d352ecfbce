//! Reseeding: the answer of a map to hashes that are not random.
//!
//! A map whose table is flooded draws a seed of its own and moves its entries to another table,
//! under that hash. Before an insertion or removal goes to work it calls
//! [`prepare`](TrashMap::prepare), which
//!
//! 1. begins a reseeding, if the table is flooded: it becomes the *old* one;
//! 2. moves some entries of the old table to the current one, until it is empty;
//! 3. moves the entry of the key that the operation is about, so that the operation finds it there.
//!
//! An entry is moved when room has been made for it: no user code runs while it is in neither
//! table, and memory that cannot be allocated leaves it where it is.
//!
//! Lookups that hit in a map that has never reseeded do not read any of this: the map's own table
//! is empty after a reseeding, so a lookup that misses there goes on here.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::TrashMap;
use crate::hash::{Query, Reseed};
use crate::memory::{Allocator, Box};
use crate::probes::{Observer, Probes};
use crate::table::error::TryReserveError;
use crate::table::{Cursor, Position, Table, uninit_box};

/// Slots of the old table that are visited by each operation, beyond those whose entries move.
const VISITED: usize = 64;

/// Entries of the old table that are moved by each operation.
const MOVED: usize = 8;

/// A table of keys and values, and the hashes of its entries.
type TableAndHasher<'t, K, V, A, H> = (&'t mut Table<(K, V), A>, H);

/// The tables of a map that has reseeded.
#[derive(Clone)]
pub(super) struct Reseeded<K, V, A: Allocator + Clone> {
    /// Hashes all keys of the table.
    pub(super) seed: Reseed,
    pub(super) table: Table<(K, V), A>,
    /// The old table, until it is empty.
    pub(super) old: Option<Old<K, V, A>>,
    /// Number of reseedings.
    pub(super) count: usize,
    /// With fewer entries, no other seed is drawn: keys that no seed helps against would be moved
    /// all the time.
    again_at: usize,
}

/// A table with a hash that an attacker may be able to compute.
#[derive(Clone)]
pub(super) struct Old<K, V, A: Allocator + Clone> {
    pub(super) table: Table<(K, V), A>,
    /// The seed of its hash; none if that was the hasher's.
    pub(super) seed: Option<Reseed>,
    /// The migration cursor: entries before it have moved.
    cursor: Cursor,
}

impl<K, V, A: Allocator + Clone> Old<K, V, A> {
    /// The hash of `key` in the table; `by_hasher` returns the hash by the hasher.
    fn hash<Q: Hash + ?Sized>(&self, by_hasher: impl FnOnce() -> u64, key: &Q) -> u64 {
        self.seed.as_ref().map_or_else(by_hasher, |seed| seed.hash_one(key))
    }
}

impl<K, V, A: Allocator + Clone> Reseeded<K, V, A> {
    /// The entry of `key`, given its hash in the current table; `by_hasher` returns the hash by the
    /// hasher.
    #[cold]
    #[inline(never)]
    fn find<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        by_hasher: impl FnOnce() -> u64,
        key: &Q,
        observer: &mut impl Observer,
    ) -> Option<&(K, V)> {
        let eq = |(own, _): &(K, V)| key.equivalent(own);
        let found = self.table.find_observed(hash, eq, observer);
        found.or_else(|| {
            let old = self.old.as_ref()?;
            old.table.find_observed(old.hash(by_hasher, key), eq, observer)
        })
    }
}

/// Returns the function that hashes entries: by the seed, if there is one. All callers receive a
/// function of one type, as the growth of a table is compiled for each type of function.
#[inline]
pub(super) fn entry_hasher<'m, K: Hash, V, S: BuildHasher>(
    hasher: &'m S,
    seed: Option<&'m Reseed>,
) -> impl Fn(&(K, V)) -> u64 + Copy {
    move |(key, _)| match seed {
        None => hasher.hash_one(key),
        Some(seed) => seed.hash_one(key),
    }
}

impl<K, V, S, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// The table that insertions go to.
    pub(super) fn current(&self) -> &Table<(K, V), A> {
        self.reseeded.as_ref().map_or(&self.table, |reseeded| &reseeded.table)
    }

    /// The table that insertions go to.
    pub(super) fn current_table_mut(&mut self) -> &mut Table<(K, V), A> {
        match &mut self.reseeded {
            None => &mut self.table,
            Some(reseeded) => &mut reseeded.table,
        }
    }

    /// The table from before, if it is not empty yet.
    pub(super) fn old_table(&self) -> Option<&Table<(K, V), A>> {
        self.reseeded.as_ref()?.old.as_ref().map(|old| &old.table)
    }

    /// Whether there is more to a mutation than the segments of the map's own table.
    #[inline]
    pub(super) fn is_unusual(&self) -> bool {
        self.table.has_extras()
    }
}

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// The hash of `key` in the current table, given its hash by the hasher.
    pub(super) fn current_hash<Q: Hash + ?Sized>(&self, hash: u64, key: &Q) -> u64 {
        self.reseeded.as_ref().map_or(hash, |reseeded| reseeded.seed.hash_one(key))
    }

    /// The function that hashes the entries of the current table.
    pub(super) fn current_hasher(&self) -> impl Fn(&(K, V)) -> u64 + Copy {
        entry_hasher(&self.hasher, self.reseeded.as_ref().map(|reseeded| &reseeded.seed))
    }

    /// The current table and the hashes of its entries.
    pub(super) fn current_mut(
        &mut self,
    ) -> TableAndHasher<'_, K, V, A, impl Fn(&(K, V)) -> u64 + Copy> {
        let Self { table, hasher, reseeded } = self;
        let (table, seed) = match reseeded.as_deref_mut() {
            None => (table, None),
            Some(Reseeded { table, seed, .. }) => (table, Some(&*seed)),
        };
        (table, entry_hasher(&*hasher, seed))
    }

    /// The entry of `key`, given its hash by the hasher, in the tables of a map that has reseeded.
    #[cold]
    #[inline(never)]
    pub(super) fn find_reseeded<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
        observer: &mut impl Observer,
    ) -> Option<&(K, V)> {
        let reseeded = self.reseeded.as_ref()?;
        reseeded.find(reseeded.seed.hash_one(key), || hash, key, observer)
    }

    /// The entry of a query of a burst, given its hash in the current table, which is in none of
    /// the segments of the map's own table.
    #[cold]
    #[inline(never)]
    pub(super) fn find_further_of_burst<Q: Query<K>>(
        &self,
        hash: u64,
        query: &Q,
    ) -> Option<&(K, V)> {
        match &self.reseeded {
            None => self.find_further(hash, query.key()),
            Some(reseeded) => {
                reseeded.find(hash, || query.hash_with(&self.hasher), query.key(), &mut ())
            }
        }
    }

    /// The hash by the hasher of a query of a burst, given its hash in the current table when the
    /// burst began.
    #[inline]
    pub(super) fn hash_of_burst<Q: Query<K>>(&self, hash: u64, query: &Q) -> u64 {
        let is_reseeded = self.is_unusual() && self.reseeded.is_some();
        if is_reseeded { query.hash_with(&self.hasher) } else { hash }
    }

    /// The entry of `key`, in a map that has reseeded or is flooded.
    #[cold]
    #[inline(never)]
    pub(super) fn find_reseeded_mut<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &Q,
    ) -> Option<&mut (K, V)> {
        if self.prepare(hash, key).is_err() {
            // There is no memory to move it.
            let at = self.locate_old(hash, key)?;
            return self.old_table_mut()?.get_mut(at);
        }
        let hash = self.current_hash(hash, key);
        self.current_table_mut().find_mut(hash, |(own, _)| key.equivalent(own))
    }

    /// [`find_reseeded_mut`](Self::find_reseeded_mut), and the number of entries examined.
    #[cold]
    #[inline(never)]
    pub(super) fn get_mut_counted_reseeded<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &Q,
    ) -> (Option<&mut V>, u32) {
        let mut probes = Probes::default();
        // One search counts, another returns the mutable reference: this path is rare.
        let _ = self.find_observed(hash, key, &mut probes);
        (self.find_reseeded_mut(hash, key).map(|(_, value)| value), probes.entries)
    }

    /// Removes the entry of `key` from a map that has reseeded or is flooded.
    #[cold]
    #[inline(never)]
    pub(super) fn remove_reseeded<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &Q,
    ) -> Option<(K, V)> {
        if self.prepare(hash, key).is_err() {
            // There is no memory to move it.
            let at = self.locate_old(hash, key)?;
            let Self { hasher, reseeded, .. } = self;
            let old = reseeded.as_mut()?.old.as_mut()?;
            return old.table.take_slot(at, &entry_hasher(&*hasher, old.seed.as_ref()));
        }
        let hash = self.current_hash(hash, key);
        let (table, hasher) = self.current_mut();
        table.remove(hash, |(own, _)| key.equivalent(own), &hasher)
    }

    /// Answers a flood, and moves the entry of `key`, given its hash by the hasher, to the current
    /// table if it is in the old one.
    ///
    /// # Errors
    ///
    /// If there is no memory to move it.
    #[cold]
    #[inline(never)]
    pub(super) fn prepare<Q: Hash + Equivalent<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &Q,
    ) -> Result<(), TryReserveError> {
        if self.current().is_flooded() {
            self.reseed(hash);
        }
        self.locate_old(hash, key).map_or(Ok(()), |at| self.move_over(at))?;
        // Without memory, the move goes on another time.
        let _ = self.move_some(MOVED, VISITED);
        Ok(())
    }

    /// Moves the entries of all these keys, given their hashes by the hasher, to the current table,
    /// so that none moves while they are located.
    pub(super) fn prepare_all<Q: Query<K>>(&mut self, hashes: &[u64], keys: &[Q]) {
        while self.is_unusual() {
            let reseeds = self.reseeds();
            for (&hash, key) in hashes.iter().zip(keys) {
                self.prepare(hash, key.key()).unwrap_or_else(|error| error.raise());
            }
            // Another reseeding needs twice as many entries, so this ends.
            if self.reseeds() == reseeds {
                return;
            }
        }
    }

    /// Draws a seed from the hash of any key, unless a move is under way or the last seed is not
    /// old enough.
    #[cold]
    #[inline(never)]
    fn reseed(&mut self, hash: u64) {
        self.current_table_mut().forget_flood();
        if self.old_table().is_some() {
            return;
        }
        let again_at = self.reseeded.as_ref().map_or(0, |reseeded| reseeded.again_at);
        if self.current().len() < again_at {
            return;
        }
        let seed = Reseed::new(hash);
        // Without memory it begins another time; the table will be flooded again.
        let memory = self.table.allocator().clone();
        let mut table = Table::new_in(memory.clone());
        let (Ok(uninit), Ok(())) =
            (uninit_box(&memory), table.reserve(1, &entry_hasher(&self.hasher, Some(&seed))))
        else {
            return;
        };
        table.set_reserved(self.current().reserved());
        let again_at = 2 * self.current().len();
        let count = self.reseeds() + 1;
        let old = self.current_table_mut().replace_by_empty();
        let before = self.reseeded.take().map(|reseeded| Box::into_inner(reseeded).seed);
        let old = Some(Old { table: old, seed: before, cursor: Cursor::default() });
        // Lookups that miss in the map's own table, which is empty, go on in these.
        self.table.set_other_tables();
        self.reseeded = Some(Box::write(uninit, Reseeded { seed, table, old, count, again_at }));
    }

    /// The position of the entry of `key`, given its hash by the hasher, in the old table.
    pub(super) fn locate_old<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
    ) -> Option<Position> {
        let old = self.reseeded.as_ref()?.old.as_ref()?;
        let hash = old.hash(|| hash, key);
        old.table.locate(hash, |(own, _)| key.equivalent(own))
    }

    pub(super) fn old_table_mut(&mut self) -> Option<&mut Table<(K, V), A>> {
        self.reseeded.as_mut()?.old.as_mut().map(|old| &mut old.table)
    }

    /// Moves one entry of the old table to the current one.
    #[inline(never)]
    fn move_over(&mut self, at: Position) -> Result<(), TryReserveError> {
        let Self { hasher, reseeded, .. } = self;
        let Some(Reseeded { seed, table, old: Some(old), .. }) = reseeded.as_deref_mut() else {
            return Ok(());
        };
        let Some((key, _)) = old.table.get(at) else { return Ok(()) };
        let room = table.make_room(seed.hash_one(key), &entry_hasher(&*hasher, Some(seed)))?;
        let old_hasher = entry_hasher(&*hasher, old.seed.as_ref());
        if let Some(entry) = old.table.take_slot(at, &old_hasher) {
            room.insert(entry);
        }
        Ok(())
    }

    /// Moves some entries of the old table, and visits at most that many free slots.
    fn move_some(&mut self, entries: usize, mut slots: usize) -> Result<(), TryReserveError> {
        for _ in 0..entries {
            let Some(Reseeded { old: Some(old), .. }) = self.reseeded.as_deref_mut() else {
                return Ok(());
            };
            match old.table.visit(&mut old.cursor, &mut slots) {
                Some(at) => self.move_over(at)?,
                None if slots == 0 => return Ok(()),
                None => {
                    self.drop_old();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Frees the old table, which is empty.
    fn drop_old(&mut self) {
        if let Some(reseeded) = &mut self.reseeded {
            reseeded.old = None;
        }
    }

    /// Moves all that is in the old table, as far as there is memory.
    pub(super) fn finish_move(&mut self) {
        let _ = self.move_some(usize::MAX, usize::MAX);
    }
}
