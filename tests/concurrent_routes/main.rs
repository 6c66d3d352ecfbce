//! `ConcurrentRoutes`.
//!
//! A pin holds up the garbage of the whole process, so these tests take turns, and are not in one
//! binary with those of `ConcurrentMap`.
//!
//! With `--cfg shuttle` the primitives of the library are those of shuttle, which work only in the
//! tests of the module `shuttle`.
#![cfg(feature = "concurrent")]

#[cfg(not(shuttle))]
mod model;
#[cfg(shuttle)]
mod shuttle;

#[cfg(not(shuttle))]
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for the turn of a test, which lasts as long as the guard.
#[cfg(not(shuttle))]
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
