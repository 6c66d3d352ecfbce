//! Prefixes as text, and as the types of `ipnet`.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use flowtable::Prefix;
use ipnet::{Ipv4Net, Ipv6Net};
use serde_json::{from_str, to_string};

type V4 = Prefix<Ipv4Addr>;
type V6 = Prefix<Ipv6Addr>;

fn v4(text: &str) -> V4 {
    text.parse().expect(text)
}

fn v6(text: &str) -> V6 {
    text.parse().expect(text)
}

#[test]
fn a_prefix_is_written_as_text_and_read_back() {
    let ten = v4("10.0.0.0/8");
    assert_eq!(to_string(&ten).unwrap(), r#""10.0.0.0/8""#);
    assert_eq!(from_str::<V4>(r#""10.0.0.0/8""#).unwrap(), ten);
    let mapped = v6("::ffff:10.0.0.0/104");
    assert_eq!(from_str::<V6>(&to_string(&mapped).unwrap()).unwrap(), mapped);
    for (text, words) in [
        (r#""10.0.0.0""#, "slash"),
        (r#""10.0.0.0/33""#, "33 bits"),
        (r#""10.0.0.1/8""#, "after the first 8"),
        (r#""2001:db8::/32""#, "slash"),
        ("8", "8"),
        ("[\"10.0.0.0\",8]", ""),
    ] {
        let error = from_str::<V4>(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
    assert_eq!(
        from_str::<BTreeMap<V4, u8>>(r#"{"10.0.0.0/8":1}"#).unwrap()[&ten],
        1,
        "a key of a map"
    );
}

#[test]
fn prefixes_convert_from_and_to_ipnet() {
    let net = Ipv4Net::new(Ipv4Addr::new(10, 1, 2, 3), 8).unwrap();
    assert_eq!(V4::from(net), v4("10.0.0.0/8"), "its host bits are cleared");
    assert_eq!(Ipv4Net::from(v4("10.0.0.0/8")), net.trunc());
    let net = Ipv6Net::new(Ipv6Addr::LOCALHOST, 127).unwrap();
    assert_eq!(V6::from(net), v6("::/127"));
    assert_eq!(Ipv6Net::from(v6("::/127")), net.trunc());
    for len in 0..=128_u8 {
        let net = Ipv6Net::new(Ipv6Addr::from_bits(u128::MAX), len).unwrap();
        assert_eq!(V6::from(net), Prefix::new(net.addr(), len.into()).unwrap());
        assert_eq!(Ipv6Net::from(V6::from(net)), net.trunc());
        let net = Ipv4Net::new(Ipv4Addr::BROADCAST, len % 33).unwrap();
        assert_eq!(Ipv4Net::from(V4::from(net)), net.trunc());
    }
}
