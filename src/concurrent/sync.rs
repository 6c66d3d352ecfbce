//! Synchronisation primitives: of `std`, or of a checker that explores interleavings (`loom`) or
//! draws them at random (`shuttle`). [`HAS_LOCK`] is set while a thread holds a lock (`lock.rs`),
//! [`FREEING`] while it frees memory (`garbage.rs`).

#[cfg(crossbeam_loom)]
mod chosen {
    use core::cell::Cell;

    use super::Freeing;

    pub(crate) use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
    pub(crate) use loom::sync::{Mutex, MutexGuard};
    pub(crate) use loom::thread::yield_now;

    loom::thread_local! {
        pub(crate) static HAS_LOCK: Cell<bool> = Cell::new(false);
        pub(crate) static FREEING: Cell<Freeing> = Cell::new(Freeing::No);
    }
}

#[cfg(all(shuttle, not(crossbeam_loom)))]
mod chosen {
    use core::cell::Cell;

    use super::Freeing;

    pub(crate) use core::sync::atomic::fence;
    pub(crate) use shuttle::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize,
    };
    pub(crate) use shuttle::sync::{Mutex, MutexGuard};
    pub(crate) use shuttle::thread::yield_now;

    shuttle::thread_local! {
        pub(crate) static HAS_LOCK: Cell<bool> = Cell::new(false);
        pub(crate) static FREEING: Cell<Freeing> = Cell::new(Freeing::No);
    }
}

#[cfg(not(any(crossbeam_loom, shuttle)))]
mod chosen {
    use core::cell::Cell;

    use super::Freeing;

    pub(crate) use core::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
    pub(crate) use std::sync::{Mutex, MutexGuard};
    pub(crate) use std::thread::yield_now;

    std::thread_local! {
        // Without destructors, so that they exist until the very end of a thread.
        pub(crate) static HAS_LOCK: Cell<bool> = const { Cell::new(false) };
        pub(crate) static FREEING: Cell<Freeing> = const { Cell::new(Freeing::No) };
    }
}

pub(crate) use alloc::sync::Arc;
pub(crate) use chosen::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, FREEING, HAS_LOCK, Mutex, MutexGuard,
    fence, yield_now,
};
pub(crate) use core::sync::atomic::Ordering;

/// Whether a thread frees garbage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freeing {
    No,
    Yes,
    /// Destructors have retired other garbage, or asked for help of the collector.
    HasRetired,
}

/// Whether a checker runs this code: then structures are as small as possible, so that short tests
/// reach all transitions.
pub(crate) const IS_CHECKED: bool = cfg!(any(crossbeam_loom, shuttle));
