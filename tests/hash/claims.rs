//! Numbers that Chandranmenon and Varghese state about source indices.
//!
//! Collisions follow from seeds, and no test reads a clock.

use std::collections::HashSet;

use flowtable::papers::source_index::analysis::expected_collisions;
use model::papers::source_hash_1995::fids::Set;
use model::papers::source_hash_1995::indices::{Kind, SLOTS, colliding, collisions, three_sigma};

const SEED: u64 = 1995;

fn at_random(names: usize) -> f64 {
    expected_collisions(names as u64, SLOTS as u64)
}

#[track_caller]
fn assert_random(what: &str, counted: usize, names: usize) {
    let (expected, bound) = (at_random(names), three_sigma(at_random(names)));
    let off = counted as f64 - expected;
    assert!(
        off.abs() <= bound,
        "{what}: {counted} of {names}, {expected:.1} at random, {bound:.1} off"
    );
}

#[test]
fn a_name_whose_slot_is_occupied_is_a_collision() {
    assert_eq!(collisions([]), 0);
    assert_eq!(collisions([1, 2, 0x1_0001, 1, 0xffff_0002, 3]), 3);
    assert_eq!(collisions(0..SLOTS as u32), 0);
    assert_eq!(collisions(0..SLOTS as u32 + 5), 5);
}

#[test]
fn random_collisions_match_the_expectation_of_the_paper() {
    for (names, expected) in [
        (100, 0.1),
        (1000, 7.6),
        (5000, 185.9),
        (10_000, 725.5),
        (20_000, 2763.5),
        (40_000, 10_060.4),
        (65_536, 24_109.2),
    ] {
        assert!(
            (at_random(names) - expected).abs() <= 0.05 + 1e-9,
            "{names}: {}",
            at_random(names)
        );
    }
}

#[test]
fn source_indices_collide_like_random_numbers_for_every_set_of_names() {
    for (set, seed) in Set::ALL.into_iter().flat_map(|set| [(set, SEED), (set, 7)]) {
        let flows = set.flows(SLOTS, seed);
        for names in [100, 1000, 5000, 10_000, 20_000, 40_000, SLOTS] {
            let what = format!("set {set:?}");
            assert_random(&what, colliding(&flows[..names], Kind::Source), names);
        }
    }
}

/// This hash depends on the processor: six standard deviations are allowed instead of three.
#[test]
fn the_keyed_hash_collides_like_random_numbers_for_every_set_of_names() {
    for set in Set::ALL {
        let counted = colliding(&set.flows(40_000, SEED), Kind::Keyed) as f64;
        let off = counted - at_random(40_000);
        assert!(off.abs() <= 2.0 * three_sigma(at_random(40_000)), "set {set:?}: {counted}");
    }
}

#[test]
fn for_the_names_of_the_paper_a_crc_is_random_and_xor_is_not() {
    let flows = Set::A.flows(40_000, SEED);
    for names in [10_000, 40_000] {
        for kind in [Kind::CrcPair, Kind::Crc16, Kind::Crc32] {
            assert_random(kind.name(), colliding(&flows[..names], kind), names);
        }
    }
    // Sixteen by sixteen subnets and a number below 4096 reach 4096 slots, which are all occupied
    // in the end.
    let xor = colliding(&flows[..10_000], Kind::Xor16);
    assert!(xor.abs_diff(6256) < 100, "{xor}");
    assert_eq!(colliding(&flows, Kind::Xor16), 40_000 - 4096);
    assert_eq!(colliding(&flows, Kind::Xor8), 40_000 - 256);
    // Nine in ten collide instead of one in four.
    assert!((at_random(40_000) / 40_000.0 - 0.25).abs() < 0.01);
}

#[test]
fn sequential_names_collide_with_crcs_too() {
    let flows = Set::B.flows(40_000, SEED);
    for (names, xor, crc) in [(10_000, 9375, 1360), (40_000, 37_500, 18_592)] {
        assert_eq!(colliding(&flows[..names], Kind::Xor16), xor);
        assert_eq!(colliding(&flows[..names], Kind::CrcPair), crc);
    }
    // Longer CRCs collide less, and Fletcher's sum more.
    let colliding = |kind| colliding(&flows[..10_000], kind);
    assert_eq!([Kind::Crc16, Kind::Crc32, Kind::Fletcher].map(colliding), [1648, 928, 5854]);
}

#[test]
fn xor_collisions_depend_on_the_field_that_is_sequential() {
    let (one_pair, scattered) = (Set::C.flows(10_000, SEED), Set::D.flows(10_000, SEED));
    assert_eq!(colliding(&one_pair, Kind::Xor16), 10_000 - 256);
    assert_random("set C, CRC", colliding(&one_pair, Kind::CrcPair), 10_000);
    // With scattered addresses, only eight bits are too few.
    for kind in Kind::ALL.into_iter().filter(|kind| ![Kind::Xor8, Kind::Keyed].contains(kind)) {
        assert_random(kind.name(), colliding(&scattered, kind), 10_000);
    }
}

#[test]
fn names_of_a_set_are_distinct_and_a_smaller_set_is_a_prefix() {
    for set in Set::ALL {
        let flows = set.flows(20_000, SEED);
        assert_eq!(flows.iter().map(|flow| flow.fid).collect::<HashSet<_>>().len(), 20_000);
        let few = set.flows(100, SEED);
        assert!(few.iter().zip(&flows).all(|(a, b)| (a.fid, a.index) == (b.fid, b.index)));
    }
}
