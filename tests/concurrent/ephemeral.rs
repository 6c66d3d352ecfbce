//! `ConcurrentStore`: against `EphemeralStore` on one thread, and its guarantees, each with tests
//! that have its number.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use flowtable::concurrent::ConcurrentStore;
use flowtable::{DefaultHashBuilder, EphemeralStore, Timestamp};
use model::counted::{Callback, Counted, alive, forget_leaked, with_panic};
use model::hashers::{Weak, mix};
use model::limited::Limited;
use proptest::collection::vec;
use proptest::prelude::*;

const LIFETIME: Duration = Duration::from_nanos(1000);

/// Steps of one thread.
const ROUNDS: u64 = if cfg!(miri) { 30 } else { 50_000 };

fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Get,
    Update,
    InsertNew,
    GetOrInsert,
    Remove,
    Retain,
    Clean,
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Get),
        4 => Just(Op::Update),
        8 => Just(Op::InsertNew),
        4 => Just(Op::GetOrInsert),
        4 => Just(Op::Remove),
        1 => Just(Op::Retain),
        1 => Just(Op::Clean),
        1 => Just(Op::Clear),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

    /// With timestamps that increase, and room for all.
    #[test]
    fn a_store_matches_that_of_one_thread(
        capacity in 300..1000_usize, weak in prop_oneof![Just(Weak::Mixed), Just(Weak::Shl(40))],
        ops in vec((op(), 0..60_u64, 0..40_u64), 1..300),
    ) {
        let ours: ConcurrentStore<u64, u64, _> =
            ConcurrentStore::with_parts(capacity, LIFETIME, weak).unwrap();
        let mut model: EphemeralStore<u64, u64, _> =
            EphemeralStore::with_parts(1024, LIFETIME, weak).unwrap();
        let mut now = 0;
        for (number, &(op, tag, later)) in ops.iter().enumerate() {
            now += later;
            let (at, number) = (at(now), number as u64);
            match op {
                Op::Get => prop_assert_eq!(ours.get(&tag, at), model.get(&tag, at).copied()),
                Op::Update => {
                    let set = |value: &mut u64| core::mem::replace(value, number);
                    prop_assert_eq!(ours.update(&tag, at, set), model.get_mut(&tag, at).map(set));
                }
                Op::InsertNew => {
                    let bound = model.find_or_create(tag, at, || number).unwrap();
                    prop_assert_eq!(ours.insert_new(tag, at, number), Ok(bound.is_new));
                }
                Op::GetOrInsert => {
                    let is_new = model.find(&tag, at).is_none();
                    let value = *model.get_or_insert_with(tag, at, || number).unwrap();
                    let each = |value: &mut u64, is_new| (*value, is_new);
                    let found = ours.get_or_insert_with(tag, at, || number, each);
                    prop_assert_eq!(found, Ok((value, is_new)));
                }
                Op::Remove => prop_assert_eq!(ours.remove(&tag, at), model.remove(&tag, at)),
                Op::Retain => {
                    ours.retain(at, |tag, _| tag % 3 > 0);
                    model.retain(at, |tag, _| tag % 3 > 0);
                }
                Op::Clean => _ = (ours.clean(at, 5), model.clean(at, 1000)),
                Op::Clear => {
                    ours.clear();
                    model.clear();
                }
            }
            prop_assert_eq!(ours.live(at), model.live(at));
            let mut live: Vec<(u64, u64)> = ours.iter(at).collect();
            let mut expected: Vec<_> = model.iter(at).map(|(tag, value)| (*tag, *value)).collect();
            live.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(live, expected);
            prop_assert_eq!(ours.validate(), Ok(()));
        }
    }
}

/// Hashes of the caller: all operations use the shard and the chain of that hash.
#[test]
fn a_store_without_a_hasher_takes_the_hashes_of_the_caller() {
    let store: ConcurrentStore<u64, u64, ()> =
        ConcurrentStore::with_parts(1000, LIFETIME, ()).unwrap();
    for tag in 0..500 {
        assert_eq!(store.insert_new_hashed(mix(tag), tag, at(0), tag), Ok(true));
        assert_eq!(store.insert_new_hashed(mix(tag), tag, at(0), 7), Ok(false));
        let each = |value: &mut u64, is_new| (*value, is_new);
        let found = store.get_or_insert_with_hashed(mix(tag), tag, at(1), || 7, each);
        assert_eq!(found, Ok((tag, false)));
        assert_eq!(store.update_hashed(mix(tag), &tag, at(1), |value| *value += 1), Some(()));
    }
    store.retain_hashed(at(1), |tag| mix(*tag), |tag, _| tag % 5 > 0);
    for tag in 0..500 {
        let value = (tag % 5 > 0).then_some(tag + 1);
        assert_eq!(store.get_hashed(mix(tag), &tag, at(1)), value);
        assert_eq!(store.remove_hashed(mix(tag), &tag, at(1)), value);
    }
    assert_eq!((store.live(at(1)), store.iter(at(1)).next()), (0, None));
}

fn shared<V>(capacity: usize) -> ConcurrentStore<u64, V> {
    let hasher = DefaultHashBuilder::with_seed(1);
    ConcurrentStore::with_parts(capacity, LIFETIME, hasher).unwrap()
}

/// Each tag is created, counted and removed by four threads, at the same time.
#[test]
fn e1_e2_operations_on_a_tag_have_an_order() {
    // Slots are reused in the next tick, and for a while.
    let (hasher, lifetime) = (DefaultHashBuilder::with_seed(1), Duration::from_secs(1));
    let store: ConcurrentStore = ConcurrentStore::with_parts(4096, lifetime, hasher).unwrap();
    let now = at(4 * ROUNDS);
    let [clock, created, removed, counted, taken] = [(); 5].map(|()| AtomicU64::new(0));
    thread::scope(|threads| {
        for thread in 0..4 {
            let (store, clock, created, removed) = (&store, &clock, &created, &removed);
            let (counted, taken) = (&counted, &taken);
            threads.spawn(move || {
                for round in 0..ROUNDS {
                    let tag = mix(round * 7 + thread) % 50;
                    let now = at(clock.fetch_add(1, Ordering::Relaxed));
                    if round % 4 == 3 {
                        if let Some(count) = store.remove(&tag, now) {
                            removed.fetch_add(1, Ordering::Relaxed);
                            taken.fetch_add(count, Ordering::Relaxed);
                        }
                        continue;
                    }
                    let count = |count: &mut u64, is_new: bool| {
                        *count += 1;
                        is_new
                    };
                    let is_new = store.get_or_insert_with(tag, now, || 0, count);
                    counted.fetch_add(1, Ordering::Relaxed);
                    created.fetch_add(is_new.expect("there is room").into(), Ordering::Relaxed);
                }
            });
        }
    });
    let (created, removed) = (created.into_inner(), removed.into_inner());
    assert_eq!(created - removed, store.live(now) as u64, "E2");
    let left: u64 = (0..50).filter_map(|tag| store.get(&tag, now)).sum();
    assert_eq!(taken.into_inner() + left, counted.into_inner(), "E1");
    assert_eq!(store.validate(), Ok(()));
}

/// Two clocks that differ by a tenth of a lifetime, in turns.
#[test]
fn e3_bindings_live_for_a_lifetime_less_the_difference_of_clocks() {
    let store = shared::<u64>(4096);
    let mut created = [None; 40];
    for round in 0..ROUNDS {
        let now = 2 * round + [0, 100][round as usize % 2];
        let tag = mix(round) % 40;
        let (found, created) = (store.get(&tag, at(now)), &mut created[tag as usize]);
        if let Some(created) = *created {
            let is_found = found == Some(created);
            assert!(is_found || now >= created + 900, "E3: created at {created}, lost at {now}");
            assert!(!is_found || now < created + 1100, "E3: created at {created}, found at {now}");
        }
        if found.is_none() {
            assert_eq!(store.insert_new(tag, at(now), now), Ok(true));
            *created = Some(now);
        }
    }
    assert_eq!(store.live(at(2 * ROUNDS + 1200)), 0, "E3");
}

#[test]
fn e4_a_store_has_room_for_its_capacity() {
    for capacity in if cfg!(miri) { vec![10] } else { vec![1, 10, 64, 1000, 2240, 5312, 65_536] } {
        for seed in 0..if cfg!(miri) { 1 } else { 10 } {
            let hasher = DefaultHashBuilder::with_seed(seed);
            let store: ConcurrentStore =
                ConcurrentStore::with_parts(capacity, LIFETIME, hasher).unwrap();
            assert!(store.capacity() >= capacity && store.capacity() <= 4 * capacity.max(16));
            for tag in 0..capacity as u64 {
                assert_eq!(store.insert_new(tag, at(0), tag), Ok(true), "E4");
            }
            let refused = (capacity as u64..).find(|&tag| store.insert_new(tag, at(1), 0).is_err());
            let refused = refused.expect("a shard is full");
            assert_eq!(store.insert_new(refused, at(1), 0).unwrap_err().refused, refused);
            assert_eq!(store.live(at(1)) as u64, refused);
        }
    }
}

#[test]
fn e5_a_store_works_after_a_panic() {
    let store = shared::<u64>(100);
    store.insert_new(1, at(0), 1).unwrap();
    let panics = |act: &dyn Fn()| {
        assert!(catch_unwind(AssertUnwindSafe(act)).is_err());
        assert_eq!((store.get(&1, at(0)), store.len()), (Some(1), 1), "E5");
    };
    panics(&|| _ = store.update(&1, at(0), |_| panic!("in a test")));
    panics(&|| _ = store.get_or_insert_with(2, at(0), || panic!("in a test"), |_, _| ()));
    panics(&|| store.retain(at(0), |_, _| panic!("in a test")));
    // Writing to a store under its lock is a panic, not a deadlock.
    panics(&|| _ = store.update(&1, at(0), |_| store.insert_new(3, at(0), 3)));
    panics(&|| _ = store.update(&1, at(0), |_| store.get(&1, at(0))));
    assert_eq!(store.insert_new(2, at(0), 2), Ok(true));
    assert_eq!(store.validate(), Ok(()));
}

/// Methods of tags and values that panic, each at each of its calls. An operation has taken effect
/// or not, for its tag only.
#[test]
fn e5_a_store_works_after_tags_and_values_panic() {
    let mut panics = 0;
    for callback in [Callback::Hash, Callback::Eq, Callback::Clone, Callback::Drop] {
        let hasher = DefaultHashBuilder::with_seed(1);
        let store: ConcurrentStore<Counted, Counted> =
            ConcurrentStore::with_parts(64, LIFETIME, hasher).unwrap();
        let mut now = 0;
        for number in 0..if cfg!(miri) { 30 } else { 3000 } {
            // Slots are reused when the first ones have expired.
            now += 1 + mix(number) % 40;
            let (at, tag) = (at(now), mix(number + 1) % 40);
            let value = |tag| store.get(&Counted::new(tag), at).map(|value| value.number);
            let before: Vec<_> = (0..40).map(value).collect();
            let act = || match number % 4 {
                0 => drop(store.get(&Counted::new(tag), at)),
                1 => drop(store.remove(&Counted::new(tag), at)),
                2 => drop(store.insert_new(Counted::new(tag), at, Counted::new(number))),
                _ => {
                    let new = || Counted::new(number);
                    let set = |value: &mut Counted, _| *value = Counted::new(number);
                    drop(store.get_or_insert_with(Counted::new(tag), at, new, set));
                }
            };
            panics += usize::from(with_panic(callback, mix(number) as u32 % 4, act).is_none());
            let after: Vec<_> = (0..40).map(value).collect();
            for (other, (before, after)) in (0..).zip(before.into_iter().zip(after)) {
                let may_change = other == tag && [None, Some(number)].contains(&after);
                assert!(after == before || may_change, "E5: {before:?}, then {after:?}");
            }
            assert_eq!(store.validate(), Ok(()), "E5");
        }
        drop(store);
        // A destructor that panics may leak what else was to be dropped.
        assert!(alive() == 0 || callback == Callback::Drop, "E5: {callback:?}");
        forget_leaked();
    }
    assert!(panics > if cfg!(miri) { 3 } else { 500 }, "{panics} panics");
}

#[test]
fn shards_are_in_the_memory_and_a_creation_without_it_is_an_error() {
    let memory = Limited::default();
    let create = |capacity| {
        let hasher = DefaultHashBuilder::with_seed(7);
        ConcurrentStore::with_parts_in(capacity, LIFETIME, hasher, &memory)
    };
    for period in 1..=8 {
        memory.fail_each(period);
        assert!(create(256).is_err() && memory.bytes() == 0);
    }
    memory.fail_each(0);
    let store: ConcurrentStore<u64, Box<u64>, _, _> = create(4 * ROUNDS as usize).unwrap();
    let bytes = memory.bytes();
    // The list of shards is in the memory of the program.
    let shards = store.allocation_size() - bytes;
    assert!((64 * 64..=64 * 384).contains(&shards), "{shards}");
    thread::scope(|threads| {
        for thread in 0..2 {
            let store = &store;
            threads.spawn(move || {
                for tag in 0..ROUNDS {
                    assert_eq!(store.insert_new(2 * tag + thread, at(1), Box::new(tag)), Ok(true));
                }
            });
        }
    });
    assert_eq!((store.live(at(2)), memory.bytes()), (2 * ROUNDS as usize, bytes));
    assert_eq!(store.validate(), Ok(()));
}
