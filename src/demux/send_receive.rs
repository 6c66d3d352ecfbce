//! The list that remembers two PCBs: the last one received for, and the last one sent on.

use super::chain::{NONE, Pcbs};
use super::{Arrival, Broken, Demux, Found, NotFound, RejectedPcb};

/// One list of all PCBs, and two remembered ones: Partridge and Pink's.
///
/// Data is likely for the connection that data came for before, an acknowledgement for the one that was
/// sent on. So the first is asked first for [`Arrival::Data`], the second for [`Arrival::Ack`], then the other,
/// unless both are the same, then the list. The stack says what it sends by [`sent`](Demux::sent).
///
/// | method | cost |
/// |---|---|
/// | `insert`, `lookup`, `remove` | O(PCBs) |
/// | `sent` | O(1) for a remembered connection, else O(PCBs) |
///
/// Paper: Partridge and Pink, *A faster UDP* (1993), as McKenney and Dove compare it.
///
/// # Example
///
/// ```
/// use flowtable::demux::{Arrival, Demux, SendReceive};
///
/// let mut list = SendReceive::new();
/// for port in 1..=10_u16 {
///     list.insert(port, "a PCB")?;
/// }
/// assert_eq!(list.lookup(&1, Arrival::Data).examined, 10);
/// list.sent(&2);
/// assert_eq!(list.lookup(&2, Arrival::Ack).examined, 1);
/// // Now number 2 was received for, and sent on.
/// assert_eq!(list.lookup(&1, Arrival::Data).examined, 1 + 10);
/// assert_eq!(list.lookup(&2, Arrival::Data).examined, 2);
/// # Ok::<(), flowtable::demux::RejectedPcb<&str>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SendReceive<T, K = super::FourTuple<super::Ipv4Addr>> {
    pcbs: Pcbs<K, T>,
    first: u32,
    /// The PCB received for last, or [`NONE`].
    received: u32,
    /// The PCB sent on last, or [`NONE`].
    sent: u32,
}

impl<T, K> SendReceive<T, K> {
    /// An empty list. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { pcbs: Pcbs::new(), first: NONE, received: NONE, sent: NONE }
    }

    /// The PCBs, as a search comes by them. O(PCBs).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::demux::{Demux, SendReceive};
    ///
    /// let mut list = SendReceive::new();
    /// for (port, pcb) in [(1_u16, 'a'), (2, 'b')] {
    ///     list.insert(port, pcb)?;
    /// }
    /// list.sent(&1); // remembers it, and leaves it where it is
    /// assert!(list.iter().eq([(&2, &'b'), (&1, &'a')]));
    /// # Ok::<(), flowtable::demux::RejectedPcb<char>>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.pcbs.chain(self.first)
    }

    /// The remembered PCBs in the order in which they are asked, the second one unless it is the first.
    fn remembered(&self, arrival: Arrival) -> [u32; 2] {
        let [first, second] = match arrival {
            Arrival::Data => [self.received, self.sent],
            Arrival::Ack => [self.sent, self.received],
        };
        [first, if second == first { NONE } else { second }]
    }
}

impl<T, K> Default for SendReceive<T, K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, K: Eq> Demux<T, K> for SendReceive<T, K> {
    fn insert(&mut self, key: K, pcb: T) -> Result<(), RejectedPcb<T>> {
        self.pcbs.insert(&mut self.first, key, pcb)
    }

    fn lookup(&mut self, key: &K, arrival: Arrival) -> Found<'_, T> {
        let mut asked = 0;
        for at in self.remembered(arrival) {
            asked += u32::from(at != NONE);
            if self.pcbs.is_at(at, key) {
                self.received = at;
                return Found { pcb: self.pcbs.get_mut(at), examined: asked };
            }
        }
        let search = self.pcbs.search(self.first, key);
        if search.at != NONE {
            self.received = search.at;
        }
        Found { pcb: self.pcbs.get_mut(search.at), examined: asked + search.examined }
    }

    fn remove(&mut self, key: &K) -> Result<T, NotFound> {
        let (at, pcb) = self.pcbs.remove(&mut self.first, key).ok_or(NotFound)?;
        for remembered in [&mut self.received, &mut self.sent] {
            if *remembered == at {
                *remembered = NONE;
            }
        }
        Ok(pcb)
    }

    fn sent(&mut self, key: &K) {
        let remembered =
            [self.received, self.sent].into_iter().find(|&at| self.pcbs.is_at(at, key));
        let at = remembered.unwrap_or_else(|| self.pcbs.search(self.first, key).at);
        if at != NONE {
            self.sent = at;
        }
    }

    fn len(&self) -> usize {
        self.pcbs.len()
    }

    fn validate(&self) -> Result<(), Broken> {
        self.pcbs.validate([self.first].into_iter())?;
        self.pcbs.validate_remembered(self.first, self.received)?;
        self.pcbs.validate_remembered(self.first, self.sent)
    }
}
