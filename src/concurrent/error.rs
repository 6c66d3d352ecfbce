//! The errors of writes.

use core::fmt;

use crate::table::error::TryReserveError;

/// The refusal of a write: readers delay the reclamation of more garbage than the limit allows, or
/// a map is full.
///
/// Nothing has changed. A thread that receives this error and holds a pin should repin it before it
/// tries again.
///
/// # Example
///
/// ```
/// let map = flowtable::ConcurrentMap::new().with_garbage_limit(1 << 16, 0);
/// let reader = map.pin();
/// // While this reader holds its pin, nothing that it may access is freed.
/// let error = (0..).find_map(|value| map.pin().insert("key", value).err()).unwrap();
/// assert_eq!(reader.get("key"), Some(&(error.refused.1 - 1)));
/// // One key is in one shard, whose limit is an eighth.
/// assert!(error.limit == 8192 && error.retired > 8192);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WouldExceed<T> {
    /// The refused input, which was not inserted.
    pub refused: T,
    /// Bytes that are retired and not freed yet: those of the structure, or of a shard.
    pub retired: usize,
    /// The limit that they exceed, in bytes: that of the structure, or an eighth of it for a shard
    /// of [`ConcurrentMap`](crate::ConcurrentMap).
    pub limit: usize,
    /// Whether the reason is that a map has its maximum number of entries, 2^31, with the removed
    /// ones that are not freed yet.
    pub is_full: bool,
}

impl<T> WouldExceed<T> {
    /// Applies a function to what was refused.
    pub(super) fn map<U>(self, map: impl FnOnce(T) -> U) -> WouldExceed<U> {
        let Self { refused, retired, limit, is_full } = self;
        WouldExceed { refused: map(refused), retired, limit, is_full }
    }
}

impl<T> fmt::Display for WouldExceed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { retired, limit, .. } = self;
        if self.is_full {
            return f.write_str("the map has 2^31 entries, the most that are possible");
        }
        write!(
            f,
            "readers delay the write: {retired} bytes wait for them, and the limit is {limit}"
        )
    }
}

/// Omits what was refused, which need not implement `Debug`.
impl<T> fmt::Debug for WouldExceed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { retired, limit, .. } = self;
        let mut fields = f.debug_struct("WouldExceed");
        fields.field("retired", retired).field("limit", limit).field("is_full", &self.is_full);
        fields.finish_non_exhaustive()
    }
}

impl<T> core::error::Error for WouldExceed<T> {}

/// The refusal of a write: its segment has to grow first, and cannot.
///
/// Nothing has changed. Key and value are copied, so the caller still has them.
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
        /// Bytes that are retired and not freed yet.
        retired: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The memory for a larger segment cannot be allocated.
    Memory(TryReserveError),
    /// Some hundred keys have the same hash, or nearly, and no segment may have more of them.
    Collisions,
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
                write!(f, "readers delay the reclamation of {retired} bytes, the limit is {limit}")
            }
            Self::Memory(error) => error.fmt(f),
            Self::Collisions => f.write_str("too many keys have the same hash"),
        }
    }
}

impl core::error::Error for Refused {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Memory(error) => Some(error),
            _ => None,
        }
    }
}
