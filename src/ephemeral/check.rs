//! Whether all that shall hold does.

use core::error::Error;
use core::fmt;
use core::hash::{BuildHasher, Hash};

use super::store::EphemeralStore;

/// An invariant that does not hold. It never happens; tests ask after each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// There are more bindings than there is room for.
    Count,
    /// The binding that so many of the living came before has expired, or expires before the one in front of it, or
    /// would live for longer than a lifetime.
    Expiry(usize),
    /// The binding that so many of the living came before is not on the chain of its tag.
    Unreachable(usize),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("there are more bindings than there can be"),
            Self::Expiry(place) => write!(f, "binding {place} of the ring expires at a wrong time"),
            Self::Unreachable(place) => write!(f, "binding {place} of the ring is on no chain"),
        }
    }
}

impl Error for Broken {}

impl<T, V, S> EphemeralStore<T, V, S>
where
    T: Hash + Eq,
    S: BuildHasher,
{
    /// Checks what holds of a store. O(n).
    ///
    /// # Errors
    ///
    /// The first thing that does not hold.
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
    pub fn validate(&self) -> Result<(), Broken> {
        if self.len() > self.capacity() {
            return Err(Broken::Count);
        }
        let mut before = 1;
        for (place, entry) in self.ring.iter_from(0).enumerate() {
            let left = self.left(entry);
            if !(before..=u64::from(self.lifetime.ticks)).contains(&left) {
                return Err(Broken::Expiry(place));
            }
            before = left;
            let hash = self.hash_of(&entry.tag);
            if self.order_of_tag(hash, &entry.tag, 0, &mut ()) != Some(place) {
                return Err(Broken::Unreachable(place));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use crate::hash::DefaultHashBuilder;
    use crate::timestamp::Timestamp;

    use super::super::heads::{Bit, Head, Heads};
    use super::*;

    const LIFETIME: Duration = Duration::from_nanos(100);

    /// Numbers of bindings pass that which half of them can count, and all heads have a number that comes again.
    #[test]
    fn numbers_go_round() {
        for heads in [Heads::Half, Heads::Double] {
            let hasher = DefaultHashBuilder::with_seed(1);
            let mut store = EphemeralStore::with_parts(128, LIFETIME, heads, hasher).unwrap();
            store.ring.begin_at((1 << 32) - 150);
            for now in 0..1000_u64 {
                let at = Timestamp::from_nanos(now);
                assert!(store.find_or_create(now, at, || now).unwrap().is_new);
                store.validate().unwrap();
                let living = (0..=now).rev().take_while(|tag| store.get(tag, at) == Some(tag));
                assert_eq!(living.count() as u64, (now + 1).min(100));
                assert_eq!(store.find(&(now + 1), at), None);
            }
        }
    }

    #[test]
    fn a_chain_ends_where_numbers_do_not_fall() {
        let mut store: EphemeralStore = EphemeralStore::new(16, LIFETIME).unwrap();
        (0..16).for_each(|tag| _ = store.find_or_create(tag, Timestamp::ZERO, || tag).unwrap());
        let first = store.ring.oldest() as u32;
        // As if the number of one that has left had come again: its own, and that of a newer one.
        for link in [5, 6] {
            store.ring.get_mut(5).unwrap().link = first + link;
            let bits = (0..32).map(|bit| Bit::of(bit << 59));
            let head = bits.fold(Head::EMPTY, |head, bit| head.with(first + 5, bit, true));
            store.heads.fill(head);
            assert_eq!(store.find(&100, Timestamp::ZERO), None);
        }
    }

    #[test]
    fn what_does_not_hold_is_found() {
        let made = || {
            let mut store: EphemeralStore = EphemeralStore::new(16, LIFETIME).unwrap();
            for tag in 0..16 {
                _ = store.find_or_create(tag, Timestamp::from_nanos(tag), || tag).unwrap();
            }
            store
        };
        assert_eq!(made().validate(), Ok(()));
        let mut store = made();
        store.heads.fill(Head::EMPTY);
        assert_eq!(store.validate(), Err(Broken::Unreachable(0)));
        let mut store = made();
        store.ring.get_mut(3).unwrap().expiry = 0;
        assert!(matches!(store.validate(), Err(Broken::Expiry(_))));
        let mut store = made();
        store.ring.get_mut(15).unwrap().expiry += 1;
        assert_eq!(store.validate(), Err(Broken::Expiry(15)));
    }
}
