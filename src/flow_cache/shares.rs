//! Shares of tenants.

use core::alloc::Layout;
use core::hash::BuildHasher;

use super::FlowCache;
use super::state::Tenant;
use crate::eviction::Eviction;
use crate::key::flow::FlowName;
use crate::memory::Allocator;
use crate::table::error::TryReserveError;

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Sets the share of a tenant: its maximum number of flows, beyond which each new flow evicts
    /// one of its own. `None` removes the share; tenant 0 has none.
    ///
    /// O(1), except for a tenant whose flows are not counted yet, or not any more: they are counted
    /// in O(slots), so set shares at the beginning. A tenant above its share loses one flow for
    /// each new one until timeouts have removed the rest. Shares may add up to more than the
    /// capacity; a full cache then evicts flows of any tenant. The flows of a tenant without a
    /// share are counted until the last of them has ended; then the next new share reuses the
    /// memory of its account.
    ///
    /// # Panics
    ///
    /// If the account of a tenant whose flows are not counted exceeds the
    /// [memory limit](super::Config::with_max_bytes).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet, Tenant};
    /// use flowtable::{FlowCache, Timestamp};
    ///
    /// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(100)?);
    /// cache.set_share(Tenant(7), Some(2));
    /// let packet = Packet::UDP.from_tenant(Tenant(7));
    /// for id in 0..2 {
    ///     cache.observe(&id, packet, Timestamp::ZERO)?;
    /// }
    /// cache.observe(&2, Packet::UDP, Timestamp::ZERO)?;
    /// let third = cache.observe(&3, packet, Timestamp::ZERO)?;
    /// assert_eq!(third.removed().map(|flow| flow.key), Some(0));
    /// assert_eq!((cache.tenant_flows(Tenant(7)), cache.len()), (Some(2), 3));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_share(&mut self, tenant: Tenant, flows: Option<usize>) {
        let is_within = flows.is_none() || self.has_memory_for(self.share_growth(tenant));
        assert!(is_within, "the share of a tenant exceeds the memory limit");
        self.try_set_share(tenant, flows).unwrap_or_else(|error| error.raise());
    }

    /// Sets the share of a tenant like [`set_share`](Self::set_share), if there is memory.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated for the account of a tenant whose flows are not counted, or
    /// the [memory limit](super::Config::with_max_bytes) would be exceeded. It has no share then.
    ///
    /// # Example
    ///
    /// ```
    /// use bumpalo::Bump;
    /// use flowtable::FlowCache;
    /// use flowtable::flow_cache::{Config, Tenant};
    ///
    /// let arena = Bump::new();
    /// arena.set_allocation_limit(Some(0));
    /// let config = Config::new(100)?;
    /// let mut cache: FlowCache<u64, (), _, _, _> = FlowCache::new_in(config, &arena);
    /// assert!(cache.try_set_share(Tenant(7), Some(2)).is_err());
    /// assert_eq!(cache.tenant_flows(Tenant(7)), None);
    /// # Ok::<(), flowtable::flow_cache::ConfigError>(())
    /// ```
    pub fn try_set_share(
        &mut self,
        tenant: Tenant,
        flows: Option<usize>,
    ) -> Result<(), TryReserveError> {
        let Some(share) = flows else {
            self.accounting.tenants.remove_share(tenant);
            return Ok(());
        };
        let slots = self.store.flows.slot_count();
        let bytes = self.share_growth(tenant);
        if !self.has_memory_for(bytes) {
            return Err(Layout::array::<u8>(bytes)
                .map_or(TryReserveError::OVERFLOW, TryReserveError::memory));
        }
        let is_new = tenant != Tenant::default()
            && self.accounting.tenants.set_share(tenant, share, slots)?;
        let slots = if is_new { 0..slots } else { 0..0 };
        for slot in slots {
            self.accounting.tenants.cover(slot);
            let state = self.store.state(slot);
            if let Some(state) = state.filter(|state| state.tenant == tenant) {
                self.accounting.tenants.count_in(tenant);
                if !state.marks.is_pinned() {
                    self.accounting.tenants.insert(tenant, slot, state.marks.class());
                }
            }
        }
        Ok(())
    }

    /// Returns the number of flows of a tenant with a share, or `None` if it has none. O(1).
    ///
    /// After the share was removed, flows are counted until the last of them has ended.
    #[must_use]
    pub fn tenant_flows(&self, tenant: Tenant) -> Option<usize> {
        self.accounting.tenants.usage(tenant).map(|(flows, _)| flows)
    }
}
