//! Lookup of a tag, creation, removal, and bursts of these.

use alloc::borrow::ToOwned;
use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::Full;
use super::store::EphemeralStore;
use crate::hash::Query;
use crate::memory::Allocator;
use crate::probes::Observer;
use crate::table::lines::fold;
use crate::table::records::{Bursts, Hashed};
use crate::timestamp::Timestamp;

/// Words of 32 bits that are accessed to examine or to create a binding. The paper prints their
/// number, 5. Which words these are is derived: the tag, the expiry time, the link of the chain,
/// and the word that leads to the entry.
const fn words<T>() -> u32 {
    3 + size_of::<T>().div_ceil(4) as u32
}

impl<T, V, S, A> EphemeralStore<T, V, S, A>
where
    T: Hash + Eq,
    S: BuildHasher,
    A: Allocator + Clone,
{
    /// Returns the hash of a tag, for a [`Prehashed`](crate::Prehashed).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Prehashed, Timestamp};
    /// use std::time::Duration;
    ///
    /// let (lifetime, now) = (Duration::from_secs(10), Timestamp::ZERO);
    /// let mut store: EphemeralStore<&str, u32> = EphemeralStore::new(10, lifetime)?;
    /// let tag = Prehashed { hash: store.hash_of("flow"), key: &"flow" };
    /// assert_eq!(store.get(tag, now), None);
    /// assert_eq!(store.get_or_insert_with(tag, now, || 1), Ok(&mut 1));
    /// assert_eq!(store.get("flow", now), Some(&1));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash_of<Q: Hash + ?Sized>(&self, tag: &Q) -> u64 {
        self.hasher.hash_one(tag)
    }

    /// Returns the value of a tag, if it has a live binding.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore<String, u32> =
    ///     EphemeralStore::new(10, Duration::from_secs(10))?;
    /// let at = Timestamp::from_secs;
    /// store.get_or_insert_with("tag", at(0), || 1)?;
    /// assert_eq!(*store.get_or_insert_with("tag", at(5), || unreachable!("it exists"))?, 1);
    /// assert_eq!(store.get("tag", at(9)), Some(&1));
    /// // The accesses have not extended its life.
    /// assert_eq!(store.get("tag", at(10)), None);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn get<Q: Query<T>>(&self, tag: Q, now: Timestamp) -> Option<&V> {
        self.get_observed(tag, now, &mut ())
    }

    /// Returns the value of a tag, and reports the accesses to the observer: each binding examined,
    /// with five words if tags have two.
    #[inline]
    pub fn get_observed<Q: Query<T>>(
        &self,
        tag: Q,
        now: Timestamp,
        observer: &mut impl Observer,
    ) -> Option<&V> {
        let (hash, time) = (fold(tag.hash_with(&self.hasher)), self.bindings.time_at(now));
        self.find(hash, tag.key(), time, observer)
    }

    #[inline]
    fn find<Q: Equivalent<T> + ?Sized>(
        &self,
        hash: u32,
        tag: &Q,
        time: u64,
        observer: &mut impl Observer,
    ) -> Option<&V> {
        let found = self.bindings.records().find(hash, move |record| {
            record.meta.is_after(time) && is_it(tag, &record.key, observer)
        });
        found.map(|(_, record)| &record.value)
    }

    /// Returns a mutable reference to the value of a tag, if it has a live binding. Does not extend
    /// its life.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// // SYNs of each host within a second.
    /// let mut store: EphemeralStore<[u8; 4], u32> =
    ///     EphemeralStore::new(1000, Duration::from_secs(1))?;
    /// let (host, at) = ([192, 0, 2, 7], Timestamp::from_millis);
    /// store.get_or_insert_with(&host, at(0), || 1)?;
    /// if let Some(count) = store.get_mut(&host, at(500)) {
    ///     *count += 1;
    /// }
    /// assert_eq!(store.get(&host, at(999)), Some(&2));
    /// assert_eq!(store.get(&host, at(1000)), None);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    pub fn get_mut<Q: Query<T>>(&mut self, tag: Q, now: Timestamp) -> Option<&mut V> {
        let (hash, time) = (fold(tag.hash_with(&self.hasher)), self.bindings.time_at(now));
        let found = self.bindings.find_mut(hash, |record| {
            record.meta.is_after(time) && tag.key().equivalent(&record.key)
        });
        found.map(|(_, record)| &mut record.value)
    }

    /// Returns a mutable reference to the value of the live binding of a tag, and creates one if
    /// there is none, with this value, which lives for one lifetime from now.
    ///
    /// Each creation also reclaims up to two expired bindings.
    ///
    /// # Errors
    ///
    /// [`Full`] if the store is full of live bindings. Nothing is created, and `value` is not
    /// called.
    #[inline]
    pub fn get_or_insert_with<Q>(
        &mut self,
        tag: Q,
        now: Timestamp,
        value: impl FnOnce() -> V,
    ) -> Result<&mut V, Full>
    where
        Q: Query<T, Key: ToOwned<Owned = T>>,
    {
        self.get_or_insert_with_observed(tag, now, value, &mut ())
    }

    /// Returns the value of a tag as [`get_or_insert_with`](Self::get_or_insert_with), and reports
    /// the accesses to the observer: five words more than [`get_observed`](Self::get_observed) for
    /// a creation, if tags have two.
    ///
    /// # Errors
    ///
    /// [`Full`] if the store is full of live bindings. Nothing is created, and `value` is not
    /// called.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::probes::Words;
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// let (now, mut created, mut found) = (Timestamp::ZERO, Words::default(), Words::default());
    /// store.get_or_insert_with_observed(&7, now, || 1, &mut created)?;
    /// assert_eq!(store.get_observed(&7, now, &mut found), Some(&1));
    /// assert_eq!((created.0, found.0), (5, 5)); // one binding written, one examined
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    pub fn get_or_insert_with_observed<Q>(
        &mut self,
        tag: Q,
        now: Timestamp,
        value: impl FnOnce() -> V,
        observer: &mut impl Observer,
    ) -> Result<&mut V, Full>
    where
        Q: Query<T, Key: ToOwned<Owned = T>>,
    {
        let hash = fold(tag.hash_with(&self.hasher));
        self.bindings.advance(now);
        self.find_or_create(hash, tag.key(), value, observer)
    }

    /// Returns the value of a tag, after creating its binding if there is none, at the time of the
    /// store.
    #[inline]
    fn find_or_create<Q>(
        &mut self,
        hash: u32,
        tag: &Q,
        value: impl FnOnce() -> V,
        observer: &mut impl Observer,
    ) -> Result<&mut V, Full>
    where
        Q: Equivalent<T> + ToOwned<Owned = T> + ?Sized,
    {
        let time = self.bindings.time();
        let found = self
            .bindings
            .records()
            .find(hash, |record| record.meta.is_after(time) && is_it(tag, &record.key, observer));
        if let Some((slot, _)) = found {
            return Ok(&mut self.bindings.record_mut(slot).value);
        }
        let created = self.bindings.push(hash, || {
            observer.words(words::<T>());
            (tag.to_owned(), value())
        });
        created.ok_or(Full)
    }

    /// Removes the live binding of a tag and returns its value, for example when a handshake is
    /// complete. Another binding may be created in its place at once.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// // Handshakes: a few may be open at a time, and each completes within a second.
    /// let mut open: EphemeralStore<u32, &str> = EphemeralStore::new(4, Duration::from_secs(60))?;
    /// for second in 0..1000 {
    ///     let (peer, now) = (second as u32, Timestamp::from_secs(second));
    ///     open.get_or_insert_with(&peer, now, || "SYN")?;
    ///     assert_eq!(open.remove(&peer, now + Duration::from_millis(20)), Some("SYN"));
    ///     assert_eq!(open.remove(&peer, now), None);
    /// }
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn remove<Q: Query<T>>(&mut self, tag: Q, now: Timestamp) -> Option<V> {
        let (hash, time) = (fold(tag.hash_with(&self.hasher)), self.bindings.advance(now));
        let (slot, _) = self
            .bindings
            .records()
            .find(hash, |record| record.meta.is_after(time) && tag.key().equivalent(&record.key))?;
        Some(self.bindings.remove(slot).value)
    }

    /// Calls `each` with the index of each tag and its value, in the order of the tags. Cache
    /// misses overlap.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp, write_to};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// let now = Timestamp::ZERO;
    /// store.get_or_insert_batch(&[1, 2, 1], now, |_| 0, |_, value| *value.unwrap() += 1);
    /// let mut found = [None; 3];
    /// store.get_batch(&[1, 2, 3], now, write_to(&mut found));
    /// assert_eq!(found, [Some(&2), Some(&1), None]);
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    pub fn get_batch<'a, I>(
        &'a self,
        tags: I,
        now: Timestamp,
        mut each: impl FnMut(usize, Option<&'a V>),
    ) where
        I: IntoIterator<Item: Query<T>>,
    {
        let (tags, records) = (tags.into_iter(), self.bindings.records());
        if !records.is_large() {
            return tags.enumerate().for_each(|(index, tag)| each(index, self.get(tag, now)));
        }
        let (mut bursts, time) = (Bursts::new(tags), self.bindings.time_at(now));
        while let Some(burst) = bursts.next(records, |tag| fold(tag.hash_with(&self.hasher))) {
            for Hashed { index, hash, key } in burst {
                each(*index, self.find(*hash, key.key(), time, &mut ()));
            }
        }
    }

    /// Finds or creates the bindings of several tags, in the order of the tags. Cache misses
    /// overlap. Time advances once: bindings that are live now are live for the whole batch.
    ///
    /// Calls `each` with the index of each tag and a mutable reference to the value of its live
    /// binding, or with [`Full`]. A missing binding is created with the value that `make` returns
    /// for the index of the tag. A tag may come twice.
    ///
    /// See [`get_or_insert_with`](Self::get_or_insert_with), and [`get_batch`](Self::get_batch) for
    /// an example.
    pub fn get_or_insert_batch<I>(
        &mut self,
        tags: I,
        now: Timestamp,
        mut make: impl FnMut(usize) -> V,
        mut each: impl FnMut(usize, Result<&mut V, Full>),
    ) where
        I: IntoIterator<Item: Query<T, Key: ToOwned<Owned = T>>>,
    {
        self.bindings.advance(now);
        let mut create = |store: &mut Self, index, hash, tag: &_| {
            each(index, store.find_or_create(hash, tag, || make(index), &mut ()));
        };
        if !self.bindings.records().is_large() {
            for (index, tag) in tags.into_iter().enumerate() {
                create(self, index, fold(tag.hash_with(&self.hasher)), tag.key());
            }
            return;
        }
        let mut bursts = Bursts::new(tags.into_iter());
        while let Some(burst) =
            bursts.next(self.bindings.records(), |tag| fold(tag.hash_with(&self.hasher)))
        {
            for Hashed { index, hash, key } in burst {
                create(self, *index, *hash, key.key());
            }
        }
    }
}

/// Returns whether a live binding has this tag, and reports it as examined.
#[inline]
fn is_it<T, Q: Equivalent<T> + ?Sized>(tag: &Q, stored: &T, observer: &mut impl Observer) -> bool {
    observer.entry();
    observer.words(words::<T>());
    tag.equivalent(stored)
}
