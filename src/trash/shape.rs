//! Statistics of a table: segments, load, distances of entries from home, bytes.

use alloc::vec::Vec;

use crate::memory::Allocator;
use crate::table::{REACH, Table};

/// The shape of a [`TrashMap`](crate::TrashMap), or of another table, at one moment.
///
/// # Example
///
/// ```
/// use flowtable::TrashMap;
///
/// let map: TrashMap<u32, ()> = (0..100_000).map(|key| (key, ())).collect();
/// let shape = map.shape();
/// assert_eq!((shape.entries, shape.bytes), (100_000, map.allocation_size()));
/// assert!((0.35..0.95).contains(&shape.load()));
/// assert!(shape.groups_per_hit() < 1.1); // about one in 25 is not in its home
/// assert!(shape.bytes_per_entry() < 15.0); // 5.2 for a slot, 1.3 to 2.5 slots for an entry
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TableShape {
    /// Number of entries.
    pub entries: usize,
    /// Number of segments.
    pub segments: usize,
    /// Slots of all segments, free ones included.
    pub slots: usize,
    /// Entries by how many groups of 16 slots they are from home: in their home, in the next one,
    /// …; the last number counts all that are further.
    pub entries_by_distance: Vec<usize>,
    /// Entries that are in the old table, during a [reseeding](crate::trash). They are
    /// not among those by distance.
    pub old: usize,
    /// Bytes allocated.
    pub bytes: usize,
}

impl TableShape {
    /// The shape of a table.
    pub(super) fn of<T, A: Allocator + Clone>(
        table: &Table<T, A>,
        hasher: &impl Fn(&T) -> u64,
    ) -> Self {
        let mut entries_by_distance = alloc::vec![0; REACH + 2];
        table.count_distances(&mut entries_by_distance, hasher);
        Self {
            entries: table.len(),
            segments: table.segments(),
            slots: table.slots(),
            entries_by_distance,
            old: 0,
            bytes: table.allocation_size(),
        }
    }

    /// Entries for each slot.
    #[must_use]
    pub fn load(&self) -> f64 {
        self.entries.saturating_sub(self.old) as f64 / self.slots.max(1) as f64
    }

    /// Groups of 16 slots that a lookup of an entry examines, on average. O(distances).
    #[must_use]
    pub fn groups_per_hit(&self) -> f64 {
        let by_distance = self.entries_by_distance.iter().enumerate();
        let total: usize = by_distance.map(|(distance, entries)| (distance + 1) * entries).sum();
        total as f64 / self.entries_by_distance.iter().sum::<usize>().max(1) as f64
    }

    /// Bytes for each entry.
    #[must_use]
    pub fn bytes_per_entry(&self) -> f64 {
        self.bytes as f64 / self.entries.max(1) as f64
    }
}
