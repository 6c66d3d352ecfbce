//! `ConcurrentRoutes` and `ConcurrentStampedRoutes`.
//!
//! A pin holds up the garbage of the whole process, so these tests take turns, and are not in one
//! binary with those of `ConcurrentMap`.
//!
//! Modules that do not run under a sanitizer are not compiled for it, since that takes minutes.
#![cfg(feature = "concurrent")]

#[cfg(not(sanitizer))]
mod forgotten;
#[cfg(not(sanitizer = "address"))]
mod guarantees;
#[cfg(not(sanitizer = "address"))]
mod guards;
#[cfg(not(sanitizer))]
mod memory;
#[cfg(not(sanitizer = "thread"))]
mod model;
#[cfg(not(sanitizer = "thread"))]
mod panics;
mod random;
#[cfg(not(sanitizer = "address"))]
mod readers;
#[cfg(not(sanitizer = "address"))]
mod stamped;

use std::sync::{Mutex, MutexGuard, PoisonError};

use ::model::threads::eventually;
use flowtable::concurrent::pin;

/// Waits for the turn of a test, which lasts as long as the guard.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until garbage that no pin protects is freed, such that `is_done`.
#[track_caller]
fn after_collection(what: &str, mut is_done: impl FnMut() -> bool) {
    eventually(what, || {
        pin().flush();
        is_done()
    });
}
