//! Addresses made of two others.

use flowtable::{Address, Prefix};

/// The first `at` bits of one, and those of the other behind them.
pub(crate) fn spliced<A: Address>(front: &A, at: u32, back: &A) -> A {
    let (front, hidden) = (front.truncated(at), back.truncated(at));
    A::from_windows(|pos| front.window(pos) | (back.window(pos) ^ hidden.window(pos)))
}

/// The last address of a prefix.
pub(crate) fn last<A: Address>(prefix: &Prefix<A>) -> A {
    spliced(&prefix.address(), prefix.len(), &A::from_windows(|_| u64::MAX))
}
