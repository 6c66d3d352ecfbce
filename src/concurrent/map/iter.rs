//! Traversals, concurrent with writers.
//!
//! A shard is visited with its directory at that time, and each of the segments bucket by bucket.
//! An entry does not move in a segment, and belongs to one segment of a directory: so an entry that
//! stays in the map is visited once.

use core::borrow::Borrow;
use core::iter::FusedIterator;
use core::slice;

use super::ConcurrentMap;
use super::bucket::Bucket;
use super::directory::Directory;
use super::index::{Entry, InBucket, Index};
use super::pinned::Pinned;
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
        let (index, directory, buckets) = (None, None, [].iter());
        let (map, epoch, entries) = (self.map, self.epoch(), None);
        Entries { map, epoch, shard: 0, index, directory, next_entry: 0, buckets, entries }
    }
}

/// An iterator over all entries, with their ids.
pub(super) struct Entries<'p, K, V, S> {
    map: &'p ConcurrentMap<K, V, S>,
    epoch: &'p crossbeam_epoch::Guard,
    /// The next shard.
    shard: usize,
    /// The shard before it, in progress.
    index: Option<&'p Index<(K, V)>>,
    directory: Option<Directory<'p>>,
    /// The next entry of the directory.
    next_entry: usize,
    /// The remaining buckets of the segment.
    buckets: slice::Iter<'p, Bucket>,
    entries: Option<InBucket<'p, (K, V)>>,
}

impl<'p, K, V, S> Entries<'p, K, V, S> {
    /// Advances to the next segment. Returns false if there is none.
    fn next_segment(&mut self) -> bool {
        loop {
            if let Some(directory) = self.directory {
                if self.next_entry < directory.segments().len() {
                    self.buckets = directory.at(self.next_entry).buckets().iter();
                    let span = directory.span(self.next_entry);
                    self.next_entry = span.first + span.len;
                    return true;
                }
            }
            let Some(index) = self.map.indices.get(self.shard) else { return false };
            self.shard += 1;
            (self.directory, self.next_entry) = (Some(index.root.directory(self.epoch)), 0);
            self.index = Some(index);
        }
    }
}

impl<'p, K, V, S> Iterator for Entries<'p, K, V, S> {
    type Item = Entry<'p, (K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.entries.as_mut().and_then(Iterator::next) {
                return Some(entry);
            }
            match self.buckets.next().zip(self.index) {
                Some((bucket, index)) => {
                    self.entries = Some(index.entries(bucket.header(), self.epoch));
                }
                None if self.next_segment() => {}
                None => return None,
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
