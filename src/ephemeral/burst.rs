//! Bursts: all heads are asked for first, then all entries that they lead to, and only then is anything looked at.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::Full;
use super::heads::Bit;
use super::store::EphemeralStore;
use crate::raw::prefetch::prefetch;
use crate::timestamp::Timestamp;

/// Tags that are asked for together: about as many misses as a processor has under way, twice.
const TOGETHER: usize = 32;

impl<T, V, S> EphemeralStore<T, V, S>
where
    T: Hash + Eq,
    S: BuildHasher,
{
    /// The values of several tags at once: their misses overlap. Each costs as [`find`](Self::find).
    ///
    /// # Panics
    ///
    /// If there are not as many places as tags.
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
        assert_eq!(tags.len(), found.len(), "a place for each tag");
        let elapsed = self.elapsed(now);
        for (tags, found) in tags.chunks(TOGETHER).zip(found.chunks_mut(TOGETHER)) {
            let hashes = self.ask_for(tags);
            for ((tag, found), &hash) in tags.iter().zip(found).zip(&hashes) {
                *found = self.get_hashed(hash, tag, elapsed);
            }
        }
    }

    /// Calls `each` with the number of each tag in the slice and the value of its living binding, to change, or says
    /// that there is no room for one. Bindings that are not there are created, with the value that `make` gives for
    /// the number of the tag. It is all done in the order of the slice, so that a tag may come twice.
    ///
    /// See [`get_or_insert_with`](Self::get_or_insert_with), and [`get_batch`](Self::get_batch) for an example.
    pub fn get_or_insert_batch(
        &mut self,
        tags: &[T],
        now: Timestamp,
        mut make: impl FnMut(usize) -> V,
        mut each: impl FnMut(usize, Result<&mut V, Full>),
    ) where
        T: Clone,
    {
        // Time passes once: whoever lives now lives for all of them.
        self.pass_to(now);
        for (chunk, tags) in tags.chunks(TOGETHER).enumerate() {
            let hashes = self.ask_for(tags);
            for (number, (tag, &hash)) in tags.iter().zip(&hashes).enumerate() {
                let number = chunk * TOGETHER + number;
                let value = match self.order_of_tag(hash, tag, 0, &mut ()) {
                    Some(order) => Ok(self.value_mut(order)),
                    None => self.create(hash, tag.clone(), || make(number), &mut ()),
                };
                each(number, value);
            }
        }
    }

    /// Asks for the heads of these tags, and for the entries that they lead to. The hashes.
    #[inline]
    fn ask_for<Q: Hash>(&self, tags: &[Q]) -> [u64; TOGETHER] {
        let mut hashes = [0; TOGETHER];
        for (hash, tag) in hashes.iter_mut().zip(tags) {
            *hash = self.hash_of(tag);
            prefetch(&raw const self.heads[self.chain_of(*hash)]);
        }
        for &hash in &hashes[..tags.len()] {
            let head = &self.heads[self.chain_of(hash)];
            if head.may_have(Bit::of(hash)) {
                self.ring.prefetch(head.newest());
            }
        }
        hashes
    }
}
