//! Validation of the invariants of a store.

use alloc::format;
use core::hash::{BuildHasher, Hash};

use super::store::EphemeralStore;
use crate::invariant::{InvariantError, ensure};

impl<T, V, S> EphemeralStore<T, V, S>
where
    T: Hash + Eq,
    S: BuildHasher,
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
        ensure(self.len() <= self.capacity(), || "the ring has more bindings than its capacity")?;
        let mut previous = 1;
        for (position, entry) in self.ring.iter_from(0).enumerate() {
            let remaining = self.remaining(entry);
            let in_order = (previous..=u64::from(self.lifetime.ticks)).contains(&remaining);
            ensure(in_order, || format!("live binding {position} has a wrong expiry time"))?;
            previous = remaining;
            let hash = self.hash_of(&entry.tag);
            let found = self.position_of_tag(hash, &entry.tag, 0, &mut ());
            ensure(found == Some(position), || {
                format!("live binding {position} is not on the chain of its tag")
            })?;
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

    use super::super::heads::{Bit, Head, Heads};
    use super::*;

    const LIFETIME: Duration = Duration::from_nanos(100);

    /// The sequence numbers wrap around in their lower half, and all heads hold one that is used
    /// again.
    #[test]
    fn sequence_numbers_wrap_around() {
        for heads in [Heads::Half, Heads::Double] {
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
    fn a_chain_ends_where_sequence_numbers_do_not_decrease() {
        let mut store: EphemeralStore = EphemeralStore::new(16, LIFETIME).unwrap();
        (0..16).for_each(|tag| _ = store.find_or_create(tag, Timestamp::ZERO, || tag).unwrap());
        let first = store.ring.oldest() as u32;
        // A stale link that matches a live entry after a wrap: itself, and a newer one.
        for link in [5, 6] {
            store.ring.get_mut(5).unwrap().link = first + link;
            let bits = (0..32).map(|bit| Bit::of(bit << 59));
            let head = bits.fold(Head::EMPTY, |head, bit| head.with(first + 5, bit, true));
            store.heads.fill(head);
            assert_eq!(store.find(&100, Timestamp::ZERO), None);
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
        store.heads.fill(Head::EMPTY);
        assert_eq!(error(&store), "live binding 0 is not on the chain of its tag");
        let mut store = filled();
        store.ring.get_mut(3).unwrap().expiry = 0;
        assert!(error(&store).ends_with("has a wrong expiry time"));
        let mut store = filled();
        store.ring.get_mut(15).unwrap().expiry += 1;
        assert_eq!(error(&store), "live binding 15 has a wrong expiry time");
    }
}
