//! What can go wrong: memory.

use alloc::vec::Vec;
use core::alloc::Layout;
use core::fmt;

/// The memory that entries need cannot be had.
///
/// # Example
///
/// ```
/// let mut flows: flowtable::TrashMap<u64, u64> = flowtable::TrashMap::new();
/// let error = flows.try_reserve(usize::MAX / 2).unwrap_err();
/// assert_eq!(error.bytes(), None); // more than there are addresses
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryReserveError {
    /// The allocation that failed; nothing if there is no such size.
    layout: Option<Layout>,
}

impl TryReserveError {
    pub(super) const OVERFLOW: Self = Self { layout: None };

    pub(super) const fn memory(layout: Layout) -> Self {
        Self { layout: Some(layout) }
    }

    /// Bytes that could not be allocated, unless their number is beyond what an allocation may have.
    #[must_use]
    pub fn bytes(&self) -> Option<usize> {
        self.layout.map(|layout| layout.size())
    }

    /// Ends as a failed allocation does in `alloc`.
    pub(super) fn raise(self) -> ! {
        match self.layout {
            Some(layout) => alloc::alloc::handle_alloc_error(layout),
            None => panic!("capacity overflow"),
        }
    }
}

/// Allocates room for so many items more, and no more than that.
pub(super) fn reserve<T>(array: &mut Vec<T>, additional: usize) -> Result<(), TryReserveError> {
    let layout = Layout::array::<T>(additional).map_err(|_| TryReserveError::OVERFLOW)?;
    array.try_reserve_exact(additional).map_err(|_| TryReserveError::memory(layout))
}

impl fmt::Display for TryReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes() {
            Some(bytes) => write!(f, "{bytes} bytes of memory cannot be had"),
            None => f.write_str("so many entries take more bytes than there are addresses"),
        }
    }
}

impl core::error::Error for TryReserveError {}

/// An entry for which there is no memory, and the reason.
///
/// # Example
///
/// ```
/// let mut flows = flowtable::TrashMap::new();
/// let hash = flows.hash_of("a");
/// let done = flows.try_insert_hashed(hash, "a", 1).map_err(|refused| (refused.key, refused.error));
/// assert_eq!(done, Ok(None));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TryInsertError<K, V> {
    /// The key, which is not in the map.
    pub key: K,
    /// Its value.
    pub value: V,
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
