//! Parallel iterators compared with sequential ones.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use flowtable::{TrashMap, TrashSet, TrashTable};
use model::hashers::Weak;
use rayon::prelude::*;

const SIZES: &[u32] = if cfg!(miri) { &[0, 50, 1500] } else { &[0, 1, 50, 1500, 20_000] };

fn map_of(entries: u32, hasher: Weak) -> TrashMap<u32, String, Weak> {
    let mut map = TrashMap::with_hasher(hasher);
    // A reseeding at the end leaves entries in the old table.
    map.extend((0..entries).map(|key| (key, key.to_string())));
    map
}

fn hashers() -> impl Iterator<Item = Weak> {
    Weak::ALL.into_iter().take(if cfg!(miri) { 2 } else { usize::MAX })
}

#[test]
fn maps() {
    for (entries, hasher) in SIZES.iter().flat_map(|&n| hashers().map(move |hasher| (n, hasher))) {
        let mut map = map_of(entries, hasher);
        let expected: BTreeMap<u32, String> = map.clone().into_iter().collect();
        let found: BTreeMap<&u32, &String> = map.par_iter().collect();
        assert!(found.into_iter().eq(&expected));
        assert_eq!(map.par_iter().count(), map.len());
        assert_eq!(map.par_keys().copied().collect::<BTreeSet<_>>(), (0..entries).collect());
        let bytes: usize = map.par_values().map(String::len).sum();
        assert_eq!(bytes, map.values().map(String::len).sum());

        map.par_iter_mut().for_each(|(key, value)| value.push_str(&format!(" of {key}")));
        map.par_values_mut().for_each(|value| value.push('.'));
        map.validate().unwrap();
        assert!(map.iter().all(|(key, value)| *value == format!("{key} of {key}.")));
        let owned: BTreeMap<u32, String> = map.clone().into_par_iter().collect();
        assert_eq!(owned, map.iter().map(|(key, value)| (*key, value.clone())).collect());

        let drained: BTreeSet<u32> = map.par_drain().map(|(key, _)| key).collect();
        assert_eq!((drained, map.len()), ((0..entries).collect(), 0));
        map.par_extend((0..entries).into_par_iter().map(|key| (key, key.to_string())));
        map.validate().unwrap();
        assert_eq!(map.into_iter().collect::<BTreeMap<_, _>>(), expected);
    }
}

#[test]
fn sets_and_tables() {
    for &count in SIZES {
        let a: TrashSet<u32> = (0..2 * count).into_par_iter().collect();
        let sorted = |values: Vec<&u32>| values.into_iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(sorted(a.par_iter().collect()), (0..2 * count).collect());
        assert_eq!(a.clone().par_drain().count() as u32, 2 * count);

        let hash = |&number: &u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut table = TrashTable::new();
        for number in 0..u64::from(count) {
            table.insert_unique(hash(&number), number, hash);
        }
        let sum = (0..u64::from(count)).sum::<u64>();
        assert_eq!(table.par_iter().sum::<u64>(), sum);
        table.par_iter_mut().for_each(|number| *number += 1);
        assert_eq!(table.clone().into_par_iter().sum::<u64>(), sum + u64::from(count));
        assert_eq!((table.par_drain().count() as u32, table.len()), (count, 0));
        assert_eq!(a.into_par_iter().map(u64::from).sum::<u64>(), (0..2 * u64::from(count)).sum());
    }
}

/// Counts its drops.
struct Counted<'c>(&'c AtomicUsize, u32);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn each_entry_is_dropped_once() {
    let count = *SIZES.last().unwrap();
    let drops = AtomicUsize::new(0);
    let map = || (0..count).map(|key| (key, Counted(&drops, key))).collect::<TrashMap<_, _>>();
    assert!(map().into_par_iter().any(|(key, _)| key == 7)); // the others are not returned
    assert_eq!(drops.swap(0, Ordering::Relaxed), count as usize);
    let panics = || map().into_par_iter().for_each(|(_, value)| assert_ne!(value.1, 9, "a panic"));
    catch_unwind(AssertUnwindSafe(panics)).unwrap_err();
    assert_eq!(drops.swap(0, Ordering::Relaxed), count as usize);
    drop(map().into_par_iter());
    assert_eq!(drops.into_inner(), count as usize);
}
