//! Changes of the capacity of a `BoundedCache`.

use super::CacheError;
use super::bounded::BoundedCache;
use crate::eviction::Eviction;
use crate::memory::Allocator;
use crate::table::error::check_capacity;

impl<K, V, P: Eviction, S, A: Allocator + Clone> BoundedCache<K, V, P, S, A> {
    /// Changes the capacity. Entries above a lower one are evicted and dropped: victims of the
    /// policy, or others if it has none. O(capacity).
    ///
    /// A lower capacity frees no memory: the cache may grow again.
    ///
    /// # Errors
    ///
    /// If the capacity is zero, 2^30 or more, or there is no memory for it. Nothing has changed
    /// then.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::BoundedCache;
    /// use flowtable::cache::CacheError;
    ///
    /// let mut names: BoundedCache<u32, &str> = BoundedCache::new(2)?;
    /// names.extend([(1, "a"), (2, "b")]);
    /// names.set_capacity(3)?;
    /// _ = names.insert(3, "c");
    /// assert_eq!((names.len(), names.set_capacity(0)), (3, Err(CacheError::NoCapacity)));
    /// names.set_capacity(1)?;
    /// assert_eq!((names.len(), names.get(&3)), (1, Some(&"c")));
    /// # Ok::<(), CacheError>(())
    /// ```
    pub fn set_capacity(&mut self, capacity: usize) -> Result<(), CacheError> {
        check_capacity(capacity)?;
        if capacity > self.capacity() {
            // Insertions allocate nothing.
            self.policy.try_reserve(capacity as u32 - 1).map_err(|_| CacheError::NoMemory)?;
        }
        while self.len() > capacity {
            let Some(victim) = self.victim() else { break };
            drop(self.remove_at(victim));
        }
        let mut excess = self.len().saturating_sub(capacity);
        if excess > 0 {
            self.retain(|_, _| {
                let is_kept = excess == 0;
                excess = excess.saturating_sub(1);
                is_kept
            });
        }
        Ok(self.entries_mut().records_mut().set_capacity(capacity)?)
    }
}
