//! Memory for atomics: arrays whose allocation may fail.
#![allow(unsafe_code)]

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;
use core::ptr::NonNull;

use crate::table::error::TryReserveError;

/// The alignment of all arrays: two cache lines, which CPUs prefetch in pairs. So the low seven
/// bits of an address can store a number.
pub(super) const ALIGN: usize = 128;

fn layout<T>(len: usize) -> Result<Layout, TryReserveError> {
    let layout = Layout::array::<T>(len).and_then(|layout| layout.align_to(ALIGN));
    layout.map_err(|_| TryReserveError::OVERFLOW)
}

/// Allocates an array of `len` items, not 0, each the result of `new` for its index.
pub(super) fn allocate<T>(
    len: usize,
    new: impl Fn(usize) -> T,
) -> Result<NonNull<T>, TryReserveError> {
    let layout = layout::<T>(len)?;
    assert!(layout.size() > 0, "an array has items, of some size");
    // SAFETY: the layout has a size.
    let memory = unsafe { alloc(layout) };
    let first: NonNull<T> = NonNull::new(memory).ok_or(TryReserveError::memory(layout))?.cast();
    for index in 0..len {
        // SAFETY: the array has that many items.
        let item = unsafe { first.add(index) };
        // SAFETY: as above.
        unsafe { item.write(new(index)) };
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
    if let Ok(layout) = layout::<T>(len) {
        // SAFETY: by the contract; allocated with this layout.
        unsafe { dealloc(first.cast(), layout) };
    }
}
