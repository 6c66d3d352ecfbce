//! The list with two cached PCBs: the last one received for, and the last one sent on.

use super::chain::Pcbs;
use super::{Arrival, Demux, Found, NotFound, RejectedPcb};
use crate::invariant::InvariantError;
use crate::raw::slab::OptIndex;

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
#[derive(Clone, Debug)]
pub struct SendReceive<T, K = super::FourTuple<super::Ipv4Addr>> {
    pcbs: Pcbs<K, T>,
    first: OptIndex,
    /// The PCB last received for.
    received: OptIndex,
    /// The PCB last sent on.
    sent: OptIndex,
}

impl<T, K> SendReceive<T, K> {
    /// Creates an empty list. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        let none = OptIndex::NONE;
        Self { pcbs: Pcbs::new(), first: none, received: none, sent: none }
    }

    /// Iterates over the PCBs in the order of a search. O(PCBs).
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
    /// list.sent(&1); // caches it, and does not move it
    /// assert!(list.iter().eq([(&2, &'b'), (&1, &'a')]));
    /// # Ok::<(), flowtable::demux::RejectedPcb<char>>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.pcbs.chain(self.first)
    }

    /// The cached PCBs in the order in which they are examined, each once.
    fn cached(&self, arrival: Arrival) -> [OptIndex; 2] {
        let [first, second] = match arrival {
            Arrival::Data => [self.received, self.sent],
            Arrival::Ack => [self.sent, self.received],
        };
        [first, if second == first { OptIndex::NONE } else { second }]
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
        let mut probed = 0;
        for at in self.cached(arrival) {
            probed += u32::from(at.is_some());
            if self.pcbs.is_at(at, key) {
                self.received = at;
                return Found { pcb: self.pcbs.get_mut(at), examined: probed };
            }
        }
        let search = self.pcbs.search(self.first, key);
        if search.at.is_some() {
            self.received = search.at;
        }
        Found { pcb: self.pcbs.get_mut(search.at), examined: probed + search.examined }
    }

    fn remove(&mut self, key: &K) -> Result<T, NotFound> {
        let (at, removed) = self.pcbs.remove(&mut self.first, key).ok_or(NotFound)?;
        for cached in [&mut self.received, &mut self.sent] {
            if *cached == at {
                *cached = OptIndex::NONE;
            }
        }
        Ok(removed.pcb)
    }

    fn sent(&mut self, key: &K) {
        let cached = [self.received, self.sent].into_iter().find(|&at| self.pcbs.is_at(at, key));
        let at = cached.unwrap_or_else(|| self.pcbs.search(self.first, key).at);
        if at.is_some() {
            self.sent = at;
        }
    }

    fn len(&self) -> usize {
        self.pcbs.len()
    }

    fn validate(&self) -> Result<(), InvariantError> {
        self.pcbs.validate([self.first].into_iter())?;
        self.pcbs.validate_cached(self.first, self.received)?;
        self.pcbs.validate_cached(self.first, self.sent)
    }
}
