//! Removal, and creation in the slots of removed bindings.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::store::{Entry, EphemeralStore};
use crate::timestamp::Timestamp;

/// Vacant slots at the front of the ring that each creation and removal passes.
const PASSED: usize = 2;

impl<T: Eq, V, S> EphemeralStore<T, V, S> {
    /// Removes the live binding of a tag and returns its value, given the hash of the tag. See
    /// [`remove`](Self::remove).
    pub fn remove_hashed<Q>(&mut self, hash: u64, tag: &Q, now: Timestamp) -> Option<V>
    where
        Q: Equivalent<T> + ?Sized,
    {
        self.advance_to(now);
        let position = self.position_of_tag(hash, tag, 0, &mut ())?;
        Some(self.remove_at(hash, position).value)
    }
}

impl<T: Hash + Eq, V, S: BuildHasher> EphemeralStore<T, V, S> {
    /// Removes the live binding of a tag and returns its value: what it stood for is complete.
    ///
    /// If its slot was appended to the ring within the last sixteenth of a lifetime, the next
    /// creation takes it. If three sixteenths have passed, it remains vacant until its lifetime
    /// ends, or all older ones have. See the [module](super#removal). Costs as
    /// [`find`](Self::find).
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

    /// Removes the live bindings for which `keep` returns false. O(capacity).
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
        self.advance_to(now);
        let mut sequence = self.ring.oldest();
        while sequence < self.ring.next() {
            let position = (sequence - self.ring.oldest()) as usize;
            sequence += 1;
            let is_live = self.ring.times(position).is_some_and(|times| self.remaining(times) > 0);
            let Some(entry) = self.ring.get_mut(position).filter(|_| is_live) else { continue };
            if !keep(&entry.tag, &mut entry.value) {
                let hash = self.hasher.hash_one(&entry.tag);
                drop(self.remove_at(hash, position));
            }
            // Vacant slots at the front may have been passed.
            sequence = sequence.max(self.ring.oldest());
        }
    }
}

impl<T, V, S> EphemeralStore<T, V, S> {
    /// Removes a live binding at a position, given the hash of its tag.
    fn remove_at(&mut self, hash: u64, position: usize) -> Entry<T, V> {
        self.unlink(self.chain_of(hash), position);
        let (sequence, now) = (self.ring.oldest() + position as u64, self.now as u32);
        let times = self.ring.times(position);
        let Some((entry, times)) = self.ring.take(position).zip(times) else {
            unreachable!("a lookup returned the position");
        };
        // A binding of the same tick in the same slot would have the same handle.
        let is_of_now = times.expiry == now.wrapping_add(self.lifetime.ticks);
        if let Some(link) = (!is_of_now).then(|| self.vacancies.add(sequence)).flatten() {
            self.ring.set_link(position, link);
        }
        self.pass_vacant();
        entry
    }

    /// Takes a live entry out of its chain, so that nothing links to its slot.
    fn unlink(&mut self, chain: usize, position: usize) {
        let sequence = (self.ring.oldest() + position as u64) as u32;
        let Some(link) = self.ring.times(position).map(|times| times.link) else { return };
        let head = &mut self.heads[chain];
        if head.newest() == sequence {
            *head = head.with_newest(link);
            return;
        }
        let mut newer = self.ring.position_of(head.newest());
        while let Some(times) = self.ring.times(newer) {
            if times.link == sequence {
                return self.ring.set_link(newer, link);
            }
            newer = self.ring.position_of(times.link);
        }
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

    /// Returns whether new bindings can take the slot of a removed one.
    pub(super) fn has_reusable_slot(&self) -> bool {
        self.vacancies.lists().any(|list| list.is_some())
    }

    /// Returns the position of a vacant slot for a new binding, unless there is none to reuse.
    #[inline]
    pub(super) fn reused_slot(&mut self) -> Option<usize> {
        let Self { ring, vacancies, .. } = self;
        if !ring.has_vacancies() {
            return None;
        }
        let link_of = |slot| ring.times(ring.position_of(slot)).map_or(slot, |times| times.link);
        let position = ring.position_of(vacancies.take(link_of)?);
        vacancies.record_reuse(ring.oldest() + position as u64);
        Some(position)
    }
}
