//! Bit strings against strings of booleans: all short ones, and random longer ones.

use core::cmp::Ordering;
use core::fmt::Debug;
use core::hash::BuildHasher;
use core::net::{Ipv4Addr, Ipv6Addr};
use model::cases;
use std::collections::BTreeSet;

use flowtable::key::bits::{BitString, Headed};
use flowtable::{DefaultHashBuilder, Direction, FiveTuple, FlowKey, FourTuple, TcpFlags};
use proptest::prelude::*;

/// The reference model: one `bool` per bit.
fn bools<B: BitString>(bits: &B) -> Vec<bool> {
    (0..B::BITS).map(|pos| bits.slice(pos, 1) == 1).collect()
}

/// The bits of bytes, the most significant first, by plain arithmetic.
fn bits_of(bytes: &[u8]) -> Vec<bool> {
    bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> (7 - bit) & 1 == 1)).collect()
}

/// The window of the reference model: 64 bits from `pos`, `false` after the end.
fn window_of(bools: &[bool], pos: u32) -> u64 {
    (0..64).fold(0, |word, i| {
        let bit = bools.get(pos as usize + i).copied().unwrap_or(false);
        word << 1 | u64::from(bit)
    })
}

/// Checks the contract of [`BitString`] and all its methods for one pair.
fn check<B: BitString + Debug>(a: &B, b: &B) {
    let (x, y) = (bools(a), bools(b));
    assert_eq!(a.cmp(b), x.cmp(&y), "bit order is Ord: {a:?} {b:?}");
    assert_eq!(a == b, x == y);
    let step = if cfg!(miri) { 29 } else { 1 };
    for pos in (0..=B::BITS + 70).step_by(step).chain([u32::MAX - 64, u32::MAX]) {
        assert_eq!(a.window(pos), window_of(&x, pos), "window {pos} of {a:?}");
        let differing = (pos..B::BITS).find(|&bit| x[bit as usize] != y[bit as usize]);
        assert_eq!(a.first_difference(b, pos), differing, "from {pos}: {a:?} {b:?}");
    }
    for (pos, count) in
        (0..B::BITS).step_by(3 * step).flat_map(|p| [1, 2, 13, 31, 64].map(|c| (p, c)))
    {
        assert_eq!(a.slice(pos, count), window_of(&x, pos) >> (64 - count), "{pos} {count}");
    }
}

#[test]
fn strings_of_eight_bits_match_the_model() {
    let step = if cfg!(miri) { 101 } else { 1 };
    for a in (0..=255_u8).step_by(step) {
        for b in (0..=255).step_by(step) {
            assert_eq!(a.cmp(&b), bools(&a).cmp(&bools(&b)));
            assert_eq!([a].cmp(&[b]), bools(&[a]).cmp(&bools(&[b])));
            let first = (a ^ b).leading_zeros();
            assert_eq!(a.first_difference(&b, 0), (a != b).then_some(first));
        }
        check(&a, &(a ^ 0x10));
        check(&[a], &[!a]);
    }
}

#[test]
fn strings_of_sixteen_bits_match_the_model() {
    let step = if cfg!(miri) { 4099 } else { 1 };
    for a in (0..=u16::MAX).step_by(step) {
        let bits = bits_of(&a.to_be_bytes());
        assert_eq!(bools(&a), bits, "an integer is its bytes in big-endian order");
        assert_eq!(bools(&a.to_be_bytes()), bits);
        assert_eq!(bools(&((a >> 8) as u8, a as u8)), bits, "the concatenation of its bytes");
    }
}

#[test]
fn empty_strings_match_the_model() {
    check(&[0_u8; 0], &[]);
    check(&([0_u8; 0], 5_u8), &([], 6));
    check(&(5_u8, [0_u8; 0]), &(6, []));
}

#[test]
fn addresses_are_strings_of_their_bits() {
    let v4 = Ipv4Addr::new(192, 0, 2, 77);
    assert_eq!(bools(&v4), bits_of(&v4.octets()));
    let v6: Ipv6Addr = "2001:db8::7:8000:1".parse().unwrap();
    assert_eq!(bools(&v6), bits_of(&v6.octets()));
}

#[test]
fn widths_are_those_of_the_fields() {
    assert_eq!(FourTuple::<Ipv4Addr>::BITS, 12 * 8);
    assert_eq!(FourTuple::<Ipv6Addr>::BITS, 36 * 8);
    assert_eq!(FiveTuple::<Ipv4Addr>::BITS, 13 * 8);
    assert_eq!(FiveTuple::<Ipv6Addr>::BITS, 37 * 8);
    assert_eq!(FlowKey::BITS, 1 + 37 * 8);
    assert_eq!(Headed::<[u8; 44], u32>::BITS, 384);
}

fn v4() -> impl Strategy<Value = Ipv4Addr> + Clone {
    any::<u32>().prop_map(Ipv4Addr::from)
}

fn v6() -> impl Strategy<Value = Ipv6Addr> + Clone {
    any::<u128>().prop_map(Ipv6Addr::from)
}

fn five<A: Debug>(
    address: impl Strategy<Value = A> + Clone,
) -> impl Strategy<Value = FiveTuple<A>> {
    (address.clone(), address, any::<u16>(), any::<u16>(), any::<u8>()).prop_map(
        |(src, dst, sport, dport, protocol)| FiveTuple { src, dst, sport, dport, protocol },
    )
}

fn flow() -> impl Strategy<Value = FlowKey> {
    prop_oneof![five(v4()).prop_map(FlowKey::V4), five(v6()).prop_map(FlowKey::V6)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(200, 1)))]

    #[test]
    fn integers_match_the_model(a: u32, b: u32, c: u64, d: u64, e: u128, f: u128) {
        check(&a, &b);
        check(&c, &d);
        check(&e, &f);
        check(&e, &(e ^ (1 << (f % 128))));
        prop_assert_eq!(bools(&a), bits_of(&a.to_be_bytes()));
        prop_assert_eq!(bools(&c), bits_of(&c.to_be_bytes()));
        prop_assert_eq!(bools(&e), bits_of(&e.to_be_bytes()));
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow")]
    fn arrays_match_the_model(
        a: [u8; 3], b: [u8; 3], c: [u8; 9], d: [u8; 9], e: [u8; 32], bit in 0..256_u32,
    ) {
        check(&a, &b);
        check(&c, &d);
        let mut near = e;
        near[bit as usize / 8] ^= 0x80 >> (bit % 8);
        check(&e, &near);
        assert_eq!(e.first_difference(&near, 0), Some(bit));
        assert_eq!(bools(&e), bits_of(&e));
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow")]
    fn concatenations_match_the_model(
        a: (u16, u8), b: (u16, u8), c: (u128, [u8; 5]), d: (u128, [u8; 5]),
    ) {
        check(&a, &b);
        check(&c, &d);
        check(&(c, a), &(d, b));
    }

    #[test]
    fn headed_keys_match_the_model(key: u64, other: u64, seed: u64) {
        let hasher = DefaultHashBuilder::with_seed(seed);
        check(&Headed::new(key, &hasher), &Headed::new(other, &hasher));
        check(&Headed { header: 7_u32, key }, &Headed { header: 7, key: other });
        let long = Headed::new(key, &hasher);
        prop_assert_eq!(long.header, hasher.hash_one(key));
        let short = Headed::short(key, &hasher);
        prop_assert_eq!(u64::from(short.header), hasher.hash_one(key) >> 32);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow")]
    fn tuples_match_the_model(
        a in five(v4()), b in five(v4()), c in five(v6()), d in five(v6()),
    ) {
        check(&a, &b);
        check(&a.sockets(), &b.sockets());
        check(&c, &d);
        check(&c.sockets(), &d.sockets());
        check(&a, &FiveTuple { protocol: b.protocol, ..a });
        check(&c, &FiveTuple { dport: d.dport, ..c });
        let ports = [c.sport.to_be_bytes(), c.dport.to_be_bytes()].concat();
        let bytes = [&c.src.octets()[..], &c.dst.octets(), &ports, &[c.protocol]].concat();
        prop_assert_eq!(bools(&c), bits_of(&bytes));
        let flow = bools(&FlowKey::V6(c));
        prop_assert!(flow[0] && flow[1..] == bits_of(&bytes));
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow")]
    fn flow_keys_match_the_model(a in flow(), b in flow()) {
        check(&a, &b);
        check(&a, &a.reversed());
        prop_assert_eq!(a.reversed().reversed(), a);
        let (key, direction) = a.normalized();
        prop_assert_eq!(key, if direction == Direction::Forward { a } else { a.reversed() });
        prop_assert_eq!(a.reversed().normalized().0, key, "one key for both directions");
        let fields = FlowKey::new(a.src(), a.dst(), a.sport(), a.dport(), a.protocol());
        prop_assert_eq!(fields, Some(a));
        if matches!((a, b), (FlowKey::V4(_), FlowKey::V6(_))) {
            prop_assert_eq!(a.cmp(&b), Ordering::Less);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow")]
    fn equal_flow_keys_have_equal_hashes(flow in flow(), seed: u64) {
        let hasher = DefaultHashBuilder::with_seed(seed);
        prop_assert_eq!(hasher.hash_one(flow), hasher.hash_one(flow.reversed().reversed()));
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow")]
    fn every_field_changes_the_hash(a in five(v4()), b in five(v6()), seed: u64) {
        let hasher = DefaultHashBuilder::with_seed(seed);
        check_every_field(a, Ipv4Addr::from(!a.src.to_bits()), &hasher);
        check_every_field(b, Ipv6Addr::from(!b.dst.to_bits()), &hasher);
    }
}

/// Checks that tuples that differ in one field, for numbers in one bit, have different hashes.
/// Fifteen pairs of 64-bit hashes are equal by chance with a probability of 1e-18.
fn check_every_field<A>(tuple: FiveTuple<A>, other: A, hasher: &DefaultHashBuilder)
where
    A: BitString,
    FlowKey: From<FiveTuple<A>>,
{
    let variants = [
        tuple,
        FiveTuple { src: other, ..tuple },
        FiveTuple { dst: other, ..tuple },
        FiveTuple { sport: tuple.sport ^ 1, ..tuple },
        FiveTuple { dport: tuple.dport ^ 0x8000, ..tuple },
        FiveTuple { protocol: tuple.protocol ^ 1, ..tuple },
    ];
    let distinct = |hashes: Vec<u64>| BTreeSet::from_iter(hashes).len();
    let tuples = variants.iter().filter(|variant| **variant != tuple).count() + 1;
    assert_eq!(distinct(variants.iter().map(|v| hasher.hash_one(v)).collect()), tuples);
    let flow = |v: &FiveTuple<A>| hasher.hash_one(FlowKey::from(*v));
    assert_eq!(distinct(variants.iter().map(flow).collect()), tuples);
    let sockets = variants[..5].iter().map(|v| hasher.hash_one(v.sockets()));
    assert_eq!(distinct(sockets.collect()), tuples - 1);
}

#[test]
fn a_flow_to_itself_is_its_own_reverse() {
    let key: FlowKey = FlowKey::V4(FiveTuple {
        src: Ipv4Addr::LOCALHOST,
        dst: Ipv4Addr::LOCALHOST,
        sport: 7,
        dport: 7,
        protocol: 6,
    });
    assert_eq!(key.reversed(), key);
    assert_eq!(key.normalized(), (key, Direction::Forward));
}

#[test]
fn mapped_addresses_are_another_flow_than_ipv4_addresses() {
    let v4 = FlowKey::new("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap(), 1, 2, 6);
    let v6 = FlowKey::new(
        "::ffff:10.0.0.1".parse().unwrap(),
        "::ffff:10.0.0.2".parse().unwrap(),
        1,
        2,
        6,
    );
    assert_ne!(v4, v6);
    assert_eq!(v6.unwrap().to_string(), "[::ffff:10.0.0.1]:1 > [::ffff:10.0.0.2]:2 proto 6");
}

#[test]
fn tcp_flags_are_written_as_letters() {
    let mut seen = TcpFlags::default();
    assert_eq!(seen.to_string(), "........");
    seen |= TcpFlags::SYN | TcpFlags::ACK;
    assert!(seen.contains(TcpFlags::SYN) && !seen.contains(TcpFlags::SYN | TcpFlags::FIN));
    assert_eq!(TcpFlags(0xff).to_string(), "CEUAPRSF");
}
