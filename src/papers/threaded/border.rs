//! Border routers: the edge of an area of threaded indices.

use super::label::Label;
use super::table::{Hop, Port, Table};
use crate::cache::SourceHashCache;

/// A route of a border router: the result of its conventional lookup.
///
/// Paper: Chandranmenon and Varghese, section 4.1: a bit of the packet tells random indices from
/// threaded ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BorderRoute {
    /// The destination is in the area: this router's own [label](Table::label) for it.
    Inside(Label),
    /// The destination is outside: the output port. The packet keeps its random index.
    Outside(Port),
}

/// The forwarding of a router between an area and other networks. For packets from inside, one bit
/// of the label selects the table or the cache; labels from outside are not trusted.
///
/// ```text
///                                              area
///     │?│ random │ D │ ──▸ ┌─────────────────────────────┐
///                          │ cache of active destinations│      D: row 2, tag 9
///                          │   hit: its row              │ ──▸ │1│  41 │ D │     from here
///                          │   miss: look up, insert     │                        by label only
///     │1│ 9 │ 2  │ D │ ──▸ │ row 2, tag 9: ────────────▸ │ ──▸ │1│  41 │ D │
///                          └─────────────────────────────┘
/// ```
///
/// Routers of an area have rows for the area's destinations only. Packets from outside carry a
/// random index, which finds the few active destinations in a [`SourceHashCache`]; only the first
/// packet for each needs a conventional lookup. For a destination of the area the cache stores its
/// label at *this* router, so the row decides: changes of routing inside take effect at once, and
/// the tag reveals a row with another owner. For other destinations it stores a port; when routing
/// outside changes, [clear](SourceHashCache::clear) the cache.
///
/// | method | cost |
/// |---|---|
/// | [`forward`](Self::forward) by label | one row; a stale label costs the lookup |
/// | [`forward_from_outside`](Self::forward_from_outside) | one set of the cache, and the row |
/// | … on a miss | the lookup as well, each time if there is no route |
/// | memory | the cache |
///
/// Paper: Chandranmenon and Varghese, section 4.1, on hierarchies with
/// source hashing.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::hash::source_index::SourceIndex;
/// use flowtable::{SourceHashCache, Timestamp};
/// use flowtable::papers::threaded::{Border, BorderRoute, Hop, Label, Labels, Table};
///
/// let onward = Hop::Forward { port: 3, label: Label::new(41, 7).unwrap() };
/// let labels = Labels { capacity: 1000, hold_down: Duration::ZERO, start: 9 };
/// let mut table = Table::new(labels)?;
/// let own = table.insert("D", Some(onward), Timestamp::ZERO)?;
///
/// let mut border: Border<&str> = Border { cache: SourceHashCache::new(1000)? };
/// let random = Label::random(SourceIndex::new(0x1234_5678));
/// let look_up = |name: &&str| (*name == "D").then_some(BorderRoute::Inside(own));
/// // The first packet from outside needs a lookup, the second hits the cache. Both get a label.
/// assert_eq!(border.forward_from_outside(&table, random, &"D", look_up), Some(onward));
/// let hit = border.forward_from_outside(&table, random, &"D", |_| unreachable!());
/// assert_eq!((hit, border.cache.statistics().hits), (Some(onward), 1));
/// // A threaded packet from inside is forwarded by its row. From outside, the label is a guess.
/// assert_eq!(border.forward(&table, own, &"D", |_| unreachable!()), Some(onward));
/// assert_eq!(border.forward_from_outside(&table, own, &"E", look_up), None);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Border<K, const WAYS: usize = 1> {
    /// The active destinations outside the area, and those that packets from outside are for.
    /// Threaded packets from inside do not use it. A destination whose row has got another owner
    /// counts as a hit, though it is looked up again.
    pub cache: SourceHashCache<K, BorderRoute, WAYS>,
}

impl<K: Eq + Clone, const WAYS: usize> Border<K, WAYS> {
    /// Returns the hop of a packet from inside, which carries any kind of `label` and is for
    /// `destination`.
    ///
    /// A threaded label is trusted: the packet follows that row, whatever its destination. So this
    /// is for ports whose senders got their labels from this router and forge none: routers of the
    /// area, and trusted hosts. All others are [outside](Self::forward_from_outside).
    ///
    /// `look_up` is the conventional lookup, called if the label is stale or the destination is not
    /// active. Returns `None` if that finds no route. Such a result is not cached, as no event
    /// would invalidate it: each packet repeats the lookup.
    #[inline]
    pub fn forward<D>(
        &mut self,
        table: &Table<D>,
        label: Label,
        destination: &K,
        look_up: impl FnOnce(&K) -> Option<BorderRoute>,
    ) -> Option<Hop> {
        if !label.is_threaded() {
            return self.forward_from_outside(table, label, destination, look_up);
        }
        // A stale label is no index of the cache, so skip the cache.
        let known = table.forward(label).ok();
        known.or_else(|| resolve(table, label, look_up(destination)?))
    }

    /// Returns the hop of a packet from outside. Its field is a random index, whatever its first
    /// bit.
    ///
    /// The sender chooses the field, which is not trusted: it only selects a set of the cache,
    /// where destinations are compared. If the packet leaves the area again, its first bit is
    /// cleared.
    ///
    /// `look_up` is called as by [`forward`](Self::forward).
    #[inline]
    pub fn forward_from_outside<D>(
        &mut self,
        table: &Table<D>,
        label: Label,
        destination: &K,
        look_up: impl FnOnce(&K) -> Option<BorderRoute>,
    ) -> Option<Hop> {
        let label = Label::random(label.source_index());
        let active = self.cache.get(label.source_index(), destination).copied();
        if let Some(hop) = active.and_then(|route| resolve(table, label, route)) {
            return Some(hop);
        }
        let route = look_up(destination)?;
        let _ = self.cache.insert(label.source_index(), destination.clone(), route);
        resolve(table, label, route)
    }
}

/// Returns the hop of a packet with this label on a route.
#[inline]
fn resolve<D>(table: &Table<D>, label: Label, route: BorderRoute) -> Option<Hop> {
    match route {
        BorderRoute::Inside(own) => table.forward(own).ok(),
        BorderRoute::Outside(port) if label.is_threaded() => {
            Some(Hop::Forward { port, label: Label::NONE })
        }
        BorderRoute::Outside(port) => Some(Hop::Forward { port, label }),
    }
}
