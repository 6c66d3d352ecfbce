//! The list of BSD, with a one-entry cache.

use super::chain::Pcbs;
use super::{Arrival, Demux, Found, NotFound, RejectedPcb};
use crate::invariant::InvariantError;
use crate::raw::slab::OptIndex;

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
#[derive(Clone, Debug)]
pub struct BsdList<T, K = super::FourTuple<super::Ipv4Addr>> {
    pcbs: Pcbs<K, T>,
    chain: CachedChain,
}

impl<T, K> BsdList<T, K> {
    /// Creates an empty list. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { pcbs: Pcbs::new(), chain: CachedChain::EMPTY }
    }

    /// Iterates over the PCBs in the order of a search. O(PCBs).
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

    fn validate(&self) -> Result<(), InvariantError> {
        self.pcbs.validate([self.chain.first].into_iter())?;
        self.pcbs.validate_cached(self.chain.first, self.chain.cached)
    }
}

/// A chain with a one-entry cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedChain {
    pub(super) first: OptIndex,
    /// The PCB found last. It is in this chain.
    pub(super) cached: OptIndex,
}

impl CachedChain {
    pub(super) const EMPTY: Self = Self { first: OptIndex::NONE, cached: OptIndex::NONE };

    #[inline]
    pub(super) fn lookup<'a, K: Eq, T>(
        &mut self,
        pcbs: &'a mut Pcbs<K, T>,
        key: &K,
    ) -> Found<'a, T> {
        let probed = u32::from(self.cached.is_some());
        if pcbs.is_at(self.cached, key) {
            return Found { pcb: pcbs.get_mut(self.cached), examined: probed };
        }
        let search = pcbs.search(self.first, key);
        if search.at.is_some() {
            self.cached = search.at;
        }
        Found { pcb: pcbs.get_mut(search.at), examined: probed + search.examined }
    }

    pub(super) fn remove<K: Eq, T>(
        &mut self,
        pcbs: &mut Pcbs<K, T>,
        key: &K,
    ) -> Result<T, NotFound> {
        let (at, removed) = pcbs.remove(&mut self.first, key).ok_or(NotFound)?;
        if self.cached == at {
            self.cached = OptIndex::NONE;
        }
        Ok(removed.pcb)
    }
}
