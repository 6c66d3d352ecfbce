//! Lookup of a binding by its tag, and creation.
#![allow(unsafe_code)]

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::Full;
use super::ring::{Found, Span, Times};
use super::store::{Binding, Entry, EphemeralStore, RECLAIMED_PER_CREATION};
use crate::memory::Allocator;
use crate::probes::Observer;
use crate::timestamp::Timestamp;

/// The result of [`find_or_create`](EphemeralStore::find_or_create).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bound {
    /// The live binding of the tag.
    pub binding: Binding,
    /// Whether this call created the binding.
    pub is_new: bool,
}

impl<T, V, S, A> EphemeralStore<T, V, S, A>
where
    T: Hash + Eq,
    S: BuildHasher,
    A: Allocator + Clone,
{
    /// Returns the live binding of a tag.
    ///
    /// O(1) if hashes are random: see the [module](super#cost).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore<&str, u32> =
    ///     EphemeralStore::new(10, Duration::from_secs(10))?;
    /// let at = Timestamp::from_secs;
    /// let created = store.find_or_create("tag", at(0), || 1)?;
    /// let found = store.find_or_create("tag", at(5), || unreachable!("it exists"))?;
    /// assert_eq!((created.is_new, found.is_new), (true, false));
    /// assert_eq!(store.find("tag", at(9)), Some(created.binding));
    /// // The accesses have not extended its life.
    /// assert_eq!(store.find("tag", at(10)), None);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn find<Q>(&self, tag: &Q, now: Timestamp) -> Option<Binding>
    where
        Q: Hash + Equivalent<T> + ?Sized,
    {
        self.find_observed(tag, now, &mut ())
    }

    /// Returns the live binding of a tag, and reports the accesses to the observer: each entry
    /// examined, with five words if tags have two.
    #[inline]
    pub fn find_observed<Q>(
        &self,
        tag: &Q,
        now: Timestamp,
        observer: &mut impl Observer,
    ) -> Option<Binding>
    where
        Q: Hash + Equivalent<T> + ?Sized,
    {
        self.find_hashed_observed(self.hash_of(tag), tag, now, observer)
    }

    /// Returns the value of a tag, if it has a live binding. Costs as [`find`](Self::find).
    #[must_use]
    #[inline]
    pub fn get<Q>(&self, tag: &Q, now: Timestamp) -> Option<&V>
    where
        Q: Hash + Equivalent<T> + ?Sized,
    {
        self.get_hashed(self.hash_of(tag), tag, now)
    }

    /// Returns a mutable reference to the value of a tag, if it has a live binding. Does not extend
    /// its life. Costs as [`find`](Self::find).
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
    /// store.find_or_create(host, at(0), || 1)?;
    /// if let Some(count) = store.get_mut(&host, at(500)) {
    ///     *count += 1;
    /// }
    /// assert_eq!(store.get(&host, at(999)), Some(&2));
    /// assert_eq!(store.get(&host, at(1000)), None);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    pub fn get_mut<Q>(&mut self, tag: &Q, now: Timestamp) -> Option<&mut V>
    where
        Q: Hash + Equivalent<T> + ?Sized,
    {
        self.get_mut_hashed(self.hash_of(tag), tag, now)
    }

    /// Returns the live binding of a tag, or creates one with this value, which lives for one
    /// lifetime from now.
    ///
    /// Each creation also reclaims up to two expired bindings. Costs as [`find`](Self::find), and
    /// O(log n) where many bindings have expired at once.
    ///
    /// # Errors
    ///
    /// [`Full`], with the tag, if the store is full of live bindings. Nothing is created, and
    /// `value` is not called.
    #[inline]
    pub fn find_or_create(
        &mut self,
        tag: T,
        now: Timestamp,
        value: impl FnOnce() -> V,
    ) -> Result<Bound, Full<T>> {
        self.find_or_create_observed(tag, now, value, &mut ())
    }

    /// Returns the live binding of a tag, or creates one, and reports the accesses to the observer:
    /// five words more than [`find`](Self::find_observed) for a creation, if tags have two.
    ///
    /// # Errors
    ///
    /// [`Full`], with the tag, if the store is full of live bindings. Nothing is created, and
    /// `value` is not called.
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
    /// let bound = store.find_or_create_observed(7, now, || 1, &mut created)?;
    /// assert_eq!(store.find_observed(&7, now, &mut found), Some(bound.binding));
    /// assert_eq!((created.0, found.0), (5, 5)); // one entry written, one examined
    /// // Access by binding needs no search.
    /// let mut words = Words::default();
    /// store.read_observed(bound.binding, now, &mut words);
    /// store.write_observed(bound.binding, now, 2, &mut words).unwrap();
    /// assert_eq!(words, Words(4)); // a value has two
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    pub fn find_or_create_observed(
        &mut self,
        tag: T,
        now: Timestamp,
        value: impl FnOnce() -> V,
        observer: &mut impl Observer,
    ) -> Result<Bound, Full<T>> {
        let hash = self.hash_of(&tag);
        self.find_or_create_hashed_observed(hash, tag, now, value, observer)
    }

    /// Returns a mutable reference to the value of the live binding of a tag, and creates one if
    /// there is none: see [`find_or_create`](Self::find_or_create).
    ///
    /// # Errors
    ///
    /// [`Full`], with the tag, if the store is full of live bindings. Nothing is created, and
    /// `value` is not called.
    #[inline]
    pub fn get_or_insert_with(
        &mut self,
        tag: T,
        now: Timestamp,
        value: impl FnOnce() -> V,
    ) -> Result<&mut V, Full<T>> {
        let hash = self.hash_of(&tag);
        self.get_or_insert_with_hashed(hash, tag, now, value)
    }

    /// Returns the hash of a tag, for the methods that take one.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let (lifetime, now) = (Duration::from_secs(10), Timestamp::ZERO);
    /// let mut store: EphemeralStore<&str, u32> = EphemeralStore::new(10, lifetime)?;
    /// store.get_or_insert_with("flow", now, || 1)?;
    /// assert_eq!(store.get_hashed(store.hash_of("flow"), "flow", now), Some(&1));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash_of<Q: Hash + ?Sized>(&self, tag: &Q) -> u64 {
        self.hasher.hash_one(tag)
    }
}

impl<T, V, S, A: Allocator + Clone> EphemeralStore<T, V, S, A> {
    /// Returns the expiry time of a binding that is created now.
    #[inline]
    pub(super) fn expiry(&self) -> u32 {
        self.doubled_now().wrapping_add(2 * self.lifetime.ticks)
    }

    /// Returns the binding of a live entry.
    #[inline]
    fn binding(&self, found: &FoundEntry<T, V>) -> Binding {
        let position = self.ring.position_of(found.sequence);
        let sequence = self.ring.oldest() + position as u64;
        Binding { sequence, expiry: found.times.expiry() }
    }

    /// Returns a mutable reference to the value of an entry.
    ///
    /// # Safety
    ///
    /// The entry is from a lookup or a creation in this store, since when no entry has been
    /// created, removed or reclaimed.
    #[inline(always)]
    pub(super) unsafe fn value_mut(&mut self, found: &FoundEntry<T, V>) -> &mut V {
        // SAFETY: the entry has a body, which is borrowed as `self` is.
        unsafe { &mut (*found.body.as_ptr()).value }
    }
}

/// A live entry.
pub(super) type FoundEntry<T, V> = Found<Entry<T, V>>;

impl<T: Eq, V, S, A: Allocator + Clone> EphemeralStore<T, V, S, A> {
    /// Returns the live binding of a tag, given its hash. Equal tags must have equal hashes: so a
    /// store takes either all hashes from its hasher, or all hashes from the caller. At least the
    /// low bits of hashes should be random: many bindings with equal hashes make lookups walk
    /// through the index, and lookups of absent tags walk it until [`clear`](Self::clear).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore<&str, u32> =
    ///     EphemeralStore::new(10, Duration::from_secs(10))?;
    /// let (hash, now) = (0x51cc_c178, Timestamp::ZERO); // from the network card
    /// let bound = store.find_or_create_hashed(hash, "flow", now, || 1)?;
    /// assert_eq!(store.find_hashed(hash, "flow", now), Some(bound.binding));
    /// *store.get_mut_hashed(hash, "flow", now).unwrap() += 1;
    /// *store.get_or_insert_with_hashed(hash, "flow", now, || unreachable!("it exists"))? += 1;
    /// assert_eq!(store.get_hashed(hash, "flow", now), Some(&3));
    /// let mut found = [None; 2];
    /// store.get_batch_hashed(&[hash; 2], &["flow", "other"], now, &mut found);
    /// assert_eq!(found, [Some(&3), None]);
    /// assert_eq!(store.remove_hashed(hash, "flow", now), Some(3));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn find_hashed<Q>(&self, hash: u64, tag: &Q, now: Timestamp) -> Option<Binding>
    where
        Q: Equivalent<T> + ?Sized,
    {
        self.find_hashed_observed(hash, tag, now, &mut ())
    }

    #[inline]
    fn find_hashed_observed<Q>(
        &self,
        hash: u64,
        tag: &Q,
        now: Timestamp,
        observer: &mut impl Observer,
    ) -> Option<Binding>
    where
        Q: Equivalent<T> + ?Sized,
    {
        let found = self.find_entry(hash, tag, self.span_at(now), observer)?;
        Some(self.binding(&found))
    }

    /// Returns the value of a tag, given its hash. See [`get`](Self::get).
    #[must_use]
    #[inline]
    pub fn get_hashed<Q>(&self, hash: u64, tag: &Q, now: Timestamp) -> Option<&V>
    where
        Q: Equivalent<T> + ?Sized,
    {
        self.value_of(hash, tag, self.span_at(now))
    }

    /// Returns a mutable reference to the value of a tag, given its hash. See
    /// [`get_mut`](Self::get_mut).
    #[inline]
    pub fn get_mut_hashed<Q>(&mut self, hash: u64, tag: &Q, now: Timestamp) -> Option<&mut V>
    where
        Q: Equivalent<T> + ?Sized,
    {
        let found = self.find_entry(hash, tag, self.span_at(now), &mut ())?;
        // SAFETY: just found.
        Some(unsafe { self.value_mut(&found) })
    }

    /// Returns the live binding of a tag, or creates one, given the hash of the tag. See
    /// [`find_or_create`](Self::find_or_create).
    ///
    /// # Errors
    ///
    /// [`Full`], with the tag, if the store is full of live bindings.
    #[inline]
    pub fn find_or_create_hashed(
        &mut self,
        hash: u64,
        tag: T,
        now: Timestamp,
        value: impl FnOnce() -> V,
    ) -> Result<Bound, Full<T>> {
        self.find_or_create_hashed_observed(hash, tag, now, value, &mut ())
    }

    #[inline]
    fn find_or_create_hashed_observed(
        &mut self,
        hash: u64,
        tag: T,
        now: Timestamp,
        value: impl FnOnce() -> V,
        observer: &mut impl Observer,
    ) -> Result<Bound, Full<T>> {
        let elapsed = self.follow(now);
        if let Some(found) = self.find_entry(hash, &tag, self.span_after(elapsed), observer) {
            return Ok(Bound { binding: self.binding(&found), is_new: false });
        }
        let created = self.create_after(elapsed, hash, tag, value, observer)?;
        Ok(Bound { binding: self.binding(&created), is_new: true })
    }

    /// Returns a mutable reference to the value of the live binding of a tag, and creates one if
    /// there is none, given the hash of the tag. See [`find_or_create`](Self::find_or_create).
    ///
    /// # Errors
    ///
    /// [`Full`], with the tag, if the store is full of live bindings.
    #[inline]
    pub fn get_or_insert_with_hashed(
        &mut self,
        hash: u64,
        tag: T,
        now: Timestamp,
        value: impl FnOnce() -> V,
    ) -> Result<&mut V, Full<T>> {
        let elapsed = self.follow(now);
        match self.find_entry(hash, &tag, self.span_after(elapsed), &mut ()) {
            // SAFETY: just found.
            Some(found) => Ok(unsafe { self.value_mut(&found) }),
            None => self.insert_absent(elapsed, hash, tag, value),
        }
    }

    /// Creates a binding for an absent tag. Out of line, so that lookups are inlined.
    #[inline(never)]
    fn insert_absent(
        &mut self,
        elapsed: u64,
        hash: u64,
        tag: T,
        value: impl FnOnce() -> V,
    ) -> Result<&mut V, Full<T>> {
        let created = self.create_after(elapsed, hash, tag, value, &mut ())?;
        // SAFETY: just created.
        Ok(unsafe { self.value_mut(&created) })
    }

    /// Returns the value of a tag, if it has a binding that expires within a span.
    #[inline(always)]
    pub(super) fn value_of<Q>(&self, hash: u64, tag: &Q, span: Span) -> Option<&V>
    where
        Q: Equivalent<T> + ?Sized,
    {
        let found = self.find_entry(hash, tag, span, &mut ())?;
        // SAFETY: the entry has a body, which is borrowed as `self` is.
        Some(unsafe { &found.body.as_ref().value })
    }

    /// Returns the entry of a tag, if it expires within a span.
    #[inline(always)]
    pub(super) fn find_entry<Q>(
        &self,
        hash: u64,
        tag: &Q,
        span: Span,
        observer: &mut impl Observer,
    ) -> Option<FoundEntry<T, V>>
    where
        Q: Equivalent<T> + ?Sized,
    {
        // `move`: values captured by reference would be forced into memory.
        self.index.find(hash, move |sequence| {
            let found = self.ring.find(sequence)?;
            observer.entry();
            observer.words(Entry::<T, V>::EXAMINED_WORDS);
            // SAFETY: the entry is not vacant: it has a body, which is borrowed as `self` is.
            let is_it =
                found.times.is_within(span) && tag.equivalent(unsafe { &found.body.as_ref().tag });
            is_it.then_some(found)
        })
    }

    /// Creates a binding for an absent tag, `elapsed` ticks after the last creation or cleaning.
    #[inline(always)]
    pub(super) fn create_after(
        &mut self,
        elapsed: u64,
        hash: u64,
        tag: T,
        value: impl FnOnce() -> V,
        observer: &mut impl Observer,
    ) -> Result<FoundEntry<T, V>, Full<T>> {
        match self.advance_simply(elapsed) {
            true => Ok(self.append(hash, tag, value(), observer)),
            false => self.create_otherwise(elapsed, hash, tag, value, observer),
        }
    }

    #[cold]
    #[inline(never)]
    fn create_otherwise(
        &mut self,
        elapsed: u64,
        hash: u64,
        tag: T,
        value: impl FnOnce() -> V,
        observer: &mut impl Observer,
    ) -> Result<FoundEntry<T, V>, Full<T>> {
        self.advance_by(elapsed);
        self.reclaim(RECLAIMED_PER_CREATION);
        self.create(hash, tag, value, observer)
    }

    /// Creates a binding for an absent tag, at the time to which the store has advanced. Expired
    /// bindings have been reclaimed.
    #[inline]
    pub(super) fn create(
        &mut self,
        hash: u64,
        tag: T,
        value: impl FnOnce() -> V,
        observer: &mut impl Observer,
    ) -> Result<FoundEntry<T, V>, Full<T>> {
        if self.ring.is_full() && !self.has_room_after_removals() {
            return Err(Full { refused: tag });
        }
        let value = value();
        let Some(position) = self.reused_slot() else {
            return Ok(self.append(hash, tag, value, observer));
        };
        observer.words(Entry::<T, V>::CREATED_WORDS);
        let sequence = (self.ring.oldest() + position as u64) as u32;
        let times = Times::new(self.index.insert(hash, sequence).link(), self.expiry());
        match self.ring.fill(position, times, Entry { tag, value }) {
            Some(body) => Ok(Found { sequence, times, body: body.into() }),
            None => unreachable!("the slot is vacant"),
        }
    }

    /// Appends a binding to a ring that is not full.
    #[inline(always)]
    fn append(
        &mut self,
        hash: u64,
        tag: T,
        value: V,
        observer: &mut impl Observer,
    ) -> FoundEntry<T, V> {
        observer.words(Entry::<T, V>::CREATED_WORDS);
        let sequence = self.ring.next() as u32;
        let times = Times::new(self.index.insert(hash, sequence).link(), self.expiry());
        let body = self.ring.append(times, Entry { tag, value }).into();
        Found { sequence, times, body }
    }

    /// Returns whether a full ring has a slot to reuse, or one at its front that is given up.
    #[cold]
    fn has_room_after_removals(&mut self) -> bool {
        self.pass_vacant();
        self.reclaim(RECLAIMED_PER_CREATION);
        !self.ring.is_full() || self.has_reusable_slot()
    }
}
