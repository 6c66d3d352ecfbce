//! Drops of values that panic.

use flowtable::LcTrieMap;
use model::counted::{Callback, Counted, alive, with_panic};

#[test]
fn a_drop_that_panics_leaves_an_empty_map_and_no_value() {
    let count = if cfg!(miri) { 10 } else { 300 };
    for good in [0, 1, count / 2, count - 1] {
        let values = (0..count).map(|key| (key << 20, Counted::new(key.into())));
        let mut map: LcTrieMap<u32, Counted> = values.collect();
        assert!(with_panic(Callback::Drop, good, || map.clear()).is_none());
        assert_eq!((map.len(), map.allocation_size(), alive()), (0, 0, 0));
        map.insert(1, Counted::new(1));
        map.validate().unwrap();
    }
}
