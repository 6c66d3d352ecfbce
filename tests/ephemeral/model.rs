//! `EphemeralStore` against its reference model, a list in the order of expiry; invariants are
//! checked after each step.

use flowtable::ephemeral::StoreError;
use flowtable::{DefaultHashBuilder, EphemeralStore};
use model::cases;
use model::ephemeral::{CheckedStore, LIFETIME, Step};
use model::hashers::Weak;
use model::limited::Limited;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const TAGS: u32 = 40;

/// Durations between steps: mostly short, sometimes long, sometimes negative.
fn by() -> impl Strategy<Value = i64> {
    prop_oneof![
        5 => Just(0_i64),
        10 => 0..50_i64,
        3 => 0..1100_i64,
        2 => -300..0_i64,
        1 => -3000..0_i64,
        1 => Just(-(1 << 39)),
        1 => select(&[999_i64, 1000, 1001, 5_000_000_000, 1 << 40]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let tag = || prop_oneof![2 => 0..5_u32, 3 => 0..TAGS];
    let tags = move || vec(tag(), 0..70);
    prop_oneof![
        8 => (tag(), by()).prop_map(|(tag, by)| Step::Get(tag, by)),
        3 => (tag(), by()).prop_map(|(tag, by)| Step::GetMut(tag, by)),
        22 => (tag(), by()).prop_map(|(tag, by)| Step::GetOrInsert(tag, by)),
        8 => (tag(), by()).prop_map(|(tag, by)| Step::Remove(tag, by)),
        1 => (tag(), by()).prop_map(|(most, by)| Step::Retain(most, by)),
        1 => (tags(), by()).prop_map(|(tags, by)| Step::GetBatch(tags, by)),
        2 => (tags(), by()).prop_map(|(tags, by)| Step::GetOrInsertBatch(tags, by)),
        3 => (0..5_usize, by()).prop_map(|(budget, by)| Step::Clean(budget, by)),
        2 => by().prop_map(Step::Iterate),
        1 => by().prop_map(Step::SetClock),
        1 => Just(Step::Clear),
        1 => Just(Step::Clone),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(400, 1)))]

    #[test]
    fn a_store_matches_a_list_in_the_order_of_expiry(
        capacity in prop_oneof![1..5_usize, 1..50_usize],
        hasher in select(&Weak::ALL),
        steps in vec(step(), 1..200),
        start in select(&[0, 1_u64 << 20, (1 << 32) - 500, u64::MAX / 4]),
    ) {
        let store = EphemeralStore::with_parts(capacity, LIFETIME, hasher);
        let store = store.expect("there is memory");
        let mut pair: CheckedStore<u32, u64, Weak> = CheckedStore::new(store);
        let mut now = start;
        for (number, step) in (0..).step_by(100).zip(&steps) {
            now = pair.step(step, now, number);
            pair.check();
        }
    }

    /// Values that own memory, larger tags, and the default hasher.
    #[test]
    fn a_store_of_larger_entries_matches_the_model(
        capacity in 1..30_usize, steps in vec(step(), 1..150),
    ) {
        let store = EphemeralStore::new(capacity, LIFETIME);
        let store = store.expect("there is memory");
        let mut pair: CheckedStore<Tag, Value, _> = CheckedStore::new(store);
        let mut now = 0;
        for (number, step) in (0..).step_by(100).zip(&steps) {
            now = pair.step(step, now, number);
            pair.check();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(400, 1)))]

    /// Requests fail when a store is created, as it allocates nothing later. A clone ends the
    /// program without memory.
    #[test]
    fn a_store_whose_requests_fail_is_a_store(
        capacity in 1..50_usize, period in 0..5_usize,
        steps in vec(step(), 1..100),
    ) {
        let memory = Limited::failing_each(period);
        let mut stores = Vec::new();
        for _ in 0..3 {
            let store =
                EphemeralStore::with_parts_in(capacity, LIFETIME, Weak::Mixed, &memory);
            match store {
                Ok(store) => stores.push(CheckedStore::<u32, Value, Weak, _>::new(store)),
                Err(error) => prop_assert_eq!(error, StoreError::NoMemory),
            }
        }
        prop_assert_eq!(stores.len(), [3, 0, 0, 0, 2][period]);
        for mut pair in stores.drain(..) {
            let mut now = 0;
            for (number, step) in (0..).step_by(100).zip(&steps) {
                memory.fail_each(usize::from(!matches!(step, Step::Clone)));
                now = pair.step(step, now, number);
                pair.check();
            }
        }
        prop_assert_eq!(memory.bytes(), 0);
    }
}

#[test]
fn a_store_reports_the_memory_that_it_has() {
    let memory = Limited::default();
    let hasher = DefaultHashBuilder::with_seed(1);
    let store = EphemeralStore::with_parts_in(100, LIFETIME, hasher, &memory);
    let store: EphemeralStore<u64, [u64; 3], _, _> = store.unwrap();
    assert_eq!(store.allocation_size(), memory.bytes());
    let clone = store.clone();
    assert_eq!(store.allocation_size() + clone.allocation_size(), memory.bytes());
}

/// A tag of twelve bytes.
#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
struct Tag([u32; 3]);

impl From<u32> for Tag {
    fn from(number: u32) -> Self {
        Self([7, number, 7])
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Value(Box<u32>);

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self(Box::new(number))
    }
}
