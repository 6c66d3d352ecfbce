//! Serialised maps and parameters, deserialised and validated.

use flowtable::LcTrieMap;
use flowtable::eviction::PassiveGc;
use flowtable::trie::{Thresholds, Tuning};
use serde_json::{from_str, to_string};

#[test]
fn a_map_is_serialised_in_order_and_deserialised() {
    let map: LcTrieMap<u32, char> = [(70, 'b'), (7, 'a'), (700, 'c')].into();
    let written = to_string(&map).unwrap();
    assert_eq!(written, r#"{"7":"a","70":"b","700":"c"}"#);
    let read: LcTrieMap<u32, char> = from_str(&written).unwrap();
    assert_eq!(read, map);
    read.validate().unwrap();
    assert!(from_str::<LcTrieMap<u32, char>>(r#"{"7":"a","x":"b"}"#).is_err());
}

#[test]
fn parameters_are_deserialised_and_checked() {
    for tuning in [Tuning::default(), Tuning::TRASH_2006] {
        assert_eq!(from_str::<Tuning>(&to_string(&tuning).unwrap()).unwrap(), tuning);
    }
    let error = from_str::<Thresholds>(r#"{"inflate":0,"halve":25}"#).unwrap_err();
    assert!(error.to_string().contains("inflate threshold of 0 %"), "{error}");
    let gc = PassiveGc::TRASH_2006;
    assert_eq!(from_str::<PassiveGc>(&to_string(&gc).unwrap()).unwrap(), gc);
    assert!(from_str::<PassiveGc>(r#"{"threshold":5,"goal":0}"#).is_err());
}
