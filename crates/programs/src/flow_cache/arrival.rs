//! A packet as meters count it: its key, its properties for the cache, and its part of the record.

use capture::{Icmp, Macs, Packet, Vlans};
use flowtable::flow_cache::{Packet as Shown, Protocol};
use flowtable::{FlowKey, TcpFlags, Timestamp};

/// The key of a flow: its VLANs, if these matter, and its five-tuple.
pub(crate) type Key = (Vlans, FlowKey);

/// The properties of packets that matter to the meters of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Whether FIN and RST close connections.
    pub(crate) detects_close: bool,
    /// Whether equal five-tuples of different VLANs are different flows.
    pub(crate) by_vlan: bool,
}

/// A packet of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) key: Key,
    /// The packet as the cache sees it.
    pub(crate) shown: Shown,
    /// The time at which it is counted.
    pub(crate) now: Timestamp,
    /// Its own time, in nanoseconds since the epoch.
    pub(crate) time_ns: u64,
    pub(crate) bytes: u64,
    pub(crate) flags: TcpFlags,
    /// Type and code of ICMP.
    pub(crate) icmp: Option<u16>,
    /// The MAC addresses, if records have them.
    pub(crate) macs: Option<Macs>,
}

impl View {
    /// Returns the packet for a meter, without MAC addresses.
    #[inline(always)]
    pub(crate) fn arrival(self, packet: &Packet, now: Timestamp) -> Arrival {
        Arrival {
            key: (if self.by_vlan { packet.vlans } else { Vlans::default() }, packet.key),
            shown: self.shown(packet),
            now,
            time_ns: packet.time_ns,
            bytes: packet.bytes,
            flags: packet.flags.unwrap_or_default(),
            icmp: packet.icmp.map(Icmp::type_code),
            macs: None,
        }
    }

    #[inline]
    fn shown(self, packet: &Packet) -> Shown {
        let flags = match packet.flags.unwrap_or_default() {
            flags if self.detects_close => flags,
            // It acknowledges nothing.
            flags if flags.contains(TcpFlags::RST) => TcpFlags::default(),
            flags => TcpFlags(flags.0 & !TcpFlags::FIN.0),
        };
        let shown = Shown::new(Protocol::from(packet.key.protocol()), flags);
        match packet.numbers {
            // A repeated attempt has the number of the refused one.
            Some(numbers) if flags.contains(TcpFlags::SYN) => shown.with_sequence(numbers.sequence),
            _ => shown,
        }
    }
}
