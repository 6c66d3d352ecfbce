//! The guarantees of `ConcurrentMap`, each with tests that have its number.

mod memory;
mod progress;
mod reads;
mod traversals;
mod writes;

use flowtable::ConcurrentMap;
use model::hashers::{Weak, mix};
use model::scaled;
use model::versioned::Versioned;

type Map<K = u64, V = Versioned> = ConcurrentMap<K, V, Weak>;

/// Steps of one thread. Fewer under a slow checker.
const ROUNDS: u64 = scaled(100_000, 5_000, 12);
/// Reads with one pin.
const BURST: u64 = if cfg!(miri) { 4 } else { 256 };

/// A map that refuses no write: pins of other tests may retain garbage, too.
fn map<K, V>(hasher: Weak) -> Map<K, V> {
    ConcurrentMap::with_hasher(hasher).with_garbage_limit(usize::MAX, 0)
}

/// Inserts and removes keys that no test reads, with `ROUNDS` writes: the map grows and shrinks
/// three times.
fn churn_others(map: &Map) {
    let many = ROUNDS / 6;
    let mut pin = map.pin();
    for round in 0..6 * many {
        let key = 1 << 40 | mix(round % many);
        match round / many % 2 {
            0 => assert!(pin.insert(key, Versioned::new(key, round)).unwrap().is_none()),
            _ => assert!(pin.remove(&key).is_some()),
        }
        if round % BURST == 0 {
            pin.repin();
        }
    }
}

/// Returns the garbage and its limit.
pub(crate) fn garbage_of(reason: flowtable::concurrent::Refused) -> Option<(usize, usize)> {
    match reason {
        flowtable::concurrent::Refused::Garbage { retired, limit } => Some((retired, limit)),
        reason => panic!("{reason}"),
    }
}
