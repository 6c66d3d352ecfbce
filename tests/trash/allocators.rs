//! Maps, sets and tables in memory of the caller, with requests that fail.

use core::fmt::Debug;
use core::hash::{BuildHasher, Hash};
use model::cases;
use std::collections::HashMap;

use bumpalo::Bump;
use flowtable::trash::{Entry, TryInsertError};
use flowtable::{TrashMap, TrashSet, TrashTable};
use model::hashers::{Weak, mix};
use model::limited::Limited;
use proptest::collection::vec;
use proptest::prelude::*;

/// Values in slots, of no size, and in boxes.
trait Value: Clone + Debug + PartialEq {
    fn make(number: u64) -> Self;
}

impl Value for u64 {
    fn make(number: u64) -> Self {
        number
    }
}

impl Value for () {
    fn make(_: u64) -> Self {}
}

/// Too large for a slot.
impl Value for [u64; 25] {
    fn make(number: u64) -> Self {
        [number; 25]
    }
}

/// One step. Keys are multiplied, so that some are far apart.
#[derive(Clone, Debug)]
enum Op {
    /// Inserts that many keys from one on.
    Insert(u64, u64),
    Enter(u64, u64),
    Update(u64, u64),
    /// Removes that many keys from one on.
    Remove(u64, u64),
    Reserve(usize),
    Retain(u64),
    Extract(u64),
    Shrink(usize),
    Clear,
    Drain,
    Clone,
    FailEach(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let key = 0_u64..3000;
    let count = 1_u64..if cfg!(miri) { 20 } else { 400 };
    let op = prop_oneof![
        12 => (key.clone(), count.clone()).prop_map(|(key, count)| Op::Insert(key, count)),
        4 => (key.clone(), 0_u64..9).prop_map(|(key, value)| Op::Enter(key, value)),
        4 => (key.clone(), 0_u64..9).prop_map(|(key, value)| Op::Update(key, value)),
        6 => (key, count).prop_map(|(key, count)| Op::Remove(key, count)),
        1 => (0_usize..if cfg!(miri) { 40 } else { 3000 }).prop_map(Op::Reserve),
        1 => (2_u64..9).prop_map(Op::Retain),
        1 => (2_u64..9).prop_map(Op::Extract),
        1 => (0_usize..3000).prop_map(Op::Shrink),
        1 => Just(Op::Clear),
        1 => Just(Op::Drain),
        1 => Just(Op::Clone),
        3 => (0_usize..6).prop_map(Op::FailEach),
    ];
    vec(op, 1..if cfg!(miri) { 4 } else { 40 })
}

type Map<'m, V> = TrashMap<u64, V, Weak, &'m Limited>;

fn apply<V: Value>(op: &Op, map: &mut Map<'_, V>, model: &mut HashMap<u64, V>) {
    match *op {
        Op::Insert(first, count) => {
            for key in first..first + count {
                match map.try_insert(key, V::make(key)) {
                    Ok(replaced) => assert_eq!(replaced, model.insert(key, V::make(key))),
                    Err(refused) => {
                        assert_eq!(refused.refused, (key, V::make(key)));
                        assert_eq!(model.get(&key), None);
                    }
                }
            }
        }
        Op::Enter(key, value) => match map.try_entry(key) {
            Ok(Entry::Occupied(mut entry)) => {
                assert_eq!(Some(entry.insert(V::make(value))), model.insert(key, V::make(value)));
            }
            Ok(Entry::Vacant(entry)) => {
                assert_eq!(model.get(&key), None);
                if entry.try_insert(V::make(value)).is_ok() {
                    model.insert(key, V::make(value));
                }
            }
            Err(failed) => assert_eq!(failed.refused, key),
        },
        Op::Update(key, value) => {
            assert_eq!(map.get_mut(&key).map(|own| *own = V::make(value)).is_some(), {
                model.get_mut(&key).map(|own| *own = V::make(value)).is_some()
            });
        }
        Op::Remove(first, count) => {
            for key in first..first + count {
                assert_eq!(map.remove(&key), model.remove(&key));
            }
        }
        Op::Reserve(additional) => {
            let before = map.capacity();
            let is_done = map.try_reserve(additional).is_ok();
            assert!(map.capacity() >= if is_done { map.len() + additional } else { before.min(1) });
        }
        Op::Retain(divisor) => {
            map.retain(|key, _| key % divisor > 0);
            model.retain(|key, _| key % divisor > 0);
        }
        Op::Extract(divisor) => {
            let before = model.len();
            model.retain(|key, _| key % divisor > 0);
            let extracted = map.extract_if(|key, _| key % divisor == 0).count();
            assert_eq!(extracted, before - model.len());
        }
        Op::Shrink(capacity) => map.shrink_to(capacity),
        Op::Clear => {
            map.clear();
            model.clear();
            assert_eq!(map.allocation_size(), 0);
        }
        Op::Drain => {
            // Some entries are dropped by the iterator.
            let (most, mut drained) = (model.len() / 2, map.drain());
            assert!(drained.by_ref().take(most).all(|(k, v)| model.get(&k) == Some(&v)));
            drop(drained);
            model.clear();
        }
        Op::Clone => {
            // A copy ends the program without memory.
            map.allocator().fail_each(0);
            let copy = map.clone();
            assert_eq!(copy.allocation_size() + map.allocation_size(), map.allocator().bytes());
            *map = copy;
        }
        Op::FailEach(period) => map.allocator().fail_each(period),
    }
}

/// Nothing is lost, nothing is there twice, and the map has the memory that it reports.
fn run<V: Value>(ops: &[Op], hasher: Weak, period: usize) {
    let memory = Limited::failing_each(period);
    let (mut map, mut model) = (Map::<V>::with_hasher_in(hasher, &memory), HashMap::new());
    for op in ops {
        apply(op, &mut map, &mut model);
        assert_eq!(map.validate(), Ok(()), "after {op:?}");
        assert_eq!((map.len(), map.iter().count()), (model.len(), model.len()), "after {op:?}");
        assert!(model.iter().all(|(key, value)| map.get(key) == Some(value)), "after {op:?}");
        assert_eq!(map.allocation_size(), memory.bytes(), "after {op:?}");
    }
    drop(map);
    assert_eq!(memory.bytes(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(40, 2)))]

    #[test]
    fn a_map_whose_requests_fail_is_a_map(ops in ops(), period in 0_usize..5, kind in 0_usize..3) {
        let hasher = [Weak::Mixed, Weak::Shl(40), Weak::Shr(40)][kind];
        run::<u64>(&ops, hasher, period);
        run::<()>(&ops, hasher, period);
        run::<[u64; 25]>(&ops, hasher, period);
    }
}

/// A vacant place of a table has its box; it is freed if the place is not used.
#[test]
fn a_table_without_memory_returns_the_entry() {
    let memory = Limited::default();
    let mut table: TrashTable<[u64; 25], _> = TrashTable::new_in(&memory);
    let hash = |entry: &[u64; 25]| mix(entry[0]);
    let mut refused = 0;
    for number in 0..if cfg!(miri) { 40 } else { 3000 } {
        let entry = [number; 25];
        memory.fail_each((number % 3) as usize);
        match table.try_insert_unique(hash(&entry), entry, hash) {
            Ok(own) => assert_eq!(own.get(), &entry),
            Err(TryInsertError { refused: own, reason }) => {
                assert_eq!((own, reason.bytes().is_some()), (entry, true));
                memory.fail_each(0);
                drop(table.try_entry(hash(&entry), |own| *own == entry, hash));
                assert_eq!(table.allocation_size(), memory.bytes());
                table.insert_unique(hash(&entry), entry, hash);
                refused += 1;
            }
        }
        assert_eq!(table.allocation_size(), memory.bytes());
    }
    assert!(refused > 5 && memory.failures() >= refused);
    memory.fail_each(1);
    assert_eq!(table.remove(mix(7), |entry| entry[0] == 7, hash), Some([7; 25]));
    assert_eq!(table.drain().take(20).count(), 20);
    assert_eq!((table.validate(hash), memory.bytes()), (Ok(()), 0));
}

/// Values without bytes are in boxes, if they have the alignment of larger ones.
#[test]
fn blocks_without_bytes_are_freed_as_allocated() {
    #[derive(Clone, Debug, PartialEq)]
    #[repr(align(128))]
    struct Aligned;

    let memory = Limited::default();
    // They have one hash, whatever it was when they were inserted.
    let hash = |_: &Aligned| 7;
    let mut table: TrashTable<Aligned, _> = TrashTable::new_in(&memory);
    let count = if cfg!(miri) { 30 } else { 100 };
    for number in 0..count {
        memory.fail_each(number % 3);
        if let Err(TryInsertError { refused: own, .. }) = table.try_insert_unique(7, Aligned, hash)
        {
            memory.fail_each(0);
            table.insert_unique(7, own, hash);
        }
    }
    memory.fail_each(0);
    assert_eq!(table.remove(7, |_| true, hash), Some(Aligned));
    let copy = table.clone();
    assert_eq!((table.len(), copy.into_iter().take(3).count()), (count - 1, 3));
    assert_eq!(table.drain().take(20).count(), 20);
}

#[test]
fn a_set_without_memory_returns_the_value() {
    let memory = Limited::failing_each(2);
    let mut set = TrashSet::with_hasher_in(Weak::Mixed, &memory);
    let count = if cfg!(miri) { 40 } else { 200 };
    let refused: Vec<u64> = (0..count).filter(|&value| set.try_insert(value).is_err()).collect();
    assert!(!refused.is_empty());
    assert_eq!(set.len() + refused.len(), count as usize);
    assert_eq!((set.validate(), set.allocation_size()), (Ok(()), memory.bytes()));
    memory.fail_each(0);
    set.extend(refused.iter().copied());
    let odd: TrashSet<u64, Weak, &Limited> = {
        let mut odd = TrashSet::with_capacity_and_hasher_in(100, Weak::Mixed, &memory);
        odd.extend((0..count).filter(|value| value % 2 == 1));
        odd
    };
    assert_eq!((set.len() as u64, odd.is_subset(&set)), (count, true));
    assert_eq!(set.difference(&odd).count() as u64, count / 2);
}

/// The hashers of a map that reseeds: its tables and their box are from the allocator.
#[test]
fn a_flooded_map_reseeds_in_its_memory() {
    for period in [0, 5, 7] {
        let memory = Limited::failing_each(period);
        let mut map = TrashMap::with_hasher_in(Weak::Constant, &memory);
        let count = if cfg!(miri) { 40 } else { 500 };
        let inserted = (0..count).filter(|&key| map.try_insert(key, key).is_ok()).count();
        assert_eq!((map.len(), map.validate()), (inserted, Ok(())));
        assert_eq!(map.allocation_size(), memory.bytes());
        assert!(cfg!(miri) || map.reseeds() > 0);
    }
}

/// Methods do not allocate elsewhere: see `memory.rs` for the allocator of the program.
#[test]
fn a_map_in_an_arena_takes_no_other_memory() {
    let arena = Bump::with_capacity(if cfg!(miri) { 1 << 12 } else { 1 << 20 });
    arena.set_allocation_limit(Some(arena.allocated_bytes()));
    let mut map = TrashMap::with_hasher_in(Weak::Mixed, &arena);
    let count = if cfg!(miri) { 20 } else { 2000 };
    model::alloc::with_allocations(0, || {
        for key in 0..count {
            assert!(map.try_insert(key, [key; 3]).is_ok());
        }
        (0..count).step_by(2).for_each(|key| assert_eq!(map.remove(&key), Some([key; 3])));
        map.retain(|key, _| key % 3 > 0);
    });
    assert_eq!(map.validate(), Ok(()));
    let refused = (count..).find(|&key| map.try_insert(key, [0; 3]).is_err());
    assert!(refused.is_some_and(|key| map.len() as u64 > key / 3));
    assert_eq!(map.validate(), Ok(()));
}

/// The types that name no allocator are those of before.
#[test]
fn types_without_an_allocator_are_in_memory_of_the_program() {
    fn global<K, V, S>(map: TrashMap<K, V, S>) -> TrashMap<K, V, S, flowtable::memory::Global> {
        map
    }
    fn is_send_and_sync<T: Send + Sync>(_: &T) {}
    let map = global(TrashMap::from([(1, 2)]));
    is_send_and_sync(&map);
    assert_eq!(size_of_val(&map), size_of_val(&TrashMap::<u8, u8>::new()));
    let arena = Bump::new();
    let mut other = TrashMap::new_in(&arena);
    other.insert(1, 2);
    assert!(map.iter().eq(&other), "allocators do not count");
    fn of<T: Hash>(hasher: &impl BuildHasher, value: T) -> u64 {
        hasher.hash_one(value)
    }
    assert_eq!(of(map.hasher(), 1), map.hash_of(&1));
}
