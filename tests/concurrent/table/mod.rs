//! `ConcurrentTable`.

#[cfg(not(sanitizer))]
mod claims;
#[cfg(not(sanitizer = "address"))]
mod guarantees;
#[cfg(not(sanitizer = "thread"))]
mod linearizable;
#[cfg(not(sanitizer = "thread"))]
mod misuse;
#[cfg(not(sanitizer = "thread"))]
mod model;
#[cfg(not(sanitizer = "address"))]
mod traversals;

use ::model as model_crate;
use ::model::scaled;
use flowtable::ConcurrentTable;
use flowtable::concurrent::NoUninit;
use model_crate::hashers::{Weak, mix};

/// Values that identify their write and detect torn reads.
trait Value: NoUninit + Send + Sync + PartialEq + core::fmt::Debug {
    fn new(key: u64, version: u64) -> Self;

    /// Returns the version, and checks that the value is whole and of this key.
    fn version_of(&self, key: u64) -> u64;
}

/// One word: a version, and half a word of what the key requires.
impl Value for u64 {
    fn new(key: u64, version: u64) -> Self {
        version << 32 | (mix(key) ^ version) & 0xffff_ffff
    }

    #[track_caller]
    fn version_of(&self, key: u64) -> u64 {
        assert_eq!(*self, u64::new(key, self >> 32), "the value of another key");
        self >> 32
    }
}

/// Four words, each of which depends on the others.
impl Value for [u64; 4] {
    fn new(key: u64, version: u64) -> Self {
        [key, version, mix(key ^ version << 32), mix(version)]
    }

    #[track_caller]
    fn version_of(&self, key: u64) -> u64 {
        assert_eq!(*self, <[u64; 4]>::new(key, self[1]), "a mixture, or of another key");
        self[1]
    }
}

type Table<V = u64, K = u64> = ConcurrentTable<K, V, Weak>;

/// Steps of one thread. Fewer under a slow checker.
const ROUNDS: u64 = scaled(60_000, 4_000, 16);

/// Reads with one pin.
const BURST: u64 = if cfg!(miri) { 4 } else { 256 };

/// A table that refuses no write for its garbage: pins of other tests may retain some.
fn table<K: NoUninit, V: NoUninit>(hasher: Weak) -> Table<V, K> {
    ConcurrentTable::with_hasher(hasher).with_garbage_limit(usize::MAX, 0)
}

/// Inserts and removes keys that no test reads, with `ROUNDS` writes: the table grows and shrinks
/// three times.
fn churn_others<V: Value>(table: &Table<V>) {
    let many = ROUNDS / 6;
    let mut pin = table.pin();
    for round in 0..6 * many {
        let key = 1 << 40 | mix(round % many) >> 24;
        match round / many % 2 {
            0 => assert!(pin.insert(key, V::new(key, round)).unwrap().is_none()),
            _ => assert!(pin.remove(&key).is_some()),
        }
        if round % BURST == 0 {
            pin.repin();
        }
    }
}

fn validate<K: NoUninit + core::hash::Hash, V: NoUninit>(table: &mut Table<V, K>) {
    table.validate().unwrap_or_else(|broken| panic!("{broken}"));
}
