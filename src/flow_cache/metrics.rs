//! What the cache counts, always.

use core::fmt;

use super::state::{Class, EndReason};
use crate::probes::Probes;

/// Counts since the cache was made, and what there is now.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Class, Config, EndReason, Packet};
/// use flowtable::{FlowCache, Timestamp};
///
/// let mut cache: FlowCache<u64, ()> = FlowCache::new(Config::new(2)?);
/// for id in [1, 1, 2, 3] {
///     cache.observe(&id, Packet::UDP, Timestamp::ZERO)?;
/// }
/// cache.advance(Timestamp::from_secs(3600), 100, |_| ());
/// let metrics = cache.metrics();
/// assert_eq!((metrics.flows, metrics.hit_ratio()), (0, Some(0.25)));
/// assert_eq!((metrics.evicted(), metrics.expired()), (1, 2));
/// assert_eq!(metrics.departed_for(EndReason::Idle), 2);
/// assert_eq!(metrics.departed(EndReason::Idle, Class::Unreplied), 2);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Metrics {
    /// Flows now.
    pub flows: usize,
    /// Flows that there may be.
    pub capacity: usize,
    /// Flows now by class, in the order of [`Class::ALL`].
    pub by_class: [usize; 4],
    /// Flows now that may not be evicted.
    pub pinned: usize,
    /// Further names now.
    pub names: usize,
    /// Bytes allocated now.
    pub bytes: usize,
    /// Whether there is an emergency now.
    pub emergency: bool,
    /// Packets whose flow was there.
    pub hits: u64,
    /// Packets whose flow was not there, or was over.
    pub misses: u64,
    /// Flows made by packets.
    pub created: u64,
    /// Flows taken in from images.
    pub restored: u64,
    /// Packets without a flow, since none could be made.
    pub refused: u64,
    /// Flows that left, by reason and class: see [`departed`](Self::departed).
    pub departed: [[u64; 4]; 5],
    /// Reports of flows that lived.
    pub reported: u64,
    /// Emergencies that have begun.
    pub emergencies: u64,
    /// How often the index drew a secret because hashes were not random.
    pub rekeys: usize,
    /// Packets by the number of keys that were compared for them; the last place is for more, too. A hit
    /// in a burst counts as one.
    pub probes: [u64; 8],
    /// The same by the number of buckets that were looked into.
    pub depths: [u64; 8],
}

impl Metrics {
    /// Flows now of a class.
    #[must_use]
    pub const fn flows_of(&self, class: Class) -> usize {
        self.by_class[class as usize]
    }

    /// Flows that left for this reason in this class.
    #[must_use]
    pub const fn departed(&self, reason: EndReason, class: Class) -> u64 {
        self.departed[reason as usize][class as usize]
    }

    /// Flows that left for this reason.
    #[must_use]
    pub fn departed_for(&self, reason: EndReason) -> u64 {
        self.departed[reason as usize].iter().sum()
    }

    /// Flows that left because there was no room.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.departed_for(EndReason::Resources)
    }

    /// Flows that were silent for too long, or over.
    #[must_use]
    pub fn expired(&self) -> u64 {
        self.departed_for(EndReason::Idle) + self.departed_for(EndReason::Ended)
    }

    /// The part of all packets whose flow was there. `None` without packets.
    #[must_use]
    pub fn hit_ratio(&self) -> Option<f64> {
        let packets = self.hits + self.misses;
        (packets > 0).then(|| self.hits as f64 / packets as f64)
    }

    #[inline]
    pub(super) fn look_up(&mut self, probes: Probes, is_hit: bool) {
        *if is_hit { &mut self.hits } else { &mut self.misses } += 1;
        self.probes[place(probes.entries)] += 1;
        self.depths[place(probes.nodes)] += 1;
    }

    pub(super) fn enter(&mut self, class: Class) {
        self.by_class[class as usize] += 1;
    }

    pub(super) fn reclass(&mut self, from: Class, to: Class) {
        self.by_class[from as usize] -= 1;
        self.by_class[to as usize] += 1;
    }

    pub(super) fn depart(&mut self, reason: EndReason, class: Class) {
        self.by_class[class as usize] -= 1;
        self.departed[reason as usize][class as usize] += 1;
    }
}

#[inline]
fn place(count: u32) -> usize {
    (count as usize).min(7)
}

/// A table of what there is and who left.
impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flows, capacity, bytes, hits, misses, .. } = self;
        writeln!(f, "{flows:>12} flows of {capacity}, {} pinned, {bytes} bytes", self.pinned)?;
        let rate = 100.0 * self.hit_ratio().unwrap_or(0.0);
        writeln!(f, "{:>12} packets: {hits} hits ({rate:.2} %), {misses} misses", hits + misses)?;
        write!(f, "{:>12} flows made, {} packets refused, ", self.created, self.refused)?;
        writeln!(f, "{} reports, {} emergencies", self.reported, self.emergencies)?;
        write!(f, "{:>20}", "")?;
        Class::ALL.iter().try_for_each(|class| write!(f, " {class:>11}"))?;
        write!(f, "\n{:>20}", "now")?;
        self.by_class.iter().try_for_each(|flows| write!(f, " {flows:>11}"))?;
        for (reason, row) in EndReason::ALL.iter().zip(self.departed) {
            if row != [0; 4] {
                write!(f, "\n{reason:>20}")?;
                row.iter().try_for_each(|count| write!(f, " {count:>11}"))?;
            }
        }
        Ok(())
    }
}
