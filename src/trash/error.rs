//! Insertions that fail because an allocation fails.

use core::fmt;

use crate::table::error::TryReserveError;

/// The error of an insertion without memory: the refused entry, and the reason.
///
/// # Example
///
/// ```
/// let mut flows = flowtable::TrashMap::new();
/// let done = flows.try_insert("a", 1);
/// let done = done.map_err(|failed| (failed.refused, failed.reason));
/// assert_eq!(done, Ok(None));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TryInsertError<T> {
    /// A key, which is not in the map, and its value; or a key alone, a value of a set, or an entry
    /// of a table.
    pub refused: T,
    /// The reason.
    pub reason: TryReserveError,
}

/// Omits the refused entry, so that `unwrap` and `?` need no `Debug` of it.
impl<T> fmt::Debug for TryInsertError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryInsertError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for TryInsertError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no room: {}", self.reason)
    }
}

impl<T> core::error::Error for TryInsertError<T> {}
