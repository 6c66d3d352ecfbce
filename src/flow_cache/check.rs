//! What must hold of a cache, checked from the outside in, for tests.

use alloc::format;
use alloc::string::String;
use core::hash::BuildHasher;

use super::FlowCache;
use super::state::{Class, NEVER};
use super::store::{Flow, Place};
use crate::eviction::Eviction;
use crate::key::flow::FlowName;

impl<K: FlowName, V, P: Eviction, S: BuildHasher> FlowCache<K, V, P, S> {
    /// Checks that everything in the cache agrees. O(n): for tests.
    ///
    /// # Errors
    ///
    /// What does not.
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
    pub fn validate(&self) -> Result<(), String> {
        self.index.validate().map_err(|broken| format!("index: {broken}"))?;
        let (flows, names) = (self.store.flows.len(), self.store.names.len());
        same("names of the index", self.index.len(), flows + names)?;
        if flows > self.config.flows {
            return Err(format!("{flows} flows of {}", self.config.flows));
        }
        let slots = 0..self.store.flows.slot_count();
        let slots = slots.filter(|slot| self.store.flows.get(*slot).is_some());
        let mut found = (0, 0, [0; 4]);
        for slot in slots {
            found.0 += self.check_flow(slot).map_err(|why| format!("slot {slot}: {why}"))?;
            let life = &self.store.flow(slot).life;
            found.1 += usize::from(life.is_pinned);
            found.2[life.course.class as usize] += 1;
        }
        same("further names", found.0, names)?;
        same("pinned", self.ledger.metrics.pinned, found.1)?;
        for class in Class::ALL {
            let counted = self.ledger.metrics.flows_of(class);
            same("flows of a class", counted, found.2[class as usize])?;
        }
        Ok(())
    }

    /// Checks a flow, and returns how many further names it has.
    fn check_flow(&self, slot: u32) -> Result<usize, String> {
        let Flow { life, key, .. } = self.store.flow(slot);
        let (name, initiator) = key.normalized();
        same("place of the key", self.index.get(&name), Some(&Place::slot(slot, initiator)))?;
        let mut count = 0;
        for (at, further) in self.store.further_names(slot) {
            let (name, initiator) = further.key.normalized();
            same("place of a name", self.index.get(&name), Some(&Place::name(at, initiator)))?;
            same("slot of a name", further.slot, slot)?;
            count += 1;
        }
        let deadline = life.deadline(&self.config.timeouts);
        if deadline != NEVER && self.ledger.wheel.armed(slot) > deadline.div_ceil(self.config.tick)
        {
            return Err("the wheel will be late".into());
        }
        let times = [life.first_seen, life.last_seen, self.clock.now()];
        if !times.is_sorted() || life.reported < life.first_seen || life.version > self.version {
            return Err(format!("times {times:?}, reported {}", life.reported));
        }
        Ok(count)
    }
}

fn same<T: PartialEq + core::fmt::Debug>(what: &str, one: T, other: T) -> Result<(), String> {
    if one == other { Ok(()) } else { Err(format!("{what}: {one:?} and {other:?}")) }
}
