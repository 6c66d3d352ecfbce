//! Classic hashes of routers, without a key: XOR folding, Fletcher's checksum and CRCs.
//!
//! They are hash functions of routers, for comparisons and for functions that several parties agree
//! on. For each of them there is a [`BuildHasher`](core::hash::BuildHasher), such as
//! `BuildHasherDefault<Crc32>`.
//!
//! | | bits | weakness | use |
//! |---|--:|---|---|
//! | [`XorFold8`], [`XorFold16`] | 8, 16 | correlated fields cancel out | few, random keys |
//! | [`Fletcher16`] | 16 | short keys of small integers | where it is computed anyway |
//! | [`Crc8Pair`] | 16 | keys that differ in one half only: 256 values | as in the paper |
//! | [`Crc16`] | 16 | correlated fields: it is linear | where 16 bits are enough |
//! | [`Crc32`] | 32 | correlated fields, less so | a function that several parties agree on |
//!
//! - **They are not keyed.** Anyone can compute any number of keys with equal hashes, which turn a
//!   chained table into a list. For keys from untrusted packets, use the default.
//! - **Only the low bits have entropy**: see the column *bits*. A table that uses the upper bits of
//!   a hash, as Swiss tables and [`TrashMap`](crate::TrashMap) do, needs another hash.
//! - **`write(&[u8])` is portable**, and so is `of`, which is equivalent. The partition of a key's
//!   bytes into writes does not affect the hash. The [`Hash`](core::hash::Hash) of integers writes
//!   them in native byte order, and the `Hash` of slices and arrays writes their length first: a
//!   key with equal hashes on all hosts must write its bytes itself.
//!
//! Papers: Jain, *A comparison of hashing schemes for address lookup in computer networks* (1992);
//! Chandranmenon and Varghese, *Trading packet headers for packet processing* (1995), section
//! 3.4.

mod crc;
mod sums;

pub use crc::{Crc8Pair, Crc16, Crc32};
pub use sums::{Fletcher16, XorFold8, XorFold16};
