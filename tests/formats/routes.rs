//! Serialised route tables, deserialised and validated.

use std::net::{Ipv4Addr, Ipv6Addr};

use flowtable::routes::PrefixSet;
use flowtable::{Prefix, RouteTable};
use serde_json::{from_str, to_string};

#[test]
fn a_table_is_serialised_in_order_and_deserialised() {
    let table =
        RouteTable::from([("10.0.0.0/8".parse().unwrap(), 'b'), (Prefix::default_route(), 'a')]);
    let written = to_string(&table).unwrap();
    assert_eq!(written, r#"{"0.0.0.0/0":"a","10.0.0.0/8":"b"}"#);
    let read: RouteTable<Ipv4Addr, char> = from_str(&written).unwrap();
    assert_eq!(read, table);
    read.validate().unwrap();
    assert_eq!(to_string(&RouteTable::<Ipv6Addr, char>::new()).unwrap(), "{}");
    for wrong in [r#"{"10.0.0.1/8":"a"}"#, r#"{"10.0.0.0/33":"a"}"#, r#"{"::/0":"a"}"#, "[]"] {
        assert!(from_str::<RouteTable<Ipv4Addr, char>>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_set_is_serialised_as_a_sequence_in_order() {
    let set = PrefixSet::from(["10.0.0.0/8".parse().unwrap(), Prefix::default_route()]);
    let written = to_string(&set).unwrap();
    assert_eq!(written, r#"["0.0.0.0/0","10.0.0.0/8"]"#);
    assert_eq!(from_str::<PrefixSet<Ipv4Addr>>(&written).unwrap(), set);
    for wrong in [r#"["10.0.0.1/8"]"#, r#"["10.0.0.0/33"]"#, r#"["::/0"]"#, "{}"] {
        assert!(from_str::<PrefixSet<Ipv4Addr>>(wrong).is_err(), "{wrong}");
    }
}
