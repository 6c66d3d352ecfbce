//! Keys whose bits cause trouble: `window` panics, calls a hook, or is inconsistent.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use flowtable::key::bits::{Address, BitString};

thread_local! {
    /// Calls of `window` before the one that panics; `None` if none does.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    /// Called by the next call of `window`.
    static CALL: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// A key whose `window` panics after a set number of calls, or calls a hook.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Panicking(pub u32);

impl BitString for Panicking {
    const BITS: u32 = 32;

    fn window(&self, pos: u32) -> u64 {
        if let Some(call) = CALL.take() {
            call();
        }
        match LEFT.get() {
            Some(0) => {
                LEFT.set(None);
                // Without the panic hook, which would print it.
                resume_unwind(Box::new("a window that panics"));
            }
            left => LEFT.set(left.map(|left| left - 1)),
        }
        self.0.window(pos)
    }
}

impl Address for Panicking {
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        Self(u32::from_windows(window))
    }

    fn truncated(&self, len: u32) -> Self {
        Self(self.0.truncated(len))
    }
}

/// Runs `act` on this thread, in which `window` of [`Panicking`] panics after `calls` calls, if
/// given.
///
/// # Errors
///
/// The panic.
pub fn with_panic_after<R>(calls: Option<u64>, act: impl FnOnce() -> R) -> thread::Result<R> {
    LEFT.set(calls);
    let result = catch_unwind(AssertUnwindSafe(act));
    LEFT.set(None);
    result
}

/// Runs `act` on this thread, in which the first `window` of [`Panicking`] calls `call`. Returns
/// whether it was called.
///
/// # Errors
///
/// A panic of `act`.
pub fn with_call<R>(
    call: impl FnOnce() + 'static,
    act: impl FnOnce() -> R,
) -> thread::Result<(R, bool)> {
    CALL.set(Some(Box::new(call)));
    let result = catch_unwind(AssertUnwindSafe(act));
    let was_called = CALL.take().is_none();
    result.map(|result| (result, was_called))
}

/// A key with inconsistent bits: the start of a window is rounded down to a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Inconsistent(pub u64);

impl BitString for Inconsistent {
    const BITS: u32 = 64;

    fn window(&self, pos: u32) -> u64 {
        self.0.window(pos / 8 * 8)
    }
}

impl Address for Inconsistent {
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        Self(u64::from_windows(window))
    }
}
