//! The effect of a long churn on a map: removals, each followed by the insertion of another entry.

use std::hash::BuildHasher;
use std::time::Instant;

use flowtable::TrashMap;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::probes::Probes;
use super::subject::{Operation, gets};
use crate::keys::{Key, Words, random_keys};
use crate::memory;
use crate::results::{Column, Results};

const ROUNDS: usize = 11;

/// Compares a map of `n` entries after `pairs` of a removal and an insertion with a newly filled
/// map of the same entries, which is the "peer" in the results.
pub(crate) fn churned(n: usize, pairs: usize) -> Results {
    let hasher = flowtable::DefaultHashBuilder::new();
    let mut keys = random_keys::<Words<2>>(n, 1);
    let before = memory::live();
    let mut map = filled(&keys, hasher.clone());
    let bytes_before = memory::live() - before;

    let mut rng = StdRng::seed_from_u64(4);
    let start = Instant::now();
    for value in 0..pairs {
        let key = &mut keys[rng.random_range(0..n)];
        map.remove(&*key).expect("the key is present");
        *key = Words::random(&mut rng);
        map.insert(*key, value as u64);
    }
    let ns = start.elapsed().as_nanos() as f64 / pairs as f64;
    let bytes_after = memory::live() - before;

    let title = format!(
        "{n} entries, keys of 16 bytes, after {pairs} removals and insertions ({ns:.0} ns a pair)"
    );
    let columns = [("hit after churn", "ns"), ("bytes after churn", "bytes")];
    let columns = columns.map(|(bench, unit)| Column { bench, unit, n });
    let mut results = Results::new(title, Words::<2>::NAME, columns.to_vec());
    results.add_row("TrashMap", Some("trash"));
    results.add_row("TrashMap before", None);
    let bytes = [bytes_after, bytes_before].map(|bytes| bytes as f64 / n as f64);
    bytes.iter().enumerate().for_each(|(row, &bytes)| results.record(row, 1, bytes));

    let fresh = filled(&keys, hasher);
    let mut source = Probes::new(&keys);
    for round in 0..ROUNDS {
        let probes = source.draw(Operation::Hit, 1 << 18);
        for turn in 0..2 {
            let row = (round + turn) % 2;
            results.record(row, 0, gets([&map, &fresh][row], &probes).ns);
        }
    }
    results
}

fn filled<S: BuildHasher>(keys: &[Words<2>], hasher: S) -> TrashMap<Words<2>, u64, S> {
    let mut map = TrashMap::with_hasher(hasher);
    for (value, &key) in keys.iter().enumerate() {
        map.insert(key, value as u64);
    }
    map
}
