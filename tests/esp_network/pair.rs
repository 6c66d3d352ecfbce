//! The crate beside the naive twin.

use std::collections::BTreeMap;
use std::time::Duration;

use flowtable::esp::{Packet, Site, Verdict, execute};
use flowtable::{EphemeralStore, Timestamp};

use super::twin::Twin;

/// A store whose bindings live for a thousand nanoseconds, and its twin.
pub(crate) struct Pair {
    pub(crate) store: EphemeralStore,
    pub(crate) twin: Twin,
}

impl Pair {
    pub(crate) const LIFETIME: u64 = 1000;

    pub(crate) fn new(capacity: usize) -> Self {
        let lifetime = Duration::from_nanos(Self::LIFETIME);
        let store = EphemeralStore::new(capacity, lifetime).expect("there is memory");
        let twin = Twin::new(store.capacity(), Self::LIFETIME);
        Self { store, twin }
    }

    /// What becomes of the packet, which is the same with both.
    pub(crate) fn execute(&mut self, packet: Packet, site: Site, now: u64) -> (Verdict, Packet) {
        let (mut ours, mut theirs) = (packet, packet);
        let verdict = execute(&mut self.store, &mut ours, site, Timestamp::from_nanos(now));
        let expected = self.twin.execute(&mut theirs, site, now);
        // What is dropped is seen by nobody; ours is as it came.
        let theirs = if expected == Verdict::Drop { packet } else { theirs };
        assert_eq!((verdict, ours), (expected, theirs), "{packet:?} at {now}");
        self.check(now);
        (verdict, ours)
    }

    pub(crate) fn check(&self, now: u64) {
        let living = self.store.iter(Timestamp::from_nanos(now));
        let living: BTreeMap<u64, u64> = living.map(|(tag, value)| (*tag, *value)).collect();
        assert_eq!(living, self.twin.living(now));
        self.store.validate().expect("the store is sound");
    }
}
