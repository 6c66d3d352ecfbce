//! `Prefix` and `Address`: construction, parsing, formatting, order, and errors.

use core::fmt::{Debug, Display};
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;
use model::cases;
use std::collections::{BTreeSet, HashSet};
use std::error::Error;

use flowtable::key::bits::Address;
use flowtable::{AnyPrefix, Prefix, PrefixError};
use proptest::prelude::*;

type V4 = Prefix<Ipv4Addr>;
type V6 = Prefix<Ipv6Addr>;

fn v4(text: &str) -> V4 {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn v6(text: &str) -> V6 {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A bit string of any width, from the first bits of `bytes`.
fn from_bytes<A: Address>(bytes: [u8; 40]) -> A {
    use flowtable::key::bits::BitString;
    A::from_windows(|pos| bytes.window(pos))
}

#[test]
fn host_bits_are_cleared_by_new_and_refused_by_try_from() {
    let address = Ipv4Addr::new(10, 1, 2, 3);
    for len in 0..=32 {
        let prefix = Prefix::new(address, len).unwrap();
        let mask = u32::MAX.checked_shl(32 - len).unwrap_or(0);
        assert_eq!(prefix.address(), Ipv4Addr::from_bits(address.to_bits() & mask));
        assert_eq!(prefix.len(), len);
        let strict = V4::try_from((address, len));
        let has_host_bits = address.to_bits() & !mask != 0;
        assert_eq!(
            strict,
            if has_host_bits { Err(PrefixError::HostBits { len }) } else { Ok(prefix) }
        );
        assert_eq!(V4::try_from((prefix.address(), len)), Ok(prefix));
    }
    for len in [33, 64, 65_535, 65_536, 65_537, u32::MAX] {
        let too_long = PrefixError::Length { len, max: 32 };
        assert_eq!(Prefix::new(address, len), Err(too_long));
        assert_eq!(V4::try_from((address, len)), Err(too_long), "the length is checked first");
    }
    assert_eq!(Prefix::new(7_u8, 9), Err(PrefixError::Length { len: 9, max: 8 }));
    assert_eq!(
        Prefix::new(Ipv6Addr::UNSPECIFIED, 129),
        Err(PrefixError::Length { len: 129, max: 128 })
    );
}

#[test]
fn the_default_route_and_host_routes_are_ordinary_prefixes() {
    assert_eq!(V4::default_route(), v4("0.0.0.0/0"));
    assert_eq!(V4::default_route(), Prefix::new(Ipv4Addr::BROADCAST, 0).unwrap());
    assert_eq!(V6::default_route(), v6("::/0"));
    assert_eq!(Prefix::host(Ipv4Addr::BROADCAST), v4("255.255.255.255/32"));
    assert_eq!(Prefix::host(Ipv6Addr::LOCALHOST), v6("::1/128"));
    assert_eq!((Prefix::host(5_u8).len(), Prefix::<u8>::default_route().len()), (8, 0));
    let all = V6::default_route();
    assert!(all.contains(&Ipv6Addr::UNSPECIFIED) && all.covers(&all));
    assert!(all.covers(&Prefix::host(Ipv6Addr::LOCALHOST)));
    assert!(!Prefix::host(Ipv6Addr::LOCALHOST).covers(&all));
}

#[test]
fn prefixes_of_wide_addresses_have_at_most_65535_bits() {
    // 72,000 bits; the type of lengths has sixteen bits.
    let wide = [0xff_u8; 9000];
    let longest = Prefix::new(wide, 65_535).unwrap();
    assert_eq!(
        (longest.len(), longest.address()[8191], longest.address()[8192]),
        (65_535, 0xfe, 0)
    );
    assert_eq!(Prefix::new(wide, 65_536), Err(PrefixError::Length { len: 65_536, max: 65_535 }));
    assert!(longest.contains(&wide) && Prefix::default_route().covers(&longest));
    // The widest addresses that have host routes.
    let host = Prefix::host([1_u8; 8191]);
    assert_eq!(
        (host.len(), host.contains(&[1; 8191]), host.contains(&[0; 8191])),
        (65_528, true, false)
    );
}

#[test]
#[should_panic(expected = "at most 65,535 bits")]
fn a_host_route_of_more_bits_panics() {
    let _ = Prefix::host([0_u8; 8192]);
}

#[test]
fn a_prefix_covers_longer_prefixes_with_its_bits() {
    let ten = v4("10.0.0.0/8");
    for (address, is_inside) in [
        ([10, 0, 0, 0], true),
        ([10, 255, 255, 255], true),
        ([9, 255, 255, 255], false),
        ([11, 0, 0, 0], false),
        ([74, 0, 0, 0], false),
    ] {
        assert_eq!(ten.contains(&address.into()), is_inside, "{address:?}");
    }
    for (other, is_covered) in [
        ("10.0.0.0/8", true),
        ("10.0.0.0/9", true),
        ("10.128.0.0/9", true),
        ("10.1.2.3/32", true),
        ("10.0.0.0/7", false),
        ("0.0.0.0/0", false),
        ("11.0.0.0/32", false),
    ] {
        assert_eq!(ten.covers(&v4(other)), is_covered, "{other}");
    }
    // A difference in each bit before and after the length.
    let base = v6("2001:db8:ffff:0:8000::/67");
    for bit in 0..128 {
        let other = Ipv6Addr::from_bits(base.address().to_bits() ^ (1 << (127 - bit)));
        assert_eq!(base.contains(&other), bit >= 67, "bit {bit}");
        assert_eq!(base.covers(&Prefix::host(other)), bit >= 67, "bit {bit}");
    }
}

#[test]
fn an_ipv4_mapped_prefix_is_an_ipv6_prefix() {
    let mapped = v6("::ffff:10.0.0.0/104");
    assert_eq!(mapped.to_string(), "::ffff:10.0.0.0/104");
    assert!(mapped.contains(&Ipv4Addr::new(10, 1, 2, 3).to_ipv6_mapped()));
    assert!(!mapped.contains(&Ipv4Addr::new(11, 1, 2, 3).to_ipv6_mapped()));
    assert!(!mapped.contains(&Ipv4Addr::new(10, 1, 2, 3).to_ipv6_compatible()));
    assert!(v6("::ffff:0:0/96").covers(&mapped) && v6("::/0").covers(&mapped));
    assert_eq!(V6::from_str("::ffff:10.0.0.1/104"), Err(PrefixError::HostBits { len: 104 }));
    assert_eq!(V4::from_str("::ffff:10.0.0.0/8"), Err(PrefixError::Syntax));
}

#[test]
fn written_prefixes_are_parsed_back() {
    fn check<A: Address + Display + FromStr + Debug>(prefix: Prefix<A>, text: &str) {
        assert_eq!(prefix.to_string(), text);
        assert_eq!(text.parse::<Prefix<A>>(), Ok(prefix));
    }
    check(v4("0.0.0.0/0"), "0.0.0.0/0");
    check(Prefix::new(Ipv4Addr::new(192, 0, 2, 255), 25).unwrap(), "192.0.2.128/25");
    check(v4("255.255.255.255/32"), "255.255.255.255/32");
    check(
        Prefix::new(Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 1), 47).unwrap(),
        "2001:db8:6::/47",
    );
    check(v6("::/0"), "::/0");
    check(v6("::1/128"), "::1/128");
    check(Prefix::new(0xff_u8, 3).unwrap(), "224/3");
    check(Prefix::new(u128::MAX, 1).unwrap(), "170141183460469231731687303715884105728/1");
    assert_eq!(v6("2001:DB8:0:0::/32"), v6("2001:db8::/32"));
}

#[test]
fn invalid_text_is_an_error() {
    for text in [
        "",
        "/",
        "10.0.0.0",
        "10.0.0.0/",
        "/8",
        "10.0.0.0/8/8",
        "10.0.0.0 /8",
        "10.0.0.0/ 8",
        " 10.0.0.0/8",
        "10.0.0.0/8 ",
        "10.0.0.0/+8",
        "10.0.0.0/-8",
        "10.0.0.0/08",
        "0.0.0.0/00",
        "10.0.0.0/+0",
        "10.0.0.0/8.0",
        "10.0.0/8",
        "10/8",
        "10.0.0.0.0/8",
        "256.0.0.0/8",
        "10.0.0.0/a",
        "10.0.0.0/0x8",
        "10.0.0.0\\8",
        "2001:db8::/32",
        "10.0.0.0/255.0.0.0",
        "10.0.0.0/٨",
        "10.0.0.0/4294967296",
        "10.0.0.0/99999999999999999999999999",
    ] {
        assert_eq!(V4::from_str(text), Err(PrefixError::Syntax), "{text:?}");
        // Without a length, and of the other family: prefixes leniently, and of any family.
        if !["10.0.0.0", "2001:db8::/32"].contains(&text) {
            assert_eq!(V4::parse_lenient(text), Err(PrefixError::Syntax), "{text:?}");
            assert_eq!(AnyPrefix::from_str(text), Err(PrefixError::Syntax), "{text:?}");
        }
    }
    for text in
        ["::", "::/", "::/ 0", "[::]/0", "fe80::%eth0/64", "10.0.0.0/8", ":::/0", "1::2::3/128"]
    {
        assert_eq!(V6::from_str(text), Err(PrefixError::Syntax), "{text:?}");
    }
    for (text, len) in [("10.0.0.0/33", 33), ("10.0.0.1/33", 33), ("10.0.0.0/4294967295", u32::MAX)]
    {
        assert_eq!(V4::from_str(text), Err(PrefixError::Length { len, max: 32 }), "{text}");
    }
    assert_eq!(V6::from_str("::/129"), Err(PrefixError::Length { len: 129, max: 128 }));
    for (text, len) in [("10.0.0.1/8", 8), ("10.0.0.1/31", 31), ("128.0.0.0/0", 0)] {
        assert_eq!(V4::from_str(text), Err(PrefixError::HostBits { len }), "{text}");
    }
    assert_eq!(V6::from_str("2001:db8::1/127"), Err(PrefixError::HostBits { len: 127 }));
    assert_eq!("255/0".parse::<Prefix<u8>>(), Err(PrefixError::HostBits { len: 0 }));
}

#[test]
fn a_prefix_of_any_family_has_the_methods_of_its_family() {
    fn check<A: Address>(prefix: Prefix<A>)
    where
        AnyPrefix: From<Prefix<A>>,
    {
        let any = AnyPrefix::from(prefix);
        assert_eq!(AnyPrefix::try_from((any.address(), any.len())), Ok(any));
    }
    for text in ["0.0.0.0/0", "10.0.0.0/8", "192.0.2.128/25", "192.0.2.1/32"] {
        check(v4(text));
    }
    for text in ["::/0", "2001:db8::/32", "2001:db8::8000:0/97", "::1/128"] {
        check(v6(text));
    }
    let address = Ipv4Addr::new(10, 0, 0, 1).into();
    assert_eq!(AnyPrefix::try_from((address, 8)), Err(PrefixError::HostBits { len: 8 }));
    let too_long = PrefixError::Length { len: 33, max: 32 };
    assert_eq!(AnyPrefix::try_from((address, 33)), Err(too_long));
}

#[test]
fn error_messages_describe_the_cause() {
    let check = |error: PrefixError, words: &[&str]| {
        let boxed: Box<dyn Error> = error.into();
        let text = boxed.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    check(PrefixError::Length { len: 33, max: 32 }, &["33 bits", "at most 32"]);
    check(PrefixError::HostBits { len: 8 }, &["bit after the first 8"]);
    check(PrefixError::Syntax, &["address", "slash", "length"]);
}

#[test]
fn a_prefix_is_ordered_directly_before_the_prefixes_that_it_covers() {
    let sorted = [
        "0.0.0.0/0",
        "0.0.0.0/1",
        "0.0.0.0/32",
        "10.0.0.0/8",
        "10.0.0.0/9",
        "10.0.0.0/10",
        "10.64.0.0/10",
        "10.128.0.0/9",
        "10.128.0.1/32",
        "11.0.0.0/8",
        "255.255.255.255/32",
    ];
    let sorted = sorted.map(v4);
    assert!(sorted.is_sorted());
    let again: BTreeSet<V4> = sorted.into_iter().rev().collect();
    assert!(again.into_iter().eq(sorted));
    let set: HashSet<V4> = sorted.into_iter().chain(sorted).collect();
    assert_eq!(set.len(), sorted.len(), "equal prefixes have equal hashes");
}

/// Bytes in patterns of edge cases, and random ones.
fn bytes() -> impl Strategy<Value = [u8; 40]> {
    let pattern = proptest::sample::select(&[0_u8, 0xff, 0x80, 1, 0xa5][..]);
    let flipped = (pattern, 0..320_usize).prop_map(|(byte, bit)| {
        let mut bytes = [byte; 40];
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
        bytes
    });
    prop_oneof![flipped, proptest::array::uniform(any::<u8>())]
}

fn prefix<A: Address>(bytes: [u8; 40], len: u16) -> Prefix<A> {
    Prefix::new(from_bytes(bytes), u32::from(len) % (A::BITS + 1)).expect("the length is bounded")
}

/// Checks all methods of [`Prefix`] for two prefixes, bit by bit.
fn check<A: Address + Debug>(one: ([u8; 40], u16), other: ([u8; 40], u16)) {
    let (a, b): (A, A) = (from_bytes(one.0), from_bytes(other.0));
    assert_eq!(A::from_windows(|pos| a.window(pos)), a, "the contract of `Address`");
    let (p, q): (Prefix<A>, Prefix<A>) = (prefix(one.0, one.1), prefix(other.0, other.1));
    let bit = |a: &A, at| a.window(at) >> 63;
    let first = p.address();
    assert!((0..p.len()).all(|at| bit(&first, at) == bit(&a, at)));
    assert!((p.len()..A::BITS + 70).all(|at| bit(&first, at) == 0));
    assert_eq!(first, a.truncated(p.len()));
    assert_eq!(a.truncated(A::BITS), a);
    assert_eq!(a.truncated(u32::MAX), a);
    assert!(p.contains(&a) && p.contains(&first) && p.covers(&p));
    assert_eq!(p.contains(&b), (0..p.len()).all(|at| bit(&a, at) == bit(&b, at)));
    assert_eq!(p.covers(&q), p.len() <= q.len() && p.contains(&q.address()));
    assert_eq!(p == q, p.covers(&q) && q.covers(&p));
    assert_eq!(p.cmp(&q), (p.address(), p.len()).cmp(&(q.address(), q.len())));
    assert!(!p.covers(&q) || p <= q, "ordered like a traversal");
    assert_eq!(Prefix::try_from((first, p.len())), Ok(p));
    assert_eq!(Prefix::try_from((a, p.len())).is_ok(), a == first);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(300, 1)))]

    #[test]
    fn prefixes_of_every_type_match_the_bitwise_check(
        one in (bytes(), any::<u16>()), other in (bytes(), any::<u16>()),
    ) {
        check::<u8>(one, other);
        check::<u16>(one, other);
        check::<u32>(one, other);
        check::<u64>(one, other);
        check::<u128>(one, other);
        check::<Ipv4Addr>(one, other);
        check::<Ipv6Addr>(one, other);
        check::<[u8; 0]>(one, other);
        check::<[u8; 3]>(one, other);
        check::<[u8; 40]>(one, other);
        check::<(u8, u16)>(one, other);
        check::<(Ipv6Addr, (u8, [u8; 9]))>(one, other);
        // Closer to each other than two random ones.
        check::<Ipv6Addr>(one, (one.0, other.1));
        check::<[u8; 40]>(one, (one.0, other.1));
    }

    #[test]
    fn random_prefixes_are_parsed_back(bits in any::<u128>(), len in 0..=128_u32) {
        let prefix = Prefix::new(Ipv6Addr::from_bits(bits), len).unwrap();
        prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
        let prefix = Prefix::new(Ipv4Addr::from_bits(bits as u32), len % 33).unwrap();
        prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
        let text = format!("{}/{len}", Ipv6Addr::from_bits(bits));
        prop_assert_eq!(text.parse::<V6>(), V6::try_from((Ipv6Addr::from_bits(bits), len)));
    }
}
