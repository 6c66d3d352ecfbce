//! Probe counters: the nodes, entries and words that a lookup accesses.
//!
//! An observed lookup takes an [`Observer`]. The unit `()` observes nothing and compiles to no
//! code, without a `cfg`; [`Probes`] counts. Papers on lookups count the structures examined, not
//! nanoseconds, and so do the tests of this crate.

/// A receiver of the events of a lookup. By default, each method does nothing.
///
/// # Example
///
/// ```
/// use flowtable::LcTrieMap;
/// use flowtable::probes::Observer;
///
/// /// Counts the nodes on the path to a leaf.
/// #[derive(Default)]
/// struct Depth(u32);
///
/// impl Observer for Depth {
///     fn node(&mut self) {
///         self.0 += 1;
///     }
/// }
///
/// let map: LcTrieMap<u32, ()> = (0..1024).map(|i| (i << 22, ())).collect();
/// let mut depth = Depth::default();
/// map.get_observed(&0, &mut depth);
/// assert_eq!(depth.0, 1); // one node with all slots occupied
/// ```
pub trait Observer {
    /// Called for each inner node visited: one slot is read.
    #[inline]
    fn node(&mut self) {}

    /// Called for each entry examined: one whole key is compared.
    #[inline]
    fn entry(&mut self) {}

    /// Called with the number of 32-bit words read or written. Only an
    /// [`EphemeralStore`](crate::EphemeralStore) calls it.
    #[inline]
    fn words(&mut self, count: u32) {
        let _ = count;
    }
}

/// The observer that does nothing, at no cost.
impl Observer for () {}

/// Counts the nodes and entries of a lookup.
///
/// # Example
///
/// ```
/// use flowtable::LcTrieMap;
/// use flowtable::probes::Probes;
///
/// let map = LcTrieMap::from_iter([(1_u32, 'a'), (u32::MAX, 'b')]);
/// let mut probes = Probes::default();
/// assert_eq!(map.get_observed(&1, &mut probes), Some(&'a'));
/// assert_eq!(probes, Probes { nodes: 1, entries: 1 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probes {
    /// Inner nodes visited.
    pub nodes: u32,
    /// Whole keys compared.
    pub entries: u32,
}

impl Observer for Probes {
    #[inline]
    fn node(&mut self) {
        self.nodes += 1;
    }

    #[inline]
    fn entry(&mut self) {
        self.entries += 1;
    }
}

/// Counts memory accesses in 32-bit words, as papers on 32-bit routers do.
///
/// Paper: Calvert, Griffioen and Wen, table 1.
///
/// # Example
///
/// ```
/// use flowtable::probes::Words;
/// use flowtable::{EphemeralStore, Timestamp};
/// use std::time::Duration;
///
/// let mut store: EphemeralStore = EphemeralStore::new(1000, Duration::from_secs(10))?;
/// let (now, mut words) = (Timestamp::ZERO, Words::default());
/// store.get_or_insert_with_observed(&7, now, || 1, &mut words)?;
/// store.get_observed(&7, now, &mut words);
/// assert_eq!(words, Words(5 + 5));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words(pub u32);

impl Observer for Words {
    #[inline]
    fn words(&mut self, count: u32) {
        self.0 += count;
    }
}
