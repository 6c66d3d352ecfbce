//! Memory that entries need and that cannot be allocated.

use core::alloc::Layout;
use core::fmt;

use crate::memory::{Allocator, Vec};

/// The memory that entries need cannot be allocated.
///
/// # Example
///
/// ```
/// let mut flows: flowtable::TrashMap<u64, u64> = flowtable::TrashMap::new();
/// let error = flows.try_reserve(usize::MAX / 2).unwrap_err();
/// assert_eq!(error.bytes(), None); // more than there are addresses
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryReserveError {
    /// The entries take more bytes than the address space has.
    CapacityOverflow,
    /// The allocator has not had the memory.
    AllocError {
        /// The allocation that failed.
        layout: Layout,
    },
}

impl TryReserveError {
    pub(crate) const OVERFLOW: Self = Self::CapacityOverflow;

    pub(crate) const fn memory(layout: Layout) -> Self {
        Self::AllocError { layout }
    }

    /// The number of bytes that could not be allocated. `None` if the number exceeds the limit of
    /// an allocation.
    #[must_use]
    pub fn bytes(&self) -> Option<usize> {
        match self {
            Self::CapacityOverflow => None,
            Self::AllocError { layout } => Some(layout.size()),
        }
    }

    /// Ends as a failed allocation does in `alloc`.
    pub(crate) fn raise(self) -> ! {
        match self {
            Self::AllocError { layout } => alloc::alloc::handle_alloc_error(layout),
            Self::CapacityOverflow => panic!("capacity overflow"),
        }
    }
}

/// Allocates room for `additional` items more, and no more than that.
pub(crate) fn reserve<T, A: Allocator>(
    array: &mut Vec<T, A>,
    additional: usize,
) -> Result<(), TryReserveError> {
    let total = array.len().saturating_add(additional);
    let layout = Layout::array::<T>(total).map_err(|_| TryReserveError::OVERFLOW)?;
    array.try_reserve_exact(additional).map_err(|_| TryReserveError::memory(layout))
}

impl fmt::Display for TryReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes() {
            Some(bytes) => write!(f, "{bytes} bytes of memory cannot be allocated"),
            None => f.write_str("the entries take more bytes than there are addresses"),
        }
    }
}

impl core::error::Error for TryReserveError {}

/// The maximum capacity of a bounded structure: all slots that eviction policies support.
const MAX_CAPACITY: usize = (1 << 30) - 1;

/// Why there is no bounded structure with a capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CapacityError {
    /// It is zero.
    Zero,
    /// It is 2^30 or more, or takes more bytes than there are addresses.
    TooLarge,
    /// There is no memory for it.
    NoMemory,
}

impl From<TryReserveError> for CapacityError {
    fn from(error: TryReserveError) -> Self {
        if error.bytes().is_some() { Self::NoMemory } else { Self::TooLarge }
    }
}

/// Returns an error if no bounded structure has this capacity.
pub(crate) const fn check_capacity(capacity: usize) -> Result<(), CapacityError> {
    match capacity {
        0 => Err(CapacityError::Zero),
        1..=MAX_CAPACITY => Ok(()),
        _ => Err(CapacityError::TooLarge),
    }
}

/// Allocates room for one item more, and for as many as there are if there is none.
pub(crate) fn reserve_one<T, A: Allocator>(array: &mut Vec<T, A>) -> Result<(), TryReserveError> {
    if array.len() < array.capacity() { Ok(()) } else { reserve(array, array.len().max(4)) }
}
