//! The way of a packet to its flow: the short one of a hit, and the long one of everything else.
//!
//! ```text
//!     key, packet, time ──▸ Arrival: normalised key, hash, direction
//!        │
//!        ├─ record_steady    the flow is the first candidate of the home line, only times change
//!        ├─ observe_any      the first candidate, another state
//!        ├─ observe_further  other candidates, aliases, overflowed lines
//!        └─ observe_new      no flow, or one that is over
//!              │
//!              ▼
//!            Seen: the flow, and what the packet did
//! ```
//!
//! A flow is *over* if its idle timeout has passed, whether or not the wheel has returned it, or if
//! the packet opens a connection between the sockets of a closing one. It is not found then.
#![allow(unsafe_code)]

use core::hash::BuildHasher;

use super::record::Marks;
use super::result::{Observed, Seen};
use super::state::{Class, Packet};
use crate::eviction::Eviction;
use crate::flow_cache::FlowCache;
use crate::flow_cache::config::Config;
use crate::flow_cache::report::events::ObserveError;
use crate::flow_cache::store::Handle;
use crate::flow_cache::store::slots::{KeyId, Match, Store};
use crate::hash::Query;
use crate::key::flow::{Direction, FlowName};
use crate::memory::Allocator;
use crate::probes::Probes;

/// No slot. Numbers of aliases in the index are beyond all slots, too.
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// No slot when the line was read; there may be one by now.
pub(crate) const STALE: u32 = NO_SLOT - 1;

/// Bytes of a key that packets have in registers.
const IN_REGISTERS: usize = 32;

/// The key of a packet, normalised and hashed.
#[derive(Clone)]
pub(crate) struct Arrival<K> {
    /// The hash, by the caller or the cache's hasher: lookups in an index that was reseeded find
    /// nothing by it.
    pub(crate) hash: u32,
    /// Normalised.
    pub(crate) key: K,
    pub(crate) direction: Direction,
}

impl<K: FlowName> Arrival<K> {
    /// The marks of a flow that begins with this packet.
    #[inline(always)]
    pub(crate) fn first_marks(&self, packet: Packet, config: &Config) -> Marks {
        if packet.is_to_initiator() && self.key.reversed() != self.key {
            return Marks::first(packet, Direction::Reverse, self.direction.opposite(), config);
        }
        Marks::first(packet, Direction::Forward, self.direction, config)
    }
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher, A: Allocator + Clone> FlowCache<K, V, P, S, A> {
    /// Begins a packet: drops the flow that was removed for the packet
    /// before, if dropping it runs code. Others remain until there is a packet that is not a quick
    /// hit, so most packets do not read whether there is one.
    #[inline(always)]
    pub(crate) fn begin_packet(&mut self) {
        if core::mem::needs_drop::<(K, V)>() {
            self.store.forget_removed();
        }
    }

    /// Normalises a key, and hashes it unless its hash is given.
    #[inline(always)]
    pub(crate) fn arrive(&self, query: impl Query<K, Key = K>) -> Arrival<K> {
        if size_of::<K>() > IN_REGISTERS {
            return self.arrive_large(query);
        }
        let (key, direction) = query.key().normalized();
        Arrival { hash: self.index.hash(query, &key), key, direction }
    }

    /// Normalised and hashed in one function, IPv6 addresses that may have been swapped are in
    /// registers, in parts of 16 bits.
    #[inline(never)]
    fn arrive_large(&self, query: impl Query<K, Key = K>) -> Arrival<K> {
        let (key, direction) = query.key().normalized();
        let mut arrival = Arrival { hash: 0, key, direction };
        arrival.hash = self.hash_large(query, &arrival.key);
        arrival
    }

    #[inline(never)]
    fn hash_large(&self, query: impl Query<K, Key = K>, key: &K) -> u32 {
        self.index.hash(query, key)
    }

    /// Whether the flow in a slot has this key.
    #[inline(always)]
    fn has_key(&self, slot: u32, key: &K) -> bool {
        self.store.flows.get(slot).is_some_and(|flow| flow.key.is_same(key))
    }

    /// Records a packet that changes only times, as most do, in its flow, if that is in this slot.
    /// `next` is the time of the packet.
    #[inline(always)]
    pub(crate) fn record_steady(
        &mut self,
        slot: u32,
        arrival: &Arrival<K>,
        packet: Packet,
        next: u64,
    ) -> Option<Seen<V>> {
        if !packet.is_plain() {
            return None;
        }
        let flow = self.store.steady_flow(slot)?;
        // A packet within the shortest timeout is no jump of the clock, either.
        if !self.clock.is_fresh(flow.last_seen, next) || !flow.key.is_same(&arrival.key) {
            return None;
        }
        self.clock.set_now(next);
        self.version += 1;
        self.accounting.policy.touch(slot);
        let (marks, version) = (flow.marks, self.version);
        let found = Match { slot, alias: 0, direction: marks.direction(arrival.direction) };
        Some(Seen::record(flow, found, marks, next, version))
    }

    /// The result for a packet that was recorded, and nothing has happened since.
    #[inline(always)]
    pub(crate) fn observed(&mut self, seen: Seen<V>) -> Observed<'_, K, V, A> {
        // SAFETY: the value is in the record of a flow, which is borrowed as `self` is. It was not
        // removed or moved: `Seen` is made for this call. `rest` is another part of the store.
        unsafe { seen.observed(&mut self.store.rest) }
    }

    /// Processes a packet, whose time [is](crate::flow_cache::time::clock::Clock::next) `next`.
    #[inline(always)]
    pub(crate) fn observe_arrival<E>(
        &mut self,
        arrival: Arrival<K>,
        packet: Packet,
        next: u64,
        new: impl FnOnce() -> Result<V, E>,
    ) -> Result<Observed<'_, K, V, A>, ObserveError<V, E>> {
        // Most flows are the first candidate of their home line.
        let slot = self.index.lines.first(arrival.hash).unwrap_or(NO_SLOT);
        let seen = match self.record_steady(slot, &arrival, packet, next) {
            Some(seen) => seen,
            None => self.observe_any(slot, arrival, packet, next, new)?,
        };
        Ok(self.observed(seen))
    }

    /// Processes a packet that may change the state of its flow, or whose flow is not in this slot.
    #[inline(never)]
    pub(crate) fn observe_any<E>(
        &mut self,
        slot: u32,
        arrival: Arrival<K>,
        packet: Packet,
        next: u64,
        new: impl FnOnce() -> Result<V, E>,
    ) -> Result<Seen<V>, ObserveError<V, E>> {
        let now = self.clock.step(next);
        let Some(flow) = self.store.flows.get_mut(slot) else {
            return self.observe_other(slot, arrival, packet, new);
        };
        if !flow.key.is_same(&arrival.key) {
            return self.observe_other(slot, arrival, packet, new);
        }
        let before = flow.marks;
        let direction = before.direction(arrival.direction);
        let is_fresh = self.clock.is_fresh(flow.last_seen, now);
        let handshake = if is_fresh { before.after_handshake(packet, direction) } else { None };
        let Some(marks) = handshake else {
            if is_fresh && before.is_of_datagrams(packet) {
                return Ok(self.on_datagram(slot, direction));
            }
            return match self.on_packet_in(slot, packet, arrival.direction) {
                Some(seen) => Ok(seen),
                None => self.observe_other(slot, arrival, packet, new),
            };
        };
        // Counts as a quick hit.
        self.version += 1;
        self.accounting.policy.touch(slot);
        flow.marks = marks.with_hit();
        flow.last_seen = now;
        flow.version = self.version;
        let found = Match { slot, alias: 0, direction };
        let seen = Seen::new(&mut flow.value, found, marks.class());
        if marks.has_class_of(before) {
            return Ok(seen);
        }
        let tenant = || self.store.rest.tenant(slot);
        if !self.accounting.change_class(slot, before.class(), marks, tenant) {
            return Ok(seen);
        }
        Ok(self.armed(seen))
    }

    /// Processes a packet whose flow is not the first candidate, or is over. If the slot is
    /// [`NO_SLOT`], the home line has no candidate.
    #[inline(never)]
    fn observe_other<E>(
        &mut self,
        slot: u32,
        arrival: Arrival<K>,
        packet: Packet,
        new: impl FnOnce() -> Result<V, E>,
    ) -> Result<Seen<V>, ObserveError<V, E>> {
        self.store.forget_removed();
        let line = self.index.lines.home_line(arrival.hash);
        if slot != NO_SLOT || line.has_overflowed() || self.index.is_reseeded() {
            let over = match self.observe_further(slot, &arrival, packet) {
                Ok(seen) => return Ok(seen),
                Err(over) => over,
            };
            if over.is_some() {
                return self.observe_new(arrival, over, packet, new);
            }
        } else {
            let probes = Probes { nodes: u32::from(self.index.lines.has_lines()), entries: 0 };
            self.accounting.metrics.record_lookup(probes, false);
        }
        if !self.only_replaces(packet) {
            return self.observe_new(arrival, None, packet, new);
        }
        let value = new().map_err(ObserveError::New)?;
        let marks = arrival.first_marks(packet, &self.config);
        self.replace_victim(arrival, packet, marks, value).map_err(ObserveError::Refused)
    }

    /// Processes a packet whose flow may be another candidate of its home line, or beyond that.
    /// Returns the slot of a flow with the key of the packet instead, if that is over.
    #[inline(never)]
    fn observe_further(
        &mut self,
        slot: u32,
        arrival: &Arrival<K>,
        packet: Packet,
    ) -> Result<Seen<V>, Option<u32>> {
        // `search` begins with the home line: a line without a candidate is not read twice.
        if slot < STALE {
            let line = self.index.lines.home_line(arrival.hash);
            let mut entries = 0;
            let flow = line.find_map(arrival.hash, |other| {
                entries += 1;
                (other != slot && self.has_key(other, &arrival.key)).then_some(other)
            });
            if let Some(slot) = flow.filter(|slot| !self.is_over(*slot, packet)) {
                self.version += 1;
                if entries > 1 {
                    // Not a quick hit.
                    self.accounting.slow_changes += 1;
                    self.accounting.metrics.record_lookup(Probes { nodes: 1, entries }, true);
                }
                let direction = self.store.flow(slot).marks.direction(arrival.direction);
                return Ok(self.on_packet(Match { slot, alias: 0, direction }, packet));
            }
        }
        let found = self.search(arrival, packet)?;
        Ok(self.on_packet(found, packet))
    }

    /// Searches for the flow of a packet, which is not in its home line, or has an alias of this
    /// key, and counts the search. Returns the slot of a flow with the key of the packet instead,
    /// if that is over.
    #[inline]
    fn search(&mut self, arrival: &Arrival<K>, packet: Packet) -> Result<Match, Option<u32>> {
        let mut probes = Probes::default();
        let id = self.find_observed(arrival, &mut probes);
        let found = id.and_then(|id| self.store.follow(id, arrival.direction));
        let is_over = found.is_some_and(|found| self.is_over(found.slot, packet));
        self.accounting.metrics.record_lookup(probes, found.is_some() && !is_over);
        match found {
            Some(found) if !is_over => {
                // Lookups after this one are short.
                if let Some(id) = id.filter(|_| probes.nodes > 1) {
                    self.index.bring_home(arrival.hash, id, &self.store);
                }
                self.next_version();
                Ok(found)
            }
            over => Err(over.map(|found| found.slot)),
        }
    }

    /// Creates a flow for a packet without one, instead of a flow with its key that is over.
    #[inline(never)]
    fn observe_new<E>(
        &mut self,
        arrival: Arrival<K>,
        over: Option<u32>,
        packet: Packet,
        new: impl FnOnce() -> Result<V, E>,
    ) -> Result<Seen<V>, ObserveError<V, E>> {
        let value = new().map_err(ObserveError::New)?;
        self.create(arrival, over, packet, value).map_err(ObserveError::Refused)
    }

    /// Processes a packet of the flow in a slot, unless the flow is over.
    pub(crate) fn observe_slot(
        &mut self,
        slot: u32,
        direction: Direction,
        packet: Packet,
    ) -> Option<Observed<'_, K, V, A>> {
        let of_key = self.store.flow(slot).marks.direction(direction);
        let seen = self.on_packet_in(slot, packet, of_key)?;
        Some(self.observed(seen))
    }

    /// Processes a packet of the flow in a slot, which is found by its primary key, and neither is
    /// of TCP. Counts as a quick hit.
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
        let found = Match { slot, alias: 0, direction };
        let seen = Seen::record(flow, found, marks, now, self.version);
        self.recorded(seen, before, marks)
    }

    /// Processes a packet of the flow in a slot, which is found by its primary key, or returns
    /// `None` if the flow is over. Counts as a quick hit.
    #[inline(never)]
    fn on_packet_in(&mut self, slot: u32, packet: Packet, of_key: Direction) -> Option<Seen<V>> {
        if self.is_over(slot, packet) {
            return None;
        }
        self.version += 1;
        let direction = self.store.flow(slot).marks.direction(of_key);
        Some(self.on_packet_here(Match { slot, alias: 0, direction }, packet))
    }

    /// Whether the flow in a slot takes no more packets: its idle timeout has passed, or the packet
    /// opens another connection between the sockets of a closing one.
    #[inline]
    fn is_over(&self, slot: u32, packet: Packet) -> bool {
        self.has_expired(slot)
            || packet.is_opening()
                && self.config.detects_reuse
                && self.store.flow(slot).marks.class() == Class::Closing
                && !self.store.rest.is_attempt_repeated(slot, packet)
    }

    /// Whether the idle timeout of the flow in a slot has passed.
    #[inline]
    pub(crate) fn has_expired(&self, slot: u32) -> bool {
        let last_seen = self.store.flow(slot).last_seen;
        !self.clock.is_fresh(last_seen, self.clock.now()) && self.is_due(slot)
    }

    #[inline(never)]
    fn is_due(&self, slot: u32) -> bool {
        let state = self.store.state(slot);
        state.is_some_and(|it| it.idle_deadline(&self.config.timeouts) <= self.clock.now())
    }

    /// Returns the slot of a handle, if its flow exists and has not expired.
    #[inline]
    pub(crate) fn slot_of(&self, handle: Handle) -> Option<u32> {
        self.store.slot_of(handle).filter(|slot| !self.has_expired(*slot))
    }

    /// Processes a packet of an existing flow, which is the last change.
    #[inline(never)]
    fn on_packet(&mut self, found: Match, packet: Packet) -> Seen<V> {
        self.on_packet_here(found, packet)
    }

    #[inline(always)]
    fn on_packet_here(&mut self, found: Match, packet: Packet) -> Seen<V> {
        let Match { slot, direction, .. } = found;
        let now = self.clock.now();
        self.accounting.policy.touch(slot);
        let Store { flows, rest, .. } = &mut self.store;
        let flow = &mut flows[slot];
        let before = flow.marks;
        let age = || age(flow.last_seen, now, || rest.cold[slot].first_seen, &self.config);
        let marks = if packet.is_plain() && before.is_steady(self.config.close_rule) {
            before
        } else {
            before.after(packet, direction, &self.config, age)
        };
        let is_renewed = self.config.renewal.is_by(direction);
        let last_seen = if is_renewed { now } else { flow.last_seen };
        let seen = Seen::record(flow, found, marks, last_seen, self.version);
        self.recorded(seen, before, marks)
    }

    /// Accounts for a change of class by a packet that is recorded in its flow.
    #[inline(always)]
    fn recorded(&mut self, seen: Seen<V>, before: Marks, marks: Marks) -> Seen<V> {
        if marks.has_class_of(before) {
            return seen;
        }
        let slot = seen.slot();
        let tenant = || self.store.rest.tenant(slot);
        if !self.accounting.change_class(slot, before.class(), marks, tenant) {
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
    pub(crate) fn on_class_change(&mut self, slot: u32, before: Class, marks: Marks) {
        let tenant = || self.store.rest.tenant(slot);
        if self.accounting.change_class(slot, before, marks, tenant) {
            self.arm(slot);
        }
    }

    /// Arms the timer of the flow in a slot, unless it is armed for its deadline or before.
    #[inline(never)]
    pub(crate) fn arm(&mut self, slot: u32) {
        if let Some(state) = self.store.state(slot) {
            self.accounting.arm(slot, state, &self.config, self.clock.now());
        }
    }

    /// Returns the id of a key in the index.
    #[inline(always)]
    fn find_observed(&self, arrival: &Arrival<K>, observer: &mut Probes) -> Option<KeyId> {
        if self.index.is_reseeded() {
            return self.find_reseeded(arrival, observer);
        }
        let is_it = |id| self.store.is_key(id, &arrival.key);
        self.index.find_current(arrival.hash, is_it, observer)
    }

    /// Returns the id of a key in an index whose hash was replaced.
    #[cold]
    #[inline(never)]
    fn find_reseeded(&self, arrival: &Arrival<K>, observer: &mut Probes) -> Option<KeyId> {
        let Arrival { hash, key, .. } = arrival;
        let is_it = |id| self.store.is_key(id, key);
        let current = self.index.current_hash(*hash, key);
        let found = self.index.find_current(current, is_it, observer);
        found.or_else(|| self.index.find_old(*hash, key, is_it, observer))
    }

    /// Returns the id of a key in the index, without a packet.
    #[inline(never)]
    pub(crate) fn find_id(&self, arrival: &Arrival<K>) -> Option<KeyId> {
        self.find_observed(arrival, &mut Probes::default())
    }

    /// Returns the flow of a key, without a packet.
    pub(crate) fn resolve(&self, arrival: &Arrival<K>) -> Option<Match> {
        self.store.follow(self.find_id(arrival)?, arrival.direction)
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
