//! Prefixes and addresses made of others.

use flowtable::{Address, Prefix};

/// A prefix that is not too long.
pub(crate) fn cut<A: Address>(address: A, len: u32) -> Prefix<A> {
    Prefix::new(address, len).unwrap_or_else(|error| panic!("{error}"))
}

/// `address` with its bit `at` turned.
pub(crate) fn turned<A: Address>(address: &A, at: u32) -> A {
    A::from_windows(|pos| match at.checked_sub(pos) {
        Some(behind @ 0..64) => address.window(pos) ^ 1 << (63 - behind),
        _ => address.window(pos),
    })
}
