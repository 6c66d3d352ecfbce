//! Insertions that fail because an allocation fails.

use core::fmt;

use crate::table::error::TryReserveError;

/// An entry for which there is no memory, and the reason.
///
/// # Example
///
/// ```
/// let mut flows = flowtable::TrashMap::new();
/// let hash = flows.hash_of("a");
/// let done = flows.try_insert_hashed(hash, "a", 1);
/// let done = done.map_err(|failed| (failed.refused, failed.error));
/// assert_eq!(done, Ok(None));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TryInsertError<K, V> {
    /// The key, which is not in the map, and its value.
    pub refused: (K, V),
    /// Why there is no room.
    pub error: TryReserveError,
}

impl<K, V> fmt::Display for TryInsertError<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no room for the entry: {}", self.error)
    }
}

impl<K: fmt::Debug, V: fmt::Debug> core::error::Error for TryInsertError<K, V> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}
