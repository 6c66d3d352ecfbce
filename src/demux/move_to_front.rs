//! The list that moves PCBs to the front.

use super::chain::Pcbs;
use super::{Arrival, Demux, Found, NotFound, RejectedPcb};
use crate::invariant::InvariantError;
use crate::raw::slab::OptIndex;

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
#[derive(Clone, Debug)]
pub struct MoveToFront<T, K = super::FourTuple<super::Ipv4Addr>> {
    pcbs: Pcbs<K, T>,
    /// The PCB found or inserted last.
    first: OptIndex,
}

impl<T, K> MoveToFront<T, K> {
    /// Creates an empty list. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { pcbs: Pcbs::new(), first: OptIndex::NONE }
    }

    /// Iterates over the PCBs in the order of a search. O(PCBs).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::demux::{Arrival, Demux, MoveToFront};
    ///
    /// let mut list = MoveToFront::new();
    /// for (port, pcb) in [(1_u16, 'a'), (2, 'b')] {
    ///     list.insert(port, pcb)?;
    /// }
    /// assert_eq!(list.lookup(&1, Arrival::Data).examined, 2);
    /// assert!(list.iter().eq([(&1, &'a'), (&2, &'b')]));
    /// # Ok::<(), flowtable::demux::RejectedPcb<char>>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.pcbs.chain(self.first)
    }
}

impl<T, K> Default for MoveToFront<T, K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, K: Eq> Demux<T, K> for MoveToFront<T, K> {
    fn insert(&mut self, key: K, pcb: T) -> Result<(), RejectedPcb<T>> {
        self.pcbs.insert(&mut self.first, key, pcb)
    }

    fn lookup(&mut self, key: &K, _: Arrival) -> Found<'_, T> {
        self.pcbs.lookup_to_front(&mut self.first, key)
    }

    fn remove(&mut self, key: &K) -> Result<T, NotFound> {
        self.pcbs.remove(&mut self.first, key).map(|(_, removed)| removed.pcb).ok_or(NotFound)
    }

    fn len(&self) -> usize {
        self.pcbs.len()
    }

    fn validate(&self) -> Result<(), InvariantError> {
        self.pcbs.validate([self.first].into_iter())
    }
}
