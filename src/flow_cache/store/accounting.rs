//! Accounting of flows by slot: timers, eviction order, tenants and counters. Accounting of bytes.
//!
//! The accounts of flows work on slots only, without keys and values.
//!
//! # The memory limit
//!
//! Nothing is allocated unless the worst case fits into the limit.
//!
//! Flows are allocated in chunks of slots, each with its part of the wheel, the policy and the
//! queues of tenants. The first two are allocated with the chunk, but for the entries of the wheel:
//! these depend on the deadlines of flows, and the allocations of a policy on changes of classes,
//! so their worst cases are *reserved* with the chunk. Aliases are allocated one by one. The
//! growth of the index by a key is computed exactly.

use core::hash::BuildHasher;

use super::tenants::Tenants;
use crate::eviction::{BYTES_PER_SLOT, Eviction, OwnPolicy};
use crate::flow_cache::FlowCache;
use crate::flow_cache::config::Config;
use crate::flow_cache::packet::record::{FlowState, Marks};
use crate::flow_cache::packet::state::{Class, EndReason, Tenant};
use crate::flow_cache::report::metrics::Metrics;
use crate::flow_cache::time::timeouts::NEVER;
use crate::flow_cache::time::wheel::Wheel;
use crate::key::flow::FlowName;
use crate::memory::{AllocError, Allocator};
use crate::raw::chunked_vec::ChunkedVec;
use crate::raw::prefetch::SMALL;

/// The accounts of a cache.
#[derive(Clone, Debug)]
pub(crate) struct Accounting<P, A: Allocator + Clone> {
    pub(crate) wheel: Wheel<A>,
    pub(crate) policy: P,
    pub(crate) tenants: Tenants<A>,
    pub(crate) metrics: Metrics,
    /// Changes of the version but for quick hits: those that are not in the metrics, as one key
    /// compared in the first bucket. So a quick hit counts nothing but the version.
    pub(crate) slow_changes: u64,
    /// Whether later victims are prefetched: the CPU's caches are too small for all flows.
    pub(crate) prefetches: bool,
    /// Flows that were examined for evictions since some were prefetched.
    pub(crate) examined: u32,
    /// With this number of flows, each new flow evicts a flow, and no other limit has to be
    /// tested. [`usize::MAX`] with a limit of memory or an emergency.
    pub(crate) full_at: usize,
    /// Whether flows are due when they are idle only: there are neither reports of active ones nor
    /// emergencies.
    pub(crate) is_idle_only: bool,
    /// By class: whether a flow that changes to it may be due earlier than in its former class.
    is_earlier: [bool; 4],
    /// The shortest timeout in nanoseconds.
    least: u64,
}

impl<P: Eviction, A: Allocator + Clone> Accounting<P, A> {
    /// Accounts without flows, each of which has a record of `record` bytes. They allocate from
    /// `memory`; the policy has its own allocator.
    pub(crate) fn new_in(policy: P, tick: u64, config: &Config, record: usize, memory: A) -> Self {
        let emergency = config.emergency.map_or(NEVER, |emergency| emergency.idle);
        Self {
            wheel: Wheel::new_in(tick, config.flows, memory.clone()),
            policy,
            tenants: Tenants::new_in(config.flows, memory),
            metrics: Metrics::default(),
            slow_changes: 1,
            prefetches: config.flows > SMALL / record,
            examined: 0,
            full_at: match (config.max_bytes, config.emergency) {
                (usize::MAX, None) => config.flows,
                _ => usize::MAX,
            },
            is_idle_only: config.timeouts.active_nanos() == NEVER && config.emergency.is_none(),
            is_earlier: Class::ALL
                .map(|class| config.emergency.is_some() || config.timeouts.is_shortened_by(class)),
            least: config.timeouts.least_nanos().min(emergency),
        }
    }

    /// Allocates memory for the flow in a slot, so that [inserting](Self::insert) it does not
    /// allocate.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. Some may be.
    pub(crate) fn try_reserve(&mut self, slot: u32) -> Result<(), AllocError> {
        self.wheel.try_reserve(slot)?;
        self.policy.try_reserve(slot)?;
        self.tenants.try_reserve(slot)
    }

    /// Accounts for a new flow.
    pub(crate) fn insert(&mut self, slot: u32, state: FlowState, config: &Config, now: u64) {
        self.wheel.cover(slot);
        self.arm(slot, state, config, now);
        self.tenants.cover(slot);
        if !self.tenants.is_empty() {
            self.tenants.count_in(state.tenant);
        }
        self.metrics.insert(state.marks.class());
        if state.marks.is_pinned() {
            self.metrics.pinned += 1;
        } else {
            self.make_evictable(slot, state);
        }
    }

    /// Accounts for a removed flow.
    pub(crate) fn remove(&mut self, slot: u32, state: FlowState, reason: EndReason) {
        // The slot remains armed: the next flow in it has a later deadline, and need not be armed.
        self.metrics.remove(reason, state.marks.class());
        let is_pinned = state.marks.is_pinned();
        self.metrics.pinned -= usize::from(is_pinned);
        if !self.tenants.is_empty() {
            if !is_pinned {
                self.tenants.remove(state.tenant, slot, state.marks.class());
            }
            self.tenants.count_out(state.tenant);
        }
        // Last, as a policy of the caller's may panic.
        if !is_pinned {
            self.policy.remove(slot);
        }
    }

    /// Accounts for a new flow in the slot of a flow that is removed for a reason.
    pub(crate) fn replace(
        &mut self,
        slot: u32,
        (before, reason): (FlowState, EndReason),
        state: FlowState,
        (config, now): (&Config, u64),
    ) {
        self.metrics.count_removed(reason, before.marks.class());
        if !self.tenants.is_empty() {
            self.replace_of_tenants(slot, before, state);
        }
        self.replace_kind(slot, before.marks, state.marks, (config, now));
    }

    /// Accounts for a new flow in the slot of a flow that is evicted. There are no tenants, and the
    /// evicted flow had no timeout of its own.
    #[inline]
    pub(crate) fn replace_victim(
        &mut self,
        slot: u32,
        before: Marks,
        marks: Marks,
        (config, now): (&Config, u64),
    ) {
        self.metrics.count_removed(EndReason::Resources, before.class());
        if before.is_of_kind(marks) {
            // In a flood, most flows replace one of their kind. The timer is armed for the
            // deadline of the evicted flow or before, and a newer flow of its kind has no earlier
            // deadline.
            self.replace_rank(slot, marks.class(), marks.class());
        } else {
            self.replace_kind(slot, before, marks, (config, now));
        }
    }

    /// Arms the timer of a new flow, and changes the counts of classes and the eviction policy from
    /// the flow that was in its slot.
    #[inline(never)]
    fn replace_kind(
        &mut self,
        slot: u32,
        before: Marks,
        marks: Marks,
        (config, now): (&Config, u64),
    ) {
        // The timer is armed for the former flow, and hardly ever for later than this.
        if self.wheel.armed(slot).saturating_mul(config.tick) > now.saturating_add(self.least) {
            let tenant = Tenant::default();
            let state = FlowState { marks, last_seen: now, reported: now, tenant, timeout: None };
            self.arm(slot, state, config, now);
        }
        self.metrics.change_class(before.class(), marks.class());
        self.metrics.pinned -= usize::from(before.is_pinned());
        // Last, as a policy of the caller's may panic.
        if before.is_pinned() {
            self.policy.insert(slot, marks.class() as u8);
        } else {
            self.replace_rank(slot, before.class(), marks.class());
        }
    }

    /// Replaces the flow in a slot in the eviction policy.
    #[inline(always)]
    fn replace_rank(&mut self, slot: u32, before: Class, class: Class) {
        match self.policy.own() {
            Some(policy) => policy.replace_from(slot, before as u8, class as u8),
            None => self.policy.replace(slot, class as u8),
        }
    }

    /// Changes the class of the flow in a slot in the eviction policy.
    #[inline(always)]
    fn rerank(&mut self, slot: u32, before: Class, class: Class) {
        match self.policy.own() {
            Some(policy) => policy.rerank_from(slot, before as u8, class as u8),
            None => self.policy.rerank(slot, class as u8),
        }
    }

    #[cold]
    #[inline(never)]
    fn replace_of_tenants(&mut self, slot: u32, before: FlowState, state: FlowState) {
        if !before.marks.is_pinned() {
            self.tenants.remove(before.tenant, slot, before.marks.class());
        }
        self.tenants.count_out(before.tenant);
        self.tenants.count_in(state.tenant);
        self.tenants.insert(state.tenant, slot, state.marks.class());
    }

    /// Counts a new flow in the place of a removed one, which takes a version.
    #[inline(always)]
    pub(crate) fn count_replacement(&mut self, version: &mut u64) {
        self.slow_changes += 1;
        *version += 1;
        self.metrics.created += 1;
    }

    /// Accounts for a change of class of a flow, whose marks are these now. Returns whether it may
    /// be due earlier: later deadlines need nothing, as the wheel returns the slot at the earlier
    /// one.
    #[inline(always)]
    pub(crate) fn change_class(
        &mut self,
        slot: u32,
        before: Class,
        marks: Marks,
        tenant: impl FnOnce() -> Tenant,
    ) -> bool {
        let class = marks.class();
        self.metrics.change_class(before, class);
        if !marks.is_pinned() {
            if !self.tenants.is_empty() {
                self.tenants.change_class(tenant(), slot, before, class);
            }
            self.rerank(slot, before, class);
        }
        self.is_earlier[class as usize] || marks.has(Marks::TIMEOUT)
    }

    /// Makes a flow evictable.
    pub(crate) fn make_evictable(&mut self, slot: u32, state: FlowState) {
        if !self.tenants.is_empty() {
            self.tenants.insert(state.tenant, slot, state.marks.class());
        }
        self.policy.insert(slot, state.marks.class() as u8);
    }

    /// Excludes a flow from eviction.
    pub(crate) fn make_unevictable(&mut self, slot: u32, state: FlowState) {
        if !self.tenants.is_empty() {
            self.tenants.remove(state.tenant, slot, state.marks.class());
        }
        self.policy.remove(slot);
    }

    /// Arms the timer of a flow, unless it is armed for its deadline or before.
    pub(crate) fn arm(&mut self, slot: u32, state: FlowState, config: &Config, now: u64) {
        let deadline = deadline(state, config, now);
        // A later tick needs nothing, and no division.
        let armed = self.wheel.armed(slot).saturating_sub(1).saturating_mul(config.tick);
        if deadline != NEVER && deadline <= armed {
            // The first tick after the deadline.
            self.wheel.arm(slot, deadline.div_ceil(config.tick));
        }
    }

    /// Arms the timer of a flow that was due.
    #[inline]
    pub(crate) fn rearm(&mut self, slot: u32, state: FlowState, config: &Config, now: u64) {
        match deadline(state, config, now) {
            NEVER => self.wheel.disarm(slot),
            deadline => self.wheel.arm(slot, deadline.div_ceil(config.tick)),
        }
    }

    pub(crate) fn allocation_size(&self) -> usize {
        self.wheel.allocation_size()
            + self.policy.allocation_size()
            + self.tenants.allocation_size()
    }
}

/// The time for which the timer of a flow is armed.
#[inline]
fn deadline(state: FlowState, config: &Config, now: u64) -> u64 {
    let deadline = state.deadline(&config.timeouts);
    match config.emergency {
        None => deadline,
        Some(emergency) => match state.emergency_deadline(emergency) {
            None => deadline,
            // The timer allows for an emergency at the deadline. Without one, it is armed again.
            Some(early) if early > now => deadline.min(early),
            Some(_) => deadline.min(now.saturating_add(emergency.idle)),
        },
    }
}

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
