//! Finding a binding by its tag, and creating it.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::Full;
use super::heads::Bit;
use super::store::{Binding, Entry, EphemeralStore};
use crate::probes::Observer;
use crate::timestamp::Timestamp;

/// Expired bindings that are reclaimed with each creation. With one, a backlog would never become less.
const RECLAIMED_AT_ONCE: usize = 2;

/// What [`find_or_create`](EphemeralStore::find_or_create) has found or created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The living binding of the tag.
    pub binding: Binding,
    /// Whether it was created now.
    pub is_new: bool,
}

impl<T, V, S> EphemeralStore<T, V, S>
where
    T: Hash + Eq,
    S: BuildHasher,
{
    /// The living binding of a tag.
    ///
    /// O(1 + c), where c is how many newer ones are in its chain: [a half of how full](super#price) chains are.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore<&str, u32> = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// let at = Timestamp::from_secs;
    /// let created = store.find_or_create("tag", at(0), || 1)?;
    /// let found = store.find_or_create("tag", at(5), || unreachable!("it is there"))?;
    /// assert_eq!((created.is_new, found.is_new), (true, false));
    /// assert_eq!(store.find("tag", at(9)), Some(created.binding));
    /// // Nothing has made it live longer.
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

    /// The same, telling the observer what it touches: each entry examined, and for each five words, if tags
    /// have two.
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
        let order = self.order_of_tag(self.hash_of(tag), tag, self.elapsed(now), observer)?;
        Some(self.binding(order))
    }

    /// The value of a tag, if it has a living binding. Costs as [`find`](Self::find).
    #[must_use]
    #[inline]
    pub fn get<Q>(&self, tag: &Q, now: Timestamp) -> Option<&V>
    where
        Q: Hash + Equivalent<T> + ?Sized,
    {
        self.get_hashed(self.hash_of(tag), tag, self.elapsed(now))
    }

    /// The value of a tag, to change, if it has a living binding. It does not live longer.
    /// Costs as [`find`](Self::find).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// // The SYNs of a host that it has sent within a second.
    /// let mut store: EphemeralStore<[u8; 4], u32> = EphemeralStore::new(1000, Duration::from_secs(1))?;
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
        let order = self.order_of_tag(self.hash_of(tag), tag, self.elapsed(now), &mut ())?;
        Some(&mut self.ring.get_mut(order)?.value)
    }

    /// The living binding of a tag. If there is none, one with this value is created, and lives for a lifetime from
    /// now on.
    ///
    /// Two expired bindings are reclaimed with each one that is created, of those that are not yet. Costs as
    /// [`find`](Self::find), and O(log n) where many have expired at once.
    ///
    /// # Errors
    ///
    /// All that there is room for are alive. Nothing is created, and no value is made.
    #[inline]
    pub fn find_or_create(
        &mut self,
        tag: T,
        now: Timestamp,
        value: impl FnOnce() -> V,
    ) -> Result<Bound, Full> {
        self.find_or_create_observed(tag, now, value, &mut ())
    }

    /// The same, telling the observer what it touches: five words more than [`find`](Self::find_observed) if it
    /// creates one, and tags have two.
    ///
    /// # Errors
    ///
    /// All that there is room for are alive. Nothing is created, and no value is made.
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
    /// // What is known by its binding is not searched for.
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
        if let Some(order) = self.order_of_tag(hash, &tag, self.elapsed(now), observer) {
            return Ok(Bound { binding: self.binding(order), is_new: false });
        }
        self.pass_to(now);
        self.create(hash, tag, value, observer)?;
        Ok(Bound { binding: self.binding(self.ring.living() - 1), is_new: true })
    }

    /// The value of the living binding of a tag, to change; one is created if there is none:
    /// see [`find_or_create`](Self::find_or_create).
    ///
    /// # Errors
    ///
    /// All that there is room for are alive. Nothing is created, and no value is made.
    #[inline]
    pub fn get_or_insert_with(
        &mut self,
        tag: T,
        now: Timestamp,
        value: impl FnOnce() -> V,
    ) -> Result<&mut V, Full> {
        let hash = self.hash_of(&tag);
        match self.order_of_tag(hash, &tag, self.elapsed(now), &mut ()) {
            Some(order) => Ok(self.value_mut(order)),
            None => {
                self.pass_to(now);
                self.create(hash, tag, value, &mut ())
            }
        }
    }

    #[inline]
    pub(super) fn hash_of<Q: Hash + ?Sized>(&self, tag: &Q) -> u64 {
        self.hasher.hash_one(tag)
    }

    /// The place of the head of the chain of this hash.
    #[inline]
    pub(super) fn chain_of(&self, hash: u64) -> usize {
        hash as usize & (self.heads.len() - 1)
    }

    /// The binding that so many of the ring's living came before.
    #[inline]
    fn binding(&self, order: usize) -> Binding {
        Binding(self.ring.oldest() + order as u64)
    }

    /// The value of a binding that is there.
    #[inline]
    pub(super) fn value_mut(&mut self, order: usize) -> &mut V {
        match self.ring.get_mut(order) {
            Some(entry) => &mut entry.value,
            None => unreachable!("it was found, and nothing has left since"),
        }
    }

    #[inline]
    pub(super) fn get_hashed<Q>(&self, hash: u64, tag: &Q, elapsed: u64) -> Option<&V>
    where
        Q: Equivalent<T> + ?Sized,
    {
        Some(&self.ring.get(self.order_of_tag(hash, tag, elapsed, &mut ())?)?.value)
    }

    /// How many of the ring's living came before the binding of a tag, if that is alive so many ticks after the last
    /// creation or cleaning.
    #[inline]
    pub(super) fn order_of_tag<Q>(
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
        if !head.may_have(Bit::of(hash)) {
            return None;
        }
        let (mut newer, mut number) = (self.ring.living(), head.newest());
        loop {
            let order = self.ring.order_of(number);
            // Neither one that has left, nor one of another chain that has got its number.
            if order >= newer {
                return None;
            }
            let entry = self.ring.get(order)?;
            observer.entry();
            observer.words(Entry::<T, V>::EXAMINED_WORDS);
            // All that follow are older still.
            if self.left(entry) <= elapsed {
                return None;
            }
            if tag.equivalent(&entry.tag) {
                return Some(order);
            }
            (newer, number) = (order, entry.link);
        }
    }

    /// Creates a binding for a tag that has none, at the time to which the store has passed.
    #[inline]
    pub(super) fn create(
        &mut self,
        hash: u64,
        tag: T,
        value: impl FnOnce() -> V,
        observer: &mut impl Observer,
    ) -> Result<&mut V, Full> {
        self.ring.reclaim(RECLAIMED_AT_ONCE);
        if self.ring.is_full() {
            return Err(Full);
        }
        let value = value();
        observer.words(Entry::<T, V>::CREATED_WORDS);
        let (chain, number) = (self.chain_of(hash), self.ring.next() as u32);
        let head = &mut self.heads[chain];
        let link = head.newest();
        let has_living = self.ring.order_of(link) < self.ring.living();
        *head = head.with(number, Bit::of(hash), has_living);
        let expiry = (self.now as u32).wrapping_add(self.lifetime.ticks);
        let entry = self.ring.push(Entry { tag, link, expiry, value }).ok_or(Full)?;
        Ok(&mut entry.value)
    }
}
