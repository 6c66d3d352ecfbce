//! Source indices: their origins, and their analysis.

use core::hash::BuildHasher;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::num::NonZeroUsize;
use std::collections::HashSet;

use flowtable::hash::Rss;
use flowtable::hash::source_index::SourceIndex;
use flowtable::hash::source_index::Toeplitz;
use flowtable::key::bits::BitString;
use flowtable::papers::source_index::analysis::{Mechanism, Transfer, expected_collisions};
use flowtable::papers::source_index::{FlowId, FlowIds, HardwareAddress, RandomIndices};
use flowtable::{FiveTuple, FlowKey, FourTuple};
use proptest::array::uniform32;
use proptest::collection::vec;
use proptest::prelude::*;

// The hash of network cards.

/// *Verifying the RSS hash calculation*: source, destination, the hash of the addresses, and of
/// addresses and ports.
#[test]
fn toeplitz_hashes_have_the_published_values() {
    for (src, dst, of_addresses, of_all) in [
        (([66, 9, 149, 187], 2794), ([161, 142, 100, 80], 1766), 0x323e_8fc2, 0x51cc_c178),
        (([199, 92, 111, 2], 14_230), ([65, 69, 140, 83], 4739), 0xd718_262a, 0xc626_b0ea),
        (([24, 19, 198, 95], 12_898), ([12, 22, 207, 184], 38_024), 0xd2d0_a5de, 0x5c2b_394a),
        (([38, 27, 205, 30], 48_228), ([209, 142, 163, 6], 2217), 0x8298_9176, 0xafc7_327f),
        (([153, 39, 163, 191], 44_251), ([202, 188, 127, 2], 1303), 0x5d18_09c5, 0x10e8_28a2),
    ] {
        let ((src, sport), (dst, dport)) = (src, dst);
        let (src, dst) = (Ipv4Addr::from(src), Ipv4Addr::from(dst));
        check_published(FourTuple { src, dst, sport, dport }, of_addresses, of_all);
    }
    for (src, dst, of_addresses, of_all) in [
        (("3ffe:2501:200:1fff::7", 2794), ("3ffe:2501:200:3::1", 1766), 0x2cc1_8cd5, 0x4020_7d3d),
        (("3ffe:501:8::260:97ff:fe40:efab", 14_230), ("ff02::1", 4739), 0x0f0c_461c, 0xdde5_1bbf),
        (
            ("3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44_251),
            ("fe80::200:f8ff:fe21:67cf", 38_024),
            0x4b61_e985,
            0x02d1_feef,
        ),
    ] {
        let ((src, sport), (dst, dport)) = (src, dst);
        let [src, dst]: [Ipv6Addr; 2] = [src, dst].map(|address| address.parse().unwrap());
        check_published(FourTuple { src, dst, sport, dport }, of_addresses, of_all);
    }
}

fn check_published<A: BitString>(name: FourTuple<A>, of_addresses: u32, of_all: u32)
where
    FlowKey: From<FiveTuple<A>>,
{
    assert_eq!(Toeplitz::MICROSOFT.hash(&(name.src, name.dst)), of_addresses);
    assert_eq!(Toeplitz::MICROSOFT.hash(&name), of_all);
    let hash_of_card = Rss::table_hash(of_all);
    assert_eq!(Rss::default().hash_one(name), hash_of_card);
    let FourTuple { src, dst, sport, dport } = name;
    for protocol in [6, 17] {
        let key = FiveTuple { src, dst, sport, dport, protocol };
        assert_eq!(Rss::default().hash_one(key), hash_of_card);
        assert_eq!(Rss::default().hash_one(FlowKey::from(key)), hash_of_card);
    }
    // A fragment has no ports.
    let fragment = FourTuple { sport: 0, dport: 0, ..name };
    assert_eq!(Rss::default().hash_one(fragment), Rss::table_hash(of_addresses));
}

/// A reference model, bit by bit: the exclusive or of the 32 bits of the key from bit i for each
/// set bit i; the key repeats.
pub(crate) fn model_toeplitz(key: &[u8; 40], name: &[bool]) -> u32 {
    let key_bit = |at: usize| key[at / 8 % 40] >> (7 - at % 8) & 1 == 1;
    let mut hash = 0;
    for at in (0..name.len()).filter(|at| name[*at]) {
        for bit in 0..32 {
            hash ^= u32::from(key_bit(at + bit)) << (31 - bit);
        }
    }
    hash
}

pub(crate) fn bits(bytes: &[u8]) -> Vec<bool> {
    bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> (7 - bit) & 1 == 1)).collect()
}

/// A name of `BITS` bits, up to 128: the most significant ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Odd<const BITS: u32>(u128);

impl<const BITS: u32> BitString for Odd<BITS> {
    const BITS: u32 = BITS;

    fn window(&self, pos: u32) -> u64 {
        let own = self.0 & !u128::MAX.checked_shr(BITS).unwrap_or(0);
        (own.checked_shl(pos).unwrap_or(0) >> 64) as u64
    }
}

fn odd<const BITS: u32>(key: &[u8; 40], name: u128) {
    let expected = model_toeplitz(key, &bits(&name.to_be_bytes())[..BITS as usize]);
    assert_eq!(Toeplitz::new(*key).hash(&Odd::<BITS>(name)), expected, "{BITS} bits");
}

fn long<const BYTES: usize>(key: &[u8; 40], name: &[u8]) {
    let name = name.first_chunk::<BYTES>().expect("the name is longer");
    assert_eq!(Toeplitz::new(*key).hash(name), model_toeplitz(key, &bits(name)), "{BYTES} bytes");
}

proptest! {
    #[test]
    fn toeplitz_matches_its_definition(
        half in uniform32(any::<u8>()), rest: u64, name: u128, bytes in vec(any::<u8>(), 100),
    ) {
        let mut key = [0; 40];
        key[..32].copy_from_slice(&half);
        key[32..].copy_from_slice(&rest.to_be_bytes());
        odd::<0>(&key, name);
        odd::<1>(&key, name);
        odd::<7>(&key, name);
        odd::<31>(&key, name);
        odd::<32>(&key, name);
        odd::<33>(&key, name);
        odd::<63>(&key, name);
        odd::<64>(&key, name);
        odd::<65>(&key, name);
        odd::<95>(&key, name);
        odd::<100>(&key, name);
        odd::<127>(&key, name);
        odd::<128>(&key, name);
        long::<0>(&key, &bytes);
        long::<1>(&key, &bytes);
        long::<3>(&key, &bytes);
        long::<13>(&key, &bytes);
        // The longest name for which the key has bits, and names for which it repeats.
        long::<36>(&key, &bytes);
        long::<37>(&key, &bytes);
        long::<40>(&key, &bytes);
        long::<41>(&key, &bytes);
        long::<100>(&key, &bytes);
        let (src, dst) = (name as u32, (name >> 32) as u32);
        let (sport, dport, protocol) = (rest as u16, (rest >> 16) as u16, (rest >> 32) as u8);
        let tuple = FiveTuple { src, dst, sport, dport, protocol };
        let ports = [sport, dport].map(u16::to_be_bytes);
        let addresses = [src, dst].map(u32::to_be_bytes);
        let parts = [addresses.as_flattened(), ports.as_flattened(), &[protocol]].concat();
        assert_eq!(Toeplitz::new(key).hash(&tuple), model_toeplitz(&key, &bits(&parts)));
    }

    /// Both directions of a flow have one hash, and its halves are equal.
    #[test]
    fn the_symmetric_key_is_symmetric(
        v4: [u32; 2], v6: [u128; 2], ports: [u16; 2],
    ) {
        let ([src, dst], [sport, dport]) = (v4, ports);
        let v4 = FourTuple { src, dst, sport, dport };
        let [src, dst] = v6;
        let v6 = FourTuple { src, dst, sport, dport };
        let hash = |name| Toeplitz::SYMMETRIC.hash(&name);
        assert_eq!(hash(v4), hash(v4.reversed()));
        assert_eq!(Toeplitz::SYMMETRIC.hash(&v6), Toeplitz::SYMMETRIC.hash(&v6.reversed()));
        assert_eq!(Toeplitz::SYMMETRIC.hash(&(src, dst)), Toeplitz::SYMMETRIC.hash(&(dst, src)));
        assert_eq!(hash(v4) >> 16, hash(v4) & 0xffff);
    }

    #[test]
    fn an_index_of_a_connection_id_is_its_last_bytes(id in vec(any::<u8>(), 0..=20)) {
        let last = id.len().saturating_sub(4);
        let expected = id[last..].iter().fold(0, |index, byte| index << 8 | u32::from(*byte));
        assert_eq!(SourceIndex::from_connection_id(&id).get(), expected);
    }

    #[test]
    fn an_index_of_a_label_is_its_twenty_bits(label: u32) {
        assert_eq!(SourceIndex::from_flow_label(label).get(), label % (1 << 20));
    }

    #[test]
    fn the_index_from_an_rss_hash_is_a_bijection(hash: u32) {
        // Newton's method: the inverse times 0x9e37_79b1 is 1.
        let newton = |x: u32, _| x.wrapping_mul(2_u32.wrapping_sub(x.wrapping_mul(0x9e37_79b1)));
        let inverse = (0..5).fold(1_u32, newton);
        let back = SourceIndex::from_rss(hash).get().rotate_right(16).wrapping_mul(inverse);
        assert_eq!(back, hash);
    }
}

/// A card with 128 queues selects by the low bits: packets of one queue still have distributed
/// indices.
#[test]
fn packets_of_one_queue_are_distributed() {
    let hashes = (0..40_000_u32).map(|flow| Toeplitz::MICROSOFT.hash(&(flow, 0x0a00_0001_u32)));
    let of_queue = hashes.filter(|hash| hash % 128 == 5).map(SourceIndex::from_rss);
    let of_queue: HashSet<u32> = of_queue.map(|index| index.get() % 256).collect();
    assert!(of_queue.len() > 150, "{} of 256 slots", of_queue.len());
}

/// With a symmetric key there are 2^16 hashes, and a queue has its share of them: 25,000 packets of
/// one of 8 queues still reach most of 4096 slots.
#[test]
fn packets_of_one_queue_are_distributed_with_a_symmetric_key() {
    let name = |flow: u32| (flow.wrapping_mul(0x9e37_79b9), 0x0a00_0001_u32);
    let hashes = (0..200_000_u32).map(|flow| Toeplitz::SYMMETRIC.hash(&name(flow)));
    let of_queue = hashes.filter(|hash| hash % 8 == 5).map(SourceIndex::from_rss);
    let slots: HashSet<u32> = of_queue.map(|index| index.get() % 4096).collect();
    assert!(slots.len() > 3000, "{} of 4096 slots", slots.len());
}

#[test]
fn a_missing_or_zero_index_is_absent() {
    assert_eq!(SourceIndex::default(), SourceIndex::ABSENT);
    assert_eq!(SourceIndex::from(0), SourceIndex::ABSENT);
    assert_eq!(SourceIndex::from_flow_label(0), SourceIndex::ABSENT);
    assert_eq!(SourceIndex::from_connection_id(&[]), SourceIndex::ABSENT);
    assert_eq!(SourceIndex::from_connection_id(&[0; 20]), SourceIndex::ABSENT);
    assert_eq!((SourceIndex::from(7), SourceIndex::new(7).get()), (SourceIndex::new(7), 7));
}

// Sources.

fn list(source: u64, entropy: u64, len: usize) -> RandomIndices {
    RandomIndices::new(source, entropy, NonZeroUsize::new(len).unwrap()).unwrap()
}

#[test]
fn indices_of_a_list_are_used_in_turn() {
    for len in [1, 2, 3, 100] {
        let twice: Vec<SourceIndex> = list(1, 2, len).take(2 * len).collect();
        assert_eq!(twice[..len], twice[len..]);
        assert_eq!(twice[..len].iter().collect::<HashSet<_>>().len(), len);
        assert_eq!(list(1, 2, len).size_hint(), (usize::MAX, None));
    }
    let too_long = NonZeroUsize::new(usize::MAX).unwrap();
    assert!(RandomIndices::new(1, 2, too_long).is_err());
}

/// Consecutive sources, like the addresses of machines of one series, and consecutive boot times.
#[test]
fn lists_differ_by_source_and_boot_time() {
    let of = |source, entropy| list(source, entropy, 1000).take(1000).map(SourceIndex::get);
    let mut all = HashSet::new();
    for (source, entropy) in
        (0..20).flat_map(|source| (0..20).map(move |entropy| (source, entropy)))
    {
        all.extend(of(0x0200_5e00_0000 + source, 1_795_331_400 + entropy));
    }
    // 18.6 collisions are expected among 400 000 numbers of 32 bits.
    assert!(all.len() > 400_000 - 45, "{} are distinct", all.len());
    assert!(of(1, 2).eq(of(1, 2)));
    // Also if the sums of name and time are equal.
    assert!(!of(1, 2).eq(of(2, 1)) && !of(0, 3).eq(of(3, 0)));
}

/// Chi-square for 256 classes: 255 on average, with a standard deviation of 22.6.
fn chi_square(indices: impl Iterator<Item = u32>, class: impl Fn(u32) -> u32) -> f64 {
    let mut counts = [0_u32; 256];
    indices.for_each(|index| counts[class(index) as usize % 256] += 1);
    let expected = f64::from(counts.iter().sum::<u32>()) / 256.0;
    counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
}

#[test]
fn all_bits_of_random_indices_are_random() {
    for source in 0..8 {
        let indices = || list(source, 7, 1 << 16).take(1 << 16).map(SourceIndex::get);
        for shift in 0..=24 {
            let chi_square = chi_square(indices(), |index| index >> shift);
            assert!((chi_square - 255.0).abs() < 5.0 * 22.6, "{source}, {shift}: {chi_square}");
        }
        // Consecutive indices are independent in their low bits and in their high bits.
        for shift in [0, 28] {
            let pairs = indices().zip(indices().skip(1));
            let pairs = pairs.map(|(one, next)| (one >> shift & 15) << 4 | next >> shift & 15);
            let chi_square = chi_square(pairs, |pair| pair);
            assert!((chi_square - 255.0).abs() < 5.0 * 22.6, "{source}, {shift}: {chi_square}");
        }
    }
}

#[test]
fn a_hardware_address_has_two_random_bytes() {
    let assigned = [0x02, 0, 0x5e, 0x10, 0x20, 0x30];
    for random in [0_u16, 1, 0x00ff, 0xff00, 0xbeef, 0xffff] {
        let [a, b, c, d, e, f] = assigned;
        let [g, h] = random.to_be_bytes();
        let address = HardwareAddress([a, b, c, d, e, f, g, h]);
        assert_eq!(address.index(), SourceIndex::new(random.into()));
    }
}

#[test]
fn flow_ids_are_unique_across_incarnations() {
    let names =
        |incarnation| FlowIds::new('a', incarnation, list(1, incarnation.into(), 10)).take(1000);
    let all: Vec<FlowId<char>> = names(7).chain(names(8)).collect();
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 2000);
    // Without the incarnation they would repeat.
    assert_eq!(
        all.iter().map(|name| (name.source, name.number)).collect::<HashSet<_>>().len(),
        1000
    );
    assert!(names(7).map(|name| name.number).eq(0..1000));
    assert!(names(7).map(|name| name.index).eq(list(1, 7, 10).take(1000)));
    assert!(names(7).all(|name| (name.source, name.incarnation) == ('a', 7)));
    assert_eq!(FlowIds::new('a', 1, list(1, 1, 1)).size_hint(), (usize::MAX, None));
}

// Analysis.

/// The probability of each number of occupied slots, by dynamic programming.
fn occupied(names: u64, slots: u64) -> Vec<f64> {
    let mut occupied = vec![0.0; slots as usize + 1];
    occupied[0] = 1.0;
    for _ in 0..names {
        for count in (0..occupied.len()).rev() {
            let stays = occupied[count] * count as f64 / slots as f64;
            let before = if count > 0 { occupied[count - 1] } else { 0.0 };
            occupied[count] = stays
                + before * (slots as usize - count + 1).min(slots as usize) as f64 / slots as f64;
        }
    }
    occupied
}

#[test]
fn expected_collisions_match_an_enumeration() {
    for (names, slots) in (0..60).flat_map(|names| (1..30).map(move |slots| (names, slots))) {
        let of_count = |count: usize| names as f64 - count as f64;
        let occupied = occupied(names, slots);
        let mean = |of: &dyn Fn(usize) -> f64| -> f64 {
            occupied.iter().enumerate().map(|(count, probability)| probability * of(count)).sum()
        };
        let expected = mean(&of_count);
        let ours = expected_collisions(names, slots);
        assert!((ours - expected).abs() < 1e-9, "{names} in {slots}: {ours}, not {expected}");
        // The variance is at most the mean, so three times its root is a safe bound.
        let variance = mean(&|count| (of_count(count) - expected).powi(2));
        assert!(variance <= expected + 1e-9, "{names} in {slots}: {variance} above {expected}");
    }
    assert_eq!([expected_collisions(0, 0), expected_collisions(9, 0)], [0.0; 2]);
}

#[test]
fn expected_collisions_match_the_formula() {
    for slots in [1_u64, 2, 256, 65_536, 1 << 20] {
        for names in [0_u64, 1, 2, 3, 100, 1000, 65_536, 1_000_000] {
            let (n, m) = (names as f64, slots as f64);
            let formula = n - m * (1.0 - (1.0 - 1.0 / m).powf(n));
            let ours = expected_collisions(names, slots);
            assert!((ours - formula).abs() <= 1e-3, "{names} in {slots}: {ours}, not {formula}");
        }
    }
}

/// With far more slots than names, the formula is a difference of nearly equal numbers.
#[test]
fn expected_collisions_are_exact_with_many_slots() {
    for (names, slots) in
        [(1_u64, 1_u64 << 54), (2, 3_000_000_019), (1000, 1 << 60), (1000, 1_000_000_000_000)]
    {
        let ours = expected_collisions(names, slots);
        let (n, m) = (names as f64, slots as f64);
        let pairs = n * (n - 1.0) / (2.0 * m);
        assert!((ours - pairs).abs() <= 1e-6 * pairs, "{names} in {slots}: {ours}, not {pairs}");
    }
    assert!((expected_collisions(u64::MAX, 2) - u64::MAX as f64).abs() <= 4096.0);
}

#[test]
fn expected_collisions_match_a_simulation() {
    for (names, slots) in [(1000, 4096_usize), (10_000, 65_536), (300, 64)] {
        let runs = 40;
        let collisions = (0..runs).map(|run| {
            let slots =
                list(run, 1995, names).take(names).map(|index| index.get() as usize % slots);
            names - slots.collect::<HashSet<_>>().len()
        });
        let mean = collisions.sum::<usize>() as f64 / runs as f64;
        let expected = expected_collisions(names as u64, slots as u64);
        let bound = 4.0 * (expected / runs as f64).sqrt();
        assert!((mean - expected).abs() < bound, "{names} in {slots}: {mean}, not {expected}");
    }
}

const MECHANISMS: [Mechanism; 4] = [
    Mechanism::Datagrams,
    Mechanism::VirtualCircuit,
    Mechanism::SourceHashing,
    Mechanism::ThreadedIndices,
];

/// A round trip of 60 ms, 200 and 20 µs: to the hundredth of a millisecond.
#[test]
fn transfer_times_match_the_model() {
    let transfer = Transfer { round_trip: 60.0, long: 0.2, short: 0.02, hops: 1 };
    for (packets, expected) in [
        (1, [30.20, 90.02, 30.20, 30.02]),
        (10, [32.00, 90.20, 30.38, 30.20]),
        (100, [50.00, 92.00, 32.18, 32.00]),
        (333, [96.60, 96.66, 36.84, 36.66]),
        (334, [96.80, 96.68, 36.86, 36.68]),
        (1000, [230.00, 110.00, 50.18, 50.00]),
    ] {
        let times = MECHANISMS.map(|mechanism| transfer.arrival(mechanism, packets));
        for (time, expected) in times.into_iter().zip(expected) {
            assert!((time - expected).abs() < 1e-9, "{packets}: {times:?}");
        }
    }
    // Each hop uses the slow path once, and hops work concurrently.
    let far = Transfer { hops: 5, ..transfer };
    let [datagrams, circuit, source, threaded] =
        MECHANISMS.map(|mechanism| far.arrival(mechanism, 100));
    assert!((source - (5.0 * 0.2 + 99.0 * 0.02 + 30.0)).abs() < 1e-9);
    assert!((threaded - (5.0 * 0.02 + 99.0 * 0.02 + 30.0)).abs() < 1e-9);
    assert!((datagrams - (5.0 * 0.2 + 99.0 * 0.2 + 30.0)).abs() < 1e-9);
    assert!((circuit - (60.0 + threaded)).abs() < 1e-9);
}
