//! Unusual uses of `ConcurrentTable`: weak hashes, types of unusual sizes, contents and limits.

use core::fmt::Debug;
use core::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};

use flowtable::ConcurrentTable;
use flowtable::concurrent::{Integer, NoUninit, Refused};

use super::model_crate::hashers::{Weak, mix};
use super::model_crate::threads::{on_other_thread, run_concurrently, while_held};
use super::{Table, table, validate};
use ::model::scaled;

const MANY: u64 = scaled(3000, 2000, 40);

#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn keys_of_one_hash_are_refused_from_some_hundred_on() {
    // Seven slots in each of 96 groups.
    let mut table: Table = table(Weak::Constant);
    let pin = table.pin();
    let inserted = (0..).take_while(|&key| pin.insert(key, key).is_ok()).count() as u64;
    assert_eq!(inserted, 7 * 96);
    for _ in 0..1000 {
        assert_eq!(pin.insert(inserted, 1), Err(Refused::Collisions));
    }
    assert!((0..inserted).all(|key| pin.get(&key) == Some(key)));
    // Neither memory nor the directory has grown without bound.
    assert!(table.allocation_size() < 200 << 10, "{}", table.allocation_size());
    // A slot that was removed is found again.
    assert_eq!((pin.remove(&5), pin.insert(inserted, 1), pin.len()), (Some(5), Ok(None), 672));
    assert_eq!(pin.insert(5, 5), Err(Refused::Collisions));
    pin.clear();
    assert_eq!(pin.insert(5, 5), Ok(None));
    drop(pin);
    validate(&mut table);
}

#[test]
#[cfg_attr(miri, ignore = "slow; others do as much")]
fn weak_hashes_spread() {
    let bytes = |hasher| {
        let mut table: Table = table(hasher);
        let mut pin = table.pin();
        for key in 0..100_000 {
            pin.insert(key, key).unwrap_or_else(|error| panic!("{hasher:?}: {error}"));
            pin.repin();
        }
        assert!((0..100_000).all(|key| pin.get(&key) == Some(key)));
        drop(pin);
        validate(&mut table);
        table.allocation_size()
    };
    let usual = bytes(Weak::Mixed);
    for hasher in [Weak::Identity, Weak::TopHalf, Weak::Shl(20), Weak::Shr(30)] {
        let bytes = bytes(hasher);
        assert!(bytes < usual * 5 / 4, "{hasher:?}: {bytes} bytes, {usual} with a good hash");
    }
}

/// Checks a table of any types of keys and values, with `distinct` keys.
fn check_type<K, V>(key: fn(u64) -> K, value: fn(u64) -> V, distinct: u64)
where
    K: NoUninit + Eq + Hash + Send + Sync + Debug,
    V: NoUninit + PartialEq + Send + Sync + Debug,
{
    let mut table: Table<V, K> = table(Weak::Mixed);
    let write = || {
        for round in 0..MANY / 2 {
            let (pin, at) = (table.pin(), mix(round) % distinct);
            assert!(pin.insert(key(at), value(at)).unwrap().is_none_or(|old| old == value(at)));
            assert!(pin.get(&key(at)).is_none_or(|found| found == value(at)));
            let updated = pin.update(&key(at), |_| value(at)).unwrap();
            assert!(updated.is_none_or(|new| new == value(at)));
            let other = mix(!round) % distinct;
            assert!(pin.remove(&key(other)).is_none_or(|old| old == value(other)));
        }
    };
    run_concurrently(&[&write, &write], &[]);
    (0..distinct).for_each(|at| _ = table.pin().insert(key(at), value(at)).unwrap());
    assert_eq!(table.pin().iter().count() as u64, distinct);
    for at in 0..distinct {
        assert_eq!(table.pin().get(&key(at)), Some(value(at)));
    }
    validate(&mut table);
}

#[test]
fn types_of_unusual_sizes_work() {
    check_type(|_| (), |_| (), 1);
    check_type(|_| (), |_| 7_u64, 1);
    check_type(|at| at, |_| (), MANY / 3);
    check_type(|at| at as u8, |at| [at; 25], 200.min(MANY));
    check_type(|at| at as u16, |at| at % 2 == 0, MANY / 3);
    check_type(|at| [at as u8; 13], |at| [at as u32; 3], 200.min(MANY));
    check_type(|at| u128::from(at) << 70, u128::from, MANY / 3);
    check_type(|at| [at as u8; 37], |at| char::from(at as u8), 200.min(MANY));
    check_type(|at| core::num::NonZero::new(at + 1).unwrap(), |at| -(at as i64), MANY / 3);
}

#[test]
fn a_panic_of_a_closure_changes_nothing() {
    let mut table: Table = table(Weak::Mixed);
    (0..100).for_each(|key| _ = table.pin().insert(key, key).unwrap());
    let update = || table.pin().update(&7, |_| panic!("a closure"));
    assert!(catch_unwind(AssertUnwindSafe(update)).is_err());
    let retain = || {
        table.pin().retain(|key, _| if *key == 50 { panic!("a closure") } else { true });
    };
    assert!(catch_unwind(AssertUnwindSafe(retain)).is_err());
    assert_eq!((table.len(), table.pin().get(&7)), (100, Some(7)));
    validate(&mut table);
}

#[test]
fn closures_may_write() {
    let mut table: Table = table(Weak::Constant);
    let pin = table.pin();
    (0..20).for_each(|key| _ = pin.insert(key, 0).unwrap());
    let mut runs = 0;
    let updated = pin.update(&1, |value| {
        runs += 1;
        if runs == 1 {
            on_other_thread(|| _ = table.pin().insert(1, 10).unwrap());
            _ = pin.remove(&2);
        }
        value + 1
    });
    assert_eq!((updated, runs, pin.get(&1)), (Ok(Some(11)), 2, Some(11)));
    // A removal in the meantime.
    assert_eq!(pin.update(&3, |_| table.pin().remove(&3).map_or(1, |_| 1)), Ok(None));
    pin.retain(|key, _| {
        table.pin().insert(key + 100, 1).unwrap();
        key % 2 == 0
    });
    drop(pin);
    validate(&mut table);
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn a_replaced_value_is_retained() {
    let table: Table<[u64; 2]> = table(Weak::Mixed);
    (0..10).for_each(|key| _ = table.pin().insert(key, [0; 2]).unwrap());
    table.pin().retain(|key, _| {
        _ = table.pin().insert(*key, [1; 2]).unwrap();
        false
    });
    assert_eq!(table.len(), 10);
}

#[test]
fn a_table_is_dropped_before_its_garbage() {
    let other: Table = table(Weak::Mixed);
    while_held(
        || other.pin(),
        || {
            let mine: Table<[u64; 3]> = table(Weak::Mixed);
            for round in 0..MANY {
                mine.pin().insert(round % 99, [round; 3]).unwrap();
                mine.pin().remove(&(round % 77));
            }
            assert!(cfg!(miri) || mine.garbage() > 0);
            on_other_thread(|| drop(mine));
        },
    );
}

#[test]
fn traits_of_std_work() {
    let mut table: ConcurrentTable<u32, u32> = [(1, 10), (2, 20)].into();
    table.extend([(3, 30)]);
    assert_eq!((table.len(), table.pin().get(&3)), (3, Some(30)));
    assert_eq!(format!("{:?}", ConcurrentTable::from([(1, 10)])), "{1: 10}");
    assert_eq!(format!("{:?}", table.pin().iter()), "TableIter { .. }");
    assert!(ConcurrentTable::<u8, u8>::default().is_empty());
}

#[test]
fn errors_say_what_was_wrong() {
    let garbage = Refused::Garbage { retired: 7, limit: 5 };
    assert!(garbage.to_string().contains("7 bytes") && garbage.to_string().contains('5'));
    assert!(Refused::Collisions.to_string().contains("hash"));
}

/// Values of a width less than a word, and signed ones.
#[test]
fn integers_of_all_types_are_added_and_wrap_around() {
    fn check<V: Integer + Debug + PartialEq>(first: V, number: V, sum: V) {
        let table: Table<V> = table(Weak::Mixed);
        let pin = table.pin();
        assert_eq!(pin.fetch_add(&7, number), None);
        (0..20).for_each(|key| _ = pin.insert(key, first).unwrap());
        assert_eq!(pin.fetch_add(&7, number), Some(first));
        assert_eq!((pin.get(&7), pin.get(&8)), (Some(sum), Some(first)));
    }
    check(250_u8, 10, 4);
    check(u16::MAX, 1, 0);
    check(u32::MAX, u32::MAX, u32::MAX - 1);
    check(u64::MAX, 2, 1);
    check(usize::MAX, 2, 1);
    check(-3_i8, 1, -2);
    check(i16::MAX, 1, i16::MIN);
    check(5_i32, -7, -2);
    check(i64::MIN, -1, i64::MAX);
    check(-1_isize, 1, 0);
}
