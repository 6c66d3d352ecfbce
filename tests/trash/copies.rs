//! Copies of maps and tables into the memory of others.

use std::panic::{AssertUnwindSafe, catch_unwind};

use flowtable::{DefaultHashBuilder, TrashMap, TrashSet, TrashTable};
use model::hashers::Weak;

const SIZES: &[u32] = if cfg!(miri) { &[0, 3, 40] } else { &[0, 1, 3, 40, 700, 5000, 30_000] };

fn map_of(entries: u32, hasher: Weak) -> TrashMap<u32, String, Weak> {
    let mut map = TrashMap::with_hasher(hasher);
    map.extend((0..entries).map(|key| (key, format!("value {key}"))));
    map
}

#[test]
fn maps_of_all_sizes_and_hashers() {
    for hasher in Weak::ALL {
        for (&from, &to) in SIZES.iter().flat_map(|from| SIZES.iter().map(move |to| (from, to))) {
            if from.max(to) > 5000 && hasher != Weak::ALL[0] {
                continue;
            }
            let (source, mut target) = (map_of(from, hasher), map_of(to, hasher));
            target.clone_from(&source);
            target.validate().unwrap();
            assert_eq!((target.len(), target.reseeds()), (source.len(), source.reseeds()));
            assert_eq!(
                (&target, target.allocation_size()),
                (&source, source.clone().allocation_size())
            );
            target.insert(from, "another".into());
            target.remove(&0);
            target.validate().unwrap();
        }
    }
}

#[test]
fn entries_that_are_not_dropped_and_that_are_in_boxes() {
    for &entries in SIZES {
        let set: TrashSet<u32, Weak> = (0..entries).collect();
        let mut other: TrashSet<u32, Weak> = (entries / 2..2 * entries).collect();
        other.clone_from(&set);
        other.validate().unwrap();
        assert_eq!(other, set);
        let map: TrashMap<u32, [u64; 20]> =
            set.iter().map(|&key| (key, [key.into(); 20])).collect();
        let mut other = map.iter().map(|(key, _)| (key + 1, [7; 20])).collect::<TrashMap<_, _>>();
        other.clone_from(&map);
        other.validate().unwrap();
        assert_eq!(other, map);
    }
}

#[test]
fn the_segments_of_a_table_are_used_again() {
    let hash = |&number: &u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let table_of = |numbers: std::ops::Range<u64>| {
        let mut table = TrashTable::new();
        for number in numbers {
            table.insert_unique(hash(&number), number, hash);
        }
        table
    };
    let (source, mut target) = (table_of(0..3000), table_of(5000..8000));
    let before = source.find(hash(&7), |&number| number == 7).map(std::ptr::from_ref);
    let addresses = |table: &TrashTable<u64>| {
        let mut pages: Vec<usize> =
            table.iter().map(|entry| std::ptr::from_ref(entry).addr() >> 4).collect();
        pages.sort_unstable();
        pages
    };
    let own = addresses(&target);
    target.clone_from(&source);
    target.validate(hash).unwrap();
    let shared = addresses(&target).iter().filter(|page| own.binary_search(page).is_ok()).count();
    assert!(shared > 1000, "{shared} entries are where others have been");
    assert_ne!(target.find(hash(&7), |&number| number == 7).map(std::ptr::from_ref), before);
    assert_eq!((0..3000).filter(|n| target.find(hash(n), |own| own == n).is_some()).count(), 3000);
    assert_eq!(target.find(hash(&5001), |&number| number == 5001), None);
}

/// A value whose clone panics if it is 50.
#[derive(Debug, PartialEq)]
struct Fragile(u32, String);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert_ne!(self.0, 50, "the clone panics");
        Self(self.0, self.1.clone())
    }
}

#[test]
fn a_clone_that_panics_leaves_an_empty_map() {
    let map_of = |keys: std::ops::Range<u32>| {
        let mut map = TrashMap::with_hasher(DefaultHashBuilder::with_seed(7));
        map.extend(keys.map(|key| (key, Fragile(key, key.to_string()))));
        map
    };
    let (source, mut target) = (map_of(0..100), map_of(100..220));
    catch_unwind(AssertUnwindSafe(|| target.clone_from(&source))).unwrap_err();
    target.validate().unwrap();
    assert!(target.is_empty() && source.len() == 100);
    target.clone_from(&map_of(60..90));
    assert_eq!(target, map_of(60..90));
}
