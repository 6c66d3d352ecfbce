//! Invariants of a flow cache.

use alloc::format;
use core::fmt::Debug;
use core::hash::BuildHasher;

use super::FlowCache;
use super::packet::record::{Flow, Marks};
use super::packet::state::Class;
use super::store::slots::KeyId;
use super::time::timeouts::NEVER;
use crate::eviction::Eviction;
use crate::invariant::{InvariantError, ensure};
use crate::key::flow::FlowName;
use crate::memory::Allocator;

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Checks all invariants. O(n): for tests.
    ///
    /// # Errors
    ///
    /// If an invariant is violated.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(3)?);
    /// for id in 0..10 {
    ///     cache.observe(&id, Packet::UDP, Timestamp::from_secs(id))?;
    ///     assert_eq!(cache.validate(), Ok(()));
    /// }
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        let within_index = |error| InvariantError::new(format!("index: {error}"));
        self.index.validate(&self.store).map_err(within_index)?;
        self.accounting.wheel.validate().map_err(|error| error.within(format_args!("wheel")))?;
        let (flows, aliases) = (self.store.flows.len(), self.store.rest.aliases.len());
        same("keys of the index", self.index.len(), flows + aliases)?;
        ensure(flows <= self.config.flows, || format!("{flows} flows of {}", self.config.flows))?;
        self.store.validate()?;
        let slots = 0..self.store.flows.slot_count();
        let slots = slots.filter(|slot| self.store.flows.get(*slot).is_some());
        let (mut linked, mut pinned, mut classes, mut own_timeouts) = (0, 0, [0; 4], 0);
        let mut accounted = 0;
        for slot in slots {
            let checked = self.check_flow(slot);
            linked += checked.map_err(|error| error.within(format_args!("slot {slot}")))?;
            let marks = self.store.flow(slot).marks;
            let has_own = marks.has(Marks::TIMEOUT);
            own_timeouts += usize::from(has_own);
            same("mark of a timeout", has_own, self.store.rest.timeouts.contains_key(&slot))?;
            pinned += usize::from(marks.is_pinned());
            classes[marks.class() as usize] += 1;
            let tenant = self.store.tenant(slot);
            accounted += usize::from(self.accounting.tenants.usage(tenant).is_some());
        }
        self.accounting.tenants.validate(accounted, |slot| self.store.tenant(slot))?;
        same("timeouts of flows", self.store.rest.timeouts.len(), own_timeouts)?;
        same("aliases", linked, aliases)?;
        same("pinned flows", self.accounting.metrics.pinned, pinned)?;
        for class in Class::ALL {
            let counted = self.accounting.metrics.flows_of(class);
            same("flows of a class", counted, classes[class as usize])?;
        }
        Ok(())
    }

    /// Checks a flow, and returns the number of its aliases.
    fn check_flow(&self, slot: u32) -> Result<usize, InvariantError> {
        let (Flow { version, .. }, cold) = (self.store.flow(slot), self.store.cold(slot));
        let state = self.store.state(slot).expect("the slot has a flow");
        let mut count = 0;
        let primary = Some(KeyId::slot(slot));
        for id in core::iter::successors(primary, |id| self.store.next_key(*id)) {
            let key = self.store.key_of(id).expect("the id of a key");
            same("id of a key", self.find_id(&self.arrive(key)), Some(id))?;
        }
        for (_, alias) in self.store.aliases(slot) {
            same("slot of an alias", alias.slot, slot)?;
            count += 1;
        }
        let idle = state.idle_deadline(&self.config.timeouts);
        let is_fresh = self.clock.is_fresh(state.last_seen, self.clock.now());
        ensure(!is_fresh || idle > self.clock.now(), || "a fresh flow has expired")?;
        let deadline = state.deadline(&self.config.timeouts);
        let armed = self.accounting.wheel.armed(slot);
        let due = deadline.div_ceil(self.config.tick).max(self.accounting.wheel.tick());
        let is_armed = deadline == NEVER || armed <= due;
        ensure(is_armed, || "the wheel is armed too late")?;
        let times = [cold.first_seen, state.last_seen, self.clock.now()];
        let is_sorted = times.is_sorted() && state.reported >= cold.first_seen;
        ensure(is_sorted, || format!("times {times:?}, reported {}", state.reported))?;
        ensure(*version <= self.version, || "the version is in the future")?;
        Ok(count)
    }
}

fn same<T: PartialEq + Debug>(what: &str, one: T, other: T) -> Result<(), InvariantError> {
    ensure(one == other, || format!("{what}: {one:?} and {other:?}"))
}
