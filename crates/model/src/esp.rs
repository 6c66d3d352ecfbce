//! Ephemeral state processing compared with its reference model.

pub mod interpreter;
pub mod repair;

use std::collections::BTreeMap;
use std::time::Duration;

use flowtable::papers::esp::{Action, EspPacket, Site, execute};
use flowtable::{EphemeralStore, Timestamp};

use self::interpreter::Interpreter;

/// A store whose bindings live for 1000 ns, and its reference model.
pub struct CheckedProcessor {
    pub store: EphemeralStore,
    pub model: Interpreter,
}

impl CheckedProcessor {
    pub const LIFETIME: u64 = 1000;

    pub fn new(capacity: usize) -> Self {
        let lifetime = Duration::from_nanos(Self::LIFETIME);
        let store = EphemeralStore::new(capacity, lifetime).expect("there is memory");
        let model = Interpreter::new(store.capacity(), Self::LIFETIME);
        Self { store, model }
    }

    /// Executes the instruction of a packet with both and compares the results.
    pub fn execute(&mut self, packet: EspPacket, site: Site, now: u64) -> (Action, EspPacket) {
        let (mut ours, mut theirs) = (packet, packet);
        let verdict = execute(&mut self.store, &mut ours, site, Timestamp::from_nanos(now));
        let expected = self.model.execute(&mut theirs, site, now);
        // The contents of a dropped packet do not matter; ours is unchanged.
        let theirs = if expected == Action::Drop { packet } else { theirs };
        assert_eq!((verdict, ours), (expected, theirs), "{packet:?} at {now}");
        self.check(now);
        (verdict, ours)
    }

    pub fn check(&self, now: u64) {
        let living = self.store.iter(Timestamp::from_nanos(now));
        let living: BTreeMap<u64, u64> = living.map(|(tag, value)| (*tag, *value)).collect();
        assert_eq!(living, self.model.living(now));
        self.store.validate().expect("the store is sound");
    }
}
