//! Checks of the invariants of a map.

use core::hash::{BuildHasher, Hash};

use super::TrashMap;
use super::reseed::{self, Old};
use crate::invariant::InvariantError;
use crate::memory::Allocator;

impl<K: Eq + Hash, V, S: BuildHasher, A: Allocator + Clone> TrashMap<K, V, S, A> {
    /// Checks every invariant, for tests. O(slots).
    ///
    /// # Errors
    ///
    /// The invariant that does not hold: a bug in this crate, or a key type that breaks the
    /// contract of [`Hash`] and [`Eq`].
    ///
    /// # Example
    ///
    /// ```
    /// let mut map: flowtable::TrashMap<u32, u32> = (0..1000).map(|key| (key, key)).collect();
    /// map.retain(|key, _| key % 7 == 0);
    /// assert_eq!(map.validate(), Ok(()));
    /// ```
    #[doc(hidden)]
    pub fn validate(&self) -> Result<(), InvariantError> {
        if let Some(Old { table, seed, .. }) = self.reseeded.as_ref().and_then(|r| r.old.as_ref()) {
            table.validate(&reseed::entry_hasher(&self.hasher, seed.as_ref()))?;
        }
        self.current().validate(&self.current_hasher())
    }
}
