//! The memory limit: nothing is allocated unless the worst case fits into the limit.
//!
//! Flows are allocated in chunks of slots, each with its part of the wheel, the policy and the
//! queues of tenants. The first two are allocated with the chunk. The allocations of a policy
//! depend on changes of classes, so its worst case is *reserved* with the chunk. Aliases are
//! allocated one by one. The index grows in steps, each of which allocates a segment before it
//! frees another: two steps are reserved when a flow needs a new slot, and one if it reuses a slot.

use core::hash::BuildHasher;

use super::FlowCache;
use super::store::Flow;
use super::wheel::Wheel;
use crate::eviction::Eviction;
use crate::key::flow::FlowName;
use crate::raw::chunked_vec::ChunkedVec;
use crate::raw::intrusive_list::IntrusiveLists;
use crate::raw::slab::ChunkedSlab;

/// Slots whose memory is allocated together.
const CHUNK: usize = ChunkedVec::<u8>::CHUNK;

/// Bytes that a policy of this crate may allocate for a slot: `ByClass`, with four rings of the
/// maximum size, and lists of chunks.
const POLICY: usize = 21;

/// Bytes of the queues of tenants for a slot.
const TENANTS: usize = 9;

/// Bytes per chunk of a list of chunks: the list grows by doubling.
const HEADER: usize = 2 * size_of::<alloc::vec::Vec<u8>>();

/// Maximum allocation of a step of the index, without its directory: two segments, or a large one
/// while its predecessor is still allocated.
const STEP: usize = 160 << 10;

impl<K: FlowName, V, P: Eviction, S: BuildHasher> FlowCache<K, V, P, S> {
    /// Returns whether `bytes` more, and some steps of the index, are within the limit.
    pub(super) fn has_memory_for(&self, bytes: usize, steps: usize) -> bool {
        if self.config.max_bytes == usize::MAX {
            return true;
        }
        let steps = steps * self.index_step();
        self.reserved().saturating_add(bytes + steps) <= self.config.max_bytes
    }

    /// Returns the bytes that another flow may need without an eviction.
    pub(super) fn growth(&self) -> usize {
        if self.store.flows.growth() == 0 {
            return 0;
        }
        let lists = 3 * HEADER * (self.store.flows.slot_count() as usize / CHUNK + 4);
        let chunk = ChunkedSlab::<Flow<K, V>>::GROWTH + Wheel::GROWTH;
        chunk + lists + CHUNK * (POLICY + self.bytes_for_tenants())
    }

    /// Returns the bytes that are allocated, or reserved for the present slots.
    fn reserved(&self) -> usize {
        let slots = (self.store.flows.slot_count() as usize).next_multiple_of(CHUNK);
        let policy = self.accounting.policy.allocation_size().max(slots * POLICY);
        let tenants =
            self.accounting.tenants.allocation_size().max(slots * self.bytes_for_tenants());
        let wheel = self.accounting.wheel.allocation_size();
        self.index.allocation_size() + self.store.allocation_size() + wheel + policy + tenants
    }

    fn bytes_for_tenants(&self) -> usize {
        if self.accounting.tenants.is_empty() { 0 } else { TENANTS }
    }

    /// Returns the bytes that another key may need in the index.
    fn index_step(&self) -> usize {
        let allocated = self.index.allocation_size();
        // A directory that doubles has one or two entries of 16 bytes for each segment.
        STEP.min(3 * allocated + 4096) + allocated / 256
    }
}

/// Links for each chunk of slots in a wheel.
const _: () = assert!(IntrusiveLists::GROWTH == 8 * CHUNK && Wheel::GROWTH == 16 * CHUNK);
