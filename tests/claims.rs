//! Every number that our documentation states, with its seed and size.

use flowtable::{LcTrieMap, Shape, Thresholds, Tuning};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const SEED: u64 = 2007;

/// The shape of a trie over so many random keys of 64 bits.
fn random(leaves: usize, tuning: Tuning) -> Shape {
    let mut rng = StdRng::seed_from_u64(SEED);
    let mut map = LcTrieMap::with_tuning(tuning);
    while map.len() < leaves {
        map.insert(rng.random::<u64>(), ());
    }
    map.shape()
}

fn root(inflate: u8, halve: u8) -> Tuning {
    Tuning { root: Thresholds::new(inflate, halve).unwrap(), ..Tuning::default() }
}

#[track_caller]
fn assert_shape(shape: &Shape, root_bits: u32, average: f64, max: std::ops::RangeInclusive<usize>) {
    assert_eq!(shape.root_bits, root_bits, "root bits");
    let depth = shape.average_depth();
    assert!((depth - average).abs() <= 0.03, "average depth {depth:.3}, not {average}");
    assert!(max.contains(&shape.max_depth()), "depth {} at most, not {max:?}", shape.max_depth());
}

#[test]
fn depth_over_random_keys_with_the_thresholds_of_2006() {
    for (leaves, root_bits, average, max) in [
        (1_000, 11, 1.456, 3..=4),
        (5_983, 14, 1.318, 3..=4),
        (10_000, 15, 1.276, 3..=4),
        (65_536, 17, 1.434, 4..=5),
        (100_000, 18, 1.341, 4..=5),
        (262_144, 19, 1.435, 4..=5),
        (524_288, 19, 1.756, 5..=6),
        (1_000_000, 19, 2.129, 5..=6),
        (1_048_576, 19, 2.156, 5..=6),
    ] {
        let shape = random(leaves, Tuning::TRASH_2006);
        println!("{leaves}: {shape}");
        assert_shape(&shape, root_bits, average, max);
    }
}

#[test]
fn depth_over_random_keys_with_other_root_thresholds() {
    for (leaves, tuning, root_bits, average, max) in [
        (1_000_000, root(30, 15), 21, 1.416, 4..=5),
        (1_000_000, root(15, 8), 22, 1.222, 4..=5),
        (100_000, root(50, 25), 17, 1.612, 4..=5),
    ] {
        let shape = random(leaves, tuning);
        println!("{leaves}: {shape}");
        assert_shape(&shape, root_bits, average, max);
    }
}
