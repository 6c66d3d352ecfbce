//! The edge of the area where indices are threaded.

use super::label::Label;
use super::table::{Hop, Port, Table};
use crate::cache::{CacheError, SourceHashCache, Statistics};

/// What the conventional look-up of a border router says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The destination is in the area: this router's own [label](Table::label) for it.
    Inside(Label),
    /// It is not: the packet goes out here, with the random index that it has.
    Outside(Port),
}

/// A router between an area and the rest of the world. One bit of a packet from inside says which of two tables it is
/// for; of those from outside nothing is believed.
///
/// ```text
///                                              area
///     │?│ random │ D │ ──▸ ┌─────────────────────────────┐
///                          │ cache of active destinations│      D: row 2, tag 9
///                          │   hit: its row              │ ──▸ │1│  41 │ D │     from here on
///                          │   miss: look up, insert     │                        by label only
///     │1│ 9 │ 2  │ D │ ──▸ │ row 2, tag 9: ────────────▸ │ ──▸ │1│  41 │ D │
///                          └─────────────────────────────┘
/// ```
///
/// Routers of an area have rows for the area's destinations, not for those of the world. Packets from outside carry a
/// random index, by which the few destinations that are active are found in a [`SourceHashCache`]; only the first
/// packet for each pays for the look-up. What the cache has for a destination of the area is its label *here*,
/// so the row decides: whatever routing changes inside is followed at once, and a row that is another's now is noticed
/// by its tag. What it has for others is a port; when routing outside changes, the cache is to be
/// [cleared](Self::clear).
///
/// | method | cost |
/// |---|---|
/// | [`forward`](Self::forward) | by label: one row. By index, or if the label is stale, the look-up: as below |
/// | [`forward_from_outside`](Self::forward_from_outside) | one line of the cache, and the row. On a miss the look-up besides, each time if there is no way |
/// | memory | that of the cache |
///
/// Paper: Chandranmenon and Varghese, on hierarchies of threaded indices and source hashing.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::hash::source_index::SourceIndex;
/// use flowtable::Timestamp;
/// use flowtable::threaded::{Border, Hop, Label, Labels, Table, Way};
///
/// let onward = Hop::Forward { port: 3, label: Label::new(41, 7).unwrap() };
/// let mut table = Table::new(Labels::new(1000, Duration::ZERO, 9)?);
/// let own = table.insert("D", Some(onward), Timestamp::ZERO)?;
///
/// let mut border: Border<&str> = Border::new(1000)?;
/// let random = Label::random(SourceIndex::new(0x1234_5678));
/// let look_up = |name: &&str| (*name == "D").then_some(Way::Inside(own));
/// // The first packet from outside is looked up, the second is not; both are threaded from here on.
/// assert_eq!(border.forward_from_outside(&table, random, &"D", look_up), Some(onward));
/// assert_eq!(border.forward_from_outside(&table, random, &"D", |_| unreachable!()), Some(onward));
/// assert_eq!(border.statistics().hits, 1);
/// // A packet from inside that is threaded already is for the table. From outside, it would be a guess.
/// assert_eq!(border.forward(&table, own, &"D", |_| unreachable!()), Some(onward));
/// assert_eq!(border.forward_from_outside(&table, own, &"E", look_up), None);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Border<K, const WAYS: usize = 1> {
    cache: SourceHashCache<K, Way, WAYS>,
}

impl<K, const WAYS: usize> Border<K, WAYS> {
    /// A cache for so many active destinations, or some more.
    ///
    /// # Errors
    ///
    /// If that is none, or there is no memory for so many.
    pub fn new(active: usize) -> Result<Self, CacheError> {
        Ok(Self { cache: SourceHashCache::new(active)? })
    }

    /// Goes by this cache: who makes it chooses what it replaces. What it holds must be right.
    #[must_use]
    pub const fn with_cache(cache: SourceHashCache<K, Way, WAYS>) -> Self {
        Self { cache }
    }

    /// What the cache was good for. Packets from inside that came threaded do not count. A destination whose row has
    /// become another's since counts as a hit, though it is looked up again.
    #[must_use]
    pub const fn statistics(&self) -> Statistics {
        self.cache.statistics()
    }

    /// Forgets all active destinations: routing outside has changed. O(1).
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::cache::{Replacement, SourceHashCache};
    /// use flowtable::threaded::{Border, Label, Labels, Table, Way};
    ///
    /// let cache = SourceHashCache::<u32, Way, 4>::new(1000)?.with_replacement(Replacement::LeastRecentlyUsed);
    /// let mut border = Border::with_cache(cache);
    /// let table: Table<u32> = Table::new(Labels::new(10, Duration::ZERO, 0)?);
    /// // A port of the world is cached until routing there says otherwise.
    /// border.forward(&table, Label::NONE, &7, |_| Some(Way::Outside(1)));
    /// border.forward(&table, Label::NONE, &7, |_| unreachable!("it is active"));
    /// border.clear();
    /// let mut asked = false;
    /// border.forward(&table, Label::NONE, &7, |_| { asked = true; Some(Way::Outside(2)) });
    /// assert!(asked && border.statistics().hits == 1);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn clear(&mut self) {
        self.cache.clear();
    }
}

impl<K: Eq + Clone, const WAYS: usize> Border<K, WAYS> {
    /// What to do with a packet from inside, which carries `label`, of whichever kind, and is for `destination`.
    ///
    /// A label that is threaded is believed: the packet goes where that row leads, whatever its destination. So this
    /// is for ports behind which all were told their labels and none makes them up: routers of the area, and hosts
    /// that are trusted. All others are [outside](Self::forward_from_outside).
    ///
    /// `look_up` is the conventional look-up: it is asked if the label is stale, or the destination is not active.
    /// `None` if that knows no way. It is asked again for each such packet: what cannot be reached is not remembered,
    /// as nothing would tell when it can.
    #[inline]
    pub fn forward<D>(
        &mut self,
        table: &Table<D>,
        label: Label,
        destination: &K,
        look_up: impl FnOnce(&K) -> Option<Way>,
    ) -> Option<Hop> {
        if !label.is_threaded() {
            return self.forward_from_outside(table, label, destination, look_up);
        }
        // A stale one says nothing about where in the cache the destination would be.
        let known = table.forward(label).ok();
        known.or_else(|| onward(table, label, look_up(destination)?))
    }

    /// What to do with a packet from outside: its field is a random index, whatever its first bit says.
    ///
    /// Strangers choose what is in the field. Nothing of it is believed: it says where in the cache the destination
    /// may be, and there destinations are compared. If the packet goes out again, its first bit is cleared.
    ///
    /// `look_up` is asked as by [`forward`](Self::forward).
    #[inline]
    pub fn forward_from_outside<D>(
        &mut self,
        table: &Table<D>,
        label: Label,
        destination: &K,
        look_up: impl FnOnce(&K) -> Option<Way>,
    ) -> Option<Hop> {
        let label = Label::random(label.source_index());
        let active = self.cache.get(label.source_index(), destination).copied();
        if let Some(hop) = active.and_then(|way| onward(table, label, way)) {
            return Some(hop);
        }
        let way = look_up(destination)?;
        let _ = self.cache.insert(label.source_index(), destination.clone(), way);
        onward(table, label, way)
    }
}

/// What a way means for a packet with this label.
#[inline]
fn onward<D>(table: &Table<D>, label: Label, way: Way) -> Option<Hop> {
    match way {
        Way::Inside(own) => table.forward(own).ok(),
        Way::Outside(port) if label.is_threaded() => {
            Some(Hop::Forward { port, label: Label::NONE })
        }
        Way::Outside(port) => Some(Hop::Forward { port, label }),
    }
}
