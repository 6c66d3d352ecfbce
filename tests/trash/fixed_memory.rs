//! Maps in memory of a fixed size, which they fill.

use core::mem::MaybeUninit;

use flowtable::{DefaultHashBuilder, TrashMap, TrashTable};
use model::area::Area;
use model::hashers::mix;
use model::scaled;

fn memory(bytes: usize) -> Vec<MaybeUninit<u8>> {
    vec![MaybeUninit::uninit(); bytes]
}

#[test]
fn a_table_in_any_memory_is_full_and_frees_all_of_it() {
    for &bytes in scaled(&[0, 15, 130, 1000, 2000, 4096, 20_000][..], &[15, 4096], &[15, 2000]) {
        let mut memory = memory(bytes);
        let area = Area::new(&mut memory);
        for _ in 0..3 {
            let mut table = TrashTable::new_in(&area);
            let hash = |entry: &[u64; 9]| mix(entry[0]);
            for number in 0..100 {
                let entry = [number; 9];
                if table.try_insert_unique(hash(&entry), entry, hash).is_err() {
                    break;
                }
            }
            assert_eq!(table.validate(hash), Ok(()));
            drop(table);
            assert_eq!(area.allocated_bytes(), 0);
        }
    }
}

/// Churn in a small area: the map is full, entries are removed and others inserted.
#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn a_full_map_goes_on_in_its_area() {
    let mut memory = memory(64 << 10);
    let area = Area::new(&mut memory);
    let hasher = DefaultHashBuilder::with_seed(7);
    let mut map = TrashMap::with_hasher_in(hasher, &area);
    let full = (0_u64..).find(|&key| map.try_insert(key, key).is_err()).unwrap();
    // Of 17.2 bytes each, and a segment splits only if there is memory for another one.
    assert!(full > 1200, "{full} entries");
    let mut refused = 0;
    for key in full..20 * full {
        map.remove(&(key - full));
        refused += usize::from(map.try_insert(key, key).is_err());
        if key % 500 == 0 {
            assert_eq!(map.validate(), Ok(()));
        }
    }
    assert!(map.len() as u64 > full / 2, "{} of {full}, {refused} refused", map.len());
    map.clear();
    assert_eq!((area.allocated_bytes(), map.allocation_size()), (0, 0));
}
