//! Pinned maps: the methods that write.
//!
//! Closures run without a lock: the entry that they received is compared with the present one after
//! the lock has been taken; if it was replaced, they are called again.
#![allow(unsafe_code)]

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::garbage::Batch;
use super::pinned::{Entry, Pinned};
use super::storage::{Ids, State, hash_of};
use crate::concurrent::engine::{Expected, Group, Slot, Writer};
use crate::concurrent::error::{Refused, WouldExceed};
use crate::concurrent::garbage::{Garbage, help};
use crate::concurrent::guard::Guard;
use crate::concurrent::policy::{SHARDS, mix, shard_of};

/// The fraction of the limit on garbage that a single shard may use.
const SHARE: usize = 8;

/// The decision of the closure of [`Pinned::compute`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute<V> {
    /// Leaves the map unchanged.
    Keep,
    /// Inserts the key with this value, or replaces its value.
    Insert(V),
    /// Removes the key.
    Remove,
}

/// The result of [`Pinned::compute`].
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

/// The result of an insertion.
enum Insertion<'p, T> {
    /// The entry was inserted, or has replaced another one.
    Done { old: Option<Entry<'p, T>>, new: Entry<'p, T> },
    /// The precondition was false: this is the present entry.
    Unexpected(Option<Entry<'p, T>>),
    /// There is no room.
    Refused(Refused),
}

/// Returns the value of an entry.
fn value<'p, K, V>(entry: Entry<'p, (K, V)>) -> &'p V {
    &entry.get().1
}

impl<K, V, S, G> Pinned<'_, K, V, S, G>
where
    K: Eq + Hash + Send + 'static,
    V: Send + 'static,
    S: BuildHasher,
    G: Borrow<Guard>,
{
    /// Inserts a key with a value, and returns the former value. An equal key is replaced, too.
    ///
    /// # Errors
    ///
    /// If there is more garbage than the limit allows, or the map has 2^31 entries: the error
    /// contains key and value.
    ///
    /// # Panics
    ///
    /// If it is called by [`Hash`] or [`Eq`] of a key, like all methods that write.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::new();
    /// let pin = map.pin();
    /// assert_eq!(pin.insert("a", 1)?, None);
    /// assert_eq!(pin.insert("a", 2)?, Some(&1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert(&self, key: K, value: V) -> Result<Option<&V>, WouldExceed<(K, V)>> {
        self.insert_hashed(self.hash_of(&key), key, value)
    }

    /// Inserts a key with a value, given its hash: see [`get_hashed`](Self::get_hashed).
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::new();
    /// let pin = map.pin();
    /// let hash = pin.hash_of("a");
    /// assert_eq!(pin.insert_hashed(hash, "a", 1)?, None);
    /// assert_eq!(pin.remove_hashed(hash, "a"), Some(&1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_hashed(
        &self,
        hash: u64,
        key: K,
        value: V,
    ) -> Result<Option<&V>, WouldExceed<(K, V)>> {
        let mut entry = Some(self.admit(hash, (key, value))?);
        match self.insert_expected(hash, &mut entry, Expected::Anything) {
            Insertion::Done { old, .. } => Ok(old.map(self::value)),
            Insertion::Unexpected(_) => unreachable!("anything was expected"),
            Insertion::Refused(reason) => Err(self.refused(entry, reason)),
        }
    }

    /// Returns the value of `key`, after inserting it with `value` if it is absent.
    ///
    /// # Errors
    ///
    /// If the key is absent, as for [`insert`](Self::insert).
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::new();
    /// let pin = map.pin();
    /// assert_eq!(pin.get_or_insert("a", 1)?, &1);
    /// assert_eq!(pin.get_or_insert("a", 2)?, &1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_or_insert(&self, key: K, value: V) -> Result<&V, WouldExceed<(K, V)>> {
        let hash = self.hash_of(&key);
        if let Some(found) = self.find(hash, &key) {
            return Ok(self::value(found));
        }
        let entry = self.admit(hash, (key, value))?;
        self.insert_if_absent(hash, entry)
    }

    /// Returns the value of `key`, after inserting it with the result of `make` if it is absent.
    ///
    /// `make` runs without a lock, at most once. If another thread inserts the key first, its value
    /// is returned, and the result of `make` is dropped.
    ///
    /// # Errors
    ///
    /// If the key is absent, as for [`insert`](Self::insert): the error contains the key; a value
    /// that was made is dropped.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::new();
    /// let pin = map.pin();
    /// assert_eq!(pin.get_or_insert_with("a", || 1)?, &1);
    /// assert_eq!(pin.get_or_insert_with("a", || unreachable!())?, &1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_or_insert_with(
        &self,
        key: K,
        make: impl FnOnce() -> V,
    ) -> Result<&V, WouldExceed<K>> {
        let hash = self.hash_of(&key);
        if let Some(found) = self.find(hash, &key) {
            return Ok(value(found));
        }
        let key = self.admit(hash, key)?;
        self.insert_if_absent(hash, (key, make())).map_err(|full| full.map(|(key, _)| key))
    }

    /// Removes `key`, and returns its value.
    ///
    /// A removal is never refused: it needs no memory, and what it retires was live before.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// let pin = map.pin();
    /// assert_eq!((pin.remove("a"), pin.remove("a")), (Some(&1), None));
    /// ```
    pub fn remove<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        self.remove_hashed(self.hash_of(key), key)
    }

    /// Removes `key`, given its hash, and returns its value: see [`get_hashed`](Self::get_hashed).
    pub fn remove_hashed<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
    ) -> Option<&V> {
        self.remove_expected(hash, key, Expected::Anything).map(value)
    }

    /// Removes `key`, and returns the stored key with its value.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// assert_eq!(map.pin().remove_entry("a"), Some((&"a", &1)));
    /// ```
    pub fn remove_entry<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<(&K, &V)> {
        let entry = self.remove_expected(self.hash_of(key), key, Expected::Anything)?.get();
        Some((&entry.0, &entry.1))
    }

    /// Replaces the value of `key` by the result of `change` for it, and returns the new value, or
    /// `None` if the key is absent. No write of another thread takes effect in between.
    ///
    /// `change` runs without a lock. It is called again if another thread has written first. `key`
    /// is dropped if it is absent in the map.
    ///
    /// For a counter that many packets change, use an atomic as the value instead.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert): the error contains the key.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// let pin = map.pin();
    /// assert_eq!(pin.update("a", |value| value + 1)?, Some(&2));
    /// assert_eq!(pin.update("b", |value| value + 1)?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update(
        &self,
        key: K,
        mut change: impl FnMut(&V) -> V,
    ) -> Result<Option<&V>, WouldExceed<K>> {
        let computed = self.compute(key, |value| {
            value.map_or(Compute::Keep, |value| Compute::Insert(change(value)))
        });
        Ok(match computed? {
            Computed::Updated { new, .. } | Computed::Inserted(new) => Some(new),
            Computed::Kept(_) | Computed::Removed(_) => None,
        })
    }

    /// Inserts, replaces or removes `key` by the decision of `decide` for its value. No write of
    /// another thread takes effect in between.
    ///
    /// `decide` runs without a lock. It is called again if another thread has written first.
    ///
    /// # Errors
    ///
    /// If a value is to be inserted, as for [`insert`](Self::insert): the error contains the key;
    /// the value is dropped.
    ///
    /// # Panics
    ///
    /// As for [`insert`](Self::insert).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::{Compute, Computed};
    ///
    /// let tokens = flowtable::ConcurrentMap::from([("a", 1)]);
    /// let spend = |left: Option<&u32>| match left {
    ///     None => Compute::Keep,
    ///     Some(1) => Compute::Remove,
    ///     Some(left) => Compute::Insert(left - 1),
    /// };
    /// let pin = tokens.pin();
    /// assert_eq!(pin.compute("a", spend)?, Computed::Removed(&1));
    /// assert_eq!(pin.compute("a", spend)?, Computed::Kept(None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compute(
        &self,
        mut key: K,
        mut decide: impl FnMut(Option<&V>) -> Compute<V>,
    ) -> Result<Computed<'_, V>, WouldExceed<K>> {
        let hash = self.hash_of(&key);
        loop {
            let found = self.find(hash, &key);
            let expected = found.map_or(Expected::Nothing, |found| Expected::Value(found.id));
            match decide(found.map(value)) {
                Compute::Keep => return Ok(Computed::Kept(found.map(value))),
                Compute::Insert(new) => {
                    key = self.admit(hash, key)?;
                    let mut entry = Some((key, new));
                    match self.insert_expected(hash, &mut entry, expected) {
                        Insertion::Done { old: Some(old), new } => {
                            return Ok(Computed::Updated { old: value(old), new: value(new) });
                        }
                        Insertion::Done { old: None, new } => {
                            return Ok(Computed::Inserted(value(new)));
                        }
                        Insertion::Unexpected(_) => {
                            key = entry.expect("the entry was not inserted").0;
                        }
                        Insertion::Refused(reason) => {
                            return Err(self.refused(entry, reason).map(|(key, _)| key));
                        }
                    }
                }
                Compute::Remove => match found {
                    None => return Ok(Computed::Kept(None)),
                    Some(_) => {
                        if let Some(removed) = self.remove_expected(hash, &key, expected) {
                            return Ok(Computed::Removed(value(removed)));
                        }
                    }
                },
            }
        }
    }

    /// Removes the entries for which `keep` returns false. It is called once for each entry,
    /// without a lock; an entry whose value is replaced in the meantime is kept.
    ///
    /// # Example
    ///
    /// ```
    /// let map: flowtable::ConcurrentMap<u32, u32> = (0..100).map(|key| (key, key)).collect();
    /// let pin = map.pin();
    /// pin.retain(|key, _| key % 10 == 0);
    /// assert_eq!(pin.len(), 10);
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
        let mut entries = self.iter();
        while let Some(entry) = entries.entry() {
            let (key, value) = entry.get();
            if !keep(key, value) {
                self.remove_expected(self.hash_of(key), key, Expected::Value(entry.id));
            }
        }
    }

    /// Removes all entries, a shard at a time, and the reserved capacity. Like a removal it is
    /// never refused.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// map.pin().clear();
    /// assert!(map.is_empty());
    /// ```
    pub fn clear(&self) {
        let clear = |writer: &mut Writer<'_, Ids>, mixed| {
            let segment = writer.segment(mixed);
            let batch = Batch::of(segment.entries().map(Slot::value));
            writer.add_to_len(-(segment.clear() as isize));
            writer.set_reserved(false);
            (shard_of(mixed), batch)
        };
        let defer = |(shard, batch)| self.defer(shard, Some(batch));
        self.map.engine.for_segments(clear, defer, hash_of, self.epoch());
    }

    /// Defers all garbage to the collector, and helps it to free what no pin protects any more.
    /// This pin protects what it may have observed.
    ///
    /// Without a flush, the last few removed entries of a shard wait for more. Takes all locks, one
    /// after the other.
    ///
    /// # Example
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// let (map, value) = (flowtable::ConcurrentMap::new(), Arc::new(()));
    /// map.pin().insert("key", Arc::clone(&value))?;
    /// map.pin().remove("key");
    /// while Arc::strong_count(&value) > 1 {
    ///     map.pin().flush();
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush(&self) {
        for shard in 0..SHARDS {
            let batch = Writer::new(&self.map.engine, shard, self.epoch()).state.batch.take();
            self.defer(shard, Some(batch));
        }
        help(self.epoch());
    }

    fn insert_if_absent(&self, hash: u64, entry: (K, V)) -> Result<&V, WouldExceed<(K, V)>> {
        let mut entry = Some(entry);
        match self.insert_expected(hash, &mut entry, Expected::Nothing) {
            Insertion::Done { new: there, .. } | Insertion::Unexpected(Some(there)) => {
                Ok(value(there))
            }
            Insertion::Unexpected(None) => unreachable!("nothing was expected"),
            Insertion::Refused(reason) => Err(self.refused(entry, reason)),
        }
    }

    /// The error of an insertion that finds no room.
    #[cold]
    fn refused(&self, entry: Option<(K, V)>, reason: Refused) -> WouldExceed<(K, V)> {
        let refused = entry.expect("the entry was not inserted");
        let (retired, limit) = (self.map.garbage(), self.map.garbage_limit());
        match reason {
            Refused::Memory(error) => error.raise(),
            Refused::Garbage { retired, limit } => {
                WouldExceed { refused, retired, limit, is_full: false }
            }
            Refused::Collisions => WouldExceed { refused, retired, limit, is_full: true },
        }
    }

    /// Inserts an entry, if the present one is as expected.
    fn insert_expected<'p>(
        &'p self,
        hash: u64,
        entry: &mut Option<(K, V)>,
        expected: Expected<u32>,
    ) -> Insertion<'p, (K, V)> {
        let (map, mixed, pin) = (self.map, mix(hash), self.epoch());
        let key = &entry.as_ref().expect("there is an entry to insert").0;
        let placed = map.engine.place(mixed, self.is(|own| key == own), expected, hash_of, pin);
        let (mut writer, place) = match placed {
            Ok(Ok(placed)) => placed,
            Ok(Err(there)) => return Insertion::Unexpected(there.map(|id| map.entry(id, pin))),
            Err(reason) => return Insertion::Refused(reason),
        };
        let Some(id) = writer.state.ids.allocate(&map.store) else {
            return Insertion::Refused(Refused::Collisions);
        };
        let entry = entry.take().expect("there is an entry to insert");
        // SAFETY: the id has just been allocated.
        unsafe { map.store.write(id, entry) };
        let old = writer.store(mixed, place, |_| id.into());
        let full = old.and_then(|old| writer.state.batch.push::<(K, V)>(old));
        drop(writer);
        self.defer(shard_of(mixed), full);
        Insertion::Done { old: old.map(|old| map.entry(old, pin)), new: map.entry(id, pin) }
    }

    /// Removes the entry of a key, if it is as expected.
    fn remove_expected<'p, Q: Equivalent<K> + ?Sized>(
        &'p self,
        hash: u64,
        key: &Q,
        expected: Expected<u32>,
    ) -> Option<Entry<'p, (K, V)>> {
        let (map, mixed, pin) = (self.map, mix(hash), self.epoch());
        let mut full = None;
        let retire = |state: &mut State, id| full = state.batch.push::<(K, V)>(id);
        let is = self.is(|own| key.equivalent(own));
        let removed = map.engine.remove(mixed, is, expected, hash_of, retire, pin);
        self.defer(shard_of(mixed), full);
        removed.ok().map(|id| map.entry(id, pin))
    }

    /// Returns whether a slot is that of an entry for whose key `is` returns true.
    fn is<'p>(&'p self, is: impl Fn(&K) -> bool) -> impl Fn(Group<'p, Ids>, usize) -> bool {
        move |group, slot| is(&self.map.entry(group.value(slot), self.epoch()).get().0)
    }

    fn defer(&self, shard: usize, batch: Option<Batch>) {
        let Some(batch) = batch else { return };
        // SAFETY: it is of this shard, and its entries cannot be reached by later pins; all guards
        // are of one collector. `K` and `V` are `Send` and 'static.
        unsafe { batch.defer(&self.map.engine.garbage, &self.map.store, shard, self.epoch()) };
    }

    /// Admits an insertion under a hash, unless there is too much garbage.
    fn admit<T>(&self, hash: u64, refused: T) -> Result<T, WouldExceed<T>> {
        let shard = shard_of(mix(hash));
        let has_too_much = || self.excess(shard).is_some();
        if !has_too_much() || self.map.engine.garbage.reduce(self.epoch(), has_too_much) {
            return Ok(refused);
        }
        match self.excess(shard) {
            Some((retired, limit)) => Err(WouldExceed { refused, retired, limit, is_full: false }),
            None => Ok(refused),
        }
    }

    /// Returns the garbage of the map and its limit, or those of a shard, if it is above the limit.
    /// Slots of entries are reused by the same shard only: one after the other, each shard could
    /// allocate slots for the limit.
    fn excess(&self, shard: usize) -> Option<(usize, usize)> {
        let Garbage { limit, .. } = self.map.engine.garbage;
        let of_map = (self.map.garbage(), limit);
        let of_shard = (self.map.store.retired(shard), limit / SHARE);
        [of_map, of_shard].into_iter().find(|(retired, limit)| retired > limit)
    }
}
