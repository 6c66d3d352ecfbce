//! What a long life does to a map: one entry goes and another one comes, over and over.

use std::hash::BuildHasher;
use std::time::Instant;

use flowtable::TrashMap;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::board::{Board, Column};
use crate::contestant::{Bench, gets};
use crate::keys::{Draw, Key, Words, random_keys};
use crate::memory;

const ROUNDS: usize = 11;

/// A map of `n` entries that had `pairs` of a removal and an insertion, beside one that was filled
/// with the same entries just now. The rows are two lives of one map: the one that has none is the
/// "peer".
pub(crate) fn churned(n: usize, pairs: usize) -> Board {
    let hasher = flowtable::DefaultHashBuilder::new();
    let mut keys = random_keys::<Words<2>>(n, 1);
    let before = memory::live();
    let mut map = filled(&keys, hasher.clone());
    let bytes_before = memory::live() - before;

    let mut rng = StdRng::seed_from_u64(4);
    let start = Instant::now();
    for value in 0..pairs {
        let key = &mut keys[rng.random_range(0..n)];
        map.remove(key).expect("the key is there");
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
    let mut board = Board::new(title, Words::<2>::NAME, columns.to_vec());
    board.add_row("TrashMap", Some("trash"));
    board.add_row("TrashMap before", None);
    let bytes = [bytes_after, bytes_before].map(|bytes| bytes as f64 / n as f64);
    bytes.iter().enumerate().for_each(|(row, &bytes)| board.note(row, 1, bytes));

    let fresh = filled(&keys, hasher);
    let mut draw = Draw::new(&keys);
    for round in 0..ROUNDS {
        let probes = draw.probes(Bench::Hit, 1 << 18);
        for turn in 0..2 {
            let row = (round + turn) % 2;
            board.note(row, 0, gets([&map, &fresh][row], &probes).ns);
        }
    }
    board
}

fn filled<S: BuildHasher>(keys: &[Words<2>], hasher: S) -> TrashMap<Words<2>, u64, S> {
    let mut map = TrashMap::with_hasher(hasher);
    for (value, &key) in keys.iter().enumerate() {
        map.insert(key, value as u64);
    }
    map
}
