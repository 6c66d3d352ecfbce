//! `TrashMap` at size: long sequences, memory for an entry, and that nothing wears out.

use std::collections::HashMap;

use flowtable::{DefaultHashBuilder, TrashMap};
use model::hashers::{Weak, mix};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// As many as the large tests have.
const MANY: u64 = 300_000;

type Map<V> = TrashMap<u64, V, DefaultHashBuilder>;

fn seeded<V>() -> Map<V> {
    TrashMap::with_hasher(DefaultHashBuilder::with_seed(3))
}

/// The bytes for an entry are those of the slots, with their headers, of a map between the load at
/// which its segments split, 83 % on average, and that of segments about to merge; and those of its box.
fn assert_memory<V>(map: &Map<V>, slot: usize, boxed: usize) {
    let per_entry = map.allocation_size() as f64 / map.len() as f64 - boxed as f64;
    let slot = slot as f64 + 9.0 / 8.0;
    let bounds = slot / 0.84..slot / 0.31;
    assert!(bounds.contains(&per_entry), "{per_entry} bytes for one of {}", map.len());
    let shape = map.shape();
    assert_eq!((shape.entries, shape.bytes), (map.len(), map.allocation_size()));
    assert!(shape.buckets_per_hit() < 1.1, "{shape:?}");
}

/// All inserted, all removed in another order; memory is bounded at every size on the way.
fn up_and_down<V: Clone + PartialEq>(value: V, slot: usize, boxed: usize) {
    let mut map = seeded();
    for key in 0..MANY {
        assert!(map.insert(mix(key), value.clone()).is_none());
        let is_checked = key.is_power_of_two() || key % (MANY / 10) == 0;
        if is_checked {
            map.validate().unwrap();
        }
        if is_checked && key > 2000 {
            assert_memory(&map, slot, boxed);
        }
    }
    assert!((0..MANY).all(|key| map.get(&mix(key)) == Some(&value)));
    assert_eq!(map.len() as u64, MANY);
    for i in 0..MANY {
        // Its greatest common divisor with MANY is 1, so each comes once.
        let key = mix(i * 70_001 % MANY);
        assert!(map.remove(&key).as_ref() == Some(&value));
        let is_checked = map.len().is_power_of_two() || i % (MANY / 10) == 0;
        if is_checked {
            map.validate().unwrap();
            assert!(!map.contains_key(&key));
        }
        if is_checked && map.len() > 2000 {
            assert_memory(&map, slot, boxed);
        }
    }
    assert!(map.is_empty());
    let mut one = seeded();
    one.insert(0, value);
    assert!(map.allocation_size() <= one.allocation_size(), "{} bytes", map.allocation_size());
    map.shrink_to_fit();
    assert_eq!(map.allocation_size(), 0);
    assert_eq!(map.rekeys(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "slow; its like has been seen")]
fn up_and_down_with_a_word_of_value() {
    up_and_down(7_u64, 16, 0);
}

#[test]
#[cfg_attr(miri, ignore = "slow; its like has been seen")]
fn up_and_down_without_values() {
    up_and_down((), 8, 0);
}

#[test]
#[cfg_attr(miri, ignore = "slow; its like has been seen")]
fn up_and_down_with_flow_state() {
    up_and_down([5_u64; 7], 64, 0);
}

#[test]
#[cfg_attr(miri, ignore = "slow; its like has been seen")]
fn up_and_down_in_boxes() {
    up_and_down([5_u64; 8], 8, 72);
}

/// A map in which every entry has been replaced often, one at a time.
fn churned() -> (Map<u64>, Map<u64>) {
    let count = 50_000;
    let mut map = seeded();
    map.extend((0..count).map(|key| (key, key)));
    let fresh = map.clone();
    for key in count..20 * count {
        assert_eq!(map.remove(&(key - count)), Some(key - count));
        assert_eq!(map.insert(key, key), None);
    }
    map.validate().unwrap();
    assert_eq!((map.len() as u64, map.rekeys()), (count, 0));
    (fresh, map)
}

#[test]
#[cfg_attr(miri, ignore = "slow; its like has been seen")]
fn churn_at_one_size_takes_no_memory() {
    let (fresh, churned) = churned();
    let (least, most) = (fresh.allocation_size() * 95 / 100, fresh.allocation_size() * 105 / 100);
    assert!((least..=most).contains(&churned.allocation_size()), "{}", churned.allocation_size());
}

#[test]
#[cfg_attr(miri, ignore = "slow; its like has been seen")]
fn churn_at_one_size_leaves_entries_near_their_homes() {
    let (fresh, churned) = churned();
    let (far, now) = (fresh.shape().buckets_per_hit(), churned.shape().buckets_per_hit());
    assert!(now < far + 0.05, "{far} buckets for a hit have become {now}");
}

/// An operation at the size at which the map grows, and its reverse, do not make it grow and shrink
/// each time.
#[test]
#[cfg_attr(miri, ignore = "slow; its like has been seen")]
fn there_and_back_again_takes_no_steps() {
    let top = 5000;
    let mut map = seeded();
    for key in 0..top {
        map.insert(key, ());
        let before = map.allocation_size();
        for other in key + 1..key + 5 {
            map.insert(other, ());
            map.remove(&other);
        }
        let steps = map.allocation_size() != before;
        let after = map.allocation_size();
        for other in key + 1..key + 5 {
            map.insert(other, ());
            map.remove(&other);
        }
        assert!(!steps || map.allocation_size() == after, "it swings at {key}");
    }
    map.validate().unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "slow; its like has been seen")]
fn a_million_operations() {
    let mut rng = StdRng::seed_from_u64(7);
    let (mut ours, mut model) = (seeded(), HashMap::new());
    for i in 0..1_000_000_u64 {
        // The number of keys swings between some hundred and some ten thousand.
        let growing = (i / 100_000) % 2 == 0;
        let key = rng.random_range(0..40_000_u64);
        if rng.random_bool(if growing { 0.8 } else { 0.2 }) {
            assert_eq!(ours.insert(key, i), model.insert(key, i));
        } else {
            assert_eq!(ours.remove(&key), model.remove(&key));
        }
        assert_eq!(ours.len(), model.len());
        if ours.len() < 100 || i % 5_000 == 0 {
            ours.validate().unwrap();
        }
    }
    assert!(ours.iter().all(|(key, value)| model.get(key) == Some(value)));
}

/// Each size is validated: the orders in which segments grow, split, shrink and merge.
#[test]
fn every_size_up_and_down() {
    let top = if cfg!(miri) { 30 } else { 5000 };
    let mut map: TrashMap<u64, [u64; 7], Weak> = TrashMap::with_hasher(Weak::Mixed);
    for turn in [5, 2, 1] {
        let low = top / 10 * (turn - 1);
        for key in map.len() as u64..top {
            map.insert(key, [key; 7]);
            map.validate().unwrap_or_else(|broken| panic!("at {key}: {broken}"));
        }
        for key in (low..top).rev() {
            assert_eq!(map.remove(&key), Some([key; 7]));
            map.validate().unwrap_or_else(|broken| panic!("down at {key}: {broken}"));
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow; its like has been seen")]
fn what_is_reserved_is_kept_until_it_is_given_back() {
    let count = 10_000;
    let hasher = DefaultHashBuilder::with_seed(3);
    let mut map: TrashMap<u64, u64> = TrashMap::with_capacity_and_hasher(count, hasher);
    let reserved = map.allocation_size();
    assert!(map.capacity() >= count);
    for _ in 0..2 {
        map.extend((0..count as u64).map(|key| (key, key)));
        assert_eq!(map.allocation_size(), reserved);
        assert!((0..count as u64).all(|key| map.remove(&key).is_some()));
        assert_eq!(map.allocation_size(), reserved);
    }
    map.insert(1, 1);
    map.shrink_to_fit();
    let one: Map<u64> = [(1, 1)].into();
    assert_eq!(map.allocation_size(), one.allocation_size());
    assert_eq!((map.len(), map.get(&1)), (1, Some(&1)));
    map.validate().unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "slow; its like has been seen")]
fn shrinking_to_fit_leaves_room_for_what_is_there() {
    let top = 3000;
    for count in (1..top).step_by(7) {
        let mut map = seeded();
        map.extend((0..count).map(|key| (key, key)));
        map.retain(|key, _| key % 3 > 0);
        map.shrink_to_fit();
        map.validate().unwrap();
        assert!(map.capacity() >= map.len(), "{} for {}", map.capacity(), map.len());
        let fresh: usize = map.clone().into_iter().collect::<Map<u64>>().allocation_size();
        assert!(map.allocation_size() * 10 <= fresh * 15, "{} of {count}", map.allocation_size());
        map.extend((0..count).map(|key| (key, key)));
        map.validate().unwrap();
    }
}
