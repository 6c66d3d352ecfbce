//! Storage of flows and aliases in stable slots.
//!
//! ```text
//!     slot             0              1           2            3
//!     flows   │ flow        │ flow        │  –  │ flow        │   what a packet needs
//!     cold    │ id, aliases │ id, aliases │  –  │ id, aliases │   the rest
//!     aliases       │ k → 1, next – │ …                           aliases of a flow, in a list
//! ```
#![allow(unsafe_code)]

use super::Handle;
use crate::flow_cache::packet::record::{Alias, Cold, Flow, FlowState, Marks};
use crate::flow_cache::packet::state::{Packet, Tenant};
use crate::flow_cache::report::events::RemovedFlow;
use crate::hash::DefaultHashBuilder;
use crate::invariant::{InvariantError, ensure};
use crate::key::flow::Direction;
use crate::memory::{AllocError, Allocator};
use crate::raw::chunked_vec::{ChunkedVec, DEFAULT_BITS};
use crate::raw::slab::OptIndex;
use crate::raw::slab::{ChunkedSlab, Slot};
use crate::trash::TrashMap;

/// log2 of the aliases that are allocated together.
const ALIASES: u32 = 7;

/// Aliases in stable places.
type AliasSlab<K, A> = ChunkedSlab<Alias<K>, A, ALIASES>;

/// The panic message for an empty slot.
const FLOW: &str = "the slot has a flow";

/// The id of a key in the index: the slot of the flow with this primary key, or the index of the
/// alias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyId(u32);

impl KeyId {
    const ALIAS: u32 = 1 << 31;

    /// The maximum number of slots, and of aliases.
    pub(crate) const MAX: u32 = Self::ALIAS;

    /// The id of the primary key of the flow in a slot.
    #[inline]
    pub(crate) const fn slot(slot: u32) -> Self {
        Self(slot)
    }

    /// The id of an alias.
    #[inline]
    pub(crate) const fn alias(alias: u32) -> Self {
        Self(alias | Self::ALIAS)
    }

    /// The number that the index stores.
    #[inline]
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The slot of the flow, if this is a primary key and not an alias.
    #[inline]
    pub(crate) const fn primary(self) -> Option<u32> {
        if self.is_alias() { None } else { Some(self.0) }
    }

    const fn is_alias(self) -> bool {
        self.0 & Self::ALIAS != 0
    }

    const fn number(self) -> u32 {
        self.0 & !Self::ALIAS
    }
}

/// The flow of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Match {
    pub(crate) slot: u32,
    /// The key that matched: 0 is the primary key, other numbers are aliases.
    pub(crate) alias: u8,
    /// The direction of the key, relative to the initiator.
    pub(crate) direction: Direction,
}

/// The parameters of the test whether a packet is a hit that changes times only.
#[derive(Clone, Copy, Debug)]
struct HitTest {
    /// **S1** The number of slots of `flows`.
    slots: u32,
    /// The mask of bits of steady connections: `ConnectionState::steady_mask`.
    steady: u16,
}

/// The flows and aliases.
#[derive(Clone, Debug)]
pub(crate) struct Store<K, V, A: Allocator + Clone> {
    hit_test: HitTest,
    pub(crate) flows: ChunkedSlab<Flow<K, V>, A>,
    pub(crate) rest: Rest<K, V, A>,
}

/// The parts that most packets do not access.
#[derive(Clone, Debug)]
pub(crate) struct Rest<K, V, A: Allocator + Clone> {
    /// By slot.
    pub(crate) cold: ChunkedVec<Cold, DEFAULT_BITS, A>,
    pub(crate) aliases: AliasSlab<K, A>,
    /// By slot; without elements while all flows are of the default tenant.
    pub(crate) tenants: ChunkedVec<Tenant, DEFAULT_BITS, A>,
    /// The idle timeouts of flows that have their own, in nanoseconds, by slot.
    pub(crate) timeouts: TrashMap<u32, u64, DefaultHashBuilder, A>,
    /// Hashes of the sequence numbers of first packets, by slot; without elements while no packet
    /// had one. 0 is none.
    attempts: ChunkedVec<u16, DEFAULT_BITS, A>,
    /// The maximum number of flows.
    limit: usize,
    /// The flow that was removed for the last packet, until it is taken or another packet arrives.
    /// After quick hits it is still here, if it needs no drop.
    pub(crate) removed: Option<RemovedFlow<K, V>>,
    /// The ID of the last flow created.
    pub(crate) last_id: u64,
}

/// The flow in a slot, and the other fields that a replacement of the flow writes.
pub(crate) struct Parts<'a, K, V, A: Allocator + Clone> {
    pub(crate) flow: &'a mut Flow<K, V>,
    pub(crate) cold: &'a mut Cold,
    pub(crate) tenants: &'a mut ChunkedVec<Tenant, DEFAULT_BITS, A>,
    pub(crate) removed: &'a mut Option<RemovedFlow<K, V>>,
    pub(crate) last_id: &'a mut u64,
}

impl<K, V, A: Allocator + Clone> Parts<'_, K, V, A> {
    /// Whether the flow has aliases or a timeout of its own.
    #[inline]
    pub(crate) fn has_extra(&self) -> bool {
        self.cold.aliases.is_some() || self.flow.marks.has(Marks::TIMEOUT)
    }
}

/// Sets the tenant of the flow in a slot. Returns the former one.
#[inline]
pub(crate) fn set_tenant<A: Allocator + Clone>(
    tenants: &mut ChunkedVec<Tenant, DEFAULT_BITS, A>,
    slot: u32,
    tenant: Tenant,
) -> Tenant {
    if tenant != Tenant::default() {
        tenants.cover(slot, Tenant::default());
    }
    let own = tenants.get_mut(slot);
    own.map_or(Tenant::default(), |own| core::mem::replace(own, tenant))
}

impl<K, V, A: Allocator + Clone> Rest<K, V, A> {
    /// The tenant of the flow in a slot.
    #[inline]
    pub(crate) fn tenant(&self, slot: u32) -> Tenant {
        self.tenants.get(slot).copied().unwrap_or_default()
    }

    /// Whether flows have sequence numbers, or this packet has one.
    #[inline(always)]
    pub(crate) fn has_attempts(&self, packet: Packet) -> bool {
        packet.attempt() != 0 || self.attempts.len() > 0
    }

    /// Sets the sequence number of the first packet of the flow in a slot. Without memory within
    /// `available` bytes, the flow has none.
    #[inline(never)]
    pub(crate) fn set_attempt(&mut self, slot: u32, packet: Packet, available: usize) {
        let attempt = if packet.is_opening() { packet.attempt() } else { 0 };
        let is_covered = slot < self.attempts.len();
        if !is_covered && (attempt == 0 || self.attempts.growth_to(slot) > available) {
            return;
        }
        if is_covered || self.attempts.try_reserve(slot).is_ok() {
            self.attempts.cover(slot, 0);
            self.attempts[slot] = attempt;
        }
    }

    /// Whether a packet has the sequence number of the first packet of the flow in a slot.
    pub(crate) fn is_attempt_repeated(&self, slot: u32, packet: Packet) -> bool {
        packet.attempt() != 0 && self.attempts.get(slot) == Some(&packet.attempt())
    }
}

impl<K, V, A: Allocator + Clone> Store<K, V, A> {
    /// Bytes of the record of a flow.
    pub(crate) const RECORD: usize = size_of::<Slot<Flow<K, V>>>() + size_of::<Cold>();

    /// Creates an empty store of at most `limit` flows, whose memory will be from `memory`, given
    /// the mask of bits of steady connections.
    pub(crate) fn new_in(limit: usize, steady: u16, memory: A) -> Self {
        let rest = Rest {
            cold: ChunkedVec::new_in(limit, memory.clone()),
            aliases: ChunkedSlab::chunked_in(usize::MAX, memory.clone()),
            tenants: ChunkedVec::new_in(limit, memory.clone()),
            timeouts: TrashMap::with_hasher_in(DefaultHashBuilder::new(), memory.clone()),
            attempts: ChunkedVec::new_in(limit, memory.clone()),
            limit,
            removed: None,
            last_id: 0,
        };
        let flows = ChunkedSlab::chunked_in(limit, memory);
        Self { hit_test: HitTest { slots: 0, steady }, flows, rest }
    }

    /// The allocator.
    pub(crate) fn allocator(&self) -> &A {
        self.rest.cold.allocator()
    }

    /// Allocates memory for another flow, so that [inserting](Self::insert) it does not allocate.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. Some may be.
    pub(crate) fn try_reserve(&mut self, tenant: Tenant) -> Result<(), AllocError> {
        let slot = self.flows.next_index();
        self.flows.try_reserve_one()?;
        self.rest.cold.try_reserve(slot)?;
        if self.has_tenants(tenant) { self.rest.tenants.try_reserve(slot) } else { Ok(()) }
    }

    /// Allocates memory for the tenant of a flow in a present slot.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. Some may be.
    pub(crate) fn try_reserve_tenant(&mut self, tenant: Tenant) -> Result<(), AllocError> {
        if !self.has_tenants(tenant) {
            return Ok(());
        }
        match self.flows.slot_count().checked_sub(1) {
            Some(last) => self.rest.tenants.try_reserve(last),
            None => Ok(()),
        }
    }

    /// Whether a flow of this tenant has an entry for it.
    #[inline]
    fn has_tenants(&self, tenant: Tenant) -> bool {
        tenant != Tenant::default() || self.rest.tenants.len() > 0
    }

    /// Drops the flow that was removed for the last packet.
    #[inline]
    pub(crate) fn forget_removed(&mut self) {
        if self.rest.removed.is_some() {
            drop(self.rest.removed.take());
        }
    }

    /// Returns the greatest ID of a flow.
    pub(crate) const fn last_id(&self) -> u64 {
        self.rest.last_id
    }

    pub(crate) const fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether an id is that of this key.
    #[inline]
    pub(crate) fn is_key(&self, id: KeyId, key: &K) -> bool
    where
        K: Eq,
    {
        self.key_of(id).is_some_and(|other| other == key)
    }

    /// The key with an id.
    #[inline]
    pub(crate) fn key_of(&self, id: KeyId) -> Option<&K> {
        match id.primary() {
            Some(slot) => self.flows.get(slot).map(|flow| &flow.key),
            None => self.rest.aliases.get(id.number()).map(|alias| &alias.key),
        }
    }

    /// The hash of the key with an id.
    pub(crate) fn try_hash_of(&self, id: KeyId) -> Option<u32> {
        match id.primary() {
            Some(slot) => self.rest.cold.get(slot).map(|cold| cold.hash),
            None => self.rest.aliases.get(id.number()).map(|alias| alias.hash),
        }
    }

    /// The hash of a key that is in the index.
    pub(crate) fn hash_of(&self, id: KeyId) -> u32 {
        self.try_hash_of(id).expect(FLOW)
    }

    /// Returns [`hash_of`](Self::hash_of) as the index calls it. All callers have a function of one
    /// type, for each of which the growth of the index is compiled.
    #[inline(always)]
    pub(crate) fn hasher_of_bits(&self) -> impl Fn(u32) -> u32 + Copy {
        |bits| self.hash_of(KeyId::from_bits(bits))
    }

    /// Sets the hash of the key with an id.
    pub(crate) fn set_hash(&mut self, id: KeyId, hash: u32) {
        let place = match id.primary() {
            Some(slot) => self.rest.cold.get_mut(slot).map(|cold| &mut cold.hash),
            None => self.rest.aliases.get_mut(id.number()).map(|alias| &mut alias.hash),
        };
        if let Some(place) = place {
            *place = hash;
        }
    }

    /// The id after this one of the keys of a flow.
    pub(crate) fn next_key(&self, id: KeyId) -> Option<KeyId> {
        let next = match id.primary() {
            Some(slot) => self.flows.get(slot).map(|_| self.rest.cold[slot].aliases),
            None => self.rest.aliases.get(id.number()).map(|alias| alias.next),
        };
        next.and_then(OptIndex::get).map(KeyId::alias)
    }

    /// Returns the flow with a key id, given the direction of the key.
    #[inline]
    pub(crate) fn follow(&self, id: KeyId, of_key: Direction) -> Option<Match> {
        match id.primary() {
            Some(slot) => {
                let direction = self.flows.get(slot)?.marks.direction(of_key);
                Some(Match { slot, alias: 0, direction })
            }
            None => {
                let Alias { slot, number, initiator, .. } = *self.rest.aliases.get(id.number())?;
                Some(Match { slot, alias: number, direction: of_key.relative_to(initiator) })
            }
        }
    }

    /// Prefetches the part of a record that a packet accesses, by the id of its key.
    #[inline]
    pub(crate) fn prefetch(&self, id: KeyId) {
        // Numbers of aliases are beyond all slots.
        if !self.flows.prefetch(id.0) {
            self.rest.aliases.prefetch(id.number());
        }
    }

    /// Prefetches the hash of a key.
    #[inline]
    pub(crate) fn prefetch_hash(&self, id: KeyId) {
        // Numbers of aliases are beyond all slots.
        if !self.rest.cold.prefetch(id.0) {
            self.rest.aliases.prefetch(id.number());
        }
    }

    /// Prefetches all of the record of a flow.
    #[inline]
    pub(crate) fn prefetch_all(&self, slot: u32) {
        self.flows.prefetch(slot);
        self.rest.cold.prefetch(slot);
    }

    /// Returns the flow of an occupied slot.
    #[inline]
    pub(crate) fn flow(&self, slot: u32) -> &Flow<K, V> {
        self.flows.get(slot).expect(FLOW)
    }

    /// Returns a mutable reference to the flow of an occupied slot.
    #[inline]
    pub(crate) fn flow_mut(&mut self, slot: u32) -> &mut Flow<K, V> {
        self.flows.get_mut(slot).expect(FLOW)
    }

    /// Returns the flow in a slot, if there is one that is known to be steady from the mask.
    #[inline(always)]
    pub(crate) fn steady_flow(&mut self, slot: u32) -> Option<&mut Flow<K, V>> {
        let HitTest { slots, steady } = self.hit_test;
        if slot >= slots {
            return None;
        }
        // SAFETY: S1: there is such a slot.
        let flow = unsafe { self.flows.get_of_slot_mut(slot) }?;
        if flow.marks.is_surely_steady(steady) { Some(flow) } else { None }
    }

    /// Checks S1.
    pub(crate) fn validate(&self) -> Result<(), InvariantError> {
        let has_slots = self.hit_test.slots == self.flows.slot_count();
        ensure(has_slots, || "hits are limited to another number of slots")
    }

    /// The rest of the flow of an occupied slot.
    #[inline]
    pub(crate) fn cold(&self, slot: u32) -> &Cold {
        &self.rest.cold[slot]
    }

    /// The rest of the flow of an occupied slot.
    #[inline]
    pub(crate) fn cold_mut(&mut self, slot: u32) -> &mut Cold {
        &mut self.rest.cold[slot]
    }

    /// The parts that are written when another flow takes the slot of one.
    #[inline(always)]
    pub(crate) fn parts(&mut self, slot: u32) -> Parts<'_, K, V, A> {
        let Rest { cold, tenants, removed, last_id, .. } = &mut self.rest;
        Parts { flow: &mut self.flows[slot], cold: &mut cold[slot], tenants, removed, last_id }
    }

    /// The tenant of the flow in a slot.
    #[inline]
    pub(crate) fn tenant(&self, slot: u32) -> Tenant {
        self.rest.tenant(slot)
    }

    /// The state that the accounts of the flow in a slot depend on, if there is a flow.
    #[inline]
    pub(crate) fn state(&self, slot: u32) -> Option<FlowState> {
        let flow = self.flows.get(slot)?;
        let state = FlowState::new(flow, self.cold(slot), self.tenant(slot));
        Some(FlowState { timeout: self.timeout(slot, flow.marks), ..state })
    }

    /// The own idle timeout of a flow with these marks.
    #[inline]
    pub(crate) fn timeout(&self, slot: u32, marks: Marks) -> Option<u64> {
        if marks.has(Marks::TIMEOUT) { self.rest.timeouts.get(&slot).copied() } else { None }
    }

    /// Inserts a flow at the next free slot, and assigns its ID.
    pub(crate) fn insert(&mut self, flow: Flow<K, V>, cold: Cold, tenant: Tenant) -> u32 {
        let slot = self.flows.insert(flow);
        self.hit_test.slots = self.flows.slot_count();
        self.rest.cold.cover(slot, Cold::FREE);
        self.rest.last_id += 1;
        self.rest.cold[slot] = Cold { id: self.rest.last_id, aliases: OptIndex::NONE, ..cold };
        set_tenant(&mut self.rest.tenants, slot, tenant);
        slot
    }

    /// Adds an alias to the list of a flow.
    pub(crate) fn add_alias(&mut self, slot: u32, alias: Alias<K>) {
        let next = self.cold(slot).aliases;
        let first = self.rest.aliases.insert(Alias { next, ..alias });
        self.cold_mut(slot).aliases = OptIndex::some(first);
    }

    /// Removes an alias, by its index in the slab of aliases. Returns it.
    pub(crate) fn remove_alias(&mut self, slot: u32, at: u32) -> Option<Alias<K>> {
        // The removal of a flow removes the head each time, without a search.
        let is_first = self.cold(slot).aliases == OptIndex::some(at);
        let before = if is_first {
            None
        } else {
            self.aliases(slot)
                .find(|(_, alias)| alias.next == OptIndex::some(at))
                .map(|(before, _)| before)
        };
        let removed = self.rest.aliases.try_remove(at)?;
        match before.and_then(|before| self.rest.aliases.get_mut(before)) {
            Some(before) => before.next = removed.next,
            None => self.cold_mut(slot).aliases = removed.next,
        }
        Some(removed)
    }

    /// Releases the memory of a store without flows.
    pub(crate) fn shrink(&mut self) {
        if self.len() == 0 {
            let last_id = self.last_id();
            let steady = self.hit_test.steady;
            let mut new = Self::new_in(self.rest.limit, steady, self.allocator().clone());
            // Before the old one is dropped, whose removed flow may panic.
            new.rest.last_id = last_id;
            *self = new;
        }
    }

    /// Returns the slot of a handle, if its flow exists.
    #[inline]
    pub(crate) fn slot_of(&self, handle: Handle) -> Option<u32> {
        let is_it = self.rest.cold.get(handle.slot)?.id == handle.id;
        (is_it && self.flows.get(handle.slot).is_some()).then_some(handle.slot)
    }

    pub(crate) fn handle(&self, slot: u32) -> Handle {
        Handle { id: self.cold(slot).id, slot }
    }

    /// Iterates over the aliases of a flow, the newest first, with their indices in the slab of
    /// aliases.
    pub(crate) fn aliases(&self, slot: u32) -> Aliases<'_, K, A> {
        let next = self.flows.get(slot).map_or(OptIndex::NONE, |_| self.cold(slot).aliases);
        Aliases { aliases: &self.rest.aliases, next }
    }

    /// Returns the bytes that the next insertion allocates.
    pub(crate) fn growth(&self, tenant: Tenant) -> usize {
        if !self.flows.needs_slot() {
            return 0;
        }
        let slot = self.flows.next_index();
        let tenants = if self.has_tenants(tenant) { self.rest.tenants.growth_to(slot) } else { 0 };
        self.flows.growth() + self.rest.cold.growth() + tenants
    }

    /// Returns the bytes that the tenant of a flow in a present slot allocates, at most.
    pub(crate) fn tenant_growth(&self, tenant: Tenant) -> usize {
        let slots = self.flows.slot_count();
        match tenant == Tenant::default() || self.rest.tenants.len() >= slots {
            true => 0,
            false => self.rest.tenants.growth_to(slots - 1),
        }
    }

    pub(crate) fn allocation_size(&self) -> usize {
        self.flows.allocation_size()
            + self.rest.cold.allocation_size()
            + self.rest.aliases.allocation_size()
            + self.rest.tenants.allocation_size()
            + self.rest.timeouts.allocation_size()
            + self.rest.attempts.allocation_size()
    }
}

/// An iterator over the aliases of a flow.
#[derive(Debug)]
pub(crate) struct Aliases<'a, K, A: Allocator + Clone> {
    aliases: &'a AliasSlab<K, A>,
    next: OptIndex,
}

impl<K, A: Allocator + Clone> Clone for Aliases<'_, K, A> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, K, A: Allocator + Clone> Iterator for Aliases<'a, K, A> {
    type Item = (u32, &'a Alias<K>);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.next.get()?;
        let alias = self.aliases.get(at)?;
        self.next = alias.next;
        Some((at, alias))
    }
}
