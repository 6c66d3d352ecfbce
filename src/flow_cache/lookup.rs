//! The paths of a packet: the short one of a hit, and the long one of everything else.
#![allow(unsafe_code)]

use core::hash::BuildHasher;
use core::ptr::NonNull;

use super::FlowCache;
use super::event::{ObserveError, Refused};
use super::handle::Handle;
use super::observed::Observed;
use super::record::Flow;
use super::state::{Class, Packet};
use super::store::{Hit, Store, Target};
use crate::eviction::Eviction;
use crate::key::flow::{Direction, FlowName};
use crate::probes::{Observer, Probes};
use crate::table::lines::fold;
use crate::timestamp::Timestamp;

/// The key of a packet, normalised and hashed.
#[derive(Clone)]
pub(super) struct Carried<K> {
    /// That of the caller or of its hasher: lookups in an index that was reseeded find nothing by
    /// it.
    pub(super) hash: u32,
    /// Normalised.
    pub(super) name: K,
    direction: Direction,
}

/// A packet that was recorded in its flow. The value is behind a pointer, as the borrow checker
/// takes a reference that is returned from a loop for one that lives on when the loop goes on.
struct Steady<V> {
    value: NonNull<V>,
    slot: u32,
    direction: Direction,
}

/// What the home line tells of a packet that was not recorded.
enum Unrecorded {
    /// It is of the flow in this slot, and may change the state of the connection.
    Flow(u32),
    /// No flow has the name.
    Absent,
    /// A flow may have the name.
    Elsewhere,
}

impl<K: FlowName, V, P: Eviction, S: BuildHasher> FlowCache<K, V, P, S> {
    /// Begins a packet, or a burst of packets.
    #[inline(always)]
    pub(super) fn begin_packet(&mut self, now: Timestamp) {
        self.clock.advance(now);
        self.forget_removed();
    }

    /// Drops the flow that was removed for the last packet.
    #[inline(always)]
    pub(super) fn forget_removed(&mut self) {
        if self.store.rest.removed.is_some() {
            drop(self.store.rest.removed.take());
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
        let (name, direction) = key.normalized();
        Carried { hash: fold(hash), name, direction }
    }

    /// Records a packet that changes only times, as most do, in its flow, if that is in its home
    /// line.
    #[inline(always)]
    fn record_steady(
        &mut self,
        carried: &Carried<K>,
        packet: Packet,
    ) -> Result<Steady<V>, Unrecorded> {
        let home = self.index.home_of(carried.hash);
        // Numbers of aliases are beyond all slots.
        for slot in home.candidates() {
            let Some(flow) = self.store.flows.get_mut(slot) else { continue };
            if flow.name == carried.name {
                if !packet.is_plain() || !flow.marks.is_steady(self.config.close_rule) {
                    return Err(Unrecorded::Flow(slot));
                }
                self.version += 1;
                self.accounting.quick_hits += 1;
                self.accounting.policy.touch(slot);
                flow.last_seen = self.clock.now();
                flow.version = self.version;
                flow.marks.record_hit();
                let hit = Hit { slot, name: 0, initiator: flow.marks.initiator() };
                let direction = hit.direction(carried.direction);
                return Ok(Steady { value: NonNull::from(&mut flow.value), slot, direction });
            }
        }
        Err(if home.is_absent() { Unrecorded::Absent } else { Unrecorded::Elsewhere })
    }

    /// The result for a packet that [`record_steady`](Self::record_steady) has recorded, and
    /// nothing has happened since.
    #[inline(always)]
    fn observed_steady(&mut self, steady: Steady<V>) -> Observed<'_, K, V> {
        let Steady { mut value, slot, direction } = steady;
        // SAFETY: the value is in the record of a flow, which is borrowed as `self` is. It was not
        // removed or moved: `Steady` is made for this call. `rest` is another part of the store.
        let value = unsafe { value.as_mut() };
        Observed::steady(value, &mut self.store.rest, slot, direction)
    }

    /// Processes a packet, given its key normalised and hashed, too.
    #[inline(always)]
    pub(super) fn observe_carried<E>(
        &mut self,
        carried: &Carried<K>,
        key: &K,
        packet: Packet,
        new: impl FnOnce(Option<Handle>) -> Result<V, E>,
    ) -> Result<Observed<'_, K, V>, ObserveError<E>> {
        match self.record_steady(carried, packet) {
            Ok(steady) => Ok(self.observed_steady(steady)),
            Err(Unrecorded::Flow(slot)) if !self.is_reuse(slot, packet) => {
                Ok(self.on_packet_of(slot, packet, carried.direction))
            }
            Err(why) => {
                let is_absent = matches!(why, Unrecorded::Absent);
                self.observe_any(key, (carried.clone(), is_absent), packet, new)
            }
        }
    }

    /// Processes a packet by its key, which is carried, too, and may be known to have no flow.
    #[inline(never)]
    fn observe_any<E>(
        &mut self,
        key: &K,
        (carried, is_absent): (Carried<K>, bool),
        packet: Packet,
        new: impl FnOnce(Option<Handle>) -> Result<V, E>,
    ) -> Result<Observed<'_, K, V>, ObserveError<E>> {
        let Carried { hash: first_hash, name, direction } = &carried;
        let mut probes = Probes::default();
        let target = if is_absent && !self.index.is_reseeded() {
            probes.node();
            None
        } else {
            self.find_observed(*first_hash, name, &mut probes)
        };
        let hit = target.and_then(|target| self.store.follow(target));
        let is_over = hit.is_some_and(|hit| self.is_reuse(hit.slot, packet));
        self.accounting.metrics.record_lookup(probes, hit.is_some() && !is_over);
        let over = match hit {
            Some(hit) if !is_over => return Ok(self.on_packet(hit, packet, *direction)),
            over => over.map(|hit| hit.slot),
        };
        if self.store.rest.extras.expects() {
            return self.begin_expected(key, carried, over, packet, new);
        }
        let value = new(None).map_err(ObserveError::New)?;
        let (slot, direction) =
            self.begin(key, carried, over, packet, value).map_err(ObserveError::Refused)?;
        Ok(self.observed_first(slot, direction))
    }

    /// Processes a packet of the flow in a slot, unless it opens another connection.
    pub(super) fn observe_slot(
        &mut self,
        slot: u32,
        direction: Direction,
        packet: Packet,
    ) -> Option<Observed<'_, K, V>> {
        if self.is_reuse(slot, packet) {
            return None;
        }
        let initiator = self.store.flow(slot).marks.initiator();
        let carried = match direction {
            Direction::Forward => initiator,
            Direction::Reverse => initiator.opposite(),
        };
        Some(self.on_packet_of(slot, packet, carried))
    }

    /// Processes a packet of the flow in a slot, which was found by its first name.
    #[inline]
    fn on_packet_of(
        &mut self,
        slot: u32,
        packet: Packet,
        carried: Direction,
    ) -> Observed<'_, K, V> {
        self.accounting.quick_hits += 1;
        let initiator = self.store.flow(slot).marks.initiator();
        self.on_packet(Hit { slot, name: 0, initiator }, packet, carried)
    }

    /// Returns whether a packet opens a connection between the sockets of a closing one.
    #[inline]
    fn is_reuse(&self, slot: u32, packet: Packet) -> bool {
        packet.is_opening()
            && self.config.detects_reuse
            && self.store.flow(slot).marks.class() == Class::Closing
    }

    /// Processes a packet of an existing flow.
    fn on_packet(&mut self, hit: Hit, packet: Packet, carried: Direction) -> Observed<'_, K, V> {
        let marks = self.store.flow(hit.slot).marks;
        if !packet.is_plain() || !marks.is_steady(self.config.close_rule) {
            self.change_connection(hit, packet, carried);
        }
        self.version += 1;
        self.accounting.policy.touch(hit.slot);
        let Store { flows, rest } = &mut self.store;
        let flow = &mut flows[hit.slot];
        flow.last_seen = self.clock.now();
        flow.version = self.version;
        flow.marks.record_hit();
        Observed::new(flow, rest, hit, hit.direction(carried), false)
    }

    /// Applies a packet to the state of the connection.
    fn change_connection(&mut self, hit: Hit, packet: Packet, carried: Direction) {
        let now = self.clock.now();
        let Store { flows, rest } = &mut self.store;
        let Flow { marks, last_seen, .. } = flows.get_mut(hit.slot).expect("the slot has a flow");
        let mut connection = marks.connection();
        let before = connection.class;
        let age = || now.saturating_sub(rest.cold[hit.slot].first_seen);
        connection.on_packet(packet, hit.direction(carried), &self.config, age);
        marks.set_connection(connection);
        if connection.class != before {
            *last_seen = now;
            if let Some(state) = self.store.state(hit.slot) {
                self.accounting.change_class(hit.slot, state, before, (&self.config, now));
            }
        }
    }

    /// Returns the target of a name, given its first hash.
    #[inline(never)]
    fn find_observed(&self, first: u32, name: &K, observer: &mut Probes) -> Option<Target> {
        let is_it = |target| self.store.is(target, name);
        let hash = self.index.present_hash(first, name);
        let target = self.index.find_current(hash, is_it, observer);
        if target.is_some() || !self.index.has_old() {
            return target;
        }
        self.index.find_old(first, name, is_it, observer)
    }

    /// Returns the target of a name, given its first hash.
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
    /// Returns its slot, and the direction of the packet.
    #[inline]
    pub(super) fn begin(
        &mut self,
        key: &K,
        carried: Carried<K>,
        over: Option<u32>,
        packet: Packet,
        value: V,
    ) -> Result<(u32, Direction), Refused> {
        let (mut initiator, mut direction) = (carried.direction, Direction::Forward);
        if packet.is_to_initiator() && key.reversed() != *key {
            (initiator, direction) = (initiator.opposite(), Direction::Reverse);
        }
        let slot = self.create(carried, initiator, (packet, direction), over, value)?;
        Ok((slot, direction))
    }

    /// The result for the first packet of a flow.
    #[inline]
    pub(super) fn observed_first(&mut self, slot: u32, direction: Direction) -> Observed<'_, K, V> {
        let Store { flows, rest } = &mut self.store;
        let hit = Hit { slot, name: 0, initiator: Direction::Forward };
        Observed::new(&mut flows[slot], rest, hit, direction, true)
    }
}
