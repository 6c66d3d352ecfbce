//! A mutex that cannot deadlock: a thread holds at most one at a time.
//!
//! Code of callers runs under a lock: methods of their keys, [`Hash`](core::hash::Hash) and [`Eq`],
//! or methods of an address. If that code takes the lock of a structure, it could deadlock: on a
//! lock that its own thread holds, or on a lock of a thread that waits for its own thread. So
//! acquiring a second lock panics. (Locks of the caller are the caller's responsibility.)

use core::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};

use super::sync::{HAS_LOCK, Mutex, MutexGuard};

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
