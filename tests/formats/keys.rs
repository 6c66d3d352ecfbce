//! Serialization of keys.

use flowtable::FlowKey;
use flowtable::key::bits::Headed;
use serde_json::{from_str, to_string};

#[test]
fn serialized_keys_are_deserialized() {
    let key = FlowKey::new("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap(), 1, 2, 6);
    let headed: Headed<FlowKey, u32> = Headed::with_header(7, key.unwrap());
    assert_eq!(from_str::<Headed<FlowKey, u32>>(&to_string(&headed).unwrap()).unwrap(), headed);
}
