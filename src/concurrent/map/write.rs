//! A view of a map: how it is changed.
//!
//! Closures run without a lock: what they saw is compared with what is there when the lock has been taken,
//! and if it is another entry by then, they are asked again.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::Garbage;
use super::directory::{path, shard_of};
use super::garbage::{Batch, help};
use super::index::Entry;
use super::pinned::Pinned;
use super::shard::{Expected, Put, Writer};
use crate::concurrent::error::WouldExceed;
use crate::concurrent::sync::yield_now;

/// How often a writer that is past the limit helps the collector before it lets others run: the epoch has
/// to advance twice, and a reader that has just begun must not be what it fails for.
const HELP: usize = 4;

/// A shard may have this part of what the map may have of garbage.
const SHARE: usize = 8;

/// What [`Pinned::compute`] is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute<V> {
    /// Leave everything as it is.
    Keep,
    /// Give the key this value.
    Put(V),
    /// Take the key out.
    Remove,
}

/// What [`Pinned::compute`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed<'p, V> {
    /// Nothing: this is the value of the key, if it has one.
    Kept(Option<&'p V>),
    /// It has put the key in, with this value.
    Inserted(&'p V),
    /// It has replaced the value.
    Updated {
        /// The value before.
        old: &'p V,
        /// The value now.
        new: &'p V,
    },
    /// It has taken the key out; this was its value.
    Removed(&'p V),
}

/// The value of an entry.
fn value<'p, K, V>(entry: Entry<'p, (K, V)>) -> &'p V {
    &entry.get().1
}

impl<K, V, S> Pinned<'_, K, V, S>
where
    K: Eq + Hash + Send + 'static,
    V: Send + 'static,
    S: BuildHasher,
{
    /// Gives `key` a value, and returns the one that it had. The key is this one from now on.
    ///
    /// # Errors
    ///
    /// If readers hold on to more garbage than the limit allows: key and value come back.
    ///
    /// # Panics
    ///
    /// If [`Hash`] or [`Eq`] of a key call this. So do all methods that write.
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

    /// The same with the hash that the caller has: see [`get_hashed`](Self::get_hashed).
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
        let entry = self.admit(hash, (key, value))?;
        match self.put(hash, &mut Some(entry), Expected::Anything) {
            Put::Done { old, .. } => Ok(old.map(self::value)),
            Put::Not(_) => unreachable!("anything was expected"),
        }
    }

    /// The value of `key`, which is put in with `value` if it is not there.
    ///
    /// # Errors
    ///
    /// If the key is not there and readers hold on to more garbage than the limit allows.
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
        Ok(self.put_if_absent(hash, entry))
    }

    /// The value of `key`, which is put in with what `make` returns if it is not there.
    ///
    /// `make` runs without a lock, at most once. If another thread is faster, its value is taken, and that
    /// of `make` is dropped.
    ///
    /// # Errors
    ///
    /// If the key is not there and readers hold on to more garbage than the limit allows.
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
        Ok(self.put_if_absent(hash, (key, make())))
    }

    /// Takes out `key`, and returns its value.
    ///
    /// Is never refused: it needs no memory, and what it retires was live before.
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

    /// The same with the hash that the caller has: see [`get_hashed`](Self::get_hashed).
    pub fn remove_hashed<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        hash: u64,
        key: &Q,
    ) -> Option<&V> {
        self.take(hash, key, Expected::Anything).map(value)
    }

    /// Takes out `key`, and returns it as the map had it, with its value.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// assert_eq!(map.pin().remove_entry("a"), Some((&"a", &1)));
    /// ```
    pub fn remove_entry<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<(&K, &V)> {
        let entry = self.take(self.hash_of(key), key, Expected::Anything)?.get();
        Some((&entry.0, &entry.1))
    }

    /// Gives `key` the value that `change` makes of the one that it has, and returns that; nothing if it
    /// has none. No write of another thread comes between the two.
    ///
    /// `change` runs without a lock. It is asked again if another thread has been faster. The key is dropped if
    /// there is none like it.
    ///
    /// For a number that many packets change, take an atomic one as the value instead.
    ///
    /// # Errors
    ///
    /// If readers hold on to more garbage than the limit allows.
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
        let computed = self
            .compute(key, |value| value.map_or(Compute::Keep, |value| Compute::Put(change(value))));
        Ok(match computed? {
            Computed::Updated { new, .. } | Computed::Inserted(new) => Some(new),
            Computed::Kept(_) | Computed::Removed(_) => None,
        })
    }

    /// Does with `key` what `decide` says of the value that it has. No write of another thread comes
    /// between the two.
    ///
    /// `decide` runs without a lock. It is asked again if another thread has been faster.
    ///
    /// # Errors
    ///
    /// If there is something to put in, and readers hold on to more garbage than the limit allows: the key comes
    /// back, what `decide` has made is dropped.
    ///
    /// # Panics
    ///
    /// As [`insert`](Self::insert).
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
    ///     Some(left) => Compute::Put(left - 1),
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
            let expected = found.map_or(Expected::Nothing, |found| Expected::Entry(found.number));
            match decide(found.map(value)) {
                Compute::Keep => return Ok(Computed::Kept(found.map(value))),
                Compute::Put(new) => {
                    key = self.admit(hash, key)?;
                    let mut entry = Some((key, new));
                    match self.put(hash, &mut entry, expected) {
                        Put::Done { old: Some(old), new } => {
                            return Ok(Computed::Updated { old: value(old), new: value(new) });
                        }
                        Put::Done { old: None, new } => return Ok(Computed::Inserted(value(new))),
                        Put::Not(_) => key = entry.expect("it was not put in").0,
                    }
                }
                Compute::Remove => match found {
                    None => return Ok(Computed::Kept(None)),
                    Some(_) => {
                        if let Some(removed) = self.take(hash, &key, expected) {
                            return Ok(Computed::Removed(value(removed)));
                        }
                    }
                },
            }
        }
    }

    /// Takes out the entries of which `keep` does not say that they stay. Each is asked about once, without a
    /// lock; one that is replaced in the meantime stays.
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
        for entry in self.entries() {
            let (key, value) = entry.get();
            if !keep(key, value) {
                self.take(self.hash_of(key), key, Expected::Entry(entry.number));
            }
        }
    }

    /// Takes out everything, a shard at a time, and forgets what room was reserved. Like a removal it is never
    /// refused.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// map.pin().clear();
    /// assert!(map.is_empty());
    /// ```
    pub fn clear(&self) {
        for shard in 0..self.map.shards.len() {
            for batch in self.write(shard, Writer::clear) {
                self.hand_over(shard, batch);
            }
        }
    }

    /// Hands over all that has been taken out, and helps to give back what no pin holds on to any more: this
    /// one holds on to what it may have seen.
    ///
    /// Without it, the last few entries that were taken out of a shard wait for more. Takes all locks, one
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
        for (number, shard) in self.map.shards.iter().enumerate() {
            let batch = shard.batch();
            if !batch.is_empty() {
                self.hand_over(number, batch);
            }
        }
        help(&self.guard);
    }

    fn put_if_absent(&self, hash: u64, entry: (K, V)) -> &V {
        match self.put(hash, &mut Some(entry), Expected::Nothing) {
            Put::Done { new: there, .. } | Put::Not(Some(there)) => value(there),
            Put::Not(None) => unreachable!("nothing was expected"),
        }
    }

    /// Puts in an entry, if what is there is as expected.
    fn put<'p>(
        &'p self,
        hash: u64,
        entry: &mut Option<(K, V)>,
        expected: Expected,
    ) -> Put<'p, (K, V)> {
        self.write(shard_of(path(hash)), |writer| {
            writer.put(
                hash,
                entry,
                expected,
                |new, own| new.0 == own.0,
                |(key, _)| self.hash_of(key),
            )
        })
    }

    /// Takes out the entry of a key, if it is as expected.
    fn take<'p, Q: Equivalent<K> + ?Sized>(
        &'p self,
        hash: u64,
        key: &Q,
        expected: Expected,
    ) -> Option<Entry<'p, (K, V)>> {
        // To get smaller takes memory first.
        let may_shrink = self.map.garbage() <= self.map.garbage.limit;
        self.write(shard_of(path(hash)), |writer| {
            let is = |(own, _): &(K, V)| key.equivalent(own);
            writer.remove(hash, expected, is, may_shrink, |(key, _)| self.hash_of(key))
        })
    }

    /// Works on a shard.
    fn write<'p, R>(&'p self, shard: usize, work: impl FnOnce(&mut Writer<'p, (K, V)>) -> R) -> R {
        let index = &self.map.indices[shard];
        let (result, full) = self.map.shards[shard].write(index, &self.guard, work);
        if let Some(batch) = full {
            self.hand_over(shard, batch);
        }
        result
    }

    fn hand_over(&self, shard: usize, batch: Batch) {
        let Garbage { ledger, .. } = &self.map.garbage;
        ledger.hand_over(batch, &self.map.indices, shard, &self.guard);
    }

    /// Lets something in under a hash, unless there is too much garbage.
    fn admit<T>(&self, hash: u64, refused: T) -> Result<T, WouldExceed<T>> {
        let shard = shard_of(path(hash));
        if self.has_too_much(shard) && !self.relieve(shard) {
            let (retired, limit) = (self.map.garbage(), self.map.garbage.limit);
            return Err(WouldExceed { refused, retired, limit });
        }
        Ok(refused)
    }

    /// Whether the map has more garbage than the limit, or a shard more than its share. Places of entries
    /// are used again by the same shard only: one by one, all shards could have places for the limit.
    fn has_too_much(&self, shard: usize) -> bool {
        let limit = self.map.garbage.limit;
        self.map.garbage() > limit || self.map.indices[shard].store.retired() > limit / SHARE
    }

    /// Helps until there is less garbage. Says whether that has come about.
    #[cold]
    #[inline(never)]
    fn relieve(&self, shard: usize) -> bool {
        for attempt in 0..=self.map.garbage.patience {
            if attempt > 0 {
                yield_now();
            }
            for _ in 0..HELP {
                help(&self.guard);
                if !self.has_too_much(shard) {
                    return true;
                }
            }
        }
        false
    }
}
