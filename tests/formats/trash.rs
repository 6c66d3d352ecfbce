//! Serialised maps, deserialised and validated.

use flowtable::{DefaultHashBuilder, LcTrieMap, TrashMap, TrashSet, trash};
use serde_json::{from_str, to_string};

#[test]
fn a_map_is_serialised_in_any_order_and_deserialised() {
    let map: TrashMap<u32, char> = [(70, 'b'), (7, 'a'), (700, 'c')].into();
    let read: TrashMap<u32, char> = from_str(&to_string(&map).unwrap()).unwrap();
    assert_eq!(read, map);
    read.validate().unwrap();
    // Another hasher, and the format of an ordered map.
    let mut seeded = TrashMap::with_hasher(DefaultHashBuilder::with_seed(1));
    seeded.extend((0..1000).map(|key: u32| (key, char::from(key as u8))));
    let sorted: LcTrieMap<u32, char> = from_str(&to_string(&seeded).unwrap()).unwrap();
    assert_eq!(sorted.len(), 1000);
    let read: TrashMap<u32, char> = from_str(&to_string(&sorted).unwrap()).unwrap();
    assert_eq!(read, seeded);
    read.validate().unwrap();
    assert_eq!(to_string(&TrashMap::<u32, char>::new()).unwrap(), "{}");
    assert!(from_str::<TrashMap<u32, char>>("{}").unwrap().is_empty());
    assert_eq!(
        from_str::<TrashMap<u8, u8>>(r#"{"1":2,"1":3}"#).unwrap()[&1],
        3,
        "the last value is kept"
    );
    for wrong in [r#"{"7":"a","x":"b"}"#, "[7]", r#"{"7":"a""#] {
        assert!(from_str::<TrashMap<u32, char>>(wrong).is_err(), "{wrong}");
    }
    let shape = seeded.shape();
    assert_eq!(from_str::<trash::TableShape>(&to_string(&shape).unwrap()).unwrap(), shape);
}

#[test]
fn a_set_is_serialised_as_a_sequence() {
    let set: TrashSet<u32> = (0..100).collect();
    let text = to_string(&set).unwrap();
    let read: TrashSet<u32> = from_str(&text).unwrap();
    assert_eq!(read, set);
    read.validate().unwrap();
    assert_eq!(from_str::<Vec<u32>>(&text).unwrap().len(), 100);
    assert_eq!(from_str::<TrashSet<u32>>("[7,7]").unwrap(), TrashSet::from([7]));
    assert!(from_str::<TrashSet<u32>>("{}").is_err());
}
