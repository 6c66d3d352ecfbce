//! Hashers: the keyed default, the hash of a network card, and keys that are random already.
//!
//! All structures accept any [`BuildHasher`](core::hash::BuildHasher). The default is
//! [`DefaultHashBuilder`]: each table has its own secret seed. A key that writes whole words, as
//! [`FlowKey`](crate::FlowKey), integers, tuples and prefixes do, costs one multiplication of 64 by
//! 64 bits for each 128 bits. Byte strings are hashed by [`ahash`](https://docs.rs/ahash).
//!
//! Without an operating system as source of randomness the seeds are an argument: see
//! [`with_seeds`](DefaultHashBuilder::with_seeds).
//!
//! # Hostile keys
//!
//! A sender who chooses keys, but sees no hashes, finds no keys that collide more often than by
//! chance, because both factors of each multiplication have a secret word, with one exception: keys
//! in a progression, such as sequential numbers, have hashes in a progression, and under one seed
//! of seven some of their bits are uneven: lookups compare a few keys more. Under up to two seeds
//! of a hundred, a map finds a flood where there is none: it reseeds once, with ahash, which has no
//! such seeds. [`FlowCache`], [`BoundedCache`] and the concurrent tables multiply hashes once more,
//! and have even bits under all seeds. The hash is not cryptographic: the secret can be computed
//! from hashes, from the order of the entries in a table, or from the times of many single lookups,
//! measured to the nanosecond. So tables with untrusted keys should not reveal the order of their
//! entries.
//!
//! Some structures detect floods of keys with similar hashes, under any hash:
//!
//! | structures | a flood |
//! |---|---|
//! | [`TrashMap`], [`TrashSet`], [`FlowCache`], [`TrashDemux`], [`SocketTable`] | is detected; the structure draws a new seed and rehashes, some entries with each insertion |
//! | [`TrashTable`], whose caller hashes | is detected and reported |
//! | [`ChainedCache`], [`BoundedCache`], [`DuplicateFilter`], [`EphemeralStore`], [`Sequent`] and the structures of [`concurrent`] | is not detected |
//!
//! If senders may learn hashes, give the structure a cryptographic hash by its parameter `S`, such
//! as SipHash, at several times the cost:
//!
//! ```
//! use flowtable::{FlowKey, TrashMap};
//! use std::hash::RandomState; // SipHash 1-3
//!
//! let mut flows: TrashMap<FlowKey, u64, RandomState> = TrashMap::default();
//! let key = FlowKey::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 40_000, 443, 6).unwrap();
//! flows.insert(key, 1500);
//! assert_eq!(flows.get(&key), Some(&1500));
//! ```
//!
//! # Other hashers
//!
//! [`Rss`] computes the hash of a network card, so that a table takes the one that the card has
//! delivered with a packet. [`IdHasher`] is for keys that are random already.
//!
//! [`TrashMap`]: crate::TrashMap
//! [`TrashSet`]: crate::TrashSet
//! [`TrashTable`]: crate::TrashTable
//! [`FlowCache`]: crate::FlowCache
//! [`TrashDemux`]: crate::demux::TrashDemux
//! [`SocketTable`]: crate::SocketTable
//! [`ChainedCache`]: crate::cache::ChainedCache
//! [`BoundedCache`]: crate::BoundedCache
//! [`DuplicateFilter`]: crate::cache::DuplicateFilter
//! [`EphemeralStore`]: crate::EphemeralStore
//! [`Sequent`]: crate::demux::Sequent
//! [`concurrent`]: crate::concurrent

mod id;
mod keyed;
mod query;
mod rss;
pub mod source_index;

pub use id::{IdBytes, IdHasher};
pub(crate) use keyed::Reseed;
pub use keyed::{DefaultHashBuilder, DefaultHasher};
pub use query::{Prehashed, Query};
pub use rss::{Rss, RssHasher};
