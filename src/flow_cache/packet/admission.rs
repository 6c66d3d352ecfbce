//! Admission and removal of flows: creation, eviction, limits.

use core::hash::BuildHasher;
use core::mem;

use super::lookup::Arrival;
use super::record::{Cold, Flow, FlowState, Marks};
use super::result::Seen;
use super::state::{EndReason, Packet, Tenant};
use crate::eviction::{EntryStats, Eviction, OwnPolicy};
use crate::flow_cache::FlowCache;
use crate::flow_cache::config::Emergency;
use crate::flow_cache::report::events::{AdmissionError, RefusedFlow, RemovedFlow};
use crate::flow_cache::store::Handle;
use crate::flow_cache::store::slots::{KeyId, Match, Parts, set_tenant};
use crate::flow_cache::time::clock::Clock;
use crate::key::flow::FlowName;
use crate::memory::Allocator;
use crate::raw::slab::ChunkedSlab;
use crate::timestamp::Timestamp;

/// Evictions for which flows are prefetched at once.
const AT_ONCE: usize = 8;

/// The most flows that are expected to be examined for them.
const MAX_EXAMINED: usize = 3 * AT_ONCE;

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Creates a flow for a key that refers to no flow, or to the flow in the slot `over`, which is
    /// over. Evicts a flow if necessary. Returns the packet in the flow.
    #[inline]
    pub(crate) fn create(
        &mut self,
        mut arrival: Arrival<K>,
        over: Option<u32>,
        mut packet: Packet,
        value: V,
    ) -> Result<Seen<V>, RefusedFlow<V>> {
        self.prepare_insertion(&mut arrival);
        let room = match over {
            Some(over) => {
                if !self.has_room_over(over, packet.tenant()) {
                    packet = packet.from_tenant(self.store.tenant(over));
                }
                Room::Of(over, EndReason::of_idle(self.store.flow(over).marks.class()))
            }
            None => self.room(arrival.hash, packet.tenant()),
        };
        let marks = arrival.first_marks(packet, &self.config);
        match room {
            Room::Free => {
                self.next_version();
                self.accounting.metrics.created += 1;
                Ok(self.append_flow(arrival, packet, marks, value))
            }
            Room::Of(slot, reason) => {
                self.replace_flow((slot, reason), arrival, (packet, marks), value)
            }
            Room::None(reason) => Err(self.refuse(value, reason)),
        }
    }

    /// Whether the share of a tenant, and the memory limit, have room for its flow in the slot
    /// `over`, whose flow is over.
    #[inline(never)]
    fn has_room_over(&self, over: u32, tenant: Tenant) -> bool {
        tenant == self.store.tenant(over)
            || !self.accounting.tenants.is_at_share(tenant)
                && self.has_memory_for(self.store.tenant_growth(tenant))
    }

    /// Inserts a flow for which memory is [reserved](Self::reserve_flow), and its key into the
    /// index. Returns the packet in the flow.
    #[inline(never)]
    fn append_flow(
        &mut self,
        arrival: Arrival<K>,
        packet: Packet,
        marks: Marks,
        value: V,
    ) -> Seen<V> {
        let slot = self.store.flows.next_index();
        let Arrival { key, hash, direction } = arrival;
        self.index.insert_reserved(hash, KeyId::slot(slot));
        let (version, now) = (self.version, self.clock.now());
        let flow = Flow { key, marks, last_seen: now, version, value };
        let cold = Cold { first_seen: now, reported: now, hash, ..Cold::FREE };
        self.insert_flow(flow, cold, packet.tenant());
        self.set_attempt(slot, packet);
        // For the next new flow.
        self.prefetch_flow(self.store.flows.next_index());
        self.index.prefetch_growth(&self.store);
        let found = Match { slot, alias: 0, direction: marks.direction(direction) };
        Seen::new(&mut self.store.flows[slot].value, found, marks.class()).fresh()
    }

    /// Replaces the flow in a slot, which ends for a reason, by a new flow. Returns the packet of
    /// the new flow. Without memory, refuses it.
    ///
    /// The addresses of the flow and of its cold part are computed once.
    fn replace_flow(
        &mut self,
        (slot, reason): (u32, EndReason),
        arrival: Arrival<K>,
        (packet, marks): (Packet, Marks),
        value: V,
    ) -> Result<Seen<V>, RefusedFlow<V>> {
        if self.store.try_reserve_tenant(packet.tenant()).is_err()
            || self.index.reserve_replacement(arrival.hash, &self.store).is_err()
        {
            return Err(self.refuse(value, AdmissionError::Memory));
        }
        let mut parts = self.store.parts(slot);
        if parts.has_extra() {
            if self.reserve_without_extra(slot, arrival.hash).is_none() {
                return Err(self.refuse(value, AdmissionError::Memory));
            }
            parts = self.store.parts(slot);
        }
        let (now, Parts { flow, cold, tenants, removed, last_id }) = (self.clock.now(), parts);
        // The key first: its methods may panic.
        let key = flow.key();
        if self.index.replace_key((cold.hash, arrival.hash), KeyId::slot(slot)).is_err() {
            return Err(self.refuse(value, AdmissionError::Memory));
        }
        let tenant = set_tenant(tenants, slot, packet.tenant());
        let before = FlowState::new(flow, cold, tenant);
        let former = mem::replace(&mut flow.key, arrival.key);
        let value = mem::replace(&mut flow.value, value);
        *removed = Some(removed_flow((slot, cold), key, value, (before, reason), &self.clock));
        self.accounting.count_replacement(&mut self.version);
        (flow.marks, flow.last_seen, flow.version) = (marks, now, self.version);
        *last_id += 1;
        *cold = Cold::new(*last_id, now, arrival.hash);
        let found = Match { slot, alias: 0, direction: marks.direction(arrival.direction) };
        let seen = Seen::new(&mut flow.value, found, marks.class()).fresh().with_removed();
        let tenant = packet.tenant();
        let state = FlowState { marks, last_seen: now, reported: now, tenant, timeout: None };
        self.accounting.replace(slot, (before, reason), state, (&self.config, now));
        self.set_attempt(slot, packet);
        if self.config.emergency.is_some() {
            self.end_emergency(self.store.len() - 1);
            self.begin_emergency();
        }
        // Last, as it may panic.
        drop(former);
        Ok(seen)
    }

    /// Whether the flow of a packet only has to replace another flow: the cache is full, and has no
    /// tenants, no other limits, and a policy of this crate; the index neither grows nor moves.
    #[inline]
    pub(crate) fn only_replaces(&mut self, packet: Packet) -> bool {
        self.store.len() >= self.accounting.full_at
            && packet.tenant() == Tenant::default()
            && self.store.rest.tenants.len() == 0
            && self.index.can_rehash()
            && self.accounting.policy.own().is_some()
    }

    /// Evicts a flow, and inserts a new flow in its slot. The packet requires
    /// [no other change](Self::only_replaces).
    #[inline]
    pub(crate) fn replace_victim(
        &mut self,
        arrival: Arrival<K>,
        packet: Packet,
        marks: Marks,
        value: V,
    ) -> Result<Seen<V>, RefusedFlow<V>> {
        let Some(mut slot) = self.accounting.policy.own().and_then(OwnPolicy::candidate) else {
            return Err(self.refuse(value, AdmissionError::Full));
        };
        self.prefetch_next();
        let reads_stats = self.reads_stats();
        let parts = self.store.parts(slot);
        let parts = if reads_stats && parts.flow.marks.has(Marks::USED) {
            slot = self.victim_after(slot);
            self.store.parts(slot)
        } else {
            parts
        };
        let Parts { flow, cold, removed, last_id, .. } = parts;
        if cold.aliases.is_some() || flow.marks.has(Marks::TIMEOUT) {
            return self.replace_with_extra(slot, arrival, (packet, marks), value);
        }
        // The key first: its methods may panic.
        let key = flow.key();
        if self.index.lines.rehash((cold.hash, arrival.hash), slot).is_err() {
            return Err(self.refuse(value, AdmissionError::Memory));
        }
        let (now, before) = (self.clock.now(), flow.marks);
        let former = mem::replace(&mut flow.key, arrival.key);
        *removed = Some(RemovedFlow {
            handle: Handle { id: cold.id, slot },
            key,
            value: mem::replace(&mut flow.value, value),
            reason: EndReason::Resources,
            class: before.class(),
            protocol: before.protocol(),
            tenant: Tenant::default(),
            first_seen: self.clock.caller(cold.first_seen),
            last_seen: self.clock.caller(flow.last_seen),
        });
        self.accounting.count_replacement(&mut self.version);
        (flow.marks, flow.last_seen, flow.version) = (marks, now, self.version);
        *last_id += 1;
        *cold = Cold::new(*last_id, now, arrival.hash);
        let found = Match { slot, alias: 0, direction: marks.direction(arrival.direction) };
        let seen = Seen::new(&mut flow.value, found, marks.class()).fresh().with_removed();
        if self.store.rest.has_attempts(packet) {
            self.set_attempt(slot, packet);
        }
        self.accounting.replace_victim(slot, before, marks, (&self.config, now));
        // Last, as it may panic.
        drop(former);
        Ok(seen)
    }

    /// Counts a packet that is refused.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, refused: V, reason: AdmissionError) -> RefusedFlow<V> {
        self.accounting.metrics.refused += 1;
        RefusedFlow { refused, reason }
    }

    /// Evicts a flow that has aliases or a timeout of its own, and inserts another flow there.
    #[cold]
    #[inline(never)]
    fn replace_with_extra(
        &mut self,
        slot: u32,
        arrival: Arrival<K>,
        first: (Packet, Marks),
        value: V,
    ) -> Result<Seen<V>, RefusedFlow<V>> {
        self.replace_flow((slot, EndReason::Resources), arrival, first, value)
    }

    /// Reserves an index place for `hash`, as if the primary key of the flow were gone; then
    /// removes the aliases and the own timeout of the flow. Without memory, changes nothing and
    /// returns `None`.
    #[cold]
    #[inline(never)]
    fn reserve_without_extra(&mut self, slot: u32, hash: u32) -> Option<()> {
        let before = self.store.cold(slot).hash;
        self.index.try_reserve(hash, Some(before), &self.store).ok()?;
        // The key first: its methods may panic.
        _ = self.store.flow(slot).key();
        self.end_extra(slot);
        Some(())
    }

    /// Removes the aliases and the own timeout of a flow that is going to be removed.
    #[cold]
    #[inline(never)]
    fn end_extra(&mut self, slot: u32) {
        // Keys first: their methods may panic.
        self.remove_aliases(slot);
        if self.store.flow(slot).marks.has(Marks::TIMEOUT) {
            self.remove_timeout(slot);
        }
    }

    /// Sets the sequence number of the first packet of the flow in a slot.
    #[inline]
    fn set_attempt(&mut self, slot: u32, packet: Packet) {
        if self.store.rest.has_attempts(packet) {
            let available = match self.is_limited() {
                true => self.config.max_bytes.saturating_sub(self.reserved()),
                false => usize::MAX,
            };
            self.store.rest.set_attempt(slot, packet, available);
        }
    }

    /// Prepares the insertion of a key: sets its hash to that in the current lines of the index.
    /// Goes on replacing a hash that is not random.
    #[inline]
    pub(crate) fn prepare_insertion(&mut self, arrival: &mut Arrival<K>) {
        if self.index.needs_reseeding() {
            self.reseed(&arrival.key);
        }
        arrival.hash = self.index.current_hash(arrival.hash, &arrival.key);
    }

    #[cold]
    fn reseed(&mut self, key: &K) {
        let limit = self.config.max_bytes;
        let others = self.reserved_without_index();
        self.index.reseed(key, &mut self.store, |bytes| others.saturating_add(bytes) <= limit);
    }

    /// Inserts a flow whose key is already in the index, with the next free slot.
    pub(crate) fn insert_flow(&mut self, flow: Flow<K, V>, cold: Cold, tenant: Tenant) {
        if self.store.len() == 0 {
            // An empty wheel skips the time without flows.
            self.accounting.wheel.skip_to(self.clock.now() / self.config.tick);
        }
        let state = FlowState::new(&flow, &cold, tenant);
        let slot = self.store.insert(flow, cold, tenant);
        self.accounting.insert(slot, state, &self.config, self.clock.now());
        self.begin_emergency();
    }

    /// Begins an emergency, if there are as many flows.
    #[inline]
    fn begin_emergency(&mut self) {
        let begins = |emergency: Emergency| self.store.len() >= emergency.enter;
        if !self.is_emergency && self.config.emergency.is_some_and(begins) {
            self.is_emergency = true;
            self.accounting.metrics.emergencies += 1;
        }
    }

    /// Ends an emergency, if there are as few flows.
    #[inline]
    fn end_emergency(&mut self, flows: usize) {
        let ends = |emergency: Emergency| flows < emergency.leave;
        self.is_emergency &= !self.config.emergency.is_some_and(ends);
    }

    /// Returns the room for a new flow of the tenant, whose key has this hash.
    /// [Reserves](Self::reserve_flow) memory for it if it is free.
    fn room(&mut self, hash: u32, tenant: Tenant) -> Room {
        let is_due = self.accounting.policy.is_due(self.store.len());
        let replacing = || self.index.lines.growth(1) + self.store.tenant_growth(tenant);
        if self.is_limited() && !self.has_memory_for(replacing()) {
            Room::None(AdmissionError::Memory)
        } else if self.accounting.tenants.is_at_share(tenant) {
            self.room_of_victim(Some(tenant), AdmissionError::Tenant)
        } else if self.store.len() >= self.config.flows {
            self.room_of_victim(None, AdmissionError::Full)
        } else if self.is_limited()
            && !self.has_memory_for(self.growth(tenant) + self.index.lines.growth(0))
        {
            self.room_of_victim(None, AdmissionError::Memory)
        } else if is_due {
            match self.room_of_victim(None, AdmissionError::Full) {
                Room::None(_) if self.reserve_flow(hash, tenant).is_err() => {
                    Room::None(AdmissionError::Memory)
                }
                Room::None(_) => Room::Free,
                room => room,
            }
        } else if self.reserve_flow(hash, tenant).is_err() {
            self.room_of_victim(None, AdmissionError::Memory)
        } else {
            Room::Free
        }
    }

    /// Returns the place of the next victim: of a tenant, or of all flows. Without one, the flow
    /// is refused.
    fn room_of_victim(&mut self, of: Option<Tenant>, reason: AdmissionError) -> Room {
        let victim = self.victim(of);
        self.prefetch_next();
        victim.map_or(Room::None(reason), |slot| Room::Of(slot, EndReason::Resources))
    }

    /// Prefetches for the next evictions, with each eighth new flow, unless the flows are few.
    #[inline]
    fn prefetch_next(&mut self) {
        if !self.store.last_id() % AT_ONCE as u64 == 0 && self.accounting.prefetches {
            self.prefetch_victims();
        }
    }

    /// Prefetches as many flows as were examined for the last evictions: the index lines of the
    /// next victims, whose records have been prefetched before, and the records of later ones.
    #[inline(never)]
    fn prefetch_victims(&mut self) {
        let examined = core::mem::take(&mut self.accounting.examined) as usize;
        // A policy that examines more flows than it evicts skips those that were used.
        let skips = examined > AT_ONCE;
        let most = examined.clamp(AT_ONCE, MAX_EXAMINED);
        let (store, index) = (&self.store, &self.index);
        self.accounting.policy.upcoming(2 * most, |number, slot| {
            if number >= most {
                return store.prefetch_all(slot);
            }
            let flow = if skips { store.flows.get(slot) } else { None };
            if flow.is_none_or(|flow| !flow.marks.has(Marks::USED)) {
                // A policy of the caller's may return any slot.
                if let Some(cold) = store.rest.cold.get(slot) {
                    index.lines.prefetch(cold.hash);
                }
            }
        });
    }

    /// Selects the next victim: of a tenant, or of all flows.
    pub(crate) fn victim(&mut self, of: Option<Tenant>) -> Option<u32> {
        let Some(tenant) = of else { return self.victim_of_all() };
        let (flows, examined) = (&mut self.store.flows, &mut self.accounting.examined);
        self.accounting.tenants.victim(tenant, |slot| stats_of(flows, examined, slot))
    }

    /// Selects the next victim of all flows.
    #[inline(never)]
    fn victim_of_all(&mut self) -> Option<u32> {
        let (flows, examined) = (&mut self.store.flows, &mut self.accounting.examined);
        let victim = self.accounting.policy.victim(|slot| stats_of(flows, examined, slot));
        if self.accounting.policy.own().is_some() {
            return victim;
        }
        // A policy of the caller's may return any slot.
        victim
            .filter(|slot| self.store.flows.get(*slot).is_some_and(|flow| !flow.marks.is_pinned()))
    }

    /// Whether a candidate of a policy of this crate is not evicted if it was used.
    #[inline]
    fn reads_stats(&mut self) -> bool {
        const fn reads_stats<P: OwnPolicy>(_: &P) -> bool {
            P::READS_STATS
        }
        self.accounting.policy.own().is_some_and(|policy| reads_stats(policy))
    }

    /// Selects the flow to evict by a policy of this crate, whose first candidate was used. It is
    /// the candidate if there is no other one.
    #[inline(never)]
    fn victim_after(&mut self, slot: u32) -> u32 {
        let flow = self.store.flow_mut(slot);
        flow.marks.set(Marks::USED, false);
        let last_use = Timestamp::from_nanos(flow.last_seen);
        let first = (slot, EntryStats { used: true, last_use });
        let (flows, examined) = (&mut self.store.flows, &mut self.accounting.examined);
        let victim =
            self.accounting.policy.own().and_then(|policy| {
                policy.victim_after(first, |slot| stats_of(flows, examined, slot))
            });
        victim.unwrap_or(slot)
    }

    /// Removes a flow with all of its aliases.
    pub(crate) fn remove_slot(
        &mut self,
        slot: u32,
        reason: EndReason,
    ) -> Option<RemovedFlow<K, V>> {
        // The key first: its methods may panic.
        let flow = self.store.flows.get(slot)?;
        let (key, has_timeout) = (flow.key(), flow.marks.has(Marks::TIMEOUT));
        if has_timeout || self.store.cold(slot).aliases.is_some() {
            self.end_extra(slot);
        }
        let (cold, tenant) = (*self.store.cold(slot), self.store.tenant(slot));
        self.index.remove(cold.hash, KeyId::slot(slot));
        let flow = self.store.flows.try_remove(slot)?;
        let state = FlowState::new(&flow, &cold, tenant);
        self.accounting.remove(slot, state, reason);
        self.next_version();
        self.end_emergency(self.store.len());
        let Flow { key: former, value, .. } = flow;
        let removed = removed_flow((slot, &cold), key, value, (state, reason), &self.clock);
        // Last, as it may panic.
        drop(former);
        Some(removed)
    }

    #[inline(never)]
    fn remove_aliases(&mut self, slot: u32) {
        while let Some((at, alias)) = self.store.aliases(slot).next() {
            self.index.remove(alias.hash, KeyId::alias(at));
            self.store.remove_alias(slot, at);
        }
    }
}

/// Returns the statistics of the flow in a slot for an eviction policy, and counts the flow as
/// examined.
#[inline]
fn stats_of<K, V, A: Allocator + Clone>(
    flows: &mut ChunkedSlab<Flow<K, V>, A>,
    examined: &mut u32,
    slot: u32,
) -> EntryStats {
    let Some(Flow { marks, last_seen, .. }) = flows.get_mut(slot) else {
        return EntryStats::default();
    };
    *examined = examined.wrapping_add(1);
    // Only the order of times matters, and the caller's clock may have been set.
    EntryStats { used: marks.take(Marks::USED), last_use: Timestamp::from_nanos(*last_seen) }
}

/// The place of a new flow.
enum Room {
    /// A free slot.
    Free,
    /// The slot of a flow, which ends for a reason.
    Of(u32, EndReason),
    /// No slot: the flow is refused.
    None(AdmissionError),
}

#[inline]
fn removed_flow<K, V>(
    (slot, cold): (u32, &Cold),
    key: K,
    value: V,
    (state, reason): (FlowState, EndReason),
    clock: &Clock,
) -> RemovedFlow<K, V> {
    RemovedFlow {
        handle: Handle { id: cold.id, slot },
        key,
        value,
        reason,
        class: state.marks.class(),
        protocol: state.marks.protocol(),
        tenant: state.tenant,
        first_seen: clock.caller(cold.first_seen),
        last_seen: clock.caller(state.last_seen),
    }
}
