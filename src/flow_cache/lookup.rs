//! The paths of a packet: the short one of a hit, and the long one of everything else.
#![allow(unsafe_code)]

use core::hash::BuildHasher;

use super::FlowCache;
use super::config::Config;
use super::event::{ObserveError, Refused, RefusedFlow};
use super::handle::Handle;
use super::observed::{Observed, Seen};
use super::record::{Marks, in_direction};
use super::state::{Class, Packet};
use super::store::{Hit, Store, Target};
use crate::eviction::Eviction;
use crate::key::flow::{Direction, FlowName};
use crate::memory::Allocator;
use crate::probes::Probes;
use crate::table::lines::fold;
use crate::timestamp::Timestamp;

/// No slot. Numbers of aliases in the index are beyond all slots, too.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// No slot at the time of the lookup: there may be one by now.
pub(super) const STALE: u32 = NO_SLOT - 1;

/// The key of a packet, normalised and hashed.
#[derive(Clone)]
pub(super) struct Carried<K> {
    /// The hash, by the caller or the cache's hasher: lookups in an index that was reseeded find
    /// nothing by it.
    pub(super) hash: u32,
    /// Normalised.
    pub(super) name: K,
    pub(super) direction: Direction,
}

impl<K: FlowName> Carried<K> {
    /// Normalises a key.
    #[inline(always)]
    pub(super) fn new(key: &K, hash: u32) -> Self {
        let (name, direction) = key.normalized();
        Self { hash, name, direction }
    }

    /// The key.
    fn key(&self) -> K {
        in_direction(&self.name, self.direction)
    }

    /// The direction of the name that is the initiator's, if this is the first packet of a flow,
    /// and that of the packet in the flow.
    #[inline]
    fn roles(&self, packet: Packet) -> (Direction, Direction) {
        if packet.is_to_initiator() && self.name.reversed() != self.name {
            return (self.direction.opposite(), Direction::Reverse);
        }
        (self.direction, Direction::Forward)
    }
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Begins a packet, or a burst of packets. Returns the time of the cache.
    #[inline(always)]
    pub(super) fn begin_packet(&mut self, now: Timestamp) -> u64 {
        self.forget_droppable();
        self.clock.advance(now)
    }

    /// Drops the flow that was removed for the last packet, if something happens then. Others
    /// remain until there is a packet that is not a quick hit: so most packets do not read whether
    /// there is one.
    #[inline(always)]
    pub(super) fn forget_droppable(&mut self) {
        if core::mem::needs_drop::<(K, V)>() {
            self.store.forget_removed();
        }
    }

    /// Normalises and hashes a key.
    #[inline(always)]
    pub(super) fn carry(&self, key: &K) -> Carried<K> {
        let (name, direction) = key.normalized();
        Carried { hash: self.index.first_hash(&name), name, direction }
    }

    /// Normalises a key whose hash is given.
    #[inline(always)]
    pub(super) fn carry_hashed(hash: u64, key: &K) -> Carried<K> {
        Carried::new(key, fold(hash))
    }

    /// Whether there is a flow of this name in a slot.
    #[inline(always)]
    fn is_named(&self, slot: u32, name: &K) -> bool {
        self.store.flows.get(slot).is_some_and(|flow| flow.name.is_same(name))
    }

    /// Records a packet that changes only times, as most do, in its flow, if that is in this slot.
    #[inline(always)]
    pub(super) fn record_steady(
        &mut self,
        slot: u32,
        carried: &Carried<K>,
        packet: Packet,
        now: u64,
    ) -> Option<Seen<V>> {
        if !packet.is_plain() {
            return None;
        }
        let flow = self.store.steady_flow(slot)?;
        if !flow.name.is_same(&carried.name) {
            return None;
        }
        let version = self.version + 1;
        self.version = version;
        self.accounting.policy.touch(slot);
        flow.last_seen = now;
        flow.version = version;
        let marks = flow.marks.with_hit();
        flow.marks = marks;
        let hit = Hit { slot, name: 0, initiator: marks.initiator() };
        Some(Seen::steady(&mut flow.value, slot, hit.direction(carried.direction)))
    }

    /// The result for a packet that was recorded, and nothing has happened since.
    #[inline(always)]
    pub(super) fn observed(&mut self, seen: Seen<V>) -> Observed<'_, K, V, A> {
        // SAFETY: the value is in the record of a flow, which is borrowed as `self` is. It was not
        // removed or moved: `Seen` is made for this call. `rest` is another part of the store.
        unsafe { seen.observed(&mut self.store.rest) }
    }

    /// Processes a packet, given its key normalised and hashed, too.
    #[inline(always)]
    pub(super) fn observe_carried<E>(
        &mut self,
        carried: Carried<K>,
        packet: Packet,
        now: u64,
        new: impl FnOnce(Option<Handle>) -> Result<V, E>,
    ) -> Result<Observed<'_, K, V, A>, ObserveError<V, E>> {
        // Most flows are the first candidate of their home line.
        let slot = self.index.first(carried.hash).unwrap_or(NO_SLOT);
        let seen = match self.record_steady(slot, &carried, packet, now) {
            Some(seen) => seen,
            None => self.observe_any(slot, carried, packet, new)?,
        };
        Ok(self.observed(seen))
    }

    /// Processes a packet that may change the state of its flow, or whose flow is not in this slot.
    #[inline(never)]
    pub(super) fn observe_any<E>(
        &mut self,
        slot: u32,
        carried: Carried<K>,
        packet: Packet,
        new: impl FnOnce(Option<Handle>) -> Result<V, E>,
    ) -> Result<Seen<V>, ObserveError<V, E>> {
        let Store { flows, rest, .. } = &mut self.store;
        let Some(flow) = flows.get_mut(slot) else {
            return self.observe_other(slot, carried, packet, new);
        };
        if !flow.name.is_same(&carried.name) {
            return self.observe_other(slot, carried, packet, new);
        }
        let (before, now) = (flow.marks, self.clock.now());
        let hit = Hit { slot, name: 0, initiator: before.initiator() };
        let direction = hit.direction(carried.direction);
        let Some(marks) = before.after_handshake(packet, direction) else {
            if before.is_of_datagrams(packet) {
                return Ok(self.on_datagram(slot, direction));
            }
            return match self.on_packet_in(slot, packet, carried.direction) {
                Some(seen) => Ok(seen),
                None => self.observe_other(slot, carried, packet, new),
            };
        };
        // Counts as a quick hit.
        self.version += 1;
        self.accounting.policy.touch(slot);
        flow.marks = marks.with_hit();
        flow.last_seen = now;
        flow.version = self.version;
        let seen = Seen::new(flow, hit, direction, false);
        if marks.has_class_of(before) {
            return Ok(seen);
        }
        let tenant = || rest.tenant(slot);
        if !self.accounting.change_class(slot, before.class(), marks, tenant) {
            return Ok(seen);
        }
        Ok(self.armed(seen))
    }

    /// Processes a packet whose flow is not the first candidate, or that opens another connection.
    /// If the slot is [`NO_SLOT`], its home line has no candidate.
    #[inline(never)]
    fn observe_other<E>(
        &mut self,
        slot: u32,
        carried: Carried<K>,
        packet: Packet,
        new: impl FnOnce(Option<Handle>) -> Result<V, E>,
    ) -> Result<Seen<V>, ObserveError<V, E>> {
        self.store.forget_removed();
        let line = self.index.home_line(carried.hash);
        if slot != NO_SLOT || line.has_overflowed() || self.index.is_reseeded() {
            let over = match self.observe_further(slot, &carried, packet) {
                Ok(seen) => return Ok(seen),
                Err(over) => over,
            };
            if over.is_some() {
                return self.observe_new(carried, over, packet, new);
            }
        } else {
            let probes = Probes { nodes: u32::from(self.index.has_lines()), entries: 0 };
            self.accounting.metrics.record_lookup(probes, false);
        }
        if self.store.rest.extras.expects() || !self.only_replaces(packet) {
            return self.observe_new(carried, None, packet, new);
        }
        let value = new(None).map_err(ObserveError::New)?;
        let (initiator, direction) = carried.roles(packet);
        let marks = Marks::first((packet, direction), initiator, &self.config);
        self.replace_victim(carried, marks, value).map_err(ObserveError::Refused)
    }

    /// Processes a packet whose flow may be another candidate of its home line, or beyond that.
    /// Returns the slot of a flow that has ended instead, if its sockets are those of the packet.
    #[inline(never)]
    fn observe_further(
        &mut self,
        slot: u32,
        carried: &Carried<K>,
        packet: Packet,
    ) -> Result<Seen<V>, Option<u32>> {
        if slot != NO_SLOT {
            let line = self.index.home_line(carried.hash);
            let mut entries = 0;
            let flow = line.candidates(carried.hash).find(|slot| {
                entries += 1;
                self.is_named(*slot, &carried.name)
            });
            if let Some(slot) = flow.filter(|slot| !self.is_reuse(*slot, packet)) {
                self.version += 1;
                if entries > 1 {
                    // Not a quick hit.
                    self.accounting.slow_changes += 1;
                    self.accounting.metrics.record_lookup(Probes { nodes: 1, entries }, true);
                }
                let initiator = self.store.flow(slot).marks.initiator();
                let hit = Hit { slot, name: 0, initiator };
                return Ok(self.on_packet(hit, packet, carried.direction));
            }
        }
        let hit = self.search(carried, packet)?;
        Ok(self.on_packet(hit, packet, carried.direction))
    }

    /// Searches for the flow of a packet, which is not in its home line, or has an alias of this
    /// name, and counts the search. Returns the slot of a flow that has ended instead, if its
    /// sockets are those of the packet.
    #[inline]
    fn search(&mut self, carried: &Carried<K>, packet: Packet) -> Result<Hit, Option<u32>> {
        let mut probes = Probes::default();
        let target = self.find_observed(carried.hash, &carried.name, &mut probes);
        let hit = target.and_then(|target| self.store.follow(target));
        let is_over = hit.is_some_and(|hit| self.is_reuse(hit.slot, packet));
        self.accounting.metrics.record_lookup(probes, hit.is_some() && !is_over);
        match hit {
            Some(hit) if !is_over => {
                // Lookups after this one are short.
                if let Some(target) = target.filter(|_| probes.nodes > 1) {
                    self.index.bring_home(carried.hash, target, &self.store);
                }
                self.next_version();
                Ok(hit)
            }
            over => Err(over.map(|hit| hit.slot)),
        }
    }

    /// Creates a flow for a packet without one, whose key may be that of a flow that has ended.
    #[inline(never)]
    fn observe_new<E>(
        &mut self,
        carried: Carried<K>,
        over: Option<u32>,
        packet: Packet,
        new: impl FnOnce(Option<Handle>) -> Result<V, E>,
    ) -> Result<Seen<V>, ObserveError<V, E>> {
        let child =
            if self.store.rest.extras.expects() { self.expected(&carried.key()) } else { None };
        let value = new(child.map(|child| child.parent)).map_err(ObserveError::New)?;
        if child.is_some() && !self.has_room_for_child() {
            self.accounting.metrics.refused += 1;
            let refused = RefusedFlow { refused: value, why: Refused::Memory };
            return Err(ObserveError::Refused(refused));
        }
        let seen = self.begin(carried, over, packet, value).map_err(ObserveError::Refused)?;
        Ok(if let Some(child) = child { self.adopt(seen, child) } else { seen })
    }

    /// Processes a packet of the flow in a slot, unless it opens another connection.
    pub(super) fn observe_slot(
        &mut self,
        slot: u32,
        direction: Direction,
        packet: Packet,
    ) -> Option<Observed<'_, K, V, A>> {
        let initiator = self.store.flow(slot).marks.initiator();
        let carried = match direction {
            Direction::Forward => initiator,
            Direction::Reverse => initiator.opposite(),
        };
        let seen = self.on_packet_in(slot, packet, carried)?;
        Some(self.observed(seen))
    }

    /// Processes a packet of the flow in a slot, which is found by its primary key, and is not of
    /// TCP. Counts as a quick hit.
    #[inline(never)]
    fn on_datagram(&mut self, slot: u32, direction: Direction) -> Seen<V> {
        let now = self.clock.now();
        self.version += 1;
        self.accounting.policy.touch(slot);
        let Store { flows, rest, .. } = &mut self.store;
        let flow = &mut flows[slot];
        let before = flow.marks;
        let age = || age(flow.last_seen, now, || rest.cold[slot].first_seen, &self.config);
        let marks = before.after_datagram(direction, &self.config, age);
        flow.marks = marks.with_hit();
        flow.last_seen = now;
        flow.version = self.version;
        let hit = Hit { slot, name: 0, initiator: marks.initiator() };
        let seen = Seen::new(flow, hit, direction, false);
        if marks.has_class_of(before) {
            return seen;
        }
        let tenant = || rest.tenant(slot);
        if !self.accounting.change_class(slot, before.class(), marks, tenant) {
            return seen;
        }
        self.armed(seen)
    }

    /// Processes a packet of the flow in a slot, which was found by its first name, or returns
    /// `None` if the packet opens another connection. Counts as a quick hit.
    #[inline(never)]
    fn on_packet_in(&mut self, slot: u32, packet: Packet, carried: Direction) -> Option<Seen<V>> {
        if self.is_reuse(slot, packet) {
            return None;
        }
        self.version += 1;
        let initiator = self.store.flow(slot).marks.initiator();
        Some(self.on_packet_here(Hit { slot, name: 0, initiator }, packet, carried))
    }

    /// Returns whether a packet opens a connection between the sockets of a closing one.
    #[inline]
    fn is_reuse(&self, slot: u32, packet: Packet) -> bool {
        packet.is_opening()
            && self.config.detects_reuse
            && self.store.flow(slot).marks.class() == Class::Closing
    }

    /// Processes a packet of an existing flow, which is the last change.
    #[inline(never)]
    fn on_packet(&mut self, hit: Hit, packet: Packet, carried: Direction) -> Seen<V> {
        self.on_packet_here(hit, packet, carried)
    }

    #[inline(always)]
    fn on_packet_here(&mut self, hit: Hit, packet: Packet, carried: Direction) -> Seen<V> {
        let now = self.clock.now();
        self.accounting.policy.touch(hit.slot);
        let direction = hit.direction(carried);
        let Store { flows, rest, .. } = &mut self.store;
        let flow = &mut flows[hit.slot];
        let before = flow.marks;
        let age = || age(flow.last_seen, now, || rest.cold[hit.slot].first_seen, &self.config);
        let marks = if packet.is_plain() && before.is_steady(self.config.close_rule) {
            before
        } else {
            before.after(packet, direction, &self.config, age)
        };
        flow.marks = marks.with_hit();
        flow.last_seen = now;
        flow.version = self.version;
        let seen = Seen::new(flow, hit, direction, false);
        if marks.has_class_of(before) {
            return seen;
        }
        let tenant = || rest.tenant(hit.slot);
        if !self.accounting.change_class(hit.slot, before.class(), marks, tenant) {
            return seen;
        }
        self.armed(seen)
    }

    /// Arms the timer of the flow of a packet, which may be due earlier than before.
    #[inline(never)]
    fn armed(&mut self, seen: Seen<V>) -> Seen<V> {
        let slot = seen.slot();
        self.arm(slot);
        seen.renewed(&mut self.store.flows[slot])
    }

    /// Accounts for a change of class of the flow in a slot, whose marks are these now.
    pub(super) fn on_class_change(&mut self, slot: u32, before: Class, marks: Marks) {
        let tenant = || self.store.rest.tenant(slot);
        if self.accounting.change_class(slot, before, marks, tenant) {
            self.arm(slot);
        }
    }

    /// Arms the timer of the flow in a slot, unless it is armed for its deadline or before.
    #[inline(never)]
    pub(super) fn arm(&mut self, slot: u32) {
        if let Some(state) = self.store.state(slot) {
            self.accounting.arm(slot, state, &self.config, self.clock.now());
        }
    }

    /// Returns the target of a name, given its first hash.
    #[inline(always)]
    fn find_observed(&self, first: u32, name: &K, observer: &mut Probes) -> Option<Target> {
        let is_it = |target| self.store.is(target, name);
        if self.index.is_reseeded() {
            return self.find_reseeded(first, name, observer);
        }
        self.index.find_current(first, is_it, observer)
    }

    /// Returns the target of a name in an index that has another hash, given its first one.
    #[cold]
    #[inline(never)]
    fn find_reseeded(&self, first: u32, name: &K, observer: &mut Probes) -> Option<Target> {
        let is_it = |target| self.store.is(target, name);
        let hash = self.index.present_hash(first, name);
        let target = self.index.find_current(hash, is_it, observer);
        if target.is_some() || !self.index.has_old() {
            return target;
        }
        self.index.find_old(first, name, is_it, observer)
    }

    /// Returns the target of a name, given its first hash.
    #[inline(never)]
    pub(super) fn find_target(&self, first: u32, name: &K) -> Option<Target> {
        self.find_observed(first, name, &mut Probes::default())
    }

    /// Resolves a key to a flow, without a packet.
    pub(super) fn resolve(&self, key: &K) -> Option<(Hit, Direction)> {
        let (name, direction) = key.normalized();
        let first = self.index.first_hash(&name);
        Some((self.store.follow(self.find_target(first, &name)?)?, direction))
    }

    /// Resolves a key to a flow, given its hash.
    pub(super) fn resolve_hashed(&self, hash: u64, key: &K) -> Option<(Hit, Direction)> {
        let (name, direction) = key.normalized();
        Some((self.store.follow(self.find_target(fold(hash), &name)?)?, direction))
    }

    /// Creates a flow for a packet without one, whose key may be that of a flow that has ended.
    #[inline(never)]
    fn begin(
        &mut self,
        carried: Carried<K>,
        over: Option<u32>,
        packet: Packet,
        value: V,
    ) -> Result<Seen<V>, RefusedFlow<V>> {
        let (initiator, direction) = carried.roles(packet);
        self.create(carried, initiator, (packet, direction), over, value)
    }
}

/// The age of a flow, or the time since its last packet if that is enough for an assurance: a flow
/// is at least as old as its last packet, whose time is in the cache line.
#[inline(always)]
fn age(last_seen: u64, now: u64, first_seen: impl FnOnce() -> u64, config: &Config) -> u64 {
    match now.saturating_sub(last_seen) {
        since if config.assurance.is_old(since) => since,
        _ => now.saturating_sub(first_seen()),
    }
}
