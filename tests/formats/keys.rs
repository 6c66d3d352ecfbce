//! Serialization of keys.

use flowtable::FlowKey;
use flowtable::key::bits::Headed;
use flowtable::sockets::{Local, Name, Reuse};
use serde_json::{from_str, to_string};

#[test]
fn serialized_keys_are_deserialized() {
    let key = FlowKey::new("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap(), 1, 2, 6);
    let headed: Headed<FlowKey, u32> = Headed { header: 7, key: key.unwrap() };
    assert_eq!(from_str::<Headed<FlowKey, u32>>(&to_string(&headed).unwrap()).unwrap(), headed);
}

#[test]
fn names_of_sockets_survive_a_round_trip() {
    let local = |socket: &str| Local::new(socket.parse().expect("a socket"), 17);
    let connection = FlowKey::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), 1, 2, 6).unwrap();
    let all_ports = Local::all_ports([0, 0, 0, 0].into(), 6);
    let bound = [local("[::]:53"), local("[::]:53").v6_only(), local("192.0.2.1:53"), all_ports];
    let bound = (0..).zip(bound).map(|(id, local)| Name::Bound { local, id });
    for name in bound.chain([Name::Connected(connection)]) {
        let text = to_string(&name).expect("a name has a JSON form");
        assert_eq!(from_str::<Name>(&text).expect("it is valid"), name, "{text}");
    }
    assert_eq!(to_string(&Reuse::Port).unwrap(), r#""Port""#);
}
