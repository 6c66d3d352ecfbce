//! The caches and the duplicate filter against their reference models; invariants are checked after
//! each step.

use core::time::Duration;
use model::cases;

use flowtable::cache::{Chains as ChainsOf, Replacement};
use flowtable::eviction::{
    ByClass, EntryStats, Eviction, Passive, PassiveGc, Random, SecondChance,
};
use flowtable::{DefaultHashBuilder, Timestamp};
use model::caches::bounded::{CheckedBounded, CheckedLru};
use model::caches::chains::CheckedChainedCache;
use model::caches::filter::CheckedFilter;
use model::caches::sets::CheckedSets;
use model::caches::{Make, Name, Step, Wide, run};
use model::hashers::{Weak, mix};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const KEYS: u32 = 24;

/// Steps of a script that proptest does not draw.
const STEPS: u64 = 5000;

const REPLACEMENTS: [Replacement; 3] =
    [Replacement::SecondChance, Replacement::LeastRecentlyUsed, Replacement::Oldest];

/// The distribution of the indices of keys.
#[derive(Clone, Copy, Debug)]
enum Indices {
    /// Each key has an index of its own, as with correct sources.
    Honest,
    /// All keys have one index.
    Constant,
    /// The indices differ in bits that do not select the set.
    HighBits,
    /// Each packet has another index.
    Random,
}

impl Indices {
    const ALL: [Self; 4] = [Self::Honest, Self::Constant, Self::HighBits, Self::Random];

    fn name(self, key: u32, random: u32) -> Name {
        let index = match self {
            Self::Honest => key.wrapping_mul(0x9e37_79b9),
            Self::Constant => 7,
            // The first of the two bits is part of the tag of an entry, the second one is not.
            Self::HighBits => 7 | (random % 2) << 26 | (random / 2 % 2) << 29,
            Self::Random => random,
        };
        Name { index, key }
    }
}

fn step(indices: Indices) -> impl Strategy<Value = Step> {
    // Some keys are drawn often, like those of busy flows.
    let key = || prop_oneof![2 => 0..4_u32, 3 => 0..KEYS];
    let name = move || (key(), 0..100_u32).prop_map(move |(key, random)| indices.name(key, random));
    let names = move || vec(name(), 0..80);
    prop_oneof![
        12 => name().prop_map(Step::Get),
        4 => name().prop_map(Step::GetMut),
        3 => name().prop_map(Step::Peek),
        2 => name().prop_map(Step::PeekMut),
        3 => name().prop_map(Step::Promote),
        10 => name().prop_map(Step::GetOrInsert),
        12 => name().prop_map(Step::Insert),
        4 => name().prop_map(Step::Remove),
        2 => names().prop_map(Step::GetBatch),
        2 => names().prop_map(Step::GetBatchMut),
        1 => (1..6_u32).prop_map(Step::Retain),
        1 => (1..6_u32).prop_map(Step::Change),
        1 => Just(Step::Clear),
        2 => (1..40_usize).prop_map(Step::SetCapacity),
        2 => Just(Step::PopLru),
        1 => select(&REPLACEMENTS).prop_map(Step::Replace),
        1 => any::<bool>().prop_map(|with_clone| Step::Fork { with_clone }),
        1 => Just(Step::Back),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    select(&Indices::ALL).prop_flat_map(|indices| vec(step(indices), 1..150))
}

fn with_ways<K: Make, V: Make>(capacity: usize, replacement: Replacement, steps: &[Step]) {
    run(CheckedSets::<K, V, 1>::new(capacity, replacement), steps);
    run(CheckedSets::<K, V, 2>::new(capacity, replacement), steps);
    run(CheckedSets::<K, V, 3>::new(capacity, replacement), steps);
    run(CheckedSets::<K, V, 4>::new(capacity, replacement), steps);
    run(CheckedSets::<K, V, 8>::new(capacity, replacement), steps);
}

/// A policy without victims, or with victims among every second inserted entry only.
#[derive(Clone, Debug)]
struct Reluctant {
    has_victims: bool,
    entries: Vec<(u32, bool)>,
    inserted: u32,
}

impl Reluctant {
    fn new(has_victims: bool) -> Self {
        Self { has_victims, entries: Vec::new(), inserted: 0 }
    }
}

impl Eviction for Reluctant {
    fn insert(&mut self, slot: u32, rank: u8) {
        assert_eq!(rank, 0);
        assert!(
            self.entries.iter().all(|(other, _)| *other != slot),
            "the slot was removed before"
        );
        self.inserted += 1;
        self.entries.push((slot, self.inserted % 2 == 1));
    }

    fn remove(&mut self, slot: u32) {
        let position = self.entries.iter().position(|(other, _)| *other == slot);
        self.entries.remove(position.expect("the slot was inserted"));
    }

    /// Sometimes true below the capacity.
    fn is_due(&mut self, len: usize) -> bool {
        assert_eq!(len, self.entries.len());
        len % 5 == 4
    }

    fn victim(&mut self, _look: impl FnMut(u32) -> EntryStats) -> Option<u32> {
        let mut odd = self.entries.iter().filter(|(_, is_odd)| *is_odd && self.has_victims);
        odd.next().map(|(slot, _)| *slot)
    }

    fn allocation_size(&self) -> usize {
        0
    }
}

/// A script like those of the property tests, but drawn quickly and equal in each run.
fn script(seed: u64, indices: Indices) -> Vec<Step> {
    let step = |number: u64| {
        let random = mix(seed << 32 | number);
        let name = |more: u64| {
            let random = mix(random + more) as u32;
            indices.name(random % KEYS, random >> 8)
        };
        let names = || (0..34).map(name).collect();
        match random % 40 {
            0..8 => Step::Get(name(0)),
            8..11 => Step::GetMut(name(0)),
            11..13 => Step::Peek(name(0)),
            13..19 => Step::GetOrInsert(name(0)),
            19..28 => Step::Insert(name(0)),
            28..31 => Step::Remove(name(0)),
            31 | 32 | 34 => Step::GetBatch(names()),
            33 if random >> 32 & 1 == 0 => Step::Change(2 + (random >> 33) as u32 % 4),
            33 => Step::GetBatchMut(names()),
            35 => Step::Retain(2 + (random >> 32) as u32 % 4),
            36 => Step::Clear,
            37 => Step::Replace(REPLACEMENTS[(random >> 32) as usize % 3]),
            38 => Step::Fork { with_clone: random >> 32 & 1 == 0 },
            _ => Step::Back,
        }
    };
    (0..STEPS).map(step).collect()
}

#[cfg_attr(miri, ignore = "it takes minutes")]
#[test]
fn long_scripts_match_the_model() {
    for (seed, indices) in (0..).zip(Indices::ALL) {
        let script = script(seed, indices);
        let [second_chance, lru, oldest] = REPLACEMENTS;
        run(CheckedSets::<u32, u32, 1>::new(8, lru), &script);
        run(CheckedSets::<Box<u32>, Box<u32>, 2>::new(8, second_chance), &script);
        run(CheckedSets::<u32, Box<u32>, 3>::new(12, oldest), &script);
        run(CheckedSets::<Wide, [u64; 12], 4>::new(8, lru), &script);
        run(CheckedSets::<Box<u32>, (), 8>::new(16, second_chance), &script);
        let pair = CheckedBounded::new(12, SecondChance::new(), Weak::Mixed);
        run::<CheckedBounded<Box<u32>, Box<u32>, _, _>>(pair, &script);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(150, 1)))]

    #[test]
    #[cfg_attr(miri, ignore = "it takes minutes")]
    fn sets_of_numbers_match_the_model(
        capacity in 1..40_usize, replacement in select(&REPLACEMENTS), steps in steps(),
    ) {
        with_ways::<u32, u32>(capacity, replacement, &steps);
    }

    #[test]
    #[cfg_attr(miri, ignore = "it takes minutes")]
    fn sets_of_boxes_and_of_empty_types_match_the_model(
        capacity in 1..20_usize, replacement in select(&REPLACEMENTS), steps in steps(),
    ) {
        with_ways::<Box<u32>, Box<u32>>(capacity, replacement, &steps);
        run(CheckedSets::<(), Box<u32>, 3>::new(capacity, replacement), &steps);
        run(CheckedSets::<u32, (), 5>::new(capacity, replacement), &steps);
    }

    #[test]
    #[cfg_attr(miri, ignore = "it takes minutes")]
    fn sets_larger_than_a_cache_line_match_the_model(
        capacity in 1..20_usize, replacement in select(&REPLACEMENTS), steps in steps(),
    ) {
        run(CheckedSets::<[u64; 12], u32, 1>::new(capacity, replacement), &steps);
        run(CheckedSets::<[u64; 12], Box<u32>, 4>::new(capacity, replacement), &steps);
        run(CheckedSets::<Wide, [u64; 12], 2>::new(capacity, replacement), &steps);
        run(CheckedSets::<Wide, (), 8>::new(capacity, replacement), &steps);
    }

    #[test]
    #[cfg_attr(miri, ignore = "it takes minutes")]
    fn bounded_caches_match_the_model_with_each_policy(
        capacity in 1..30_usize, hasher in select(&Weak::ALL), steps in steps(),
    ) {
        type Bounded<P> = CheckedBounded<u32, u32, P, Weak>;
        run(CheckedLru::<u32, u32, _>::new(capacity, hasher), &steps);
        run(Bounded::new(capacity, SecondChance::new(), hasher), &steps);
        run(Bounded::new(capacity, ByClass::new(), hasher), &steps);
        run(Bounded::new(capacity, Random::with_seed(5), hasher), &steps);
        let passive = Passive::new(PassiveGc::new(6, 3).expect("neither is zero"));
        run(Bounded::new(capacity, passive, hasher), &steps);
    }

    #[test]
    #[cfg_attr(miri, ignore = "it takes minutes")]
    fn bounded_caches_match_the_model_with_foreign_policies(
        capacity in 1..30_usize, has_victims: bool, steps in steps(),
    ) {
        let (policy, hasher) = (Reluctant::new(has_victims), DefaultHashBuilder::with_seed(1));
        let pair = CheckedBounded::<Box<u32>, Box<u32>, _, _>::new(capacity, policy, hasher);
        run(pair.with_refusals(), &steps);
    }

    #[test]
    #[cfg_attr(miri, ignore = "it takes minutes")]
    fn the_duplicate_filter_matches_the_model(
        capacity in 1..10_usize, lifetime in 0..20_u64, hasher in select(&Weak::ALL),
        packets in vec((0..12_u32, 0..8_u64, -3..8_i64, 0..10_usize), 1..200),
    ) {
        let mut pair = CheckedFilter::new(capacity, Duration::from_nanos(lifetime), hasher);
        let mut now = 5_i64;
        for (sender, sequence, later, budget) in packets {
            // Timestamps sometimes decrease.
            now = (now + later).max(0);
            let at = Timestamp::from_nanos(now as u64);
            match budget {
                0..4 => pair.clean(at, budget),
                _ => _ = pair.accept(sender, sequence, at),
            }
            pair.check();
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "it takes minutes")]
    fn a_chained_cache_matches_the_model(
        capacity in 1..30_usize, buckets in 1..20_usize, elasticity in 1..6_usize,
        hasher in select(&Weak::ALL), steps in vec((0..7_u8, 0..40_u32), 1..200),
    ) {
        let chains = ChainsOf { buckets, elasticity };
        let mut pair = CheckedChainedCache::new(capacity, chains, hasher);
        for (value, (op, key)) in (0..).zip(steps) {
            match (op, key) {
                (0 | 1, _) => pair.insert(key, value),
                (2, _) => pair.get(key),
                (3 | 4, _) => pair.get_or_insert(key, value),
                (5, _) => pair.remove(key),
                (_, 0) => pair.flush(),
                (_, 1..5) => pair.retain(key),
                _ => pair.clone_ours(),
            }
            pair.check();
        }
    }
}
