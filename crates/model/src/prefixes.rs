//! Prefixes and addresses derived from others.

use flowtable::Prefix;
use flowtable::key::bits::Address;

/// The prefix of an address, with a valid length.
pub fn prefix_of<A: Address>(address: A, len: u32) -> Prefix<A> {
    Prefix::new(address, len).unwrap_or_else(|error| panic!("{error}"))
}

/// `address` with its bit `at` flipped.
pub fn flipped<A: Address>(address: &A, at: u32) -> A {
    A::from_windows(|pos| match at.checked_sub(pos) {
        Some(bit @ 0..64) => address.window(pos) ^ 1 << (63 - bit),
        _ => address.window(pos),
    })
}

/// The first `at` bits of `front`, followed by those of `back`.
pub fn spliced<A: Address>(front: &A, at: u32, back: &A) -> A {
    let (front, hidden) = (front.truncated(at), back.truncated(at));
    A::from_windows(|pos| front.window(pos) | (back.window(pos) ^ hidden.window(pos)))
}

/// The last address of a prefix.
pub fn last_address<A: Address>(prefix: &Prefix<A>) -> A {
    spliced(&prefix.address(), prefix.len(), &A::from_windows(|_| u64::MAX))
}
