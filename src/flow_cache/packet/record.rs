//! Records of flows and aliases.
//!
//! ```text
//!     a key of IPv4 and a value of 32 bytes: one cache line
//!     flow   │ key 14  │ marks 2 │ last seen 8 │ version 8 │ value 32 │    each packet
//!     cold   │ id 8 │ first seen 8 │ reported 8 │ hash 4 │ aliases 4 │    creation, reports, end
//!
//!     marks  │ live │ timeout │ initiator │ pinned │ unreported │ used │ connection state 10 │
//! ```

use core::num::NonZeroU16;

use super::connection::ConnectionState;
use super::state::{Class, CloseRule, Packet, Protocol, Tenant};
use crate::flow_cache::config::{Config, Emergency};
use crate::flow_cache::time::timeouts::{NEVER, Timeouts};
use crate::key::flow::{Direction, FlowName};
use crate::raw::slab::OptIndex;

/// Bits of a flow. Not zero, so that the slab needs no discriminant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks(NonZeroU16);

impl Marks {
    /// A packet arrived since the eviction policy last examined the flow.
    pub(crate) const USED: u16 = 1 << 10;
    /// A packet arrived since the last report.
    pub(crate) const UNREPORTED: u16 = 1 << 11;
    pub(crate) const PINNED: u16 = 1 << 12;
    /// The reverse direction of the key is the initiator's.
    const REVERSE: u16 = 1 << 13;
    /// The flow has a timeout of its own.
    pub(crate) const TIMEOUT: u16 = 1 << 14;
    const LIVE: NonZeroU16 = NonZeroU16::MIN.saturating_add((1 << 15) - 1);

    /// The marks of a flow that is not pinned, and was not used.
    pub(crate) fn new(connection: ConnectionState, initiator: Direction) -> Self {
        Self::with_bits(connection.bits(), initiator)
    }

    /// Returns the marks of a new flow after its first packet, which has this direction.
    #[inline(always)]
    pub(crate) fn first(
        packet: Packet,
        direction: Direction,
        initiator: Direction,
        config: &Config,
    ) -> Self {
        let connection = ConnectionState::first_bits(packet, direction, config);
        Self::with_bits(connection | Self::UNREPORTED, initiator)
    }

    #[inline]
    fn with_bits(bits: u16, initiator: Direction) -> Self {
        let initiator = if initiator == Direction::Reverse { Self::REVERSE } else { 0 };
        Self(Self::LIVE | initiator | bits)
    }

    #[inline]
    const fn bits(self) -> u16 {
        self.0.get()
    }

    #[inline(always)]
    pub(crate) const fn has(self, bits: u16) -> bool {
        self.bits() & bits != 0
    }

    /// Sets or clears some of the bits that are not state.
    #[inline]
    pub(crate) fn set(&mut self, bits: u16, value: bool) {
        let others = self.bits() & !bits;
        self.0 = Self::LIVE | others | if value { bits } else { 0 };
    }

    /// Clears some bits and returns whether they were set.
    #[inline(always)]
    pub(crate) fn take(&mut self, bits: u16) -> bool {
        let before = self.has(bits);
        if before {
            self.set(bits, false);
        }
        before
    }

    /// The marks after a packet.
    #[inline]
    pub(crate) fn with_hit(self) -> Self {
        Self(self.0 | Self::USED | Self::UNREPORTED)
    }

    /// The marks with another direction of the key that is the initiator's.
    pub(crate) fn with_initiator(self, initiator: Direction) -> Self {
        let mut marks = self;
        marks.set(Self::REVERSE, initiator == Direction::Reverse);
        marks
    }

    /// The direction of the primary key that is the initiator's.
    #[inline]
    pub(crate) const fn initiator(self) -> Direction {
        if self.has(Self::REVERSE) { Direction::Reverse } else { Direction::Forward }
    }

    /// Returns the direction of a packet in the flow, given the direction of the primary key.
    #[inline]
    pub(crate) const fn direction(self, of_key: Direction) -> Direction {
        of_key.relative_to(self.initiator())
    }

    /// Returns whether plain packets leave the connection unchanged, as nearly all do.
    #[inline(always)]
    pub(crate) fn is_steady(self, rule: CloseRule) -> bool {
        ConnectionState::is_steady(self.bits(), rule)
    }

    /// Returns whether the same is known from a [mask](ConnectionState::steady_mask) alone.
    #[inline(always)]
    pub(crate) const fn is_surely_steady(self, mask: u16) -> bool {
        self.bits() & mask == Class::Established as u16
    }

    #[inline]
    pub(crate) const fn connection(self) -> ConnectionState {
        ConnectionState::from_bits(self.bits())
    }

    /// Returns the marks after a segment as in a [handshake](ConnectionState::is_of_handshake).
    /// `None` for other packets.
    #[inline(always)]
    pub(crate) fn after_handshake(self, packet: Packet, direction: Direction) -> Option<Self> {
        if !ConnectionState::is_of_handshake(self.bits(), packet) {
            return None;
        }
        let after = ConnectionState::after_handshake(self.bits(), packet, direction);
        Some(Self(Self::LIVE | after))
    }

    /// Returns whether a packet and its flow are not of TCP.
    #[inline(always)]
    pub(crate) const fn is_of_datagrams(self, packet: Packet) -> bool {
        ConnectionState::is_of_datagrams(self.bits(), packet)
    }

    /// Returns the marks after a packet of a flow that is not of TCP, and is as old as `age`
    /// returns.
    #[inline(always)]
    pub(crate) fn after_datagram(
        self,
        direction: Direction,
        config: &Config,
        age: impl FnOnce() -> u64,
    ) -> Self {
        let bits = self.bits() & ConnectionState::BITS;
        let after = ConnectionState::after_datagram(bits, direction, config, age);
        Self(Self::LIVE | (self.bits() ^ bits) | after)
    }

    /// Returns the marks after a packet of a flow, which is as old as `age` returns.
    #[inline]
    pub(crate) fn after(
        self,
        packet: Packet,
        direction: Direction,
        config: &Config,
        age: impl FnOnce() -> u64,
    ) -> Self {
        let bits = self.bits() & ConnectionState::BITS;
        let after = ConnectionState::after(bits, packet, direction, config, age);
        Self(Self::LIVE | (self.bits() ^ bits) | after)
    }

    pub(crate) fn set_connection(&mut self, connection: ConnectionState) {
        self.0 = Self::LIVE | (self.bits() & !ConnectionState::BITS) | connection.bits();
    }

    /// Returns whether two flows have the same class.
    #[inline]
    pub(crate) const fn has_class_of(self, other: Self) -> bool {
        self.class() as u8 == other.class() as u8
    }

    /// Returns whether two flows have the same idle timeout and rank: the same class and protocol,
    /// and both or neither are pinned. Of TCP, the same sides must have closed.
    #[inline(always)]
    pub(crate) const fn is_of_kind(self, other: Self) -> bool {
        (self.bits() ^ other.bits()) & (ConnectionState::KIND | Self::PINNED) == 0
    }

    #[inline(always)]
    pub(crate) const fn class(self) -> Class {
        Class::of(self.bits() as u64)
    }

    #[inline(always)]
    pub(crate) const fn protocol(self) -> Protocol {
        ConnectionState::protocol_of(self.bits())
    }

    pub(crate) const fn is_pinned(self) -> bool {
        self.has(Self::PINNED)
    }
}

/// The part of a flow that each packet reads and writes. Times are cache times.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Flow<K, V> {
    /// The normalised primary key.
    pub(crate) key: K,
    pub(crate) marks: Marks,
    pub(crate) last_seen: u64,
    /// The version of the last change.
    pub(crate) version: u64,
    pub(crate) value: V,
}

impl<K: FlowName, V> Flow<K, V> {
    /// The key in the direction of the initiator.
    pub(crate) fn key(&self) -> K {
        in_direction(&self.key, self.marks.initiator())
    }
}

/// The rest of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cold {
    pub(crate) id: u64,
    pub(crate) first_seen: u64,
    /// The time of the last report, or of the last active timeout, or of the first packet.
    pub(crate) reported: u64,
    /// The hash of the key.
    pub(crate) hash: u32,
    /// The head of the list of aliases.
    pub(crate) aliases: OptIndex,
}

impl Cold {
    /// The record of a free slot. IDs begin with 1.
    pub(crate) const FREE: Self =
        Self { id: 0, first_seen: 0, reported: 0, hash: 0, aliases: OptIndex::NONE };

    /// The record of a flow without aliases, whose first packet is at `now`.
    #[inline]
    pub(crate) const fn new(id: u64, now: u64, hash: u32) -> Self {
        Self { id, first_seen: now, reported: now, hash, aliases: OptIndex::NONE }
    }
}

/// The state of a flow that its accounts depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowState {
    pub(crate) marks: Marks,
    pub(crate) last_seen: u64,
    pub(crate) reported: u64,
    pub(crate) tenant: Tenant,
    /// The flow's own idle timeout, in nanoseconds.
    pub(crate) timeout: Option<u64>,
}

impl FlowState {
    /// The state of a flow without a timeout of its own.
    #[inline]
    pub(crate) fn new<K, V>(flow: &Flow<K, V>, cold: &Cold, tenant: Tenant) -> Self {
        let Flow { marks, last_seen, .. } = *flow;
        Self { marks, last_seen, reported: cold.reported, tenant, timeout: None }
    }

    /// Returns the time at which the flow is due, if no packet arrives.
    pub(crate) fn deadline(&self, timeouts: &Timeouts) -> u64 {
        self.idle_deadline(timeouts).min(self.active_deadline(timeouts))
    }

    /// Returns the time from which on an emergency ends the flow, if it may.
    pub(crate) fn emergency_deadline(&self, emergency: Emergency) -> Option<u64> {
        let may_leave = self.marks.class() != Class::Established && !self.marks.is_pinned();
        may_leave.then(|| after(self.last_seen, emergency.idle))
    }

    pub(crate) fn idle_deadline(&self, timeouts: &Timeouts) -> u64 {
        let ConnectionState { protocol, class, .. } = self.marks.connection();
        let timeout = match self.timeout {
            Some(timeout) if class != Class::Closing => timeout,
            _ => timeouts.idle_nanos(protocol, class),
        };
        after(self.last_seen, timeout)
    }

    pub(crate) fn active_deadline(&self, timeouts: &Timeouts) -> u64 {
        after(self.reported, timeouts.active_nanos())
    }
}

/// Returns the time `period` after `time`, saturating below [`NEVER`]; but never stays never.
const fn after(time: u64, period: u64) -> u64 {
    match time.saturating_add(period) {
        NEVER if period != NEVER => NEVER - 1,
        time => time,
    }
}

/// The normalised key in a direction.
pub(crate) fn in_direction<K: FlowName>(key: &K, direction: Direction) -> K {
    match direction {
        Direction::Forward => key.clone(),
        Direction::Reverse => key.reversed(),
    }
}

/// An alias of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Alias<K> {
    /// The normalised key.
    pub(crate) key: K,
    /// The hash of the key.
    pub(crate) hash: u32,
    /// The direction of the key that is the initiator's.
    pub(crate) initiator: Direction,
    pub(crate) slot: u32,
    /// The next alias of the flow.
    pub(crate) next: OptIndex,
    pub(crate) number: u8,
}

impl<K: FlowName> Alias<K> {
    /// The key in the direction of the initiator.
    pub(crate) fn key(&self) -> K {
        in_direction(&self.key, self.initiator)
    }
}

/// A flow of IPv4 with a value of 32 bytes is one cache line, in a slab, too.
const _: () = {
    use crate::key::flow::FiveTuple;
    use crate::raw::slab::Slot;
    type Name = FiveTuple<core::net::Ipv4Addr>;
    assert!(size_of::<Slot<Flow<Name, [u64; 4]>>>() == 64 && size_of::<Cold>() == 32);
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::flow::TcpFlags;

    #[test]
    fn marks_do_not_affect_each_other() {
        let packet = Packet::tcp(TcpFlags::SYN);
        let connection =
            ConnectionState::begin(packet, Direction::Forward, &Config::new(1).expect("valid"));
        for initiator in [Direction::Forward, Direction::Reverse] {
            let mut marks = Marks::new(connection, initiator);
            marks.set(Marks::PINNED, true);
            marks = marks.with_hit();
            assert_eq!((marks.initiator(), marks.connection()), (initiator, connection));
            assert!(marks.is_pinned() && marks.take(Marks::USED) && !marks.has(Marks::USED));
            let mut closing = connection;
            closing.class = Class::Closing;
            marks.set_connection(closing);
            assert_eq!((marks.class(), marks.initiator()), (Class::Closing, initiator));
            assert!(marks.is_pinned() && marks.take(Marks::UNREPORTED));
        }
    }
}
