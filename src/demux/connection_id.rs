//! Connection IDs: packets that carry the index of their PCB.

use alloc::vec::Vec;

use super::{Arrival, Demux, DemuxError, Found, NotFound, RejectedPcb};

/// PCBs in an array, by an index that the packet carries, as in TP4 and XTP.
///
/// A lookup examines one PCB, the least possible. The host assigns IDs, small ones first, and
/// may reuse them. Packets may carry any ID, so a PCB that matters should contain a nonce
/// or an address to compare. Memory is proportional to the greatest ID so far, so choose the
/// capacity by the memory the host can afford.
///
/// | method | cost |
/// |---|---|
/// | `lookup`, `remove` | O(1) |
/// | `insert` | O(1), or O(IDs skipped) past the greatest ID so far |
///
/// Paper: McKenney and Dove, section 3.4.
///
/// # Example
///
/// ```
/// use flowtable::demux::{Arrival, ConnectionId, Demux, DemuxError};
///
/// let mut connections = ConnectionId::new(100);
/// connections.insert(7, "a PCB").unwrap();
/// assert_eq!(connections.lookup(&7, Arrival::Data).pcb, Some(&mut "a PCB"));
/// // An ID that was never assigned.
/// assert_eq!(connections.lookup(&4_000_000_000, Arrival::Data).pcb, None);
/// assert_eq!(connections.insert(100, "").unwrap_err().reason, DemuxError::NoSuchId);
/// ```
#[derive(Clone, Debug)]
pub struct ConnectionId<T> {
    /// Slots by ID. At most `capacity`.
    pcbs: Vec<Option<T>>,
    capacity: u32,
    len: usize,
}

impl<T> ConnectionId<T> {
    /// Creates an empty array for IDs below `capacity`. Allocates nothing.
    #[must_use]
    pub const fn new(capacity: u32) -> Self {
        Self { pcbs: Vec::new(), capacity, len: 0 }
    }
}

impl<T> Demux<T, u32> for ConnectionId<T> {
    fn insert(&mut self, id: u32, pcb: T) -> Result<(), RejectedPcb<T>> {
        if id >= self.capacity {
            return Err(RejectedPcb { refused: pcb, reason: DemuxError::NoSuchId });
        }
        let slot = id as usize;
        if slot >= self.pcbs.len() {
            if self.pcbs.try_reserve(slot + 1 - self.pcbs.len()).is_err() {
                return Err(RejectedPcb { refused: pcb, reason: DemuxError::NoMemory });
            }
            self.pcbs.resize_with(slot + 1, || None);
        }
        if self.pcbs[slot].is_some() {
            return Err(RejectedPcb { refused: pcb, reason: DemuxError::InUse });
        }
        self.pcbs[slot] = Some(pcb);
        self.len += 1;
        Ok(())
    }

    fn lookup(&mut self, id: &u32, _: Arrival) -> Found<'_, T> {
        let pcb = self.pcbs.get_mut(*id as usize).and_then(Option::as_mut);
        Found { examined: u32::from(pcb.is_some()), pcb }
    }

    fn remove(&mut self, id: &u32) -> Result<T, NotFound> {
        let pcb = self.pcbs.get_mut(*id as usize).and_then(Option::take).ok_or(NotFound)?;
        self.len -= 1;
        Ok(pcb)
    }

    fn len(&self) -> usize {
        self.len
    }
}
