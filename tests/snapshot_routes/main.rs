//! `SnapshotRoutes`.
//!
//! A pin holds up the writers of the whole process, so these tests take turns, and are not in one
//! binary with those of `ConcurrentMap`.
//!
//! Modules that do not run under a sanitizer are not compiled for it, since that takes minutes.
#![cfg(feature = "concurrent")]

#[cfg(not(sanitizer))]
mod allocators;
#[cfg(not(sanitizer))]
mod forgotten;
#[cfg(not(sanitizer = "address"))]
mod guarantees;
#[cfg(not(sanitizer = "address"))]
mod guards;
#[cfg(not(sanitizer = "thread"))]
mod model;
#[cfg(not(sanitizer = "thread"))]
mod panics;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for the turn of a test, which lasts as long as the guard.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
