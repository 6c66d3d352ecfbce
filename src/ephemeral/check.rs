//! Validation of the invariants of a store.

use alloc::format;
use core::hash::{BuildHasher, Hash};

use super::index::Location;
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
        self.validate_index()?;
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
            let found = self.find_entry(hash, &entry.tag, self.span_after(0), &mut ());
            let found = found.map(|found| self.ring.position_of(found.sequence));
            ensure(found == Some(position), || {
                format!("live binding {position} is not found by its tag")
            })?;
        }
        Ok(())
    }

    /// Checks that the index has the bindings of the ring, live and expired, and no others.
    fn validate_index(&self) -> Result<(), InvariantError> {
        for (sequence, link) in self.ring.links(true) {
            let location = Location::from_link(link);
            let is_there = self.index.number_at(location) == Some(sequence as u32);
            ensure(is_there, || format!("entry {sequence} is not in the index"))?;
        }
        let count = self.index.count();
        ensure(count == self.len(), || format!("the index has {count} bindings"))?;
        let locations = self.ring.links(true).map(|(_, link)| Location::from_link(link));
        let are_passed = self.index.are_passed(locations);
        ensure(are_passed, || "a group has not counted the bindings that have passed it")
    }

    /// Checks that the slots that may be reused are vacant, and that each is in one list.
    fn validate_vacancies(&self) -> Result<(), InvariantError> {
        let mut count = 0;
        for list in self.vacancies.lists() {
            let mut next = Some(list.first);
            while let Some(sequence) = next {
                let position = self.ring.position_of(sequence);
                let times = self.ring.times(position).filter(|_| self.ring.get(position).is_none());
                ensure(times.is_some(), || format!("the slot of entry {sequence} is not vacant"))?;
                next = times.map(|times| times.link).filter(|_| sequence != list.last);
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

    use super::*;

    const LIFETIME: Duration = Duration::from_nanos(100);

    /// The sequence numbers wrap around in their lower half.
    #[test]
    fn sequence_numbers_wrap_around() {
        let hasher = DefaultHashBuilder::with_seed(1);
        let mut store = EphemeralStore::with_parts(128, LIFETIME, hasher).unwrap();
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

    #[test]
    fn broken_invariants_are_detected() {
        let filled = || {
            let mut store: EphemeralStore = EphemeralStore::new(16, LIFETIME).unwrap();
            for tag in 0..16 {
                _ = store.find_or_create(tag, Timestamp::from_nanos(tag), || tag).unwrap();
            }
            store
        };
        let error = |store: &EphemeralStore| store.validate().unwrap_err().to_string();
        assert_eq!(filled().validate(), Ok(()));
        let mut store = filled();
        let (sequence, link) = store.ring.links(true).next().unwrap();
        store.index.remove(Location::from_link(link));
        assert_eq!(error(&store), format!("entry {sequence} is not in the index"));
        let mut store = filled();
        store.index.insert(7, 7);
        assert_eq!(error(&store), "the index has 17 bindings");
        let mut store = filled();
        assert!(store.find_or_create(99, Timestamp::from_nanos(16), || 0).is_err());
        let mut store = filled();
        store.ring.set_expiry(3, 0);
        assert!(error(&store).ends_with("has a wrong expiry time"));
        let mut store = filled();
        for tag in [14, 13] {
            assert_eq!(store.remove(&tag, Timestamp::from_nanos(15)), Some(tag));
        }
        assert_eq!(store.validate(), Ok(()));
        store.ring.set_link(13, 9);
        assert_eq!(error(&store), "the slot of entry 9 is not vacant");
        let mut store = filled();
        store.ring.set_expiry(15, 2 * 116);
        assert_eq!(error(&store), "live binding 15 has a wrong expiry time");
    }
}
