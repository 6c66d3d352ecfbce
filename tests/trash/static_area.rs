//! `StaticArea`: blocks compared with a list of blocks, and maps that fill an area.

use core::mem::MaybeUninit;

use flowtable::memory::{Allocator, StaticArea};
use flowtable::{DefaultHashBuilder, TrashMap, TrashTable};
use model::hashers::mix;
use model::scaled;
use model::static_area::CheckedArea;
use proptest::collection::vec;
use proptest::prelude::*;

fn memory(bytes: usize) -> Vec<MaybeUninit<u8>> {
    vec![MaybeUninit::uninit(); bytes]
}

#[derive(Clone, Debug)]
enum Op {
    Allocate(usize, u32),
    Free(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let size = prop_oneof![0_usize..80, 0_usize..2000, Just(1168_usize)];
    prop_oneof![
        (size, 0_u32..9).prop_map(|(size, align)| Op::Allocate(size, align)),
        any::<usize>().prop_map(Op::Free),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

    #[test]
    fn blocks_are_apart_and_free_blocks_are_found(
        bytes in 0_usize..if cfg!(miri) { 2000 } else { 12_000 },
        offset in 0_usize..20,
        ops in vec(op(), 1..if cfg!(miri) { 10 } else { 200 }),
    ) {
        let mut memory = memory(bytes + offset);
        let mut area = CheckedArea::new(&mut memory[offset..]);
        area.check();
        for op in ops {
            match op {
                Op::Allocate(size, align) => _ = area.allocate(size, 1 << align),
                Op::Free(index) => area.free(index),
            }
            area.check();
        }
        while !area.is_empty() {
            area.free(0);
        }
        area.check();
    }
}

/// All blocks are merged when they have been freed, so all memory is one block again.
#[test]
fn what_is_freed_is_one_block_again() {
    for &bytes in
        scaled(&[0, 15, 16, 17, 129, 130, 1000, 4096][..], &[15, 130, 4096], &[15, 130, 2000])
    {
        let mut memory = memory(bytes);
        let area = StaticArea::new(&mut memory);
        let whole = core::alloc::Layout::array::<u8>(area.capacity()).unwrap();
        assert!(area.capacity() + 48 >= bytes - bytes / 129, "{bytes}: {area:?}");
        for _ in 0..3 {
            let mut table = TrashTable::new_in(&area);
            let hash = |entry: &[u64; 9]| mix(entry[0]);
            for number in 0..100 {
                let entry = [number; 9];
                if table.try_insert_unique(hash(&entry), entry, hash).is_err() {
                    break;
                }
            }
            assert_eq!((area.validate(), table.validate(hash)), (Ok(()), Ok(())));
            drop(table);
            let block = area.allocate(whole).unwrap();
            #[allow(unsafe_code)]
            // SAFETY: it has just been allocated with this layout.
            unsafe {
                area.deallocate(block.cast(), whole);
            }
        }
    }
}

/// Churn in a small area: the map is full, entries are removed and others inserted.
#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn a_full_map_goes_on_in_its_area() {
    let mut memory = memory(64 << 10);
    let area = StaticArea::new(&mut memory);
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
            assert_eq!((map.validate(), area.validate()), (Ok(()), Ok(())));
        }
    }
    assert!(map.len() as u64 > full / 2, "{} of {full}, {refused} refused", map.len());
    map.clear();
    assert_eq!((area.allocated_bytes(), map.allocation_size()), (0, 0));
}
