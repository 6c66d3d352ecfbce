//! Removal, and creation in the slots of removed bindings.

use core::hash::{BuildHasher, Hash};
use core::iter;

use equivalent::Equivalent;

use super::index::Location;
use super::ring::Ring;
use super::store::{Entry, EphemeralStore};
use crate::memory::Allocator;
use crate::timestamp::Timestamp;

/// Vacant slots at the front of the ring that each creation and removal passes.
const PASSED: usize = 2;

impl<T, V, S, A> EphemeralStore<T, V, S, A>
where
    T: Hash + Eq,
    S: BuildHasher,
    A: Allocator + Clone,
{
    /// Removes the live binding of a tag and returns its value, for example when a handshake is
    /// complete.
    ///
    /// If its slot was appended to the ring within the last sixteenth of a lifetime, a creation
    /// takes it, unless that is in the tick of the removed one. If three sixteenths have passed, it
    /// remains vacant until its lifetime ends, or all older ones have. See the
    /// [module](super#removal). Costs as [`find`](Self::find).
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
    ///     let now = Timestamp::from_secs(second);
    ///     open.find_or_create(second as u32, now, || "SYN").unwrap();
    ///     assert_eq!(open.remove(&(second as u32), now + Duration::from_millis(20)), Some("SYN"));
    ///     assert_eq!(open.remove(&(second as u32), now), None);
    /// }
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    pub fn remove<Q>(&mut self, tag: &Q, now: Timestamp) -> Option<V>
    where
        Q: Hash + Equivalent<T> + ?Sized,
    {
        self.remove_hashed(self.hash_of(tag), tag, now)
    }

    /// Removes the live bindings for which `keep` returns false. Bindings that were created with a
    /// hash of the caller stay: see [`retain_hashed`](Self::retain_hashed). O(capacity).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// for tag in 0..10 {
    ///     store.find_or_create(tag, Timestamp::ZERO, || tag % 3)?;
    /// }
    /// store.retain(Timestamp::from_secs(1), |_, value| *value == 0);
    /// assert!(store.iter(Timestamp::from_secs(1)).map(|(tag, _)| *tag).eq([0, 3, 6, 9]));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn retain(&mut self, now: Timestamp, mut keep: impl FnMut(&T, &mut V) -> bool) {
        self.extract_if(now, |tag, value| !keep(tag, value)).for_each(drop);
    }

    /// Returns an iterator that removes the live bindings for which `is_removed` returns true, in
    /// the order of their slots, oldest first. Bindings that it has not visited when it is dropped
    /// stay, and so do those that were created with a hash of the caller: see
    /// [`extract_if_hashed`](Self::extract_if_hashed). O(capacity) if it is run to its end.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// // Handshakes by their port; those of port 1 are answered at once.
    /// let mut open: EphemeralStore<u32, u16> = EphemeralStore::new(10, Duration::from_secs(9))?;
    /// for peer in 0..6 {
    ///     open.find_or_create(peer, Timestamp::ZERO, || peer as u16 % 2)?;
    /// }
    /// let answered = open.extract_if(Timestamp::from_secs(1), |_, port| *port == 1);
    /// assert!(answered.map(|(peer, _)| peer).eq([1, 3, 5]));
    /// assert_eq!(open.live(Timestamp::from_secs(1)), 3);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn extract_if(
        &mut self,
        now: Timestamp,
        is_removed: impl FnMut(&T, &mut V) -> bool,
    ) -> impl Iterator<Item = (T, V)> {
        self.extract_by(now, |hasher, tag| hasher.hash_one(tag), is_removed)
    }
}

impl<T: Eq, V, S, A: Allocator + Clone> EphemeralStore<T, V, S, A> {
    /// Removes the live binding of a tag and returns its value, given the hash of the tag. See
    /// [`remove`](Self::remove).
    pub fn remove_hashed<Q>(&mut self, hash: u64, tag: &Q, now: Timestamp) -> Option<V>
    where
        Q: Equivalent<T> + ?Sized,
    {
        self.advance_to(now);
        let found = self.find_entry(hash, tag, self.span_after(0), &mut ())?;
        let position = self.ring.position_of(found.sequence);
        Some(self.remove_at(position).value)
    }

    /// Removes the live bindings for which `keep` returns false, given the hashes under which they
    /// were created; those that are not found under their hash stay. O(capacity).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// for tag in 0..10_u64 {
    ///     store.find_or_create_hashed(tag, tag, Timestamp::ZERO, || tag % 3)?;
    /// }
    /// store.retain_hashed(Timestamp::ZERO, |tag| *tag, |_, value| *value == 0);
    /// assert!(store.iter(Timestamp::ZERO).map(|(tag, _)| *tag).eq([0, 3, 6, 9]));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn retain_hashed(
        &mut self,
        now: Timestamp,
        hash_of: impl FnMut(&T) -> u64,
        mut keep: impl FnMut(&T, &mut V) -> bool,
    ) {
        self.extract_if_hashed(now, hash_of, |tag, value| !keep(tag, value)).for_each(drop);
    }

    /// Returns an iterator that removes the live bindings for which `is_removed` returns true,
    /// given the hashes under which they were created; those that are not found under their hash
    /// stay. See [`extract_if`](Self::extract_if).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// for tag in 0..10_u64 {
    ///     store.find_or_create_hashed(tag, tag, Timestamp::ZERO, || tag % 3)?;
    /// }
    /// let thirds = store.extract_if_hashed(Timestamp::ZERO, |tag| *tag, |_, value| *value == 0);
    /// assert!(thirds.map(|(tag, _)| tag).eq([0, 3, 6, 9]));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn extract_if_hashed(
        &mut self,
        now: Timestamp,
        mut hash_of: impl FnMut(&T) -> u64,
        is_removed: impl FnMut(&T, &mut V) -> bool,
    ) -> impl Iterator<Item = (T, V)> {
        self.extract_by(now, move |_, tag| hash_of(tag), is_removed)
    }

    fn extract_by(
        &mut self,
        now: Timestamp,
        mut hash_of: impl FnMut(&S, &T) -> u64,
        mut is_removed: impl FnMut(&T, &mut V) -> bool,
    ) -> impl Iterator<Item = (T, V)> {
        self.advance_to(now);
        let mut sequence = self.ring.oldest();
        iter::from_fn(move || {
            // Vacant slots at the front may have been passed since the last removal.
            sequence = sequence.max(self.ring.oldest());
            while sequence < self.ring.next() {
                let position = (sequence - self.ring.oldest()) as usize;
                sequence += 1;
                if self.is_picked(position, &mut hash_of, &mut is_removed) {
                    let Entry { tag, value } = self.remove_at(position);
                    return Some((tag, value));
                }
            }
            None
        })
    }

    /// Returns whether there is a live binding at a position that is found under its hash, and for
    /// which `is_picked` returns true.
    fn is_picked(
        &mut self,
        position: usize,
        hash_of: &mut impl FnMut(&S, &T) -> u64,
        is_picked: &mut impl FnMut(&T, &mut V) -> bool,
    ) -> bool {
        let is_live = self.ring.times(position).is_some_and(|times| self.remaining(times) > 0);
        let Some(entry) = self.ring.get_mut(position).filter(|_| is_live) else { return false };
        if !is_picked(&entry.tag, &mut entry.value) {
            return false;
        }
        let Some(entry) = self.ring.get(position) else { return false };
        let hash = hash_of(&self.hasher, &entry.tag);
        let found = self.find_entry(hash, &entry.tag, self.span_after(0), &mut ());
        found.is_some_and(|found| self.ring.position_of(found.sequence) == position)
    }
}

impl<T, V, S, A: Allocator + Clone> EphemeralStore<T, V, S, A> {
    /// Removes a live binding at a position.
    fn remove_at(&mut self, position: usize) -> Entry<T, V> {
        let times = self.ring.times(position);
        let (Some(times), Some(entry)) = (times, self.ring.take(position)) else {
            unreachable!("a lookup returned the position");
        };
        self.index.remove(Location::from_link(times.link));
        let sequence = self.ring.oldest() + position as u64;
        let is_of_this_tick = times.expiry() == self.expiry();
        let ring = &mut self.ring;
        self.vacancies.add(sequence, is_of_this_tick, |slot, link| {
            ring.set_link(ring.position_of(slot), link);
        });
        self.pass_vacant();
        entry
    }

    /// Reclaims vacant slots at the front of the ring that are not reused any more.
    pub(super) fn pass_vacant(&mut self) {
        for _ in 0..PASSED {
            let is_vacant = self.ring.live() > 0 && self.ring.get(0).is_none();
            if is_vacant && self.vacancies.is_given_up(self.ring.oldest()) {
                self.ring.expire(1);
            }
        }
    }

    /// Returns whether a new binding can take the slot of a removed one.
    pub(super) fn has_reusable_slot(&self) -> bool {
        let expiry = self.expiry();
        let mut lists = self.vacancies.lists();
        lists.any(|list| reusable_link(&self.ring, list.first, expiry).is_some())
    }

    /// Returns the position of a vacant slot for a new binding, unless there is none to reuse.
    #[inline]
    pub(super) fn reused_slot(&mut self) -> Option<usize> {
        let expiry = self.expiry();
        let Self { ring, vacancies, .. } = self;
        if !ring.has_vacancies() {
            return None;
        }
        let position = ring.position_of(vacancies.take(|slot| reusable_link(ring, slot, expiry))?);
        vacancies.record_reuse(ring.oldest() + position as u64);
        Some(position)
    }
}

/// Returns the link of a vacant slot, unless a new binding would have the handle of the one that
/// was removed from it: one of the same tick, with this expiry time.
#[inline]
fn reusable_link<E, A: Allocator>(ring: &Ring<E, A>, slot: u32, expiry: u32) -> Option<u32> {
    let times = ring.times(ring.position_of(slot))?;
    (times.expiry() != expiry).then_some(times.link)
}
