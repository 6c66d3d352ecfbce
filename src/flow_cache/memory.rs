//! The bound of memory: nothing grows unless what it may come to in the worst case is allowed.
//!
//! Flows come in chunks of slots, each with its part of the wheel, the policy and the queues of tenants.
//! The first two are allocated with the chunk. What a policy allocates depends on how classes change, so the
//! worst is *reserved* with the chunk. Names come one by one, and the index takes a step now and then, which
//! needs a segment before it gives back another: room for two steps is left when a flow takes a new place,
//! and one is enough when it takes that of another.

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

/// Bytes that a policy of this crate may allocate for a slot: `ByClass`, with four rings as large as
/// they can be, and lists of chunks.
const POLICY: usize = 21;

/// Bytes of the queues of tenants for a slot.
const TENANTS: usize = 9;

/// Bytes of a list of chunks for each chunk: it is doubled.
const HEADER: usize = 2 * size_of::<alloc::vec::Vec<u8>>();

/// The most that a step of the index allocates at once, but for its directory: two segments, or a large
/// one while its predecessor is still there.
const STEP: usize = 160 << 10;

impl<K: FlowName, V, P: Eviction, S: BuildHasher> FlowCache<K, V, P, S> {
    /// Whether so many bytes more are allowed, besides some steps of the index.
    pub(super) fn has_memory_for(&self, bytes: usize, steps: usize) -> bool {
        if self.config.max_bytes == usize::MAX {
            return true;
        }
        let steps = steps * self.index_step();
        self.reserved().saturating_add(bytes + steps) <= self.config.max_bytes
    }

    /// Bytes that another flow may take if nobody leaves for it.
    pub(super) fn growth(&self) -> usize {
        if self.store.flows.growth() == 0 {
            return 0;
        }
        let lists = 3 * HEADER * (self.store.flows.slot_count() as usize / CHUNK + 4);
        let chunk = ChunkedSlab::<Flow<K, V>>::GROWTH + Wheel::GROWTH;
        chunk + lists + CHUNK * (POLICY + self.bytes_for_tenants())
    }

    /// Bytes that are allocated, or will be for the slots that there are.
    fn reserved(&self) -> usize {
        let slots = (self.store.flows.slot_count() as usize).next_multiple_of(CHUNK);
        let policy = self.ledger.policy.allocation_size().max(slots * POLICY);
        let tenants = self.ledger.tenants.allocation_size().max(slots * self.bytes_for_tenants());
        let wheel = self.ledger.wheel.allocation_size();
        self.index.allocation_size() + self.store.allocation_size() + wheel + policy + tenants
    }

    fn bytes_for_tenants(&self) -> usize {
        if self.ledger.tenants.is_empty() { 0 } else { TENANTS }
    }

    /// Bytes that another key may need at once in the index.
    fn index_step(&self) -> usize {
        let allocated = self.index.allocation_size();
        // A directory that doubles has a place of 16 bytes, or two, for each segment.
        STEP.min(3 * allocated + 4096) + allocated / 256
    }
}

/// ChunkedVec of links, of which there is one for each chunk of slots in a wheel.
const _: () = assert!(IntrusiveLists::GROWTH == 8 * CHUNK && Wheel::GROWTH == 16 * CHUNK);
