//! Memory for atomics: allocations that may fail.
#![allow(unsafe_code)]

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;
use core::ptr::NonNull;

use crate::table::error::TryReserveError;

/// The alignment of all allocations: two cache lines, which CPUs prefetch in pairs. So the low
/// seven bits of an address can store a number.
pub(super) const ALIGN: usize = 128;

fn layout(bytes: usize) -> Result<Layout, TryReserveError> {
    Layout::from_size_align(bytes, ALIGN).map_err(|_| TryReserveError::OVERFLOW)
}

/// Allocates a number of bytes, not 0, which are not initialised.
pub(super) fn allocate_bytes(bytes: usize) -> Result<NonNull<u8>, TryReserveError> {
    let layout = layout(bytes)?;
    assert!(bytes > 0, "an allocation has a size");
    // SAFETY: the layout has a size.
    let memory = unsafe { alloc(layout) };
    NonNull::new(memory).ok_or(TryReserveError::memory(layout))
}

/// Frees an allocation.
///
/// # Safety
///
/// It was allocated with this number of bytes, is not used any more, and is freed once.
pub(super) unsafe fn free_bytes(memory: *mut u8, bytes: usize) {
    if let Ok(layout) = layout(bytes) {
        // SAFETY: by the contract; allocated with this layout.
        unsafe { dealloc(memory, layout) };
    }
}

/// Allocates an array of `len` items, not 0, each the result of `new` for its index.
pub(super) fn allocate<T>(
    len: usize,
    new: impl Fn(usize) -> T,
) -> Result<NonNull<T>, TryReserveError> {
    let first: NonNull<T> = allocate_bytes(len * size_of::<T>())?.cast();
    for index in 0..len {
        // SAFETY: the array has that many items.
        unsafe { first.as_ptr().wrapping_add(index).write(new(index)) };
    }
    Ok(first)
}

/// Frees an array.
///
/// # Safety
///
/// It was allocated with this length, is not used any more, and is freed once.
pub(super) unsafe fn free<T>(first: *mut T, len: usize) {
    let items = core::ptr::slice_from_raw_parts_mut(first, len);
    // SAFETY: by the contract.
    unsafe { items.drop_in_place() };
    // SAFETY: by the contract; allocated with this size.
    unsafe { free_bytes(first.cast(), len * size_of::<T>()) };
}
