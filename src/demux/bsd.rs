//! The list of BSD, with the PCB that was found last remembered.

use super::chain::{NONE, Pcbs};
use super::{Arrival, Broken, Demux, Found, NotFound, RejectedPcb};

/// One list of all PCBs, newest first, and the PCB found last: what 4.3BSD-Reno had, and what stacks with a handful
/// of sockets have today.
///
/// The remembered PCB is asked first. So all segments of a train but the first examine one PCB; any other
/// examines 1 + (N + 1) / 2 of N on average, one that is for nobody N + 1.
///
/// | method | cost |
/// |---|---|
/// | `insert`, `lookup`, `remove` | O(PCBs) |
///
/// Paper: McKenney and Dove, section 3.1; equation 1 is [`Tpca::bsd`](super::analysis::Tpca::bsd).
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
/// // Now number 1 is remembered, and is asked before the list is: in vain.
/// assert_eq!(list.lookup(&10, Arrival::Data).examined, 2);
/// # Ok::<(), flowtable::demux::RejectedPcb<&str>>(())
/// ```
#[derive(Clone, Debug)]
pub struct BsdList<T, K = super::FourTuple<super::Ipv4Addr>> {
    pcbs: Pcbs<K, T>,
    chain: Remembering,
}

impl<T, K> BsdList<T, K> {
    /// An empty list. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { pcbs: Pcbs::new(), chain: Remembering::EMPTY }
    }

    /// The PCBs, as a search comes by them. O(PCBs).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::demux::{BsdList, Demux};
    ///
    /// let mut list = BsdList::new();
    /// for (port, pcb) in [(1_u16, 'a'), (2, 'b')] {
    ///     list.insert(port, pcb)?;
    /// }
    /// assert!(list.iter().eq([(&2, &'b'), (&1, &'a')]));
    /// # Ok::<(), flowtable::demux::RejectedPcb<char>>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.pcbs.chain(self.chain.first)
    }
}

impl<T, K> Default for BsdList<T, K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, K: Eq> Demux<T, K> for BsdList<T, K> {
    fn insert(&mut self, key: K, pcb: T) -> Result<(), RejectedPcb<T>> {
        self.pcbs.insert(&mut self.chain.first, key, pcb)
    }

    fn lookup(&mut self, key: &K, _: Arrival) -> Found<'_, T> {
        self.chain.lookup(&mut self.pcbs, key)
    }

    fn remove(&mut self, key: &K) -> Result<T, NotFound> {
        self.chain.remove(&mut self.pcbs, key)
    }

    fn len(&self) -> usize {
        self.pcbs.len()
    }

    fn validate(&self) -> Result<(), Broken> {
        self.pcbs.validate([self.chain.first].into_iter())?;
        self.pcbs.validate_remembered(self.chain.first, self.chain.remembered)
    }
}

/// A chain of which the PCB found last is remembered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remembering {
    pub(super) first: u32,
    /// The PCB found last, or [`NONE`]. It is in this chain.
    pub(super) remembered: u32,
}

impl Remembering {
    pub(super) const EMPTY: Self = Self { first: NONE, remembered: NONE };

    #[inline]
    pub(super) fn lookup<'a, K: Eq, T>(
        &mut self,
        pcbs: &'a mut Pcbs<K, T>,
        key: &K,
    ) -> Found<'a, T> {
        let asked = u32::from(self.remembered != NONE);
        if pcbs.is_at(self.remembered, key) {
            return Found { pcb: pcbs.get_mut(self.remembered), examined: asked };
        }
        let search = pcbs.search(self.first, key);
        if search.at != NONE {
            self.remembered = search.at;
        }
        Found { pcb: pcbs.get_mut(search.at), examined: asked + search.examined }
    }

    pub(super) fn remove<K: Eq, T>(
        &mut self,
        pcbs: &mut Pcbs<K, T>,
        key: &K,
    ) -> Result<T, NotFound> {
        let (at, pcb) = pcbs.remove(&mut self.first, key).ok_or(NotFound)?;
        if self.remembered == at {
            self.remembered = NONE;
        }
        Ok(pcb)
    }
}
