//! Synchronisation primitives: of `std`, or of a checker that explores interleavings (`loom`) or
//! draws them at random (`shuttle`). [`HAS_LOCK`] is set while a thread holds a [`Lock`],
//! [`FREEING`] while it frees memory (`collector.rs`).
//!
//! A [`Lock`] is a mutex that cannot deadlock: a thread holds at most one at a time.
//!
//! Code of callers runs under a lock: methods of their keys, [`Hash`](core::hash::Hash) and [`Eq`],
//! or methods of an address. If that code takes the lock of a structure, it could deadlock: on a
//! lock that its own thread holds, or on a lock of a thread that waits for its own thread. So
//! acquiring a second lock panics. (Locks of the caller are the caller's responsibility.)

use core::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};

#[cfg(crossbeam_loom)]
mod chosen {
    use core::cell::Cell;

    use super::Freeing;

    pub(crate) use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, fence,
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
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize,
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
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, fence,
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
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, FREEING, HAS_LOCK, Mutex,
    MutexGuard, fence, yield_now,
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

#[derive(Debug)]
pub(crate) struct Lock<T>(Mutex<T>);

/// A guard of the lock.
pub(crate) struct LockGuard<'a, T>(MutexGuard<'a, T>);

impl<T> Lock<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self(Mutex::new(inner))
    }

    /// Acquires the lock, and waits for it if necessary.
    ///
    /// # Panics
    ///
    /// If this thread holds a lock already.
    #[inline]
    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        enter();
        // A panic under the lock comes from code of the caller, and the structure has restored the
        // state.
        LockGuard(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Acquires the lock, unless another thread holds it. Panics as [`lock`](Self::lock) does.
    #[inline(always)]
    pub(crate) fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        enter();
        match self.0.try_lock() {
            Ok(guard) => Some(LockGuard(guard)),
            Err(TryLockError::Poisoned(error)) => Some(LockGuard(error.into_inner())),
            Err(TryLockError::WouldBlock) => {
                HAS_LOCK.with(|has_lock| has_lock.set(false));
                None
            }
        }
    }

    /// Returns a mutable reference to the contents, without locking.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records that this thread holds a lock.
#[inline(always)]
fn enter() {
    HAS_LOCK.with(|has_lock| {
        assert!(
            !has_lock.get(),
            "code that runs under a lock must not take another lock of a concurrent structure"
        );
        has_lock.set(true);
    });
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for LockGuard<'_, T> {
    fn drop(&mut self) {
        HAS_LOCK.with(|has_lock| has_lock.set(false));
    }
}
