//! Counting by type: what a look-up touches, without a `cfg` and without a cost when nobody asks.
//!
//! A counted look-up takes an [`Observer`]. The unit `()` observes nothing and compiles to
//! nothing; [`Probes`] counts. Papers on look-up count structures examined, not nanoseconds, and
//! so do our tests.

/// Is told what a look-up touches. Each method does nothing unless an implementor says otherwise.
///
/// # Example
///
/// ```
/// use flowtable::LcTrieMap;
/// use flowtable::probes::Observer;
///
/// /// Counts the nodes on the way to a leaf, and nothing else.
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
/// assert_eq!(depth.0, 1); // one node, every slot filled
/// ```
pub trait Observer {
    /// An inner node was looked into: one slot read.
    #[inline]
    fn node(&mut self) {}

    /// An entry was looked at: one whole key compared.
    #[inline]
    fn entry(&mut self) {}

    /// So many words of 32 bits were read or written. Only an [`EphemeralStore`](crate::EphemeralStore) says so.
    #[inline]
    fn words(&mut self, count: u32) {
        let _ = count;
    }
}

/// Observes nothing, at no cost.
impl Observer for () {}

/// Counts what a look-up touched.
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
    /// Inner nodes looked into.
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

/// Counts accesses to memory as routers of 32 bits have them: what papers on such machines count.
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
/// store.find_or_create_observed(7, now, || 1, &mut words)?;
/// store.find_observed(&7, now, &mut words);
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
