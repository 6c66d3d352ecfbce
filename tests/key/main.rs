//! Keys: bit strings, prefixes and their serde representations.

mod bits;
mod prefix;
#[cfg(feature = "serde")]
mod serde;
