//! Boxes that get their memory first and their value later: memory may be missing, and must be found to be so
//! before anything has changed.
#![allow(unsafe_code)]

use alloc::alloc::alloc;
use alloc::boxed::Box;
use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::error::TryReserveError;

/// An empty box; none where values need no box.
pub(super) type Shell<T> = Option<Box<MaybeUninit<T>>>;

/// A box that is still empty.
pub(super) fn empty_box<T>() -> Result<Box<MaybeUninit<T>>, TryReserveError> {
    if size_of::<T>() == 0 {
        return Ok(Box::new(MaybeUninit::uninit()));
    }
    let layout = Layout::new::<T>();
    // SAFETY: the layout has a size.
    let memory = unsafe { alloc(layout) };
    let memory = NonNull::new(memory).ok_or(TryReserveError::memory(layout))?;
    // SAFETY: allocated as a box of this type would be.
    Ok(unsafe { Box::from_raw(memory.cast().as_ptr()) })
}

/// A box with a value in it. Takes no memory.
pub(super) fn fill<T>(mut shell: Box<MaybeUninit<T>>, value: T) -> Box<T> {
    shell.write(value);
    // SAFETY: it has just been written.
    unsafe { shell.assume_init() }
}
