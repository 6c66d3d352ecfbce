//! What is known of one flow.

use core::net::IpAddr;

use flowtable::{FinWatch, FlowKey, Headed, TcpFlags};

use crate::capture::Packet;

/// One direction of a conversation, or a part of it between two stays in the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) packets: u64,
    /// Lengths of the IP packets together.
    pub(crate) bytes: u64,
    /// Nanoseconds since the epoch of the earliest packet, which need not have come first.
    pub(crate) first_ns: u64,
    /// The same of the latest packet.
    pub(crate) last_ns: u64,
    /// All flags of TCP seen.
    pub(crate) flags: TcpFlags,
    end: FinWatch,
}

impl Record {
    /// A record without packets, the first of which will come at this time.
    pub(crate) fn new(time_ns: u64) -> Self {
        Self {
            packets: 0,
            bytes: 0,
            first_ns: time_ns,
            last_ns: time_ns,
            flags: TcpFlags::default(),
            end: FinWatch::default(),
        }
    }

    /// Adds a packet; whether the TCP connection is over with it.
    pub(crate) fn add(&mut self, packet: &Packet) -> bool {
        self.packets += 1;
        self.bytes += packet.bytes;
        self.first_ns = self.first_ns.min(packet.time_ns);
        self.last_ns = self.last_ns.max(packet.time_ns);
        packet.flags.is_some_and(|flags| {
            self.flags |= flags;
            self.end.observe(flags)
        })
    }

    /// How much the record is worth to the cache, as Linux scored its routes: flows to a single
    /// host more than others, and among equals the one seen last.
    pub(crate) fn score(key: &Headed<FlowKey>, record: &Self) -> Option<(bool, u64)> {
        let is_to_one_host = match key.key().dst() {
            IpAddr::V4(dst) => !dst.is_multicast() && !dst.is_broadcast(),
            IpAddr::V6(dst) => !dst.is_multicast(),
        };
        Some((is_to_one_host, record.last_ns))
    }
}
