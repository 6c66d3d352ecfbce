//! A `TrashMap` as a demultiplexer: what replaces the lists.

use core::hash::{BuildHasher, Hash};

use super::{Arrival, Broken, Demux, DemuxError, Found, NotFound, RejectedPcb};
use crate::hash::DefaultHashBuilder;
use crate::probes::Probes;
use crate::trash::TrashMap;

/// PCBs in a [`TrashMap`]: one PCB examined, however many there are.
///
/// Seven bits of the hash tell the eight PCBs of a bucket apart before any is looked at, so of a hundred
/// look-ups about two examine a second PCB. The number of chains is nobody's worry: the map grows and shrinks by
/// steps.
///
/// | method | cost |
/// |---|---|
/// | `insert` | O(1), and one step of growth of at most some thousand PCBs |
/// | `lookup`, `remove` | O(1) |
///
/// # Example
///
/// ```
/// use flowtable::demux::{Arrival, Demux, TrashDemux};
///
/// let mut demux = TrashDemux::new();
/// for number in 0..10_000_u32 {
///     demux.insert(number, ()).unwrap();
/// }
/// let examined: u32 = (0..10_000).map(|number| demux.lookup(&number, Arrival::Data).examined).sum();
/// assert!(examined < 10_400);
/// ```
#[derive(Clone, Debug)]
pub struct TrashDemux<T, K = super::FourTuple<super::Ipv4Addr>, S = DefaultHashBuilder> {
    pcbs: TrashMap<K, T, S>,
}

impl<T, K> TrashDemux<T, K> {
    /// No PCBs. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(DefaultHashBuilder::new())
    }
}

impl<T, K, S> TrashDemux<T, K, S> {
    /// No PCBs, to be found by this hash. Allocates nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::DefaultHashBuilder;
    /// use flowtable::demux::{Demux, TrashDemux};
    ///
    /// let mut demux = TrashDemux::with_hasher(DefaultHashBuilder::with_seed(7));
    /// for number in 0..10_u32 {
    ///     demux.insert(number, 2 * number).unwrap();
    /// }
    /// assert_eq!(demux.map().get_many([&3, &30]), [Some(&6), None]);
    /// ```
    #[must_use]
    pub const fn with_hasher(hasher: S) -> Self {
        Self { pcbs: TrashMap::with_hasher(hasher) }
    }

    /// The map of the PCBs, for its other methods: look-ups in bursts, its shape.
    #[must_use]
    pub const fn map(&self) -> &TrashMap<K, T, S> {
        &self.pcbs
    }
}

impl<T, K: Eq + Hash, S: BuildHasher> TrashDemux<T, K, S> {
    /// The way of the few PCBs that are not the first one to be examined.
    #[cold]
    fn search(&mut self, hash: u64, key: &K) -> Found<'_, T> {
        let mut probes = Probes::default();
        // Counting and changing are two searches: this is not where the time goes.
        let _ = self.pcbs.get_observed_hashed(hash, key, &mut probes);
        Found { pcb: self.pcbs.get_mut_hashed(hash, key), examined: probes.entries }
    }
}

impl<T, K, S: Default> Default for TrashDemux<T, K, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<T, K: Eq + Hash, S: BuildHasher> Demux<T, K> for TrashDemux<T, K, S> {
    fn insert(&mut self, key: K, pcb: T) -> Result<(), RejectedPcb<T>> {
        let hash = self.pcbs.hash_of(&key);
        if self.pcbs.get_hashed(hash, &key).is_some() {
            return Err(RejectedPcb { given: pcb, why: DemuxError::InUse });
        }
        match self.pcbs.try_insert_hashed(hash, key, pcb) {
            Ok(_) => Ok(()),
            Err(error) => Err(RejectedPcb { given: error.value, why: DemuxError::NoMemory }),
        }
    }

    #[inline]
    fn lookup(&mut self, key: &K, _: Arrival) -> Found<'_, T> {
        let hash = self.pcbs.hash_of(key);
        if self.pcbs.get_first_hashed(hash, key).is_none() {
            return self.search(hash, key);
        }
        Found { pcb: self.pcbs.get_mut_hashed(hash, key), examined: 1 }
    }

    fn remove(&mut self, key: &K) -> Result<T, NotFound> {
        self.pcbs.remove(key).ok_or(NotFound)
    }

    fn len(&self) -> usize {
        self.pcbs.len()
    }

    fn validate(&self) -> Result<(), Broken> {
        Ok(self.pcbs.validate()?)
    }
}
