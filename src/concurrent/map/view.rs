//! Views: a map under a pin, with the helpers that the methods of a pinned map share.
#![allow(unsafe_code)]

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::ConcurrentMap;
use super::garbage::Batch;
use super::storage::{Ids, State, hash_of};
use crate::concurrent::collector::Garbage;
use crate::concurrent::engine::storage::Bits;
use crate::concurrent::engine::{Expected, Group, Slot};
use crate::concurrent::error::{Refusal, Refused};
use crate::concurrent::policy::mix;

/// The fraction of the limit on garbage that one of many shards may use.
const SHARE: usize = 8;

/// A map under a pin that lasts for `'p`.
pub(super) struct View<'p, K, V, S> {
    pub(super) map: &'p ConcurrentMap<K, V, S>,
    pub(super) pin: &'p crossbeam_epoch::Guard,
}

impl<K, V, S> Clone for View<'_, K, V, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V, S> Copy for View<'_, K, V, S> {}

/// An entry under a pin. While the pin lasts, its id is not reused.
pub(super) struct Entry<'p, K, V> {
    pub(super) id: u32,
    pub(super) entry: &'p (K, V),
}

impl<K, V> Clone for Entry<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Entry<'_, K, V> {}

impl<'p, K, V> Entry<'p, K, V> {
    #[inline]
    pub(super) fn key(self) -> &'p K {
        &self.entry.0
    }

    #[inline]
    pub(super) fn value(self) -> &'p V {
        &self.entry.1
    }

    #[inline]
    pub(super) fn pair(self) -> (&'p K, &'p V) {
        (self.key(), self.value())
    }
}

impl<'p, K, V, S> View<'p, K, V, S> {
    /// Returns the entry with an id that was loaded under this pin.
    #[inline]
    pub(super) fn entry(self, id: u32) -> Entry<'p, K, V> {
        self.map.entry(id, self.pin)
    }

    /// Returns the function that returns the entry in a slot if it has this key.
    #[inline]
    fn entry_of<Q: Equivalent<K> + ?Sized>(
        self,
        key: &Q,
    ) -> impl Fn(Group<'p, Ids>, usize) -> Option<Entry<'p, K, V>> {
        move |group, slot| {
            let entry = self.entry(group.value(slot));
            key.equivalent(entry.key()).then_some(entry)
        }
    }

    /// Finds the entry of `key`.
    #[inline]
    pub(super) fn find<Q: Equivalent<K> + ?Sized>(
        self,
        hash: u64,
        key: &Q,
    ) -> Option<Entry<'p, K, V>> {
        let mixed = mix(hash);
        self.map.engine.segment(mixed, self.pin).find(mixed, mixed, self.entry_of(key))
    }

    /// Finds the entry of `key`, if it is not the first candidate.
    pub(super) fn find_further<Q: Equivalent<K> + ?Sized>(
        self,
        mixed: u64,
        key: &Q,
    ) -> Option<Entry<'p, K, V>> {
        self.map.engine.segment(mixed, self.pin).find_further(mixed, mixed, self.entry_of(key))
    }
}

/// The result of an insertion.
pub(super) enum Insertion<'p, K, V> {
    /// The entry was inserted, or has replaced the old entry.
    Done { old: Option<Entry<'p, K, V>>, new: Entry<'p, K, V> },
    /// The precondition was false: this is the present entry, and that which was not inserted.
    Unexpected(Option<Entry<'p, K, V>>, (K, V)),
}

/// The result of an insertion of an absent key.
pub(super) type Tried<'p, K, V> = Result<TryInsert<'p, V, (K, V)>, Refusal<(K, V)>>;

impl<'p, K, V, S> View<'p, K, V, S>
where
    K: Eq + Hash + Send + 'static,
    V: Send + 'static,
    S: BuildHasher,
{
    /// Inserts an entry if no key is the same.
    pub(super) fn insert_if_absent(
        self,
        hash: u64,
        entry: (K, V),
        is: impl Fn(&K, &K) -> bool,
    ) -> Tried<'p, K, V> {
        Ok(match self.insert(hash, entry, is, Expected::Nothing)? {
            Insertion::Done { new, .. } => TryInsert::Inserted(new.value()),
            Insertion::Unexpected(Some(current), refused) => {
                TryInsert::Occupied { current: current.value(), refused }
            }
            Insertion::Unexpected(None, _) => unreachable!("nothing was expected"),
        })
    }

    /// Inserts an entry, if the present one is as expected. `is` compares the new key with present
    /// ones: as the lookup did that has found the expected one, or that would never be found.
    pub(super) fn insert(
        self,
        hash: u64,
        entry: (K, V),
        is: impl Fn(&K, &K) -> bool,
        expected: Expected<u32>,
    ) -> Result<Insertion<'p, K, V>, Refusal<(K, V)>> {
        if let Err(reason) = self.admit(hash) {
            return Err(Refusal { refused: entry, reason });
        }
        let (map, mixed) = (self.map, mix(hash));
        let is = self.is(|own| is(&entry.0, own));
        let placed = match map.engine.place(mixed, is, expected, self.hashes(), self.pin) {
            Ok(placed) => placed,
            Err(reason) => return Err(Refusal { refused: entry, reason }),
        };
        let (mut writer, place) = match placed {
            Ok(placed) => placed,
            Err(present) => {
                return Ok(Insertion::Unexpected(present.map(|id| self.entry(id)), entry));
            }
        };
        let id = match writer.state.ids.allocate(&map.store) {
            Ok(id) => id,
            Err(reason) => return Err(Refusal { refused: entry, reason }),
        };
        // SAFETY: the id has just been allocated.
        unsafe { map.store.write(id, entry) };
        let old = writer.store(mixed, place, |_| id.into());
        let full = old.and_then(|old| writer.state.batch.push(old, &map.store));
        let shard = writer.nth;
        drop(writer);
        self.defer(shard, full);
        Ok(Insertion::Done { old: old.map(|old| self.entry(old)), new: self.entry(id) })
    }

    /// Removes the entry of a key, if it is as expected.
    pub(super) fn remove<Q: Equivalent<K> + ?Sized>(
        self,
        hash: u64,
        key: &Q,
        expected: Expected<u32>,
    ) -> Option<Entry<'p, K, V>> {
        let mixed = mix(hash);
        let mut full = None;
        let retire = |state: &mut State, id| full = state.batch.push(id, &self.map.store);
        let is = self.is(|own| key.equivalent(own));
        let hashes = self.hashes();
        let removed = self.map.engine.remove(mixed, is, expected, hashes, retire, self.pin);
        self.defer(self.map.engine.shard_of(mixed), full);
        removed.ok().map(|id| self.entry(id))
    }

    /// Returns the function that returns the hash of the entry in a slot, when it is copied.
    pub(super) fn hashes(self) -> impl Fn(Slot<'_, Ids>, Bits) -> u64 {
        move |slot, bits| match bits {
            Bits::Known => hash_of(slot),
            Bits::All => mix(self.map.hasher.hash_one(self.entry(slot.value()).key())),
        }
    }

    /// Returns a predicate of slots: true if `is` returns true for the key of the entry.
    fn is(self, is: impl Fn(&K) -> bool) -> impl Fn(Group<'p, Ids>, usize) -> bool {
        move |group, slot| is(self.entry(group.value(slot)).key())
    }

    /// Ends a write: defers a batch, and some of the entries that wait for memory, whose ids become
    /// those of a shard.
    #[inline]
    pub(super) fn defer(self, shard: usize, batch: Option<Batch>) {
        if let Some(batch) = batch {
            // SAFETY: its entries cannot be reached by later pins; all guards are of one collector.
            // `K` and `V` are `Send` and 'static.
            unsafe { batch.defer(&self.map.engine.garbage, &self.map.store, self.pin) };
        }
        if self.map.store.has_waiting() {
            self.defer_waiting(shard);
        }
    }

    /// Defers some of the entries that wait for memory. Their ids become those of a shard. Returns
    /// whether there were any, and memory.
    #[cold]
    pub(super) fn defer_waiting(self, shard: usize) -> bool {
        let Some(batch) = Batch::of_waiting(shard, &self.map.store) else { return false };
        // SAFETY: as above; they are in no other batch.
        unsafe { batch.defer(&self.map.engine.garbage, &self.map.store, self.pin) };
        true
    }

    /// Admits an insertion under a hash, unless there is too much garbage.
    #[inline]
    pub(super) fn admit(self, hash: u64) -> Result<(), Refused> {
        let (shard, limit) = (self.map.engine.shard_of(mix(hash)), self.map.engine.garbage.limit);
        let is_less = self.map.garbage() <= limit && self.map.store.retired(shard) <= limit / SHARE;
        if is_less { Ok(()) } else { self.reduce_garbage(shard) }
    }

    /// Helps the collector if there is too much garbage, and refuses an insertion if there still
    /// is.
    #[cold]
    #[inline(never)]
    fn reduce_garbage(self, shard: usize) -> Result<(), Refused> {
        let has_too_much = || self.excess(shard).is_some();
        if has_too_much() {
            self.map.engine.garbage.reduce(self.pin, has_too_much);
        }
        self.excess(shard).map_or(Ok(()), Err)
    }

    /// Returns the refusal if the garbage of the map exceeds the limit, or the garbage of a shard
    /// its share of the limit. Slots of entries are reused by the same shard only: one after the
    /// other, each shard could allocate slots for the limit.
    fn excess(self, shard: usize) -> Option<Refused> {
        let Garbage { limit, .. } = self.map.engine.garbage;
        let share = self.map.engine.open_shards().take(SHARE).count();
        let of_map = (self.map.garbage(), limit);
        let of_shard = (self.map.store.retired(shard), limit / share);
        let mut both = [of_map, of_shard].into_iter();
        let (retired, limit) = both.find(|(retired, limit)| retired > limit)?;
        Some(Refused::Garbage { retired, limit })
    }
}

/// The decision of the closure of `compute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute<V> {
    /// Leaves the map unchanged.
    Keep,
    /// Inserts the key with this value, or replaces its value.
    Insert(V),
    /// Removes the key.
    Remove,
}

/// The result of `compute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed<'p, V> {
    /// Unchanged: the value of the key, if it has one.
    Kept(Option<&'p V>),
    /// The key was inserted with this value.
    Inserted(&'p V),
    /// The value was replaced.
    Updated {
        /// The former value.
        old: &'p V,
        /// The new value.
        new: &'p V,
    },
    /// The key was removed; this was its value.
    Removed(&'p V),
}

/// The result of `try_insert` and of `try_insert_with`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryInsert<'p, V, T> {
    /// The key was inserted with this value.
    Inserted(&'p V),
    /// The key was present, and nothing has changed.
    Occupied {
        /// The present value.
        current: &'p V,
        /// The input that was not inserted.
        refused: T,
    },
}

impl<'p, V, T> TryInsert<'p, V, T> {
    /// Returns the value that the map has now.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// assert_eq!(map.pin().try_insert("a", 2).unwrap().value(), &1);
    /// ```
    #[must_use]
    pub fn value(&self) -> &'p V {
        match self {
            Self::Inserted(value) | Self::Occupied { current: value, .. } => value,
        }
    }
}
