//! Bursts: prefetch all groups of the index, then all entries that they lead to, then look the
//! tags up.
#![allow(unsafe_code)]

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::Full;
use super::store::{EphemeralStore, RECLAIMED_PER_CREATION};
use crate::memory::Allocator;
use crate::raw::prefetch::BURST;
use crate::raw::results::results_for;
use crate::timestamp::Timestamp;

impl<T, V, S, A> EphemeralStore<T, V, S, A>
where
    T: Hash + Eq,
    S: BuildHasher,
    A: Allocator + Clone,
{
    /// Looks up the values of several tags, with overlapping cache misses. Each lookup costs as
    /// [`find`](Self::find). Elements of `found` beyond the tags are set to `None`.
    ///
    /// # Panics
    ///
    /// If `found` is shorter than `tags`.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// let now = Timestamp::ZERO;
    /// store.get_or_insert_batch(&[1, 2, 1], now, |_| 0, |_, value| *value.unwrap() += 1);
    /// let mut found = [None; 3];
    /// store.get_batch(&[1, 2, 3], now, &mut found);
    /// assert_eq!(found, [Some(&2), Some(&1), None]);
    /// # Ok::<(), flowtable::ephemeral::StoreError>(())
    /// ```
    pub fn get_batch<'a, Q>(&'a self, tags: &[Q], now: Timestamp, found: &mut [Option<&'a V>])
    where
        Q: Hash + Equivalent<T>,
    {
        let found = results_for(tags.len(), found);
        for (tags, found) in tags.chunks(BURST).zip(found.chunks_mut(BURST)) {
            self.get_burst(&self.hashes_of(tags)[..tags.len()], tags, now, found);
        }
    }

    /// Calls `each` with the index of each tag in the slice and its value, in the order of the
    /// slice, with overlapping cache misses. See [`get_batch`](Self::get_batch).
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{EphemeralStore, Timestamp};
    /// use std::time::Duration;
    ///
    /// let mut store: EphemeralStore = EphemeralStore::new(10, Duration::from_secs(10))?;
    /// store.find_or_create(7, Timestamp::ZERO, || 70)?;
    /// let mut sum = 0;
    /// store.get_batch_with(&[7, 8, 7], Timestamp::ZERO, |_, value| sum += value.unwrap_or(&1));
    /// assert_eq!(sum, 141);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn get_batch_with<'a, Q>(
        &'a self,
        tags: &[Q],
        now: Timestamp,
        mut each: impl FnMut(usize, Option<&'a V>),
    ) where
        Q: Hash + Equivalent<T>,
    {
        for (burst, tags) in tags.chunks(BURST).enumerate() {
            let mut found = [None; BURST];
            self.get_burst(&self.hashes_of(tags)[..tags.len()], tags, now, &mut found);
            for (index, value) in found[..tags.len()].iter().enumerate() {
                each(burst * BURST + index, *value);
            }
        }
    }

    /// Hashes up to [`BURST`] tags.
    #[inline]
    fn hashes_of<Q: Hash>(&self, tags: &[Q]) -> [u64; BURST] {
        let mut hashes = [0; BURST];
        hashes.iter_mut().zip(tags).for_each(|(hash, tag)| *hash = self.hash_of(tag));
        hashes
    }

    /// Finds or creates the bindings of several tags, in the order of the slice, with overlapping
    /// cache misses.
    ///
    /// Calls `each` with the index of each tag and a mutable reference to the value of its live
    /// binding, or with [`Full`]. A missing binding is created with the value that `make` returns
    /// for the index of the tag. A tag may occur more than once.
    ///
    /// See [`get_or_insert_with`](Self::get_or_insert_with), and [`get_batch`](Self::get_batch) for
    /// an example.
    pub fn get_or_insert_batch(
        &mut self,
        tags: &[T],
        now: Timestamp,
        mut make: impl FnMut(usize) -> V,
        mut each: impl FnMut(usize, Result<&mut V, Full<T>>),
    ) where
        T: Clone,
    {
        // Time advances once: bindings that are live now are live for the whole batch.
        self.advance_to(now);
        for (chunk, tags) in tags.chunks(BURST).enumerate() {
            let hashes = self.hashes_of(tags);
            self.prefetch(&hashes[..tags.len()]);
            for (offset, (tag, &hash)) in tags.iter().zip(&hashes).enumerate() {
                let index = chunk * BURST + offset;
                let value = match self.find_entry(hash, tag, self.span_after(0), &mut ()) {
                    Some(found) => Ok(found),
                    None => {
                        self.reclaim(RECLAIMED_PER_CREATION);
                        self.create(hash, tag.clone(), || make(index), &mut ())
                    }
                };
                // SAFETY: just found or created.
                each(index, value.map(|found| unsafe { self.value_mut(&found) }));
            }
        }
    }
}

impl<T: Eq, V, S, A: Allocator + Clone> EphemeralStore<T, V, S, A> {
    /// Looks up the values of several tags, given their hashes. See [`get_batch`](Self::get_batch).
    ///
    /// # Panics
    ///
    /// If `hashes` and `tags` differ in length, or `found` is shorter.
    pub fn get_batch_hashed<'a, Q>(
        &'a self,
        hashes: &[u64],
        tags: &[Q],
        now: Timestamp,
        found: &mut [Option<&'a V>],
    ) where
        Q: Equivalent<T>,
    {
        assert_eq!(hashes.len(), tags.len(), "one hash for each tag");
        let found = results_for(tags.len(), found);
        let queries = hashes.chunks(BURST).zip(tags.chunks(BURST));
        for ((hashes, tags), found) in queries.zip(found.chunks_mut(BURST)) {
            self.get_burst(hashes, tags, now, found);
        }
    }

    /// Looks up the values of up to [`BURST`] tags.
    #[inline]
    fn get_burst<'a, Q: Equivalent<T>>(
        &'a self,
        hashes: &[u64],
        tags: &[Q],
        now: Timestamp,
        found: &mut [Option<&'a V>],
    ) {
        let span = self.span_at(now);
        self.prefetch(hashes);
        for ((tag, found), &hash) in tags.iter().zip(found).zip(hashes) {
            *found = self.value_of(hash, tag, span);
        }
    }

    /// Prefetches the groups of hashes and the entries that these lead to.
    #[inline]
    fn prefetch(&self, hashes: &[u64]) {
        hashes.iter().for_each(|&hash| self.index.prefetch(hash));
        for &hash in hashes {
            if let Some(sequence) = self.index.first(hash) {
                self.ring.prefetch(sequence);
            }
        }
    }
}
