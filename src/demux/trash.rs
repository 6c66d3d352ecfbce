//! A `TrashMap` as a demultiplexer, in place of the lists.

use alloc::string::ToString;
use core::hash::{BuildHasher, Hash};

use super::{Arrival, Demux, DemuxError, Found, NotFound, RejectedPcb};
use crate::hash::{DefaultHashBuilder, Prehashed};
use crate::invariant::InvariantError;
use crate::trash::{TrashMap, TryInsertError};

/// PCBs in a [`TrashMap`]: a lookup examines one PCB, for any number of connections.
///
/// Tags of eight bits of the hash filter the PCBs of a group of 16 slots before any is examined, so
/// about two lookups of a hundred examine a second PCB. There is no number of chains to choose:
/// the map grows and shrinks in small steps.
///
/// | method | cost |
/// |---|---|
/// | `insert` | O(1), and a growth step of about 1000 PCBs at most |
/// | `lookup`, `remove` | O(1) |
///
/// # Example
///
/// ```
/// use flowtable::demux::{Arrival, Demux, TrashDemux};
///
/// let mut demux = TrashDemux::new();
/// for key in 0..10_000_u32 {
///     demux.insert(key, ()).unwrap();
/// }
/// let examined = (0..10_000).map(|key| demux.lookup(&key, Arrival::Data).examined).sum::<u32>();
/// assert!(examined < 10_700);
/// ```
#[derive(Clone, Debug)]
pub struct TrashDemux<T, K = super::FourTuple<super::Ipv4Addr>, S = DefaultHashBuilder> {
    pcbs: TrashMap<K, T, S>,
}

impl<T, K> TrashDemux<T, K> {
    /// Creates an empty map. Allocates nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(DefaultHashBuilder::new())
    }
}

impl<T, K, S> TrashDemux<T, K, S> {
    /// Creates an empty map with this hasher. Allocates nothing.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::DefaultHashBuilder;
    /// use flowtable::demux::{Demux, TrashDemux};
    ///
    /// let mut demux = TrashDemux::with_hasher(DefaultHashBuilder::with_seed(7));
    /// for key in 0..10_u32 {
    ///     demux.insert(key, 2 * key).unwrap();
    /// }
    /// assert_eq!((demux.map().get(&3), demux.map().get(&30)), (Some(&6), None));
    /// ```
    #[must_use]
    pub const fn with_hasher(hasher: S) -> Self {
        Self { pcbs: TrashMap::with_hasher(hasher) }
    }

    /// Returns the map of the PCBs, for its other methods, such as batched lookups and its shape.
    #[must_use]
    pub const fn map(&self) -> &TrashMap<K, T, S> {
        &self.pcbs
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
        if self.pcbs.contains_key(Prehashed { hash, key: &key }) {
            return Err(RejectedPcb { refused: pcb, reason: DemuxError::InUse });
        }
        match self.pcbs.try_insert_with_hash(hash, key, pcb) {
            Ok(_) => Ok(()),
            Err(TryInsertError { refused: (_, refused), .. }) => {
                Err(RejectedPcb { refused, reason: DemuxError::NoMemory })
            }
        }
    }

    #[inline]
    fn lookup(&mut self, key: &K, _: Arrival) -> Found<'_, T> {
        let (pcb, examined) = self.pcbs.get_mut_counted(key);
        Found { pcb, examined }
    }

    fn remove(&mut self, key: &K) -> Result<T, NotFound> {
        self.pcbs.remove(key).ok_or(NotFound)
    }

    fn len(&self) -> usize {
        self.pcbs.len()
    }

    fn validate(&self) -> Result<(), InvariantError> {
        self.pcbs.validate().map_err(|broken| InvariantError::new(broken.to_string()))
    }
}
