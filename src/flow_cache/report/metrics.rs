//! Counters and gauges of a flow cache, which are always on.

use core::ops::AddAssign;

use crate::flow_cache::packet::state::{Class, EndReason};
use crate::probes::Probes;

/// Counters of a flow cache since its creation, and gauges of its present state.
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
/// let [evicted, idle] = [EndReason::Resources, EndReason::Idle].map(|it| metrics.removed_for(it));
/// assert_eq!((evicted, idle), (1, 2));
/// assert_eq!(metrics.removed(EndReason::Idle, Class::Unreplied), 2);
///
/// // Caches of several cores together.
/// let mut all = metrics;
/// all += metrics;
/// assert_eq!((all.capacity, all.created, all.hit_ratio()), (4, 6, Some(0.25)));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Metrics {
    /// Present flows.
    pub flows: usize,
    /// Maximum number of flows.
    pub capacity: usize,
    /// Present flows by class, in the order of [`Class::ALL`].
    pub by_class: [usize; 4],
    /// Present flows that are pinned.
    pub pinned: usize,
    /// Present aliases.
    pub aliases: usize,
    /// Allocated bytes.
    pub bytes: usize,
    /// Whether an emergency is in progress.
    pub emergency: bool,
    /// Packets that found their flow.
    pub hits: u64,
    /// Packets that found no flow, or one that had ended.
    pub misses: u64,
    /// Flows created by packets.
    pub created: u64,
    /// Flows restored from images.
    pub restored: u64,
    /// Packets refused: no flow could be created.
    pub refused: u64,
    /// Flows removed, by reason and class: see [`removed`](Self::removed).
    pub removed: [[u64; 4]; 5],
    /// Reports of live flows.
    pub reported: u64,
    /// Emergencies begun.
    pub emergencies: u64,
    /// Reseeds of the index because of hash collisions.
    pub reseeds: usize,
    /// Packets by the number of keys compared; the last element also counts larger numbers. A hit
    /// in a burst counts as one comparison.
    pub probes: [u64; 8],
    /// Packets by the number of buckets probed, counted like `probes`.
    pub depths: [u64; 8],
}

impl Metrics {
    /// Returns the number of present flows of a class.
    #[must_use]
    pub const fn flows_of(&self, class: Class) -> usize {
        self.by_class[class as usize]
    }

    /// Returns the number of flows of a class that were removed for a reason.
    #[must_use]
    pub const fn removed(&self, reason: EndReason, class: Class) -> u64 {
        self.removed[reason as usize][class as usize]
    }

    /// Returns the number of flows that were removed for a reason.
    #[must_use]
    pub fn removed_for(&self, reason: EndReason) -> u64 {
        self.removed[reason as usize].iter().sum()
    }

    /// Returns the fraction of packets that found their flow, or `None` without packets.
    #[must_use]
    pub fn hit_ratio(&self) -> Option<f64> {
        let packets = self.hits + self.misses;
        (packets > 0).then(|| self.hits as f64 / packets as f64)
    }

    #[inline]
    pub(crate) fn record_lookup(&mut self, probes: Probes, is_hit: bool) {
        *if is_hit { &mut self.hits } else { &mut self.misses } += 1;
        self.probes[bin(probes.entries)] += 1;
        self.depths[bin(probes.nodes)] += 1;
    }

    pub(crate) fn insert(&mut self, class: Class) {
        self.by_class[class as usize] += 1;
    }

    pub(crate) fn change_class(&mut self, from: Class, to: Class) {
        self.by_class[from as usize] -= 1;
        self.by_class[to as usize] += 1;
    }

    pub(crate) fn remove(&mut self, reason: EndReason, class: Class) {
        self.by_class[class as usize] -= 1;
        self.count_removed(reason, class);
    }

    /// Counts a removed flow, without a change of the flows by class.
    #[inline]
    pub(crate) fn count_removed(&mut self, reason: EndReason, class: Class) {
        self.removed[reason as usize][class as usize] += 1;
    }
}

/// Adds the metrics of another cache; an emergency of either is one of both.
impl AddAssign for Metrics {
    fn add_assign(&mut self, other: Self) {
        fn sum<const N: usize>(ours: &mut [u64; N], theirs: [u64; N]) {
            ours.iter_mut().zip(theirs).for_each(|(our, their)| *our += their);
        }
        let classes = self.by_class.iter_mut().zip(other.by_class);
        classes.for_each(|(our, their)| *our += their);
        let reasons = self.removed.iter_mut().zip(other.removed);
        reasons.for_each(|(our, their)| sum(our, their));
        sum(&mut self.probes, other.probes);
        sum(&mut self.depths, other.depths);
        self.flows += other.flows;
        self.capacity += other.capacity;
        self.pinned += other.pinned;
        self.aliases += other.aliases;
        self.bytes += other.bytes;
        self.emergency |= other.emergency;
        self.hits += other.hits;
        self.misses += other.misses;
        self.created += other.created;
        self.restored += other.restored;
        self.refused += other.refused;
        self.reported += other.reported;
        self.emergencies += other.emergencies;
        self.reseeds += other.reseeds;
    }
}

#[inline]
fn bin(count: u32) -> usize {
    (count as usize).min(7)
}
