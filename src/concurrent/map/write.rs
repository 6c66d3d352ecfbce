//! Pinned maps: the methods that write.
//!
//! Closures run without a lock: the entry that they received is compared with the present one after
//! the lock has been taken; if it was replaced, they are called again.

use alloc::borrow::ToOwned;
use core::hash::{BuildHasher, Hash};
use core::iter;

use equivalent::Equivalent;

use super::ConcurrentMap;
use super::garbage::Batch;
use super::storage::Ids;
use super::view::{Compute, Computed, Entry, Insertion, Tried, TryInsert};
use crate::concurrent::collector::help;
use crate::concurrent::engine::{Expected, Slot, Writer};
use crate::concurrent::error::{Refusal, Refused};
use crate::concurrent::pinned::{Pinned, Protect};
use crate::hash::Query;
use crate::table::error::TryReserveError;

impl<'t, K, V, S, G> Pinned<'t, ConcurrentMap<K, V, S>, G>
where
    K: Eq + Hash + Send + 'static,
    V: Send + 'static,
    S: BuildHasher,
{
    /// Inserts a key with a value, and returns the former value. An equal key is replaced, too.
    ///
    /// # Errors
    ///
    /// If there is more garbage than the limit allows, no memory, or no room: see [`Refused`]. The
    /// error contains key and value.
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
    pub fn insert<'p, 'r>(&'p self, key: K, value: V) -> Result<Option<&'r V>, Refusal<(K, V)>>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        let hash = self.of.hasher.hash_one(&key);
        match self.view().insert(hash, (key, value), K::eq, Expected::Anything)? {
            Insertion::Done { old, .. } => Ok(old.map(Entry::value)),
            Insertion::Unexpected(..) => unreachable!("anything was expected"),
        }
    }

    /// Inserts a key with a value if it is absent. Returns the value that the map has then, and
    /// the input if it was not inserted.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert), if the key is absent.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::TryInsert;
    ///
    /// let map = flowtable::ConcurrentMap::new();
    /// let pin = map.pin();
    /// assert_eq!(pin.try_insert("a", 1)?, TryInsert::Inserted(&1));
    /// let refused = TryInsert::Occupied { current: &1, refused: ("a", 2) };
    /// assert_eq!(pin.try_insert("a", 2)?, refused);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_insert<'p, 'r>(&'p self, key: K, value: V) -> Tried<'r, K, V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        let (view, hash) = (self.view(), self.of.hasher.hash_one(&key));
        if let Some(found) = view.find(hash, &key) {
            return Ok(TryInsert::Occupied { current: found.value(), refused: (key, value) });
        }
        view.insert_if_absent(hash, (key, value), K::eq)
    }

    /// Inserts a key with the result of `make` if it is absent; the key is cloned then. Returns the
    /// value that the map has then, and the result of `make` if it was not inserted.
    ///
    /// `make` runs without a lock, at most once. If another thread inserts the key first, its value
    /// is the present one.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert), if the key is absent; a value that was made is dropped.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::concurrent::TryInsert;
    ///
    /// let map = flowtable::ConcurrentMap::new();
    /// let pin = map.pin();
    /// assert_eq!(pin.try_insert_with(&1, || 'a')?, TryInsert::Inserted(&'a'));
    /// let refused = TryInsert::Occupied { current: &'a', refused: None };
    /// assert_eq!(pin.try_insert_with(&1, || unreachable!())?, refused);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_insert_with<'p, 'r, Q>(
        &'p self,
        key: Q,
        make: impl FnOnce() -> V,
    ) -> Result<TryInsert<'r, V, Option<V>>, Refused>
    where
        Q: Query<K, Key: ToOwned<Owned = K>>,
        G: Protect<'p, 'r>,
        't: 'r,
    {
        let (view, hash, key) = (self.view(), key.hash_with(&self.of.hasher), key.key());
        if let Some(found) = view.find(hash, key) {
            return Ok(TryInsert::Occupied { current: found.value(), refused: None });
        }
        view.admit(hash)?;
        let is = |_: &K, own: &K| key.equivalent(own);
        Ok(match view.insert_if_absent(hash, (key.to_owned(), make()), is) {
            Ok(TryInsert::Inserted(new)) => TryInsert::Inserted(new),
            Ok(TryInsert::Occupied { current, refused: (_, made) }) => {
                TryInsert::Occupied { current, refused: Some(made) }
            }
            Err(error) => return Err(error.reason),
        })
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
    pub fn get_or_insert<'p, 'r>(&'p self, key: K, value: V) -> Result<&'r V, Refusal<(K, V)>>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        Ok(self.try_insert(key, value)?.value())
    }

    /// Returns the value of `key`, after inserting it with the result of `make` if it is absent:
    /// see [`try_insert_with`](Self::try_insert_with).
    ///
    /// # Errors
    ///
    /// If the key is absent, as for [`insert`](Self::insert); a value that was made is dropped.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::new();
    /// let pin = map.pin();
    /// assert_eq!(pin.get_or_insert_with(&1, || 'a')?, &'a');
    /// assert_eq!(pin.get_or_insert_with(&1, || unreachable!())?, &'a');
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_or_insert_with<'p, 'r, Q>(
        &'p self,
        key: Q,
        make: impl FnOnce() -> V,
    ) -> Result<&'r V, Refused>
    where
        Q: Query<K, Key: ToOwned<Owned = K>>,
        G: Protect<'p, 'r>,
        't: 'r,
    {
        Ok(self.try_insert_with(key, make)?.value())
    }

    /// Removes `key`, and returns its value.
    ///
    /// A removal is never refused, and needs no memory: it retires only an entry that was live
    /// before.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// let pin = map.pin();
    /// assert_eq!((pin.remove("a"), pin.remove("a")), (Some(&1), None));
    /// ```
    pub fn remove<'p, 'r, Q: Query<K>>(&'p self, key: Q) -> Option<&'r V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Removes `key`, and returns the stored key with its value.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// assert_eq!(map.pin().remove_entry("a"), Some((&"a", &1)));
    /// ```
    pub fn remove_entry<'p, 'r, Q: Query<K>>(&'p self, key: Q) -> Option<(&'r K, &'r V)>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        let hash = key.hash_with(&self.of.hasher);
        self.view().remove(hash, key.key(), Expected::Anything).map(Entry::pair)
    }

    /// Removes `key` if `is` returns true for its entry, and returns its value. No write of another
    /// thread takes effect in between.
    ///
    /// `is` runs without a lock. It is called again if another thread has written first.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// let pin = map.pin();
    /// assert_eq!(pin.remove_if("a", |_, value| *value > 1), None);
    /// assert_eq!(pin.remove_if("a", |_, value| *value == 1), Some(&1));
    /// ```
    pub fn remove_if<'p, 'r, Q: Query<K>>(
        &'p self,
        key: Q,
        mut is: impl FnMut(&K, &V) -> bool,
    ) -> Option<&'r V>
    where
        G: Protect<'p, 'r>,
        't: 'r,
    {
        let (view, hash) = (self.view(), key.hash_with(&self.of.hasher));
        loop {
            let found = view.find(hash, key.key())?;
            if !is(found.key(), found.value()) {
                return None;
            }
            if let Some(removed) = view.remove(hash, key.key(), Expected::Value(found.id)) {
                return Some(removed.value());
            }
        }
    }

    /// Replaces the value of `key` by the result of `change` for it, and returns the new value, or
    /// `None` if the key is absent. No write of another thread takes effect in between.
    ///
    /// `change` runs without a lock. It is called again if another thread has written first. For a
    /// counter that many packets change, use an atomic as the value instead.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([(1, 'a')]);
    /// let pin = map.pin();
    /// assert_eq!(pin.update(&1, char::to_ascii_uppercase)?, Some(&'A'));
    /// assert_eq!(pin.update(&2, char::to_ascii_uppercase)?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update<'p, 'r, Q>(
        &'p self,
        key: Q,
        mut change: impl FnMut(&V) -> V,
    ) -> Result<Option<&'r V>, Refused>
    where
        Q: Query<K, Key: ToOwned<Owned = K>>,
        G: Protect<'p, 'r>,
        't: 'r,
    {
        let decide = |found: Option<&V>| match found {
            None => Compute::Keep,
            Some(value) => Compute::Insert(change(value)),
        };
        Ok(match self.compute(key, decide)? {
            Computed::Updated { new, .. } | Computed::Inserted(new) => Some(new),
            Computed::Kept(_) | Computed::Removed(_) => None,
        })
    }

    /// Replaces the value of `key` by the result of `change` for it, or inserts it with the result
    /// of `make` if it is absent. Returns the new value. No write of another thread takes effect in
    /// between.
    ///
    /// The closures run without a lock. They are called again if another thread has written first.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::new();
    /// for _ in 0..3 {
    ///     map.pin().update_or_insert_with(&"a", |count| count + 1, || 1)?;
    /// }
    /// assert_eq!(map.pin().get("a"), Some(&3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update_or_insert_with<'p, 'r, Q>(
        &'p self,
        key: Q,
        mut change: impl FnMut(&V) -> V,
        mut make: impl FnMut() -> V,
    ) -> Result<&'r V, Refused>
    where
        Q: Query<K, Key: ToOwned<Owned = K>>,
        G: Protect<'p, 'r>,
        't: 'r,
    {
        let decide = |found: Option<&V>| Compute::Insert(found.map_or_else(&mut make, &mut change));
        match self.compute(key, decide)? {
            Computed::Updated { new, .. } | Computed::Inserted(new) => Ok(new),
            Computed::Kept(_) | Computed::Removed(_) => unreachable!("a value is inserted"),
        }
    }

    /// Inserts, replaces or removes `key` by the decision of `decide` for its value. No write of
    /// another thread takes effect in between.
    ///
    /// `decide` runs without a lock. It is called again if another thread has written first.
    ///
    /// # Errors
    ///
    /// If a value is to be inserted, as for [`insert`](Self::insert); it is dropped.
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
    /// assert_eq!(pin.compute(&"a", spend)?, Computed::Removed(&1));
    /// assert_eq!(pin.compute(&"a", spend)?, Computed::Kept(None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compute<'p, 'r, Q>(
        &'p self,
        key: Q,
        mut decide: impl FnMut(Option<&V>) -> Compute<V>,
    ) -> Result<Computed<'r, V>, Refused>
    where
        Q: Query<K, Key: ToOwned<Owned = K>>,
        G: Protect<'p, 'r>,
        't: 'r,
    {
        let (view, hash, key) = (self.view(), key.hash_with(&self.of.hasher), key.key());
        let is = |_: &K, own: &K| key.equivalent(own);
        loop {
            let found = view.find(hash, key);
            let expected = found.map_or(Expected::Nothing, |found| Expected::Value(found.id));
            match (decide(found.map(Entry::value)), found) {
                (Compute::Keep, _) | (Compute::Remove, None) => {
                    return Ok(Computed::Kept(found.map(Entry::value)));
                }
                (Compute::Insert(new), _) => {
                    let inserted = view.insert(hash, (key.to_owned(), new), is, expected);
                    if let Insertion::Done { old, new } = inserted.map_err(|error| error.reason)? {
                        let new = new.value();
                        return Ok(match old {
                            Some(old) => Computed::Updated { old: old.value(), new },
                            None => Computed::Inserted(new),
                        });
                    }
                }
                (Compute::Remove, Some(_)) => {
                    if let Some(removed) = view.remove(hash, key, expected) {
                        return Ok(Computed::Removed(removed.value()));
                    }
                }
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
    pub fn retain<'p>(&'p self, mut keep: impl FnMut(&K, &V) -> bool)
    where
        G: Protect<'p, 'p>,
    {
        self.iter().for_entries(|entry| {
            if !keep(entry.key(), entry.value()) {
                let hash = self.of.hasher.hash_one(entry.key());
                self.view().remove(hash, entry.key(), Expected::Value(entry.id));
            }
        });
    }

    /// Removes all entries, a segment at a time, and the reserved capacity. Like a removal it is
    /// never refused.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// map.pin().clear();
    /// assert!(map.is_empty());
    /// ```
    pub fn clear<'p>(&'p self)
    where
        G: Protect<'p, 'p>,
    {
        let view = self.view();
        let clear = |writer: &mut Writer<'_, Ids>, mixed| {
            let segment = writer.segment(mixed);
            let ids = segment.entries().map(Slot::value);
            let batch = Batch::of(writer.nth, segment.entries().count(), ids, &self.of.store);
            writer.add_to_len(-(segment.clear() as i32));
            writer.set_reserved(false);
            (writer.nth, batch)
        };
        let defer = |(shard, batch)| view.defer(shard, Some(batch));
        self.of.engine.for_segments(clear, defer, view.hashes(), view.pin);
    }

    /// Reserves capacity for `additional` more entries, below which the map does not shrink.
    /// O(capacity); each shard is locked for one step of growth at a time.
    ///
    /// # Errors
    ///
    /// If the memory cannot be allocated; some of it may be reserved.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([(1, 10)]);
    /// map.pin().reserve(10_000)?;
    /// let before = map.allocation_size();
    /// map.pin().insert(2, 20)?;
    /// assert!(map.allocation_size() < before + 1024);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reserve<'p>(&'p self, additional: usize) -> Result<(), TryReserveError>
    where
        G: Protect<'p, 'p>,
    {
        self.of.reserve(additional, self.view().hashes(), self.view().pin)
    }

    /// Defers all garbage to the collector, and helps it to free garbage that no pin protects any
    /// more. This pin protects garbage that it may have observed.
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
    pub fn flush<'p>(&'p self)
    where
        G: Protect<'p, 'p>,
    {
        let view = self.view();
        for shard in self.of.engine.open_shards() {
            let batch = Writer::new(&self.of.engine, shard, view.pin).state.batch.flush();
            view.defer(shard, batch);
        }
        // Their ids are spread over the shards.
        let mut shards = iter::repeat_with(|| self.of.engine.open_shards()).flatten();
        while self.of.store.has_waiting()
            && shards.next().is_some_and(|nth| view.defer_waiting(nth))
        {}
        help(view.pin);
    }
}
