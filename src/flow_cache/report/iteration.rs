//! Operations on many flows: iteration, removal, comparison.

use core::hash::BuildHasher;

use super::events::RemovedFlow;
use super::image::SavedFlow;
use super::scan::{Cursor, Resident};
use crate::eviction::Eviction;
use crate::flow_cache::FlowCache;
use crate::flow_cache::packet::state::EndReason;
use crate::key::flow::FlowName;
use crate::memory::Allocator;

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Iterates over all flows, in the order of their slots. O(slots); [`page`](Self::page) goes
    /// through them in steps.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// for id in 0..10 {
    ///     cache.observe(&id, Packet::UDP, Timestamp::ZERO)?;
    /// }
    /// assert!(cache.iter().map(|flow| flow.key()).eq(0..10));
    /// assert_eq!(cache.iter().len(), 10);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Resident<'_, K, V, A>> + Clone {
        let mut slots = 0..self.store.flows.slot_count();
        (0..self.len()).map(move |_| {
            let flow = slots.find_map(|slot| self.resident_at(slot));
            flow.expect("each flow is in a slot")
        })
    }

    /// Ends the flows in the next `budget` slots for which `keep` returns false, and passes them to
    /// `each`; advances the cursor. O(budget), and with aliases O(their aliases).
    ///
    /// To clear an address, a tenant or an interface without a pause: the cursor goes through all
    /// flows in steps, between which packets may be processed. A flow that exists from the first
    /// step to the last is visited exactly once. The steps may miss a flow that is created between
    /// steps, so the caller stops creating such flows first. A cursor
    /// [of changes](Cursor::changed_since) visits those that have changed.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Cursor, Packet, Tenant};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// for id in 0..10 {
    ///     let tenant = Tenant(id as u32 % 2);
    ///     cache.observe(&id, Packet::UDP.from_tenant(tenant), Timestamp::ZERO)?;
    /// }
    /// let (mut cursor, mut ended) = (Cursor::new(), vec![]);
    /// while !cursor.is_done() {
    ///     let keep = |flow: &flowtable::flow_cache::Resident<_, _>| flow.tenant() != Tenant(1);
    ///     cache.retain_step(&mut cursor, 4, keep, |flow| ended.push(flow.key));
    ///     // Packets may be processed here.
    /// }
    /// assert_eq!((ended, cache.len()), (vec![1, 3, 5, 7, 9], 5));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn retain_step(
        &mut self,
        cursor: &mut Cursor,
        budget: usize,
        mut keep: impl FnMut(&Resident<'_, K, V, A>) -> bool,
        mut each: impl FnMut(RemovedFlow<K, V>),
    ) {
        let (slots, since) = cursor.advance(self.store.flows.slot_count(), budget);
        for slot in slots {
            let flow = self.resident_at(slot).filter(|flow| flow.version() > since);
            if flow.is_none_or(|flow| keep(&flow)) {
                continue;
            }
            if let Some(removed) = self.remove_slot(slot, EndReason::Forced) {
                each(removed);
            }
        }
    }

    /// Ends the flows for which `keep` returns false, and drops them. O(slots), and with aliases
    /// O(their aliases): [`retain_step`](Self::retain_step) does it in steps, and like
    /// [`extract_if`](Self::extract_if) returns the flows.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet, Tenant};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// for id in 0..10 {
    ///     let tenant = Tenant(id as u32 % 2);
    ///     cache.observe(&id, Packet::UDP.from_tenant(tenant), Timestamp::ZERO)?;
    /// }
    /// cache.retain(|flow| flow.tenant() != Tenant(1));
    /// assert!(cache.iter().map(|flow| flow.key()).eq([0, 2, 4, 6, 8]));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn retain(&mut self, keep: impl FnMut(&Resident<'_, K, V, A>) -> bool) {
        self.retain_step(&mut Cursor::new(), usize::MAX, keep, drop);
    }

    /// Returns an iterator that ends the flows for which `ends` returns true, in the order of their
    /// slots. Flows that it does not reach remain. O(slots): [`retain_step`](Self::retain_step)
    /// does it in steps.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// for id in 0..10 {
    ///     cache.observe(&id, Packet::UDP, Timestamp::ZERO)?;
    /// }
    /// let ended = cache.extract_if(|flow| flow.key() % 4 == 0).map(|flow| flow.key);
    /// assert!(ended.eq([0, 4, 8]));
    /// assert_eq!(cache.len(), 7);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn extract_if(
        &mut self,
        mut ends: impl FnMut(&Resident<'_, K, V, A>) -> bool,
    ) -> impl Iterator<Item = RemovedFlow<K, V>> {
        let mut slots = 0..self.store.flows.slot_count();
        core::iter::from_fn(move || {
            slots.find_map(|slot| {
                let is_over = self.resident_at(slot).is_some_and(|flow| ends(&flow));
                is_over.then(|| self.remove_slot(slot, EndReason::Forced)).flatten()
            })
        })
    }

    /// Ends all flows, in the order of their slots. Flows that the iterator does not yield remain
    /// in the cache. O(slots).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// for id in 0..5 {
    ///     cache.observe(&id, Packet::UDP, Timestamp::ZERO)?;
    /// }
    /// assert!(cache.drain().map(|flow| flow.key).eq(0..5));
    /// assert!(cache.is_empty());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn drain(&mut self) -> impl Iterator<Item = RemovedFlow<K, V>> {
        let mut slots = 0..self.store.flows.slot_count();
        core::iter::from_fn(move || {
            slots.find_map(|slot| self.remove_slot(slot, EndReason::Forced))
        })
    }

    /// Drops all flows unreported, and releases their memory. The policy and the shares of tenants
    /// keep their memory, and the timer wheel a few KiB. O(slots). If the drop of a key or a value
    /// panics, the flows in later slots stay.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
    /// let handle = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle();
    /// cache.clear();
    /// assert!(cache.is_empty() && cache.get(handle).is_none());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn clear(&mut self) {
        self.drain().for_each(drop);
        self.index.clear();
        self.accounting.wheel.clear();
        self.accounting.tenants.shrink(self.config.flows);
        // Last, since the drop of the removed flow may panic.
        self.store.shrink();
    }
}

/// Two caches are equal if they have equal configurations and equal flows: keys, aliases in the
/// order of their addition, values, classes, protocols, tenants, pins, own timeouts, and ages.
/// Handles, sequence numbers, the order of evictions and counters do not count. O(flows).
///
/// Flows are found by the hasher of the caches. So a cache whose flows were created with hashes of
/// the caller equals no other, nor itself, unless its hasher computes them.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Image, Packet};
/// use flowtable::{FlowCache, Timestamp};
///
/// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
/// cache.observe(&7, Packet::UDP, Timestamp::from_secs(5))?;
/// let image: Image<_, _> = cache.iter().collect();
/// let mut restored: FlowCache<u64, u32> = FlowCache::new(Config::new(100)?);
/// restored.restore(image, Timestamp::from_secs(1000))?;
/// assert_eq!(cache, restored);
/// *restored.observe(&7, Packet::UDP, Timestamp::from_secs(1000))?.flow += 1;
/// assert_ne!(cache, restored);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
impl<K, V, P, S, A> PartialEq for FlowCache<K, V, P, S, A>
where
    K: FlowName,
    V: PartialEq,
    P: Eviction,
    S: BuildHasher,
    A: Allocator + Clone,
{
    fn eq(&self, other: &Self) -> bool {
        let is_in_other = |flow: Resident<'_, K, V, A>| {
            // Also if it has expired.
            let found = other.resolve(&other.arrive(&flow.key()));
            let found = found.and_then(|found| other.resident_at(found.slot));
            found.is_some_and(|found| {
                flow.value() == found.value() && SavedFlow::of(&flow) == SavedFlow::of(&found)
            })
        };
        self.config == other.config && self.len() == other.len() && self.iter().all(is_in_other)
    }
}
