//! `HugePages`, where the system has them, as the memory of `TrashMap` and `TrashTable`.
#![cfg(all(feature = "huge-pages", not(miri)))]

use flowtable::memory::{HugePages, HugePagesError, PageSource};
use flowtable::{TrashMap, TrashTable};
use model::hashers::mix;

/// None if the system has no transparent huge pages: nothing else is an error.
fn transparent() -> Option<HugePages> {
    match HugePages::new(PageSource::Transparent, None) {
        Ok(memory) => Some(memory),
        Err(HugePagesError::Disabled | HugePagesError::Unsupported) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn areas_of_freed_segments_are_used_again() {
    let Some(memory) = transparent() else { return };
    let mut map = TrashMap::new_in(memory.clone());
    let mut mapped = vec![];
    for round in 0..3 {
        map.extend((0..200_000_u64).map(|key| (mix(key + round), key)));
        assert_eq!((map.len(), map.validate()), (200_000, Ok(())));
        assert!(memory.allocated_bytes() >= map.allocation_size());
        assert!(memory.allocated_bytes() < map.allocation_size() + map.allocation_size() / 64);
        mapped.push(memory.mapped_bytes());
        assert!(memory.huge_bytes().is_ok());
        map.clear();
        assert_eq!(memory.allocated_bytes(), 0);
    }
    assert_eq!(mapped, [mapped[0]; 3], "no area is mapped that is not needed");
}

#[test]
fn blocks_larger_than_a_page_have_areas_of_their_own() {
    let Some(memory) = transparent() else { return };
    let mut table = TrashTable::with_capacity_in(1 << 20, memory.clone());
    let hash = |number: &u64| mix(*number);
    for number in 0..1 << 20 {
        table.insert_unique(mix(number), number, hash);
    }
    assert!((0..1 << 20).all(|number| table.find(mix(number), |own| *own == number).is_some()));
    std::thread::scope(|scope| {
        // It is passed to other threads.
        let table = scope.spawn(move || table.len());
        assert_eq!(table.join().unwrap(), 1 << 20);
    });
    assert_eq!(memory.allocated_bytes(), 0);
}

#[test]
fn what_the_system_lacks_is_an_error() {
    if transparent().is_some() {
        let error = HugePages::new(PageSource::Transparent, Some(1 << 20)).unwrap_err();
        assert_eq!(error, HugePagesError::NoSuchNode(1 << 20));
        assert!(error.to_string().contains("1048576"));
        let error = HugePages::new(PageSource::Transparent, Some(1000)).unwrap_err();
        assert!(matches!(error, HugePagesError::NoSuchNode(1000) | HugePagesError::System(..)));
    }
    // Reserved pages may be there, for some of the requests.
    if let Ok(memory) = HugePages::new(PageSource::Reserved, None) {
        let mut map = TrashMap::new_in(memory.clone());
        let refused = (0..200_000_u64).find(|&key| map.try_insert(key, key).is_err());
        assert_eq!((map.validate(), map.len() as u64), (Ok(()), refused.unwrap_or(200_000)));
    }
}
