//! The errors of writes.

use core::fmt;

use crate::table::error::TryReserveError;

/// The reason why a write is refused. Nothing has changed.
///
/// # Example
///
/// ```
/// use flowtable::concurrent::{ConcurrentTable, Refused};
///
/// let table = ConcurrentTable::<u64, u64>::new().with_garbage_limit(0, 0);
/// let reader = table.pin();
/// // While this reader holds its pin, no segment that was replaced is freed.
/// let error = (0..).find_map(|key| table.pin().insert(key, 1).err()).unwrap();
/// assert!(matches!(error, Refused::Garbage { limit: 0, .. }));
/// # drop(reader);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// Readers delay the reclamation of more garbage than the limit allows. A thread that receives
    /// this error and holds a pin should repin it before it tries again.
    Garbage {
        /// Bytes that are retired and not freed yet, in the structure or in a shard.
        retired: usize,
        /// The limit of the structure, in bytes, or a part of it, at least an eighth, for a shard
        /// of a [`ConcurrentMap`](crate::ConcurrentMap).
        limit: usize,
    },
    /// The memory cannot be allocated.
    Memory(TryReserveError),
    /// Some hundred keys have the same hash, or nearly, and no segment may have more of them.
    Collisions,
    /// A map has its maximum number of entries, 2^31, with the removed ones that are not freed yet.
    Full,
}

impl From<TryReserveError> for Refused {
    fn from(error: TryReserveError) -> Self {
        Self::Memory(error)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Garbage { retired, limit } => {
                write!(
                    f,
                    "readers delay the write: {retired} bytes wait for them, the limit is {limit}"
                )
            }
            Self::Memory(error) => error.fmt(f),
            Self::Collisions => f.write_str("too many keys have the same hash"),
            Self::Full => f.write_str("the map has 2^31 entries, the most that are possible"),
        }
    }
}

impl core::error::Error for Refused {}

/// The refusal of a write, with the input that was not inserted.
///
/// # Example
///
/// ```
/// use flowtable::concurrent::Refused;
///
/// let map = flowtable::ConcurrentMap::new().with_garbage_limit(1 << 16, 0);
/// let reader = map.pin();
/// // While this reader holds its pin, nothing that it may access is freed.
/// let error = (0..).find_map(|value| map.pin().insert("key", value).err()).unwrap();
/// assert_eq!(reader.get("key"), Some(&(error.refused.1 - 1)));
/// assert!(matches!(error.reason, Refused::Garbage { limit: 65_536, .. }));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refusal<T> {
    /// The refused input, which was not inserted.
    pub refused: T,
    /// The reason.
    pub reason: Refused,
}

impl<T> Refusal<T> {
    /// Applies a function to the refused input.
    pub(super) fn map<U>(self, map: impl FnOnce(T) -> U) -> Refusal<U> {
        Refusal { refused: map(self.refused), reason: self.reason }
    }
}

impl<T> fmt::Display for Refusal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

/// Omits the refused input, which need not implement `Debug`.
impl<T> fmt::Debug for Refusal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusal").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<T> core::error::Error for Refusal<T> {}
