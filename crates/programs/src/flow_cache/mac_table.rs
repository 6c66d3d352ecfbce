//! MAC addresses of flows, in a table beside the cache: without the option, they need neither
//! memory nor instructions.

use capture::Macs;
use flowtable::{Direction, TrashMap};

/// The MAC addresses of a record: from the first packet of each direction, if the packet is in an
/// Ethernet frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordMacs {
    pub(crate) forward: Option<Macs>,
    pub(crate) reverse: Option<Macs>,
}

/// The addresses of flows, by their IDs.
#[derive(Default)]
pub(crate) struct MacTable {
    flows: TrashMap<u64, RecordMacs>,
}

impl MacTable {
    /// Bytes for a flow, at most: segments merge when they are filled to less than a third.
    pub(crate) const FLOW: usize = 160;

    /// Sets the addresses of a direction.
    #[cold]
    pub(crate) fn set(&mut self, flow: u64, direction: Direction, macs: Option<Macs>) {
        let of_flow = self.flows.entry(flow).or_default();
        match direction {
            Direction::Forward => of_flow.forward = macs,
            Direction::Reverse => of_flow.reverse = macs,
        }
    }

    pub(crate) fn get(&self, flow: u64) -> RecordMacs {
        self.flows.get(&flow).copied().unwrap_or_default()
    }

    /// Removes the addresses of a flow, for its record.
    #[cold]
    pub(crate) fn take(&mut self, flow: u64) -> RecordMacs {
        self.flows.remove(&flow).unwrap_or_default()
    }
}
