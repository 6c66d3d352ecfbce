//! Pinned tables: the methods that write.
//!
//! Closures run without a lock: the value that they received is compared with the present one after
//! the lock has been taken; if it was replaced, they are called again.
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use bytemuck::NoUninit;

use super::pinned::PinnedTable;
use super::storage::{Inline, entry_word};
use crate::concurrent::engine::plain::{Integer, word, wrapping_add};
use crate::concurrent::engine::{Expected, Group, Slot, Writer};
use crate::concurrent::error::Refused;
use crate::concurrent::garbage::help;
use crate::concurrent::guard::Guard;

/// The panic message of a bug in this crate.
const ANYTHING: &str = "anything was expected";

impl<K: NoUninit + Hash, V: NoUninit, S: BuildHasher, G: Borrow<Guard>>
    PinnedTable<'_, K, V, S, G>
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
    /// let table = flowtable::ConcurrentTable::<u32, u32>::new();
    /// let pin = table.pin();
    /// let hash = pin.hash_of(&7);
    /// assert_eq!(pin.insert_hashed(hash, 7, 1)?, None);
    /// assert_eq!(pin.remove_hashed(hash, &7), Some(1));
    /// # Ok::<(), flowtable::concurrent::Refused>(())
    /// ```
    pub fn insert_hashed(&self, hash: u64, key: K, value: V) -> Result<Option<V>, Refused> {
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
    /// assert_eq!((pin.get_or_insert(1, 10)?, pin.get_or_insert(1, 20)?), (10, 10));
    /// # Ok::<(), flowtable::concurrent::Refused>(())
    /// ```
    pub fn get_or_insert(&self, key: K, value: V) -> Result<V, Refused> {
        let hash = self.hash_of(&key);
        if let Some(found) = self.get_hashed(hash, &key) {
            return Ok(found);
        }
        let inserted = self.insert_expected(hash, &key, &value, Expected::Nothing)?;
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
    /// assert_eq!((pin.replace(1, 11)?, pin.replace(2, 20)?, pin.len()), (Some(10), None, 1));
    /// # Ok::<(), flowtable::concurrent::Refused>(())
    /// ```
    pub fn replace(&self, key: K, value: V) -> Result<Option<V>, Refused> {
        let hash = self.hash_of(&key);
        Ok(self.insert_expected(hash, &key, &value, Expected::Something)?.unwrap_or(None))
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
    /// let new = flows.pin().update(1, |[packets, bytes]| [packets + 1, bytes + 1500])?;
    /// assert_eq!(new, Some([2, 1560]));
    /// # Ok::<(), flowtable::concurrent::Refused>(())
    /// ```
    pub fn update(&self, key: K, mut change: impl FnMut(V) -> V) -> Result<Option<V>, Refused> {
        let hash = self.hash_of(&key);
        let mut found = self.get_hashed(hash, &key);
        while let Some(old) = found {
            let new = change(old);
            match self.insert_expected(hash, &key, &new, Expected::Value(old))? {
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
    pub fn remove(&self, key: &K) -> Option<V> {
        self.remove_hashed(self.hash_of(key), key)
    }

    /// Removes `key`, given its hash, and returns its value: see [`get_hashed`](Self::get_hashed).
    pub fn remove_hashed(&self, hash: u64, key: &K) -> Option<V> {
        self.remove_expected(hash, key, Expected::Anything).ok()
    }

    /// Replaces the value of `key` by `new` if it is `current`, byte by byte. Returns the former
    /// value: `Ok` if it was replaced, `Err` if it is another one, `None` if the key is absent.
    /// Like a compare-and-swap of an atomic, but for the lock of the shard.
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
    pub fn compare_exchange(&self, key: &K, current: V, new: V) -> Option<Result<V, V>> {
        const { assert!(size_of::<V>() <= 8, "the value has more than one word") };
        let hash = self.hash_of(key);
        match self.insert_expected(hash, key, &new, Expected::Value(current)) {
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
        for (key, value) in self {
            if !keep(&key, &value) {
                let _ = self.remove_expected(self.hash_of(&key), &key, Expected::Value(value));
            }
        }
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
            writer.add_to_len(-(removed as isize));
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

    /// Helps the collector to free what no pin protects any more. This pin protects what it may
    /// have observed.
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
        self.table.engine.for_segments(work, |()| (), self.hashes(), self.epoch());
    }

    /// Returns the function that hashes entries when a segment is copied.
    fn hashes(&self) -> impl Fn(Slot<'_, Inline<K, V>>) -> u64 {
        |slot| self.table.hasher.hash_one(slot.key())
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
        let placed = self.table.engine.place(hash, is, expected, self.hashes(), self.epoch())?;
        Ok(placed.map(|(writer, place)| {
            writer.store(hash, place, |index| entry_word(key, value, index))
        }))
    }

    /// Removes a key if its value is as expected. Returns its value, or the present one.
    fn remove_expected(&self, hash: u64, key: &K, expected: Expected<V>) -> Result<V, Option<V>> {
        let is = |group: Group<'_, Inline<K, V>>, slot| group.has_key(slot, key);
        let removed = |_: &mut (), _| ();
        self.table.engine.remove(hash, is, expected, self.hashes(), removed, self.epoch())
    }
}

impl<K: NoUninit + Hash, V: Integer, S: BuildHasher, G: Borrow<Guard>> PinnedTable<'_, K, V, S, G> {
    /// Adds `number` to the value of `key`, wrapping around, and returns the former value, or
    /// `None` if the key is absent. Like that of an atomic, but for the lock of the shard.
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
    pub fn fetch_add(&self, key: &K, number: V) -> Option<V> {
        let hash = self.hash_of(key);
        let is = |group: Group<'_, Inline<K, V>>, slot| group.has_key(slot, key);
        let add = |value| word(&wrapping_add(value, number), 0);
        self.table.engine.writer(hash, self.epoch()).change(hash, is, add)
    }
}
