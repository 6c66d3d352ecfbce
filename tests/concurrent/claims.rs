//! Every number that the documentation of `ConcurrentMap` states, with its seed and size.

use core::hash::BuildHasher;
use core::sync::atomic::{AtomicU64, Ordering};

use flowtable::hash::IdHasher;
use flowtable::{ConcurrentMap, DefaultHashBuilder};
use model::alloc::with_allocations;
use model::hashers::mix;

type Flows = ConcurrentMap<[u64; 2], u64>;

/// An empty map with a seed.
fn flows() -> Flows {
    ConcurrentMap::with_hasher(DefaultHashBuilder::with_seed(2006))
}

#[test]
fn an_empty_map_takes_13_kilobytes() {
    let bytes = flows().allocation_size();
    assert!((12 << 10..14 << 10).contains(&bytes), "{bytes} bytes");
}

#[test]
fn the_first_hundred_entries_take_25_kilobytes() {
    let map = flows();
    (0..100).for_each(|number| _ = map.pin().insert([number, 0], number).unwrap());
    let bytes = map.allocation_size() - flows().allocation_size();
    assert!((24 << 10..26 << 10).contains(&bytes), "{bytes} bytes");
}

#[test]
fn an_entry_of_24_bytes_takes_35_to_41() {
    let map = flows();
    let (mut pin, mut seen) = (map.pin(), [f64::MAX, 0.0]);
    for number in 1..=1_000_000 {
        pin.insert([number, 0], number).unwrap();
        pin.repin();
        if number >= 100_000 && number % 10_000 == 0 {
            let bytes = map.allocation_size() as f64 / number as f64;
            seen = [seen[0].min(bytes), seen[1].max(bytes)];
        }
    }
    assert!(seen[0] >= 35.0 && seen[1] <= 41.0, "{seen:?} bytes");
}

#[test]
fn the_index_does_not_grow_within_the_reserved_capacity() {
    for entries in [1000, 10_000, 100_000_u64] {
        let map =
            Flows::with_capacity_and_hasher(entries as usize, DefaultHashBuilder::with_seed(7));
        let before = map.allocation_size();
        let pin = map.pin();
        (0..entries).for_each(|key| _ = pin.insert([key, key], key).unwrap());
        // Chunks of entries and their tables are allocated one by one; the index does not grow.
        let chunks =
            entries as usize * 24 + 64 * (64 * 24 + 2 * 8 * entries.div_ceil(1024) as usize + 64);
        assert!(map.allocation_size() <= before + chunks, "{entries}");
    }
}

#[test]
fn the_index_does_not_shrink_below_the_reserved_capacity() {
    // Keys of one shard: the others, and the store, have more memory than they need.
    let is_of_shard = |hash: &u64| {
        let product = u128::from(*hash) * 0x9e37_79b9_7f4a_7c15;
        (product as u64 ^ (product >> 64) as u64) % 64 == 0
    };
    let keys: Vec<u64> = (0..).map(mix).filter(is_of_shard).take(4000).collect();
    for count in (1000..4000).step_by(500) {
        let map = ConcurrentMap::with_capacity_and_hasher(3200, IdHasher);
        let (before, pin) = (map.allocation_size(), map.pin());
        keys[..count].iter().for_each(|&key| _ = pin.insert(key, ()).unwrap());
        assert!(map.allocation_size() > before, "the shard has grown");
        // Without memory no segment shrinks: then large ones are merged into small ones.
        let (last, others) = keys[..count].split_at(60);
        with_allocations(0, || others.iter().for_each(|key| _ = pin.remove(key)));
        for key in last {
            pin.remove(key);
            assert!(map.allocation_size() >= before, "{count} keys");
        }
    }
}

/// A hasher that counts the keys.
struct Counting(DefaultHashBuilder, AtomicU64);

impl BuildHasher for Counting {
    type Hasher = <DefaultHashBuilder as BuildHasher>::Hasher;

    fn build_hasher(&self) -> Self::Hasher {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.build_hasher()
    }
}

#[test]
fn growth_and_shrinking_hash_no_key_but_when_shards_split() {
    let hasher = Counting(DefaultHashBuilder::with_seed(3), AtomicU64::new(0));
    let map: ConcurrentMap<u64, (), Counting> = ConcurrentMap::with_hasher(hasher);
    let (pin, some, keys) = (map.pin(), 20_000, 60_000);
    let hashed = || map.hasher().1.load(Ordering::Relaxed);
    (0..some).for_each(|key| _ = pin.insert(key, ()).unwrap());
    // All shards are open.
    let (before, few) = (hashed(), map.allocation_size());
    assert!((some + 1..2 * some).contains(&before), "{before} hashes");
    (some..keys).for_each(|key| _ = pin.insert(key, ()).unwrap());
    let full = map.allocation_size();
    assert!(full > few + (keys - some) as usize * 8, "{few} to {full} bytes");
    (100..keys).for_each(|key| _ = pin.remove(&key));
    assert!(map.allocation_size() < full, "{full} to {} bytes", map.allocation_size());
    assert_eq!(hashed() - before, 2 * keys - some - 100);
}
