//! The counters of a flow, and the totals of ended flows.

use flowtable::{Direction, Timestamp};

use super::{IDLE, Name};

/// The counters of a flow in both directions: 32 bytes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counters {
    /// From the initiator, and from the responder.
    packets: [u64; 2],
    bytes: [u64; 2],
}

impl Counters {
    /// Counts a packet; forward is from the initiator.
    #[inline]
    pub(crate) fn count(&mut self, direction: Direction, length: u16) {
        self.packets[direction as usize] += 1;
        self.bytes[direction as usize] += u64::from(length);
    }
}

/// The record of a flow in a general-purpose table: the counters, and the fields that
/// [`flowtable::FlowCache`] has in its own records.
pub(crate) struct Record {
    pub(crate) counters: Counters,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    /// The direction of the first packet relative to the normalised name.
    initiator: Direction,
}

impl Record {
    /// Returns the record of a new flow.
    #[inline]
    pub(crate) fn new(initiator: Direction, now: Timestamp) -> Self {
        Self { counters: Counters::default(), first: now, last: now, initiator }
    }

    #[inline]
    pub(crate) fn on_packet(&mut self, direction: Direction, length: u16, now: Timestamp) {
        let is_initiator = direction == self.initiator;
        let direction = if is_initiator { Direction::Forward } else { Direction::Reverse };
        self.counters.count(direction, length);
        self.last = now;
    }

    #[inline]
    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        self.last + IDLE <= now
    }
}

/// The totals of flows that were evicted or have expired.
#[derive(Clone, Copy, Default)]
pub(crate) struct EndedFlows {
    pub(crate) flows: u64,
    pub(crate) packets: u64,
    /// A digest of all fields of all flows, so that every field is read.
    digest: u64,
    /// The greatest delay of an expiry in nanoseconds.
    pub(crate) max_delay: u64,
}

impl EndedFlows {
    #[inline]
    pub(crate) fn add(
        &mut self,
        name: &Name,
        counters: &Counters,
        first: Timestamp,
        last: Timestamp,
    ) {
        self.flows += 1;
        self.packets += counters.packets[0] + counters.packets[1];
        let ports = u64::from(name.sport) ^ u64::from(name.dport);
        let addresses = u64::from(name.src.to_bits()) ^ u64::from(name.dst.to_bits());
        let bytes = counters.bytes[0] ^ counters.bytes[1];
        let age = last.since(first).as_nanos() as u64;
        self.digest = self.digest.wrapping_add(ports ^ addresses ^ bytes ^ age);
    }

    /// Adds a flow that expired at `now`.
    #[inline]
    pub(crate) fn add_expired(
        &mut self,
        name: &Name,
        counters: &Counters,
        first: Timestamp,
        last: Timestamp,
        now: Timestamp,
    ) {
        self.add(name, counters, first, last);
        self.max_delay = self.max_delay.max(now.since(last + IDLE).as_nanos() as u64);
    }
}
