//! Lookups in the tables for many threads.

use std::hint::black_box;

use flowtable::concurrent::{ConcurrentMap, ConcurrentTable, Pinned};
use flowtable::{DefaultHashBuilder, write_to};

use super::COUNT;

type Key = [u64; 2];
type Map = ConcurrentMap<Key, u64>;
type Table = ConcurrentTable<Key, u64>;
/// Another type, so that its functions are not compiled together with those of the small table.
type LargeTable = ConcurrentTable<Key, i64>;

#[inline(never)]
fn count_map_hit(map: &Pinned<'_, Map>, keys: &[Key]) -> u64 {
    keys.iter().map(|key| map.get(key).copied().unwrap_or(1)).sum()
}

#[inline(never)]
fn count_map_burst(map: &Pinned<'_, Map>, keys: &[Key]) -> u64 {
    let (mut found, mut sum) = ([None; 32], 0);
    for keys in keys.chunks_exact(32) {
        map.get_batch(keys, write_to(&mut found));
        sum += found.iter().flatten().copied().sum::<u64>();
    }
    sum
}

/// In reverse: the linker merges equal functions.
#[inline(never)]
fn count_map_small_burst(map: &Pinned<'_, Map>, keys: &[Key]) -> u64 {
    let (mut found, mut sum) = ([None; 32], 0);
    for keys in keys.chunks_exact(32).rev() {
        map.get_batch(keys, write_to(&mut found));
        sum += found.iter().flatten().copied().sum::<u64>();
    }
    sum
}

#[inline(never)]
fn count_table_hit(table: &Pinned<'_, Table>, keys: &[Key]) -> u64 {
    keys.iter().map(|key| table.get(key).unwrap_or(1)).sum()
}

#[inline(never)]
fn count_table_burst(table: &Pinned<'_, LargeTable>, keys: &[Key]) -> i64 {
    let (mut found, mut sum) = ([None; 32], 0);
    for keys in keys.chunks_exact(32) {
        table.get_batch(keys, write_to(&mut found));
        sum += found.iter().flatten().sum::<i64>();
    }
    sum
}

/// In reverse, as above.
#[inline(never)]
fn count_table_small_burst(table: &Pinned<'_, Table>, keys: &[Key]) -> u64 {
    let (mut found, mut sum) = ([None; 32], 0);
    for keys in keys.chunks_exact(32).rev() {
        table.get_batch(keys, write_to(&mut found));
        sum += found.iter().flatten().sum::<u64>();
    }
    sum
}

#[inline(never)]
fn count_table_add(table: &Pinned<'_, Table>, keys: &[Key]) {
    keys.iter().for_each(|key| _ = table.fetch_add(key, 1));
}

pub(crate) fn count() {
    let keys: Vec<Key> = (0..COUNT).map(|key| [key, !key]).collect();
    let hasher = DefaultHashBuilder::with_seed(1);
    let (map, table) = (Map::with_hasher(hasher.clone()), Table::with_hasher(hasher.clone()));
    (&map).extend(keys.iter().map(|key| (*key, 1)));
    (&table).extend(keys.iter().map(|key| (*key, 1)));
    assert_eq!(black_box(count_map_hit(&map.pin(), &keys)), COUNT);
    assert_eq!(black_box(count_map_small_burst(&map.pin(), &keys)), COUNT);
    assert_eq!(black_box(count_table_hit(&table.pin(), &keys)), COUNT);
    assert_eq!(black_box(count_table_small_burst(&table.pin(), &keys)), COUNT);
    count_table_add(&table.pin(), &keys);
    assert_eq!(count_table_hit(&table.pin(), &keys[..10]), 20);

    // Above 2 MiB bursts prefetch.
    let more = (COUNT..4 * COUNT).map(|key| [key, !key]);
    (&map).extend(more.clone().map(|key| (key, 1)));
    assert_eq!(black_box(count_map_burst(&map.pin(), &keys)), COUNT);
    let table = LargeTable::with_hasher(hasher);
    (&table).extend(keys.iter().copied().chain(more).map(|key| (key, 1)));
    assert_eq!(black_box(count_table_burst(&table.pin(), &keys)), COUNT as i64);
}
