//! Traversals, concurrent with writers.
//!
//! A shard is visited with its directory at that time, and each of the segments line by line. An
//! entry does not move in a segment, and belongs to one segment of a directory. If a segment is
//! split meanwhile, either that is visited or both halves: see G1 and G2 in `growth.rs`. So an
//! entry that stays in the map is visited once.

use core::borrow::Borrow;
use core::iter::FusedIterator;
use core::slice;

use super::ConcurrentMap;
use super::index::{Entry, Index, Segments};
use super::line::{Full, Line};
use super::pinned::Pinned;
use super::segment::Segment;
use crate::concurrent::guard::Guard;

impl<K, V, S, G: Borrow<Guard>> Pinned<'_, K, V, S, G> {
    /// Iterates over all entries, in no order. An entry that is inserted or removed meanwhile is
    /// visited at most once, one that stays exactly once.
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1), ("b", 2)]);
    /// let pin = map.pin();
    /// assert_eq!(pin.iter().map(|(_, value)| value).sum::<i32>(), 3);
    /// ```
    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V, S> {
        Iter { entries: self.entries() }
    }

    /// Iterates over all keys: see [`iter`](Self::iter).
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// assert!(map.pin().keys().eq(&["a"]));
    /// ```
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over all values: see [`iter`](Self::iter).
    ///
    /// # Example
    ///
    /// ```
    /// let map = flowtable::ConcurrentMap::from([("a", 1)]);
    /// assert!(map.pin().values().eq(&[1]));
    /// ```
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    pub(super) fn entries(&self) -> Entries<'_, K, V, S> {
        let (map, epoch) = (self.map, self.epoch());
        let (directory, link, lines, line) = (None, None, [].iter(), None);
        Entries { map, epoch, shard: 0, directory, next_entry: 0, link, lines, line }
    }
}

/// An iterator over all entries, with their ids.
pub(super) struct Entries<'p, K, V, S> {
    map: &'p ConcurrentMap<K, V, S>,
    epoch: &'p crossbeam_epoch::Guard,
    /// The next shard.
    shard: usize,
    /// The directory of the shard before it, in progress.
    directory: Option<Segments<'p>>,
    /// The next entry of the directory.
    next_entry: usize,
    /// The link of a segment in progress.
    link: Option<&'p Segment>,
    /// Its remaining lines.
    lines: slice::Iter<'p, Line>,
    /// The line in progress, and its remaining slots.
    line: Option<(&'p Line, Full)>,
}

impl<'p, K, V, S> Entries<'p, K, V, S> {
    /// Returns the next link of the segment in progress, or else the next segment.
    fn next_link(&mut self) -> Option<&'p Segment> {
        if let Some(link) = self.link.and_then(Segment::next) {
            return Some(link);
        }
        loop {
            if let Some(directory) = self.directory.filter(|all| self.next_entry < all.len()) {
                let segment = Index::<(K, V)>::at(directory, self.next_entry);
                self.next_entry += 1 << (directory.depth() - segment.depth());
                return Some(segment);
            }
            if self.shard == self.map.shards.len() {
                return None;
            }
            self.directory = Some(self.map.index.directory(self.shard, self.epoch));
            (self.shard, self.next_entry) = (self.shard + 1, 0);
        }
    }
}

impl<'p, K, V, S> Iterator for Entries<'p, K, V, S> {
    type Item = Entry<'p, (K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((line, slots)) = &mut self.line {
                if let Some(slot) = slots.next() {
                    return Some(self.map.index.at_slot(line, slot, self.epoch));
                }
            }
            self.line = self.lines.next().map(|line| (line, line.tags().full()));
            if self.line.is_none() {
                self.link = self.next_link();
                self.lines = self.link?.lines().iter();
            }
        }
    }
}

/// An iterator over all entries of a map: see [`Pinned::iter`].
pub struct Iter<'p, K, V, S> {
    entries: Entries<'p, K, V, S>,
}

impl<'p, K, V, S> Iterator for Iter<'p, K, V, S> {
    type Item = (&'p K, &'p V);

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entries.next()?.get();
        Some((&entry.0, &entry.1))
    }
}

impl<K, V, S> FusedIterator for Iter<'_, K, V, S> {}

impl<'p, K, V, S, G: Borrow<Guard>> IntoIterator for &'p Pinned<'_, K, V, S, G> {
    type Item = (&'p K, &'p V);
    type IntoIter = Iter<'p, K, V, S>;

    fn into_iter(self) -> Iter<'p, K, V, S> {
        self.iter()
    }
}
