//! What is counted of a flow, and where it goes in the end.

use flowtable::{Direction, Timestamp};

use super::{IDLE, Name};

/// What a table keeps for its user: 32 bytes, both directions.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counters {
    /// Of the initiator, and of who answers.
    packets: [u64; 2],
    bytes: [u64; 2],
}

impl Counters {
    /// A packet of so many bytes; forward is as the initiator sends.
    #[inline]
    pub(crate) fn count(&mut self, direction: Direction, length: u16) {
        self.packets[direction as usize] += 1;
        self.bytes[direction as usize] += u64::from(length);
    }
}

/// What a table that knows nothing of flows is given besides: what [`flowtable::FlowCache`] keeps
/// itself.
pub(crate) struct Record {
    pub(crate) counters: Counters,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    /// Which direction of the normalised name the first packet had.
    initiator: Direction,
}

impl Record {
    /// Of a flow that begins.
    #[inline]
    pub(crate) fn new(initiator: Direction, now: Timestamp) -> Self {
        Self { counters: Counters::default(), first: now, last: now, initiator }
    }

    #[inline]
    pub(crate) fn see(&mut self, direction: Direction, length: u16, now: Timestamp) {
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

/// Where flows that ended are written down.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ledger {
    pub(crate) flows: u64,
    pub(crate) packets: u64,
    /// Of all that is written down of a flow, so that nobody gets away with less.
    digest: u64,
    /// Nanoseconds that a flow stayed longer than it should have, at most.
    pub(crate) latest: u64,
}

impl Ledger {
    #[inline]
    pub(crate) fn close(
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

    /// The end of a flow that was silent for too long.
    #[inline]
    pub(crate) fn expire(
        &mut self,
        name: &Name,
        counters: &Counters,
        first: Timestamp,
        last: Timestamp,
        now: Timestamp,
    ) {
        self.close(name, counters, first, last);
        self.latest = self.latest.max(now.since(last + IDLE).as_nanos() as u64);
    }
}
