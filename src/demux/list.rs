//! Single lists: BSD's, Crowcroft's, and Partridge and Pink's.

use super::chain::{Chain, Pcbs};
use super::{Arrival, Demux, Found, NotFound, RejectedPcb};
use crate::invariant::InvariantError;

/// One list of all PCBs, newest first, and a cached PCB: the one found last.
///
/// 4.3BSD-Reno had it, and stacks with a handful of sockets have it today. The cached PCB is
/// examined first. So all segments of a train but the first examine one PCB; any other segment
/// examines 1 + (N + 1) / 2 of N on average, and one that matches no connection N + 1.
///
/// | method | cost |
/// |---|---|
/// | `insert`, `lookup`, `remove` | O(PCBs) |
///
/// Paper: McKenney and Dove, section 3.1; equation 1 is
/// [`Tpca::bsd`](super::analysis::Tpca::bsd).
///
/// # Example
///
/// ```
/// use flowtable::demux::{Arrival, BsdList, Demux};
///
/// let mut list = BsdList::new();
/// for port in 1..=10_u16 {
///     list.insert(port, "a PCB")?;
/// }
/// assert_eq!(list.lookup(&1, Arrival::Data).examined, 10);
/// // Now port 1 is cached, and is examined before the list: a cache miss.
/// assert_eq!(list.lookup(&10, Arrival::Data).examined, 2);
/// # Ok::<(), flowtable::demux::RejectedPcb<&str>>(())
/// ```
pub type BsdList<T, K = super::FourTuple<super::Ipv4Addr>> = List<1, T, K>;

/// One list of all PCBs, ordered by their last segments: Crowcroft's.
///
/// The PCBs in front of one are those found since its last segment. So the fewer connections are
/// active, the fewer PCBs a lookup examines; if segments arrive round-robin, it examines all.
///
/// | method | cost |
/// |---|---|
/// | `insert`, `lookup`, `remove` | O(PCBs) |
///
/// Paper: McKenney and Dove, section 3.2; equations 5 and 6 are
/// [`Tpca::move_to_front`](super::analysis::Tpca::move_to_front). They count the PCBs in front, one
/// less than are examined.
///
/// # Example
///
/// ```
/// use flowtable::demux::{Arrival, Demux, MoveToFront};
///
/// let mut list = MoveToFront::new();
/// for port in 1..=10_u16 {
///     list.insert(port, "a PCB")?;
/// }
/// assert_eq!(list.lookup(&1, Arrival::Data).examined, 10);
/// assert_eq!(list.lookup(&10, Arrival::Data).examined, 2);
/// assert_eq!(list.lookup(&1, Arrival::Ack).examined, 2);
/// # Ok::<(), flowtable::demux::RejectedPcb<&str>>(())
/// ```
pub type MoveToFront<T, K = super::FourTuple<super::Ipv4Addr>> = List<0, T, K>;

/// One list of all PCBs, and two cached ones: Partridge and Pink's.
///
/// Data is likely for the connection that data was last received for, an acknowledgement for the
/// one that was last sent on. So a lookup examines the first cached PCB first for
/// [`Arrival::Data`], the second for [`Arrival::Ack`], then the other unless both are equal, then
/// the list. The stack reports the packets that it sends by [`sent`](Demux::sent).
///
/// | method | cost |
/// |---|---|
/// | `insert`, `lookup`, `remove` | O(PCBs) |
/// | `sent` | O(1) for a cached connection, otherwise O(PCBs) |
///
/// Paper: Partridge and Pink, *A faster UDP* (1993). McKenney and Dove do not compare it.
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
/// // Now port 2 was both received for and sent on.
/// assert_eq!(list.lookup(&1, Arrival::Data).examined, 1 + 10);
/// assert_eq!(list.lookup(&2, Arrival::Data).examined, 2);
/// # Ok::<(), flowtable::demux::RejectedPcb<&str>>(())
/// ```
pub type SendReceive<T, K = super::FourTuple<super::Ipv4Addr>> = List<2, T, K>;

/// One list of all PCBs, of which `CACHED` are cached: a [`BsdList`], a [`MoveToFront`] or a
/// [`SendReceive`].
#[derive(Clone, Debug)]
pub struct List<const CACHED: usize, T, K = super::FourTuple<super::Ipv4Addr>> {
    pcbs: Pcbs<K, T>,
    chain: Chain<CACHED>,
}

impl<const CACHED: usize, T, K> List<CACHED, T, K> {
    /// Creates an empty list. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { pcbs: Pcbs::new(), chain: Chain::EMPTY }
    }

    /// Iterates over the PCBs in the order of a search. O(PCBs).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::demux::{Arrival, Demux, MoveToFront, SendReceive};
    ///
    /// let (mut list, mut front) = (SendReceive::new(), MoveToFront::new());
    /// for (port, pcb) in [(1_u16, 'a'), (2, 'b')] {
    ///     list.insert(port, pcb)?;
    ///     front.insert(port, pcb)?;
    /// }
    /// list.sent(&1); // caches it, and does not move it
    /// assert!(list.iter().eq([(&2, &'b'), (&1, &'a')]));
    /// assert_eq!(front.lookup(&1, Arrival::Data).examined, 2);
    /// assert!(front.iter().eq([(&1, &'a'), (&2, &'b')]));
    /// # Ok::<(), flowtable::demux::RejectedPcb<char>>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.pcbs.chain(self.chain.first)
    }
}

impl<const CACHED: usize, T, K> Default for List<CACHED, T, K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const CACHED: usize, T, K: Eq> Demux<T, K> for List<CACHED, T, K> {
    fn insert(&mut self, key: K, pcb: T) -> Result<(), RejectedPcb<T>> {
        self.pcbs.insert(&mut self.chain.first, key, pcb)
    }

    fn lookup(&mut self, key: &K, arrival: Arrival) -> Found<'_, T> {
        self.chain.lookup(&mut self.pcbs, key, arrival)
    }

    fn remove(&mut self, key: &K) -> Result<T, NotFound> {
        self.chain.remove(&mut self.pcbs, key)
    }

    fn sent(&mut self, key: &K) {
        self.chain.sent(&self.pcbs, key);
    }

    fn len(&self) -> usize {
        self.pcbs.len()
    }

    fn validate(&self) -> Result<(), InvariantError> {
        self.pcbs.validate([self.chain].into_iter())
    }
}
