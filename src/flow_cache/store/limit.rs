//! The memory limit: nothing is allocated unless the worst case fits into the limit.
//!
//! Flows are allocated in chunks of slots, each with its part of the wheel, the policy and the
//! queues of tenants. The first two are allocated with the chunk, but for the entries of the wheel:
//! these depend on the deadlines of flows, and the allocations of a policy on changes of classes,
//! so their worst cases are *reserved* with the chunk. Aliases are allocated one by one. The
//! growth of the index by a key is computed exactly.

use core::hash::BuildHasher;

use super::accounting::Accounting;
use super::tenants::Tenants;
use crate::eviction::{BYTES_PER_SLOT, Eviction};
use crate::flow_cache::FlowCache;
use crate::flow_cache::packet::state::Tenant;
use crate::flow_cache::time::wheel::Wheel;
use crate::key::flow::FlowName;
use crate::memory::{AllocError, Allocator};
use crate::raw::chunked_vec::ChunkedVec;

/// Slots whose memory is allocated together, unless the cache has fewer.
const CHUNK: usize = <ChunkedVec<u8>>::CHUNK;

/// Bytes of a list of chunks for a chunk.
const HEADER: usize = <ChunkedVec<u8>>::HEADER;

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Whether there is a memory limit.
    #[inline]
    pub(crate) const fn is_limited(&self) -> bool {
        self.config.max_bytes != usize::MAX
    }

    /// Returns whether `bytes` more are within the limit.
    #[inline]
    pub(crate) fn has_memory_for(&self, bytes: usize) -> bool {
        !self.is_limited() || self.reserved().saturating_add(bytes) <= self.config.max_bytes
    }

    /// Returns the bytes that another flow may need without an eviction, and without the index.
    pub(crate) fn growth(&self, tenant: Tenant) -> usize {
        let store = self.store.growth(tenant);
        let slots = self.store.flows.slot_count() as usize;
        if !self.store.flows.needs_slot() || slots % CHUNK != 0 {
            return store;
        }
        let lists = 3 * HEADER * (slots / CHUNK + 4);
        let chunk = CHUNK.min(self.config.flows);
        let entries = Wheel::entry_bytes(slots + chunk) - Wheel::entry_bytes(slots);
        let wheel = self.accounting.wheel.first_growth() + Wheel::GROWTH / CHUNK * chunk + entries;
        store + wheel + lists + CHUNK * (BYTES_PER_SLOT + self.bytes_for_tenants())
    }

    /// Allocates memory for another flow without an eviction, whose key has this hash.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. Some may be.
    #[inline]
    pub(crate) fn reserve_flow(&mut self, hash: u32, tenant: Tenant) -> Result<(), AllocError> {
        if self.store.flows.needs_slot() {
            let slot = self.store.flows.next_index();
            self.store.try_reserve(tenant)?;
            self.accounting.try_reserve(slot)?;
        } else {
            self.store.try_reserve_tenant(tenant)?;
        }
        self.index.try_reserve(hash, None, &self.store).map_err(|_| AllocError)
    }

    /// An upper bound of the bytes that the share of a tenant allocates.
    pub(crate) fn share_growth(&self, tenant: Tenant) -> usize {
        let Accounting { tenants, .. } = &self.accounting;
        if tenant == Tenant::default() || tenants.usage(tenant).is_some() {
            return 0;
        }
        let slots = (self.store.flows.slot_count() as usize).next_multiple_of(CHUNK);
        let queues = slots * Tenants::<A>::BYTES_PER_SLOT + HEADER * (slots / CHUNK + 4);
        tenants.growth() + if tenants.has_queues() { 0 } else { queues }
    }

    /// Returns the bytes that are allocated, or reserved for the present slots.
    pub(crate) fn reserved(&self) -> usize {
        self.index.allocation_size() + self.reserved_without_index()
    }

    /// Returns the bytes that are allocated or reserved for all but the index.
    pub(crate) fn reserved_without_index(&self) -> usize {
        let slots = (self.store.flows.slot_count() as usize).next_multiple_of(CHUNK);
        let policy = self.accounting.policy.allocation_size().max(slots * BYTES_PER_SLOT);
        let tenants =
            self.accounting.tenants.allocation_size().max(slots * self.bytes_for_tenants());
        let wheel = self.accounting.wheel.reserved(slots.min(self.config.flows));
        self.store.allocation_size() + wheel + policy + tenants
    }

    fn bytes_for_tenants(&self) -> usize {
        if self.accounting.tenants.has_queues() { Tenants::<A>::BYTES_PER_SLOT } else { 0 }
    }
}
