//! The counters of a flow, and the totals of ended flows.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use flowtable::flow_cache::Packet;
use flowtable::key::flow::FlowName;
use flowtable::{Direction, FiveTuple, Timestamp};

use super::{IDLE, Name};

/// The names of flows in a meter, which are made of those of IPv4 before the time is taken.
pub(crate) trait MeterName: FlowName + Copy {
    /// The bytes of a name, for the results.
    const BYTES: &str;

    fn of(packets: &[(Name, Packet)]) -> Cow<'_, [(Self, Packet)]>;

    /// A digest of all fields.
    fn digest(&self) -> u64;
}

impl MeterName for Name {
    const BYTES: &str = "14";

    fn of(packets: &[(Name, Packet)]) -> Cow<'_, [(Self, Packet)]> {
        packets.into()
    }

    #[inline]
    fn digest(&self) -> u64 {
        let ports = u64::from(self.sport) ^ u64::from(self.dport);
        ports ^ u64::from(self.src.to_bits()) ^ u64::from(self.dst.to_bits())
    }
}

impl MeterName for FiveTuple<Ipv6Addr> {
    /// Addresses differ in all of their bits.
    const BYTES: &str = "38";

    fn of(packets: &[(Name, Packet)]) -> Cow<'_, [(Self, Packet)]> {
        let address = |address: u32| {
            let bits = u128::from(address).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            Ipv6Addr::from_bits(bits)
        };
        let tuple = |name: &Name| {
            let (src, dst) = (address(name.src.to_bits()), address(name.dst.to_bits()));
            Self { src, dst, sport: name.sport, dport: name.dport, protocol: name.protocol }
        };
        packets.iter().map(|(name, packet)| (tuple(name), *packet)).collect()
    }

    #[inline]
    fn digest(&self) -> u64 {
        let bits = self.src.to_bits() ^ self.dst.to_bits();
        u64::from(self.sport) ^ u64::from(self.dport) ^ (bits >> 64) as u64 ^ bits as u64
    }
}

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
        name: &impl MeterName,
        counters: &Counters,
        first: Timestamp,
        last: Timestamp,
    ) {
        self.flows += 1;
        self.packets += counters.packets[0] + counters.packets[1];
        let bytes = counters.bytes[0] ^ counters.bytes[1];
        let age = last.since(first).as_nanos() as u64;
        self.digest = self.digest.wrapping_add(name.digest() ^ bytes ^ age);
    }

    /// Adds a flow that expired at `now`.
    #[inline]
    pub(crate) fn add_expired(
        &mut self,
        name: &impl MeterName,
        counters: &Counters,
        first: Timestamp,
        last: Timestamp,
        now: Timestamp,
    ) {
        self.add(name, counters, first, last);
        self.max_delay = self.max_delay.max(now.since(last + IDLE).as_nanos() as u64);
    }
}
