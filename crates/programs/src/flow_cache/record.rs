//! Flow records: all packets of a flow, or those since its last report.

use capture::{Macs, Vlans};
use flowtable::flow_cache::{Class, EndReason, Event, RemovedFlow, Resident};
use flowtable::{FlowKey, Timestamp};

use super::arrival::Key;
use super::biflow::{Biflow, Counters};
use super::mac_table::RecordMacs;

/// The packets of a flow from one report to the next or to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// The ID of the flow, equal in all of its records.
    pub(crate) id: u64,
    /// The key of the flow in the initiator's direction.
    pub(crate) key: FlowKey,
    /// None, unless flows differ by them.
    pub(crate) vlans: Vlans,
    /// Only with the option for them.
    pub(crate) macs: RecordMacs,
    pub(crate) counted: Biflow,
    pub(crate) reason: EndReason,
    pub(crate) class: Class,
    /// Creation time by the clock of the packets.
    pub(crate) made: Timestamp,
}

/// One direction of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HalfRecord {
    /// The key in this direction.
    pub(crate) key: FlowKey,
    pub(crate) macs: Option<Macs>,
    pub(crate) counters: Counters,
}

/// Protocol numbers of TCP, and of ICMP of both IP versions.
const TCP: u8 = 6;
const ICMP: [u8; 2] = [1, 58];

/// Returns whether the flow is of TCP.
pub(crate) fn is_tcp(key: &FlowKey) -> bool {
    key.protocol() == TCP
}

/// Returns whether the flow is of ICMP, of either IP version.
pub(crate) fn is_icmp(key: &FlowKey) -> bool {
    ICMP.contains(&key.protocol())
}

/// Returns the ports of a key. ICMP has none: its key has the type and an identifier there.
pub(crate) fn ports(key: &FlowKey) -> [u16; 2] {
    if is_icmp(key) { [0, 0] } else { [key.sport(), key.dport()] }
}

impl Record {
    pub(crate) fn of_removed(flow: RemovedFlow<Key, Biflow>, made: Timestamp) -> Self {
        let RemovedFlow { handle, key: (vlans, key), value, reason, class, .. } = flow;
        let macs = RecordMacs::default();
        Self { id: handle.id(), key, vlans, macs, counted: value, reason, class, made }
    }

    /// Creates the record of an event. The counters of a flow that continues are reset.
    pub(crate) fn of_event(event: Event<'_, Key, Biflow>, made: Timestamp) -> Self {
        match event {
            Event::Ended(flow) => Self::of_removed(flow, made),
            Event::Active(flow) => Self {
                id: flow.handle.id(),
                key: flow.key.1,
                vlans: flow.key.0,
                macs: RecordMacs::default(),
                counted: flow.value.take(),
                reason: EndReason::Active,
                class: flow.class,
                made,
            },
        }
    }

    /// Creates the record of a flow that is in the cache at the end.
    pub(crate) fn of_resident(flow: &Resident<'_, Key, Biflow>, made: Timestamp) -> Self {
        let (vlans, key) = flow.key();
        Self {
            id: flow.handle().id(),
            key,
            vlans,
            macs: RecordMacs::default(),
            counted: *flow.value(),
            reason: EndReason::Forced,
            class: flow.class(),
            made,
        }
    }

    /// Returns the order of records at the end of a run: that of the first packets.
    pub(crate) fn order(&self) -> (u64, Key) {
        (self.counted.first_ns(), (self.vlans, self.key))
    }

    /// Returns the number of directions that have packets.
    pub(crate) fn direction_count(&self) -> u64 {
        let Biflow { forward, reverse } = &self.counted;
        u64::from(forward.packets > 0) + u64::from(reverse.packets > 0)
    }

    /// Iterates over the directions that have packets, the initiator's first.
    pub(crate) fn directions(&self) -> impl Iterator<Item = HalfRecord> {
        let Biflow { forward, reverse } = self.counted;
        let RecordMacs { forward: macs, reverse: back_macs } = self.macs;
        let there = HalfRecord { key: self.key, macs, counters: forward };
        let back = HalfRecord { key: self.key.reversed(), macs: back_macs, counters: reverse };
        [there, back].into_iter().filter(|half| half.counters.packets > 0)
    }
}
