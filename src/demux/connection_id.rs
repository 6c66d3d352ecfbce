//! Packets that carry the place of their PCB.

use alloc::vec::Vec;

use super::{Arrival, Demux, DemuxError, Found, NotFound, RejectedPcb};

/// PCBs by an index that the packet carries, as in TP4 and XTP: the least that can be examined.
///
/// The name *is* the place. The host hands small numbers out and takes them back as it likes; packets may
/// come with any number, so a PCB that matters has a secret or an address to compare. Memory is that of all IDs up
/// to the greatest one, so the capacity should be what the host can afford.
///
/// | method | cost |
/// |---|---|
/// | `insert`, `lookup`, `remove` | O(1); an insertion past the greatest ID so far makes room for those in between |
///
/// Paper: McKenney and Dove, section 3.6.
///
/// # Example
///
/// ```
/// use flowtable::demux::{Arrival, ConnectionId, Demux, DemuxError};
///
/// let mut connections = ConnectionId::new(100);
/// connections.insert(7, "a PCB").unwrap();
/// assert_eq!(connections.lookup(&7, Arrival::Data).pcb, Some(&mut "a PCB"));
/// // A number that nobody has handed out.
/// assert_eq!(connections.lookup(&4_000_000_000, Arrival::Data).pcb, None);
/// assert_eq!(connections.insert(100, "").unwrap_err().why, DemuxError::NoSuchId);
/// ```
#[derive(Clone, Debug)]
pub struct ConnectionId<T> {
    /// By ID. Never longer than the capacity.
    pcbs: Vec<Option<T>>,
    capacity: u32,
    len: usize,
}

impl<T> ConnectionId<T> {
    /// No PCBs, for IDs below `capacity`. Allocates nothing.
    #[must_use]
    pub const fn new(capacity: u32) -> Self {
        Self { pcbs: Vec::new(), capacity, len: 0 }
    }
}

impl<T> Demux<T, u32> for ConnectionId<T> {
    fn insert(&mut self, id: u32, pcb: T) -> Result<(), RejectedPcb<T>> {
        if id >= self.capacity {
            return Err(RejectedPcb { given: pcb, why: DemuxError::NoSuchId });
        }
        let place = id as usize;
        if place >= self.pcbs.len() {
            if self.pcbs.try_reserve(place + 1 - self.pcbs.len()).is_err() {
                return Err(RejectedPcb { given: pcb, why: DemuxError::NoMemory });
            }
            self.pcbs.resize_with(place + 1, || None);
        }
        if self.pcbs[place].is_some() {
            return Err(RejectedPcb { given: pcb, why: DemuxError::InUse });
        }
        self.pcbs[place] = Some(pcb);
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
