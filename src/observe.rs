//! Counting by type: what a look-up touches, without a `cfg` and without a cost when nobody asks.
//!
//! A counted look-up takes an [`Observer`]. The unit `()` observes nothing and compiles to
//! nothing; [`Probes`] counts. Papers on look-up count structures examined, not nanoseconds, and
//! so do our tests.

/// Is told what a look-up touches. Each method does nothing unless an implementor says otherwise.
pub trait Observer {
    /// An inner node was looked into: one slot read.
    #[inline]
    fn node(&mut self) {}

    /// An entry was looked at: one whole key compared.
    #[inline]
    fn entry(&mut self) {}
}

/// Observes nothing, at no cost.
impl Observer for () {}

/// Counts what a look-up touched.
///
/// # Example
///
/// ```
/// use flowtable::{LcTrieMap, Probes};
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
