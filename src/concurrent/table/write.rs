//! Pinned tables: the methods that write.
//!
//! Closures run without a lock: the value that they received is compared with the present one after
//! the lock has been taken; if it was replaced, they are called again.
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use bytemuck::NoUninit;

use super::ConcurrentTable;
use super::storage::{Inline, entry_word};
use crate::concurrent::collector::help;
use crate::concurrent::engine::storage::{Bits, Integer, word, wrapping_add};
use crate::concurrent::engine::{Expected, Group, Slot, Writer};
use crate::concurrent::error::Refused;
use crate::concurrent::pinned::{Guard, Pinned};
use crate::hash::{Prehashed, Query};

/// The panic message of a bug in this crate.
const ANYTHING: &str = "anything was expected";

impl<K, V, S, G> Pinned<'_, ConcurrentTable<K, V, S>, G>
where
    K: NoUninit + Eq + Hash,
    V: NoUninit,
    S: BuildHasher,
    G: Borrow<Guard>,
{
    /// Inserts a key with a value, and returns the former value.
    ///
    /// # Errors
    ///
    /// If a segment has to grow and cannot: see [`Refused`]. A value of at most eight bytes is
    /// always replaced.
    ///
    /// # Panics
    ///
    /// If it is called by [`Hash`] of a key, like all methods that write.
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::new();
    /// let pin = table.pin();
    /// assert_eq!(pin.insert([1_u8; 13], 1_u32)?, None);
    /// assert_eq!(pin.insert([1_u8; 13], 2_u32)?, Some(1));
    /// # Ok::<(), flowtable::concurrent::Refused>(())
    /// ```
    pub fn insert(&self, key: K, value: V) -> Result<Option<V>, Refused> {
        let hash = self.of.hasher.hash_one(key);
        match self.insert_expected(hash, &key, &value, Expected::Anything)? {
            Ok(old) => Ok(old),
            Err(_) => unreachable!("{ANYTHING}"),
        }
    }

    /// Returns the value of `key`, after inserting it with `value` if it is absent.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert), if the key is absent.
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::<u32, u32>::new();
    /// let pin = table.pin();
    /// assert_eq!((pin.get_or_insert(&1, 10)?, pin.get_or_insert(&1, 20)?), (10, 10));
    /// # Ok::<(), flowtable::concurrent::Refused>(())
    /// ```
    pub fn get_or_insert(&self, key: impl Query<K, Key = K>, value: V) -> Result<V, Refused> {
        let hash = key.hash_with(&self.of.hasher);
        if let Some(found) = self.find(hash, key.key()) {
            return Ok(found);
        }
        let inserted = self.insert_expected(hash, key.key(), &value, Expected::Nothing)?;
        Ok(inserted.err().flatten().unwrap_or(value))
    }

    /// Replaces the value of `key`, if it is present, and returns the former value.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::from([(1_u32, 10_u32)]);
    /// let pin = table.pin();
    /// assert_eq!((pin.replace(&1, 11)?, pin.replace(&2, 20)?, pin.len()), (Some(10), None, 1));
    /// # Ok::<(), flowtable::concurrent::Refused>(())
    /// ```
    pub fn replace(&self, key: impl Query<K, Key = K>, value: V) -> Result<Option<V>, Refused> {
        let hash = key.hash_with(&self.of.hasher);
        Ok(self.insert_expected(hash, key.key(), &value, Expected::Something)?.unwrap_or(None))
    }

    /// Replaces the value of `key` by the result of `change` for it, and returns the new value, or
    /// `None` if the key is absent. No write of another thread takes effect in between.
    ///
    /// `change` runs without a lock. It is called again if another thread has written first.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    ///
    /// # Example
    ///
    /// ```
    /// // Packets and bytes.
    /// let flows = flowtable::ConcurrentTable::from([(1_u32, [1_u64, 60])]);
    /// let new = flows.pin().update(&1, |[packets, bytes]| [packets + 1, bytes + 1500])?;
    /// assert_eq!(new, Some([2, 1560]));
    /// # Ok::<(), flowtable::concurrent::Refused>(())
    /// ```
    pub fn update(
        &self,
        key: impl Query<K, Key = K>,
        mut change: impl FnMut(V) -> V,
    ) -> Result<Option<V>, Refused> {
        let (hash, key) = (key.hash_with(&self.of.hasher), key.key());
        let mut found = self.find(hash, key);
        while let Some(old) = found {
            let new = change(old);
            match self.insert_expected(hash, key, &new, Expected::Value(old))? {
                Ok(_) => return Ok(Some(new)),
                Err(present) => found = present,
            }
        }
        Ok(None)
    }

    /// Removes `key`, and returns its value.
    ///
    /// A removal is never refused: it needs no memory.
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::from([(1_u32, 10_u32)]);
    /// let pin = table.pin();
    /// assert_eq!((pin.remove(&1), pin.remove(&1)), (Some(10), None));
    /// ```
    pub fn remove(&self, key: impl Query<K, Key = K>) -> Option<V> {
        self.remove_expected(key.hash_with(&self.of.hasher), key.key(), Expected::Anything).ok()
    }

    /// Replaces the value of `key` by `new` if it is `current`, byte by byte. Returns the former
    /// value: `Ok` if it was replaced, `Err` if it differs from `current`, `None` if the key is
    /// absent. Like a compare-and-swap of an atomic, but for the lock of the shard.
    ///
    /// A value of more than eight bytes does not compile: see [`update`](Self::update).
    ///
    /// # Example
    ///
    /// ```
    /// let states = flowtable::ConcurrentTable::from([(1_u32, b'S')]);
    /// let pin = states.pin();
    /// assert_eq!(pin.compare_exchange(&1, b'S', b'E'), Some(Ok(b'S')));
    /// assert_eq!(pin.compare_exchange(&1, b'S', b'F'), Some(Err(b'E')));
    /// assert_eq!(pin.compare_exchange(&2, b'S', b'E'), None);
    /// ```
    pub fn compare_exchange(
        &self,
        key: impl Query<K, Key = K>,
        current: V,
        new: V,
    ) -> Option<Result<V, V>> {
        const { assert!(size_of::<V>() <= 8, "the value has more than one word") };
        let hash = key.hash_with(&self.of.hasher);
        match self.insert_expected(hash, key.key(), &new, Expected::Value(current)) {
            Ok(Ok(old)) => old.map(Ok),
            Ok(Err(present)) => present.map(Err),
            Err(_) => unreachable!("a word is replaced in place"),
        }
    }

    /// Removes the entries for which `keep` returns false. It is called without a lock, once for
    /// each entry; an entry whose value is replaced in the meantime is kept.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::ConcurrentTable;
    ///
    /// let table: ConcurrentTable<u32, u32> = (0..100).map(|key| (key, key)).collect();
    /// let pin = table.pin();
    /// pin.retain(|key, _| key % 10 == 0);
    /// assert_eq!(pin.len(), 10);
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
        self.iter().for_each(|(key, value)| {
            if !keep(&key, &value) {
                let hash = self.of.hasher.hash_one(key);
                let _ = self.remove_expected(hash, &key, Expected::Value(value));
            }
        });
    }

    /// Removes all entries, a segment at a time, and gives their memory back as
    /// [`shrink_to_fit`](Self::shrink_to_fit) does. Like a removal it is never refused.
    ///
    /// # Example
    ///
    /// ```
    /// let table = flowtable::ConcurrentTable::from([(1_u32, 10_u32)]);
    /// table.pin().clear();
    /// assert!(table.is_empty());
    /// ```
    pub fn clear(&self) {
        self.for_segments(|writer, mixed| {
            let removed = writer.segment(mixed).clear();
            writer.add_to_len(-(removed as i32));
        });
    }

    /// Gives memory back: copies each segment that may be smaller, merges segments, and halves
    /// directories. Locks one shard at a time, for one segment.
    ///
    /// While there is more garbage than the limit, or no memory, the rest stays as it is.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::ConcurrentTable;
    ///
    /// let table: ConcurrentTable<u32, u32> = (0..100_000).map(|key| (key, key)).collect();
    /// let before = table.allocation_size();
    /// table.pin().retain(|key, _| key % 100 == 0);
    /// table.pin().shrink_to_fit();
    /// assert!(table.allocation_size() < before / 10);
    /// ```
    pub fn shrink_to_fit(&self) {
        self.for_segments(|_, _| ());
    }

    /// Helps the collector to free garbage that no pin protects any more. This pin protects garbage
    /// that it may have observed.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::ConcurrentTable;
    ///
    /// let table: ConcurrentTable<u32, u32> = (0..1000).map(|key| (key, key)).collect();
    /// while table.garbage() > 0 {
    ///     table.pin().flush();
    /// }
    /// ```
    pub fn flush(&self) {
        help(self.epoch());
    }

    /// Runs `work` on each segment under the lock of its shard, and shrinks it then.
    fn for_segments(&self, work: impl FnMut(&mut Writer<'_, Inline<K, V>>, u64)) {
        self.of.engine.for_segments(work, |()| (), self.hashes(), self.epoch());
    }

    /// Returns the function that hashes entries when a segment is copied.
    fn hashes(&self) -> impl Fn(Slot<'_, Inline<K, V>>, Bits) -> u64 {
        |slot, _| self.of.hasher.hash_one(slot.key())
    }

    fn find(&self, hash: u64, key: &K) -> Option<V> {
        self.get(Prehashed { hash, key })
    }

    /// Inserts an entry if the present one is as expected, or replaces its value. Returns the
    /// former value, or the present one if it is not as expected.
    fn insert_expected(
        &self,
        hash: u64,
        key: &K,
        value: &V,
        expected: Expected<V>,
    ) -> Result<Result<Option<V>, Option<V>>, Refused> {
        let is = |group: Group<'_, Inline<K, V>>, slot| group.has_key(slot, key);
        let placed = self.of.engine.place(hash, is, expected, self.hashes(), self.epoch())?;
        Ok(placed.map(|(writer, place)| {
            writer.store(hash, place, |index| entry_word(key, value, index))
        }))
    }

    /// Removes a key if its value is as expected. Returns its value, or the present one.
    fn remove_expected(&self, hash: u64, key: &K, expected: Expected<V>) -> Result<V, Option<V>> {
        let is = |group: Group<'_, Inline<K, V>>, slot| group.has_key(slot, key);
        let removed = |_: &mut (), _| ();
        self.of.engine.remove(hash, is, expected, self.hashes(), removed, self.epoch())
    }
}

impl<K, V, S, G> Pinned<'_, ConcurrentTable<K, V, S>, G>
where
    K: NoUninit + Eq + Hash,
    V: Integer,
    S: BuildHasher,
    G: Borrow<Guard>,
{
    /// Adds `number` to the value of `key`, wrapping around, and returns the former value, or
    /// `None` if the key is absent. Like a `fetch_add` of an atomic, but for the lock of the shard.
    ///
    /// # Example
    ///
    /// ```
    /// let bytes = flowtable::ConcurrentTable::from([(1_u32, 0_u64)]);
    /// std::thread::scope(|scope| {
    ///     for _ in 0..2 {
    ///         scope.spawn(|| assert!(bytes.pin().fetch_add(&1, 1500).is_some()));
    ///     }
    /// });
    /// assert_eq!(bytes.pin().get(&1), Some(3000));
    /// ```
    pub fn fetch_add(&self, key: impl Query<K, Key = K>, number: V) -> Option<V> {
        // Code of users runs without the lock.
        let (hash, key) = (key.hash_with(&self.of.hasher), key.key());
        let is = |group: Group<'_, Inline<K, V>>, slot| group.has_key(slot, key);
        let add = |value| word(&wrapping_add(value, number), 0);
        self.of.engine.change(hash, is, add, self.hashes(), self.epoch())
    }
}
