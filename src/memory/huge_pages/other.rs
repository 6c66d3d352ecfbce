//! Systems without huge pages.

use core::ptr::NonNull;
use std::io;

use super::{HugePagesError, PageSource};

/// Fails.
pub(super) fn map(_: usize, _: PageSource, _: Option<u32>) -> Result<NonNull<u8>, HugePagesError> {
    Err(HugePagesError::Unsupported)
}

/// Does nothing: nothing is mapped.
///
/// # Safety
///
/// None is required.
pub(super) unsafe fn unmap(_: NonNull<u8>, _: usize) {}

/// No bytes.
pub(super) fn huge_bytes(_: &[(NonNull<u8>, usize)]) -> io::Result<usize> {
    Ok(0)
}
