//! The order of the entries of a `BoundedCache` with the policy LRU.

use super::bounded::BoundedCache;
use crate::eviction::Lru;
use crate::memory::Allocator;
use crate::table::records::Record;

impl<K, V, B: Allocator + Clone, S, A: Allocator + Clone> BoundedCache<K, V, Lru<B>, S, A> {
    /// Returns the least recently used entry, which is evicted next. No use is recorded.
    #[must_use]
    pub fn peek_lru(&self) -> Option<(&K, &V)> {
        self.policy.oldest().map(|slot| self.entry_at(slot))
    }

    /// Removes the least recently used entry, and returns it.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::Lru;
    /// use flowtable::{BoundedCache, DefaultHashBuilder};
    ///
    /// let mut pages = BoundedCache::with_parts(100, Lru::new(), DefaultHashBuilder::new())?;
    /// pages.extend([('a', 1), ('b', 2), ('c', 3)]);
    /// assert!(pages.promote(&'a'));
    /// assert!(pages.iter_by_recency().eq([(&'a', &1), (&'c', &3), (&'b', &2)]));
    /// assert_eq!(pages.peek_lru(), Some((&'b', &2)));
    /// assert_eq!([(); 2].map(|()| pages.pop_lru()), [Some(('b', 2)), Some(('c', 3))]);
    /// # Ok::<(), flowtable::cache::CacheError>(())
    /// ```
    pub fn pop_lru(&mut self) -> Option<(K, V)> {
        self.policy.oldest().map(|slot| self.remove_at(slot))
    }

    /// Iterates over the entries, the most recently used one first. No use is recorded. O(1) for
    /// each.
    pub fn iter_by_recency(&self) -> impl Iterator<Item = (&K, &V)> {
        self.policy.by_recency().map(|slot| self.entry_at(slot))
    }

    fn entry_at(&self, slot: u32) -> (&K, &V) {
        let Record { key, value, .. } = self.entries().records().record(slot);
        (key, value)
    }
}
