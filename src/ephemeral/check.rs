//! Validation of the invariants of a store.

use alloc::format;
use core::hash::{BuildHasher, Hash};

use super::store::EphemeralStore;
use super::vacancies::Vacancies;
use crate::invariant::{InvariantError, ensure};
use crate::memory::Allocator;

impl<T, V, S, A> EphemeralStore<T, V, S, A>
where
    T: Hash + Eq,
    S: BuildHasher,
    A: Allocator + Clone,
{
    /// Checks the invariants of the store, for tests. O(n).
    ///
    /// # Errors
    ///
    /// The first invariant that is broken: a bug in this crate.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(4, Duration::from_secs(10))?;
    /// for tag in 0..10 {
    ///     store.find_or_create(tag, Timestamp::from_secs(4 * tag), || 0)?;
    ///     assert_eq!(store.validate(), Ok(()));
    /// }
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        self.validate_hashed(|tag| self.hash_of(tag))
    }
}

impl<T: Eq, V, S, A: Allocator + Clone> EphemeralStore<T, V, S, A> {
    /// Checks the invariants of a store whose bindings were created with hashes of the caller.
    pub(crate) fn validate_hashed(
        &self,
        hash_of: impl Fn(&T) -> u64,
    ) -> Result<(), InvariantError> {
        ensure(self.len() <= self.capacity(), || "the ring has more bindings than its capacity")?;
        ensure(self.ring.are_vacancies_counted(), || "vacant slots are not counted")?;
        self.validate_vacancies()?;
        let lifetime = self.lifetime.ticks;
        let disorder = self.vacancies.disorder(self.ring.oldest(), lifetime);
        // Expired ones may have waited for one that took the place of another.
        let mut latest = -Vacancies::longest_wait(lifetime);
        for position in 0..self.ring.live() {
            let Some(times) = self.ring.times(position) else { unreachable!("it is live") };
            let until = self.until_expiry(times);
            let in_order = (latest - disorder..=i64::from(lifetime)).contains(&until);
            ensure(in_order, || format!("live binding {position} has a wrong expiry time"))?;
            latest = latest.max(until);
            let Some(entry) = self.ring.get(position).filter(|_| until > 0) else { continue };
            let hash = hash_of(&entry.tag);
            let found = self.find_entry(hash, &entry.tag, 0, &mut ());
            let found = found.map(|found| self.ring.position_of(found.sequence));
            ensure(found == Some(position), || {
                format!("live binding {position} is not on the chain of its tag")
            })?;
        }
        Ok(())
    }

    /// Checks that the slots that may be reused are vacant, and that each is in one list.
    fn validate_vacancies(&self) -> Result<(), InvariantError> {
        let mut count = 0;
        for first in self.vacancies.lists() {
            let mut next = first;
            while let Some(sequence) = next {
                let position = self.ring.position_of(sequence);
                let times = self.ring.times(position).filter(|_| self.ring.get(position).is_none());
                ensure(times.is_some(), || format!("the slot of entry {sequence} is not vacant"))?;
                next = times.map(|times| times.link).filter(|link| *link != sequence);
                count += 1;
                ensure(count <= self.capacity(), || "a list of vacant slots is a circle")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use core::time::Duration;

    use crate::hash::DefaultHashBuilder;
    use crate::timestamp::Timestamp;

    use super::super::heads::{Bits, Head, Heads};
    use super::*;

    const LIFETIME: Duration = Duration::from_nanos(100);

    /// The sequence numbers wrap around in their lower half, and all heads hold one that is used
    /// again.
    #[test]
    fn sequence_numbers_wrap_around() {
        for heads in [Heads::Half, Heads::Double, Heads::Paired] {
            let hasher = DefaultHashBuilder::with_seed(1);
            let mut store = EphemeralStore::with_parts(128, LIFETIME, heads, hasher).unwrap();
            store.ring.set_next_sequence((1 << 32) - 150);
            for now in 0..1000_u64 {
                let at = Timestamp::from_nanos(now);
                assert!(store.find_or_create(now, at, || now).unwrap().is_new);
                store.validate().unwrap();
                let live = (0..=now).rev().take_while(|tag| store.get(tag, at) == Some(tag));
                assert_eq!(live.count() as u64, (now + 1).min(100));
                assert_eq!(store.find(&(now + 1), at), None);
            }
        }
    }

    #[test]
    fn a_chain_ends_after_as_many_steps_as_there_are_bindings() {
        let mut store: EphemeralStore = EphemeralStore::new(16, LIFETIME).unwrap();
        (0..16).for_each(|tag| _ = store.find_or_create(tag, Timestamp::ZERO, || tag).unwrap());
        let first = store.ring.oldest() as u32;
        // A stale link that matches a live entry after a wrap: itself, and a newer one.
        for link in [5, 6] {
            store.ring.set_link(5, first + link);
            let bits = (0..1000).map(Bits::of);
            let head = bits.fold(Head::EMPTY, |head, bit| head.with(first + 5, bit, true));
            store.chains.fill(head);
            assert_eq!(store.find(&100, Timestamp::ZERO), None);
        }
    }

    #[test]
    fn broken_invariants_are_detected() {
        // The first fault depends on the chains, and so on the seed.
        let filled = || {
            let hasher = DefaultHashBuilder::with_seed(1);
            let store = EphemeralStore::with_parts(16, LIFETIME, Heads::Double, hasher);
            let mut store: EphemeralStore = store.unwrap();
            for tag in 0..16 {
                _ = store.find_or_create(tag, Timestamp::from_nanos(tag), || tag).unwrap();
            }
            store
        };
        let error = |store: &EphemeralStore| store.validate().unwrap_err().to_string();
        assert_eq!(filled().validate(), Ok(()));
        let mut store = filled();
        store.chains.fill(Head::EMPTY);
        assert_eq!(error(&store), "live binding 0 is not on the chain of its tag");
        let mut store = filled();
        store.ring.set_expiry(3, 0);
        assert!(error(&store).ends_with("has a wrong expiry time"));
        let mut store = filled();
        assert_eq!(store.remove(&14, Timestamp::from_nanos(15)), Some(14));
        assert_eq!(store.validate(), Ok(()));
        store.ring.set_link(14, 9);
        assert_eq!(error(&store), "the slot of entry 9 is not vacant");
        let mut store = filled();
        store.ring.set_expiry(15, 2 * 116);
        assert_eq!(error(&store), "live binding 15 has a wrong expiry time");
    }
}
