//! `ConcurrentRoutes` and `ConcurrentStampedRoutes`.
//!
//! A pin holds up the garbage of the whole process, so these tests take turns, and are not in one
//! binary with those of `ConcurrentMap`.
#![cfg(feature = "concurrent")]

mod forgotten;
mod guarantees;
mod guards;
mod memory;
mod model;
mod panics;
mod random;
mod readers;
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
