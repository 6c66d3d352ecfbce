//! Every number that the documentation of `LcTrieMap` and `Unicache` states, with its seed and
//! size.

use std::collections::{HashSet, VecDeque};

use flowtable::eviction::PassiveGc;
use flowtable::key::bits::{BitString, Headed};
use flowtable::probes::Probes;
use flowtable::trie::unicache::Unicache;
use flowtable::trie::{RebalanceFrom, Thresholds, TrieShape, Tuning};
use flowtable::{DefaultHashBuilder, LcTrieMap};
use model::papers::trash_2006::traffic::{
    Flow, Order, PaperKey, Rings, distinct, dst_src, src_dst, trash, wide,
};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

const SEED: u64 = 2007;

/// The shape of a trie over `leaves` random keys of 64 bits.
fn random(leaves: usize, tuning: Tuning) -> TrieShape {
    let mut rng = StdRng::seed_from_u64(SEED);
    let mut map = LcTrieMap::with_tuning(tuning);
    while map.len() < leaves {
        map.insert(rng.random::<u64>(), ());
    }
    map.shape()
}

/// The shape of a trie over `keys`, inserted in this order.
fn shape<K: BitString>(keys: impl IntoIterator<Item = K>, tuning: Tuning) -> TrieShape {
    let mut map = LcTrieMap::with_tuning(tuning);
    map.extend(keys.into_iter().map(|key| (key, ())));
    map.shape()
}

fn root(inflate: u8, halve: u8) -> Tuning {
    Tuning { root: Thresholds::new(inflate, halve).unwrap(), ..Tuning::default() }
}

#[track_caller]
fn assert_shape(
    shape: &TrieShape,
    root_bits: u32,
    average: f64,
    max: std::ops::RangeInclusive<usize>,
) {
    assert_eq!(shape.root_bits, root_bits, "root bits");
    let depth = shape.average_depth();
    assert!((depth - average).abs() <= 0.03, "average depth {depth:.3}, not {average}");
    assert!(max.contains(&shape.max_depth()), "depth {} at most, not {max:?}", shape.max_depth());
}

#[track_caller]
fn assert_slots(shape: &TrieShape, slots_per_leaf: f64) {
    let slots = shape.slots_per_leaf();
    assert!((slots - slots_per_leaf).abs() <= 0.05, "{slots:.2} slots a key, not {slots_per_leaf}");
}

#[test]
fn depth_over_random_keys_with_the_thresholds_of_2006() {
    for (leaves, root_bits, average, max, slots) in [
        (1_000, 11, 1.456, 3..=4, 2.50),
        (5_983, 14, 1.318, 3..=4, 3.05),
        (10_000, 15, 1.276, 3..=4, 3.55),
        (65_536, 17, 1.434, 4..=5, 2.43),
        (100_000, 18, 1.341, 4..=5, 2.96),
        (262_144, 19, 1.435, 4..=5, 2.43),
        (524_288, 19, 1.756, 5..=6, 1.74),
        (1_000_000, 19, 2.129, 5..=6, 1.65),
        (1_048_576, 19, 2.156, 5..=6, 1.66),
    ] {
        let shape = random(leaves, Tuning::TRASH_2006);
        println!("{leaves}: {shape}");
        assert_shape(&shape, root_bits, average, max);
        assert_slots(&shape, slots);
    }
}

#[test]
fn depth_over_random_keys_with_other_root_thresholds() {
    for (leaves, tuning, root_bits, average, max, slots) in [
        (1_000_000, root(30, 15), 21, 1.416, 4..=5, 2.51),
        (1_000_000, root(15, 8), 22, 1.222, 4..=5, 4.41),
        (100_000, root(50, 25), 17, 1.612, 4..=5, 1.93),
    ] {
        let shape = random(leaves, tuning);
        println!("{leaves}: {shape}");
        assert_shape(&shape, root_bits, average, max);
        assert_slots(&shape, slots);
    }
}

/// The sizes of the paper's figure 4, in one trie that grows through them.
#[test]
fn the_root_grows_up_to_its_limit_and_then_the_depth_grows() {
    let mut rng = StdRng::seed_from_u64(SEED);
    let mut map = LcTrieMap::with_tuning(Tuning::TRASH_2006);
    for (leaves, root_bits, average) in [
        (300, 10, 1.24),
        (1_000, 11, 1.456),
        (3_000, 13, 1.325),
        (10_000, 15, 1.276),
        (30_000, 16, 1.398),
        (100_000, 18, 1.341),
        (300_000, 19, 1.487),
        (600_000, 19, 1.830),
        (1_000_000, 19, 2.129),
        (1_200_000, 19, 2.231),
    ] {
        while map.len() < leaves {
            map.insert(rng.random::<u64>(), ());
        }
        let shape = map.shape();
        println!("{leaves}: {shape}");
        assert_shape(&shape, root_bits, average, 2..=6);
    }
}

/// By default the root doubles from 0.36 keys per slot, so the depth follows a sawtooth.
#[test]
fn depth_and_slots_per_leaf_are_bounded_at_every_size() {
    let mut rng = StdRng::seed_from_u64(SEED);
    let mut map = LcTrieMap::new();
    let mut next = 1000.0;
    while map.len() < 1_000_000 {
        map.insert(rng.random::<u64>(), ());
        if map.len() as f64 >= next {
            next *= 1.05;
            let shape = map.shape();
            let (depth, slots) = (shape.average_depth(), shape.slots_per_leaf());
            assert!((1.3..=1.6).contains(&depth), "{shape}");
            assert!((1.9..=3.2).contains(&slots), "{shape}");
            assert!(shape.max_depth() <= 5, "{shape}");
            let binary = shape.nodes_by_bits[1] as f64 / shape.nodes() as f64;
            assert!((0.85..=0.95).contains(&binary), "{binary} of the nodes have two slots");
        }
    }
}

#[test]
fn a_lookup_visits_the_nodes_above_its_key_and_one_leaf() {
    let map: LcTrieMap<u64, ()> =
        StdRng::seed_from_u64(SEED).random_iter().take(10_000).map(|key| (key, ())).collect();
    let mut probes = Probes::default();
    map.keys().for_each(|key| assert!(map.get_observed(key, &mut probes).is_some()));
    let depths = map.shape().average_depth() * map.len() as f64;
    assert_eq!(
        (probes.nodes as usize, probes.entries as usize),
        (depths.round() as usize, map.len())
    );
}

#[test]
fn rebalancing_from_the_parent_makes_a_full_trie_deeper() {
    let from = |rebalance_from| Tuning { rebalance_from, ..Tuning::TRASH_2006 };
    assert_shape(&random(1_000_000, from(RebalanceFrom::Parent)), 19, 2.13, 5..=6);
    assert_shape(&random(1_000_000, from(RebalanceFrom::NewNode)), 19, 2.08, 5..=6);
    // Below a wide root the difference is small.
    assert_shape(&random(100_000, from(RebalanceFrom::Parent)), 18, 1.341, 4..=5);
    assert_shape(&random(100_000, from(RebalanceFrom::NewNode)), 18, 1.335, 4..=5);
}

/// 10.255.255.254 and below it in doubling steps, and 6 further keys of a host: the case for which
/// Linux moved the start of rebalancing. Linux stated 10.82 and 23, then 4.72 and 9.
#[test]
fn rebalancing_from_the_new_node_reduces_the_depth_over_doubling_steps() {
    let steps: Vec<u32> = (1..=23)
        .scan(u32::from_be_bytes([10, 255, 255, 254]), |address, power| {
            *address -= 1 << power;
            Some(*address)
        })
        .collect();
    let mut host = [[127, 0, 0, 0], [127, 0, 0, 1], [127, 255, 255, 255]].to_vec();
    host.extend([[192, 168, 1, 0], [192, 168, 1, 1], [192, 168, 1, 255]]);
    let host: Vec<u32> = host.into_iter().map(u32::from_be_bytes).chain(steps.clone()).collect();
    for tuning in [Tuning::TRASH_2006, Tuning::default()] {
        let [parent, new_node] = [RebalanceFrom::Parent, RebalanceFrom::NewNode]
            .map(|rebalance_from| Tuning { rebalance_from, ..tuning });
        assert_shape(&shape(steps.clone(), new_node), 4, 4.00, 7..=7);
        assert_shape(&shape(host.clone(), new_node), 2, 4.79, 9..=9);
        assert_shape(&shape(steps.clone(), parent), 1, 11.96, 22..=22);
        assert_shape(&shape(host.clone(), parent), 2, 10.83, 23..=23);
        // In ascending order, each new node is inflated in time.
        assert_shape(&shape(steps.iter().rev().copied(), parent), 4, 4.00, 7..=7);
    }
}

/// 100 000 flows from two sources to random hosts of two networks.
#[test]
fn without_a_header_the_depth_depends_on_the_order_of_the_fields() {
    let of =
        |nets, key: fn(&Flow) -> PaperKey| shape(distinct(100_000, nets, key), Tuning::TRASH_2006);
    let src_first = of(Rings::ADJACENT, src_dst);
    assert_shape(&src_first, 1, 2.61, 6..=7);
    assert_eq!(src_first.nodes_by_bits[16], 2, "one wide node below each source");
    assert_shape(&of(Rings::ADJACENT, dst_src), 18, 1.341, 4..=5);
    // Networks that are not adjacent have the effect of two sources.
    assert_shape(&of([10, 192], dst_src), 1, 2.61, 6..=7);
}

#[test]
fn with_a_header_the_depth_is_that_of_random_keys() {
    let hasher = DefaultHashBuilder::with_seed(SEED);
    let (nets, tuning) = (Rings::ADJACENT, Tuning::TRASH_2006);
    for shape in [
        shape(distinct(100_000, nets, |flow| trash(flow, &hasher)), tuning),
        shape(distinct(100_000, nets, |flow| wide::<40>(flow, &hasher)), tuning),
        shape(distinct(100_000, nets, |flow| wide::<44>(flow, &hasher)), tuning),
    ] {
        assert_shape(&shape, 18, 1.341, 4..=5);
    }
}

/// n^2 / 2^33 pairs: 1.2 and 116 are expected, with standard deviations of 1.1 and 11. The seeds
/// are fixed; the bounds leave three deviations for processors on which the hash differs. The keys
/// are random: one multiplication maps sequential keys to headers that are more regular than that.
#[test]
fn headers_of_32_bits_collide_as_often_as_random_numbers() {
    let hasher = DefaultHashBuilder::with_seed(SEED);
    let pairs = |keys: usize| {
        let header = |key| Headed::<u64, u32>::short(key, &hasher).header;
        let random = StdRng::seed_from_u64(SEED).random_iter();
        keys - random.take(keys).map(header).collect::<HashSet<u32>>().len()
    };
    assert!(pairs(100_000) <= 5);
    assert!((83..=149).contains(&pairs(1_000_000)));
}

/// Forwards packets through a cache like that of the paper; returns the number of hits.
fn forward<K: BitString>(
    cache: &mut Unicache<K, u64>,
    key: impl Fn(&Flow) -> K,
    active_gc: bool,
    packets: impl Iterator<Item = model::papers::trash_2006::traffic::Packet>,
    clock: &mut u64,
) -> usize {
    let mut hits = 0;
    for packet in packets {
        *clock += 1;
        let key = key(&packet.flow);
        if let Some(last_use) = cache.get_mut(&key) {
            *last_use = *clock;
            hits += 1;
        } else {
            cache.insert(key, *clock, |_, last_use| Some(*last_use), |_, _| ());
        }
        if active_gc && packet.last {
            cache.remove(&key);
        }
    }
    hits
}

/// Eviction of one of four neighbours makes the distribution of keys more even: the trie is less
/// deep than over random keys, 1.31 against 1.34, as printed in the paper. Its root is never
/// resized.
#[test]
fn a_full_cache_keeps_its_root_and_is_less_deep_than_random_keys() {
    let hasher = DefaultHashBuilder::with_seed(SEED);
    let mut cache = Unicache::with_tuning(PassiveGc::TRASH_2006, Tuning::TRASH_2006);
    let mut packets = Rings::rdos(Rings::ADJACENT);
    let key = |flow: &Flow| trash(flow, &hasher);
    let mut clock = 0;
    forward(&mut cache, key, false, packets.by_ref().take(800_000), &mut clock);
    for _ in 0..10 {
        let hits = forward(&mut cache, key, false, packets.by_ref().take(50_000), &mut clock);
        assert!((24_500..=25_500).contains(&hits), "{hits} hits in 50 000 packets");
        assert!((99_900..=100_000).contains(&cache.len()));
        let shape = cache.shape();
        assert_shape(&shape, 18, 1.315, 4..=5);
        assert!(shape.average_depth() < 1.33, "{shape}");
    }
}

/// Of the 8192 flows, those are cached that have sent some of their packets, but not the last one.
#[test]
fn active_collection_keeps_live_flows_only() {
    let hasher = DefaultHashBuilder::with_seed(SEED);
    for (packets_per_flow, alive, root_bits, average) in
        [(2, 4_096, 13, 1.43), (3, 5_461, 14, 1.30)]
    {
        let mut cache = Unicache::with_tuning(PassiveGc::TRASH_2006, Tuning::TRASH_2006);
        let packets = Rings::new(4096, packets_per_flow, Order::Random, Rings::ADJACENT);
        forward(&mut cache, |flow| trash(flow, &hasher), true, packets.take(300_000), &mut 0);
        assert!(cache.len().abs_diff(alive) < 200, "{} entries, not {alive}", cache.len());
        assert_shape(&cache.shape(), root_bits, average, 3..=4);
    }
}

/// With round-robin traffic, a cache with fewer entries than flows has no hits. A cache with as
/// many entries as flows has hits for most packets: it evicts one of four entries, not the oldest
/// of all, so it needs a larger capacity to have hits for all.
#[test]
fn round_robin_flows_hit_if_the_cache_has_an_entry_for_each() {
    const FLOWS: usize = 20_000;
    let hasher = DefaultHashBuilder::with_seed(SEED);
    for (threshold, percent) in [
        (200, 0..1),
        (6_000, 0..1),
        (12_000, 0..1),
        (20_000, 65..80),
        (24_000, 84..89),
        (40_000, 89..91),
    ] {
        let gc = PassiveGc::new(threshold, 100).unwrap();
        let mut cache = Unicache::with_tuning(gc, Tuning::TRASH_2006);
        let mut packets = Rings::new(FLOWS / 2, 10, Order::RoundRobin, Rings::ADJACENT);
        let key = |flow: &Flow| trash(flow, &hasher);
        let mut clock = 0;
        forward(&mut cache, key, false, packets.by_ref().take(15 * FLOWS), &mut clock);
        let hits = forward(&mut cache, key, false, packets.take(2 * FLOWS), &mut clock);
        assert!(percent.contains(&(100 * hits / (2 * FLOWS))), "{threshold}: {hits} hits");
    }
}

#[test]
fn a_collection_examines_four_times_its_goal_and_evicts_its_goal() {
    let mut cache = Unicache::new(PassiveGc::new(1_000, 100).unwrap());
    let mut examined = Vec::new();
    for key in StdRng::seed_from_u64(SEED).random_iter::<u64>().take(1_350) {
        let mut scored = 0;
        let score = |_: &u64, _: &()| {
            scored += 1;
            Some(())
        };
        cache.insert(key, (), score, |_, ()| ());
        if scored > 0 {
            examined.push((scored, cache.len()));
        }
    }
    assert_eq!(examined, [(400, 901); 4]);
}

/// The root after every change: at a fixed size it is neither inflated nor halved.
#[test]
fn the_root_keeps_its_size_under_churn() {
    for (tuning, root_bits) in [(Tuning::default(), 11), (Tuning::TRASH_2006, 11)] {
        let mut rng = StdRng::seed_from_u64(SEED);
        let mut map = LcTrieMap::with_tuning(tuning);
        let mut queue: VecDeque<u64> = VecDeque::new();
        for _ in 0..10_000 {
            let key = rng.random();
            map.insert(key, ());
            queue.push_back(key);
            if queue.len() > 1_000 {
                map.remove(&queue.pop_front().unwrap());
                assert_eq!(map.shape().root_bits, root_bits);
            }
        }
    }
}

/// The thresholds are far apart: a trie that shrinks keeps a wider root than one that grows.
#[test]
fn a_trie_that_shrinks_does_not_become_deeper() {
    let mut rng = StdRng::seed_from_u64(SEED);
    let mut keys: Vec<u64> = rng.clone().random_iter().take(100_000).collect();
    let mut map = LcTrieMap::with_tuning(Tuning::TRASH_2006);
    map.extend(keys.iter().map(|&key| (key, ())));
    keys.shuffle(&mut rng);
    keys[5_983..].iter().for_each(|key| assert_eq!(map.remove(key), Some(())));
    assert_shape(&map.shape(), 15, 1.17, 2..=4);
}
