//! Lookup of a binding by its tag, and creation.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::Full;
use super::heads::Bit;
use super::store::{Binding, Entry, EphemeralStore};
use crate::probes::Observer;
use crate::timestamp::Timestamp;

/// Expired bindings that each creation reclaims. With one, a backlog would never shrink.
const RECLAIMED_PER_CREATION: usize = 2;

/// The result of [`find_or_create`](EphemeralStore::find_or_create).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bound {
    /// The live binding of the tag.
    pub binding: Binding,
    /// Whether this call created the binding.
    pub is_new: bool,
}

impl<T, V, S> EphemeralStore<T, V, S>
where
    T: Hash + Eq,
    S: BuildHasher,
{
    /// Returns the live binding of a tag.
    ///
    /// O(1 + c), where c is the number of newer bindings in its chain: [half of the
    /// load](super#cost) of the chains.
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
        let position = self.position_of_tag(self.hash_of(tag), tag, self.elapsed(now), observer)?;
        Some(self.binding(position))
    }

    /// Returns the value of a tag, if it has a live binding. Costs as [`find`](Self::find).
    #[must_use]
    #[inline]
    pub fn get<Q>(&self, tag: &Q, now: Timestamp) -> Option<&V>
    where
        Q: Hash + Equivalent<T> + ?Sized,
    {
        self.get_hashed(self.hash_of(tag), tag, self.elapsed(now))
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
        let elapsed = self.elapsed(now);
        let position = self.position_of_tag(self.hash_of(tag), tag, elapsed, &mut ())?;
        Some(&mut self.ring.get_mut(position)?.value)
    }

    /// Returns the live binding of a tag, or creates one with this value, which lives for one
    /// lifetime from now.
    ///
    /// Each creation also reclaims up to two expired bindings. Costs as [`find`](Self::find), and
    /// O(log n) where many bindings have expired at once.
    ///
    /// # Errors
    ///
    /// [`Full`] if the store is full of live bindings. Nothing is created, and `value` is not
    /// called.
    #[inline]
    pub fn find_or_create(
        &mut self,
        tag: T,
        now: Timestamp,
        value: impl FnOnce() -> V,
    ) -> Result<Bound, Full> {
        self.find_or_create_observed(tag, now, value, &mut ())
    }

    /// Returns the live binding of a tag, or creates one, and reports the accesses to the observer:
    /// five words more than [`find`](Self::find_observed) for a creation, if tags have two.
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
    ) -> Result<Bound, Full> {
        let hash = self.hash_of(&tag);
        if let Some(position) = self.position_of_tag(hash, &tag, self.elapsed(now), observer) {
            return Ok(Bound { binding: self.binding(position), is_new: false });
        }
        self.advance_to(now);
        self.create(hash, tag, value, observer)?;
        Ok(Bound { binding: self.binding(self.ring.live() - 1), is_new: true })
    }

    /// Returns a mutable reference to the value of the live binding of a tag, and creates one if
    /// there is none: see [`find_or_create`](Self::find_or_create).
    ///
    /// # Errors
    ///
    /// [`Full`] if the store is full of live bindings. Nothing is created, and `value` is not
    /// called.
    #[inline]
    pub fn get_or_insert_with(
        &mut self,
        tag: T,
        now: Timestamp,
        value: impl FnOnce() -> V,
    ) -> Result<&mut V, Full> {
        let hash = self.hash_of(&tag);
        match self.position_of_tag(hash, &tag, self.elapsed(now), &mut ()) {
            Some(position) => Ok(self.value_mut(position)),
            None => {
                self.advance_to(now);
                self.create(hash, tag, value, &mut ())
            }
        }
    }

    #[inline]
    pub(super) fn hash_of<Q: Hash + ?Sized>(&self, tag: &Q) -> u64 {
        self.hasher.hash_one(tag)
    }

    /// Returns the index of the head of the chain of this hash.
    #[inline]
    pub(super) fn chain_of(&self, hash: u64) -> usize {
        hash as usize & (self.heads.len() - 1)
    }

    /// Returns the binding at a position of the live entries.
    #[inline]
    fn binding(&self, position: usize) -> Binding {
        Binding(self.ring.oldest() + position as u64)
    }

    /// Returns a mutable reference to the value of a live binding.
    #[inline]
    pub(super) fn value_mut(&mut self, position: usize) -> &mut V {
        match self.ring.get_mut(position) {
            Some(entry) => &mut entry.value,
            None => unreachable!("a lookup returned the position, and no entry has expired since"),
        }
    }

    #[inline]
    pub(super) fn get_hashed<Q>(&self, hash: u64, tag: &Q, elapsed: u64) -> Option<&V>
    where
        Q: Equivalent<T> + ?Sized,
    {
        Some(&self.ring.get(self.position_of_tag(hash, tag, elapsed, &mut ())?)?.value)
    }

    /// Returns the position among the live entries of the binding of a tag, if it is live `elapsed`
    /// ticks after the last creation or cleaning.
    #[inline]
    pub(super) fn position_of_tag<Q>(
        &self,
        hash: u64,
        tag: &Q,
        elapsed: u64,
        observer: &mut impl Observer,
    ) -> Option<usize>
    where
        Q: Equivalent<T> + ?Sized,
    {
        let head = self.heads[self.chain_of(hash)];
        if !head.may_contain(Bit::of(hash)) {
            return None;
        }
        let (mut previous, mut sequence) = (self.ring.live(), head.newest());
        loop {
            let position = self.ring.position_of(sequence);
            // Excludes expired entries, and entries of other chains that reuse a sequence number.
            if position >= previous {
                return None;
            }
            let entry = self.ring.get(position)?;
            observer.entry();
            observer.words(Entry::<T, V>::EXAMINED_WORDS);
            // The rest of the chain is older and has expired as well.
            if self.remaining(entry) <= elapsed {
                return None;
            }
            if tag.equivalent(&entry.tag) {
                return Some(position);
            }
            (previous, sequence) = (position, entry.link);
        }
    }

    /// Creates a binding for an absent tag, at the time to which the store has advanced.
    #[inline]
    pub(super) fn create(
        &mut self,
        hash: u64,
        tag: T,
        value: impl FnOnce() -> V,
        observer: &mut impl Observer,
    ) -> Result<&mut V, Full> {
        self.ring.reclaim(RECLAIMED_PER_CREATION);
        if self.ring.is_full() {
            return Err(Full);
        }
        let value = value();
        observer.words(Entry::<T, V>::CREATED_WORDS);
        let (chain, sequence) = (self.chain_of(hash), self.ring.next() as u32);
        let head = &mut self.heads[chain];
        let link = head.newest();
        let has_live = self.ring.position_of(link) < self.ring.live();
        *head = head.with(sequence, Bit::of(hash), has_live);
        let expiry = (self.now as u32).wrapping_add(self.lifetime.ticks);
        let entry = self.ring.push(Entry { tag, link, expiry, value }).ok_or(Full)?;
        Ok(&mut entry.value)
    }
}
