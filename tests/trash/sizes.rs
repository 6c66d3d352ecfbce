//! Large `TrashMap`s: long sequences, memory per entry, and no degradation by churn.

use std::collections::HashMap;

use flowtable::{DefaultHashBuilder, TrashMap};
use model::hashers::{Weak, mix};
use model::scaled;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The entries of the large tests.
const MANY: u64 = scaled(300_000, 30_000, 300_000);

type Map<V> = TrashMap<u64, V, DefaultHashBuilder>;

fn seeded<V>() -> Map<V> {
    TrashMap::with_hasher(DefaultHashBuilder::with_seed(3))
}

/// Checks the bytes per entry: those of its box, and of slots with their headers at a load between
/// 84 %, at which most segments split, and 31 %, that of segments about to merge.
fn assert_memory<V>(map: &Map<V>, slot: usize, boxed: usize) {
    let per_entry = map.allocation_size() as f64 / map.len() as f64 - boxed as f64;
    let slot = slot as f64 + 9.0 / 8.0;
    let bounds = slot / 0.84..slot / 0.31;
    assert!(bounds.contains(&per_entry), "{per_entry} bytes for one of {}", map.len());
    let shape = map.shape();
    assert_eq!((shape.entries, shape.bytes), (map.len(), map.allocation_size()));
    assert!(shape.groups_per_hit() < 1.1, "{shape:?}");
}

/// Inserts all and removes all in another order; memory is bounded at every size.
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
        // The factor is coprime to MANY, so each key occurs once.
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
    assert_eq!(map.reseeds(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn up_and_down_with_word_values() {
    up_and_down(7_u64, 16, 0);
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn up_and_down_without_values() {
    up_and_down((), 8, 0);
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn up_and_down_with_flow_state() {
    up_and_down([5_u64; 7], 64, 0);
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn up_and_down_in_boxes() {
    up_and_down([5_u64; 8], 8, 72);
}

/// A map, and the map after each entry was replaced 19 times, one at a time.
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
    assert_eq!((map.len() as u64, map.reseeds()), (count, 0));
    (fresh, map)
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn churn_at_constant_size_needs_no_more_memory() {
    let (fresh, churned) = churned();
    let (least, most) = (fresh.allocation_size() * 95 / 100, fresh.allocation_size() * 105 / 100);
    assert!((least..=most).contains(&churned.allocation_size()), "{}", churned.allocation_size());
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn churn_at_constant_size_keeps_entries_near_their_home_buckets() {
    let (fresh, churned) = churned();
    let (far, now) = (fresh.shape().groups_per_hit(), churned.shape().groups_per_hit());
    assert!(now < far + 0.05, "{far} buckets for a hit have become {now}");
}

/// Hysteresis: insertions and removals around the size at which the map grows do not make it grow
/// and shrink each time.
#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn repeated_insertion_and_removal_does_not_resize() {
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
        assert!(!steps || map.allocation_size() == after, "it resizes each time at {key}");
    }
    map.validate().unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn a_million_operations() {
    let mut rng = StdRng::seed_from_u64(7);
    let (mut ours, mut model) = (seeded(), HashMap::new());
    for i in 0..1_000_000_u64 {
        // The number of keys swings between some hundreds and some tens of thousands.
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
    let top = scaled(5000, 500, 30);
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
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn reserved_capacity_is_kept_until_shrink_to_fit() {
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
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn shrink_to_fit_keeps_room_for_the_entries() {
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
