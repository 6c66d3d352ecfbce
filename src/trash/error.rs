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
/// let done = done.map_err(|failed| (failed.refused, failed.error));
/// assert_eq!(done, Ok(None));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TryInsertError<T> {
    /// A key, which is not in the map, and its value; or a key alone, a value of a set, or an entry
    /// of a table.
    pub refused: T,
    /// Why there is no room.
    pub error: TryReserveError,
}

/// Omits the refused entry, so that `unwrap` and `?` need no `Debug` of it.
impl<T> fmt::Debug for TryInsertError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryInsertError").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for TryInsertError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no room: {}", self.error)
    }
}

impl<T> core::error::Error for TryInsertError<T> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}
