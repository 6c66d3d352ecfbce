//! A lock that no thread can wait for itself on, nor two threads for each other.
//!
//! No code of a caller's runs under a lock, but methods of its keys: [`Hash`](core::hash::Hash) and [`Eq`], or those
//! of an address. If one writes to a structure, it might wait for ever: for its own lock, or for that of a thread which waits for this
//! one. So a thread has one lock at a time, and is told by a panic if it asks for a second. (Locks of the
//! caller's are the caller's.)

use core::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use super::sync::{HAS_LOCK, Mutex, MutexGuard};

#[derive(Debug)]
pub(crate) struct Lock<T>(Mutex<T>);

/// The lock, held.
pub(crate) struct Held<'a, T>(MutexGuard<'a, T>);

impl<T> Lock<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self(Mutex::new(inner))
    }

    /// Waits for the lock.
    ///
    /// # Panics
    ///
    /// If this thread has one.
    pub(crate) fn lock(&self) -> Held<'_, T> {
        let has_lock = HAS_LOCK.with(|has_lock| has_lock.replace(true));
        assert!(!has_lock, "a method of a key must not write to a concurrent structure");
        // A panic under the lock comes from a method of a key, and whoever called it has left things in order.
        Held(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is behind it, without a lock.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        HAS_LOCK.with(|has_lock| has_lock.set(false));
    }
}
