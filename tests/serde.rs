//! What is written is read back, and what breaks a law is refused.

use flowtable::{
    DefaultHashBuilder, FlowKey, Headed, LcTrieMap, PassiveGc, Thresholds, TrashMap, Tuning, trash,
};
use serde_json::{from_str, to_string};

#[test]
fn a_map_is_written_in_order_and_read_back() {
    let map: LcTrieMap<u32, char> = [(70, 'b'), (7, 'a'), (700, 'c')].into();
    let written = to_string(&map).unwrap();
    assert_eq!(written, r#"{"7":"a","70":"b","700":"c"}"#);
    let read: LcTrieMap<u32, char> = from_str(&written).unwrap();
    assert_eq!(read, map);
    read.validate().unwrap();
    assert!(from_str::<LcTrieMap<u32, char>>(r#"{"7":"a","x":"b"}"#).is_err());
}

#[test]
fn a_hash_table_is_written_in_any_order_and_read_back() {
    let map: TrashMap<u32, char> = [(70, 'b'), (7, 'a'), (700, 'c')].into();
    let read: TrashMap<u32, char> = from_str(&to_string(&map).unwrap()).unwrap();
    assert_eq!(read, map);
    read.validate().unwrap();
    // Another hasher, and the format of a map that has an order.
    let mut seeded = TrashMap::with_hasher(DefaultHashBuilder::with_seed(1));
    seeded.extend((0..1000).map(|key: u32| (key, char::from(key as u8))));
    let sorted: LcTrieMap<u32, char> = from_str(&to_string(&seeded).unwrap()).unwrap();
    assert_eq!(sorted.len(), 1000);
    let read: TrashMap<u32, char> = from_str(&to_string(&sorted).unwrap()).unwrap();
    assert_eq!(read, seeded);
    read.validate().unwrap();
    assert_eq!(to_string(&TrashMap::<u32, char>::new()).unwrap(), "{}");
    assert!(from_str::<TrashMap<u32, char>>("{}").unwrap().is_empty());
    assert_eq!(from_str::<TrashMap<u8, u8>>(r#"{"1":2,"1":3}"#).unwrap()[&1], 3, "the last counts");
    for wrong in [r#"{"7":"a","x":"b"}"#, "[7]", r#"{"7":"a""#] {
        assert!(from_str::<TrashMap<u32, char>>(wrong).is_err(), "{wrong}");
    }
    let shape = seeded.shape();
    assert_eq!(from_str::<trash::Shape>(&to_string(&shape).unwrap()).unwrap(), shape);
}

#[test]
fn keys_are_read_back() {
    let key = FlowKey::new("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap(), 1, 2, 6);
    let headed: Headed<FlowKey, u32> = Headed::with_header(7, key.unwrap());
    assert_eq!(from_str::<Headed<FlowKey, u32>>(&to_string(&headed).unwrap()).unwrap(), headed);
}

#[test]
fn parameters_are_read_back_and_checked() {
    for tuning in [Tuning::default(), Tuning::TRASH_2006] {
        assert_eq!(from_str::<Tuning>(&to_string(&tuning).unwrap()).unwrap(), tuning);
    }
    let error = from_str::<Thresholds>(r#"{"inflate":0,"halve":25}"#).unwrap_err();
    assert!(error.to_string().contains("inflate threshold of 0 %"), "{error}");
    let gc = PassiveGc::TRASH_2006;
    assert_eq!(from_str::<PassiveGc>(&to_string(&gc).unwrap()).unwrap(), gc);
    assert!(from_str::<PassiveGc>(r#"{"threshold":5,"goal":0}"#).is_err());
}
