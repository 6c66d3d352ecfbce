//! Quality of the default hash: the same tests and limits for ahash and foldhash.
//!
//! Statistics of 64-bit hashes under many seeds, as each table has its own: how often a flipped bit
//! of the key flips each bit of the hash, whether each bit is as often 0 as 1, how even the bits
//! that the tables use are over keys of networks, and collisions.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher};
use std::net::{Ipv4Addr, Ipv6Addr};

use flowtable::{DefaultHashBuilder, FiveTuple, FlowKey, TrashMap};
use model::scaled;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A hash and how it is seeded.
trait Seeded {
    const NAME: &'static str;
    type Build: BuildHasher;

    fn seeded(rng: &mut StdRng) -> Self::Build;
}

/// The default, with seeds of full width.
struct Ours;

/// The default, with a small number as seed.
struct OursBySmallSeeds;

struct Ahash;

struct Foldhash;

impl Seeded for Ours {
    const NAME: &'static str = "default";
    type Build = DefaultHashBuilder;

    fn seeded(rng: &mut StdRng) -> DefaultHashBuilder {
        DefaultHashBuilder::with_seeds(rng.random())
    }
}

impl Seeded for OursBySmallSeeds {
    const NAME: &'static str = "default by small seeds";
    type Build = DefaultHashBuilder;

    fn seeded(rng: &mut StdRng) -> DefaultHashBuilder {
        match rng.random_range(0..2) {
            0 => DefaultHashBuilder::with_seed(rng.random_range(0..10_000)),
            _ => DefaultHashBuilder::with_seeds([rng.random_range(0..10_000); 4]),
        }
    }
}

impl Seeded for Ahash {
    const NAME: &'static str = "ahash";
    type Build = ahash::RandomState;

    fn seeded(rng: &mut StdRng) -> ahash::RandomState {
        let [a, b, c, d] = rng.random();
        ahash::RandomState::with_seeds(a, b, c, d)
    }
}

impl Seeded for Foldhash {
    const NAME: &'static str = "foldhash";
    type Build = foldhash::fast::FixedState;

    fn seeded(rng: &mut StdRng) -> foldhash::fast::FixedState {
        foldhash::fast::FixedState::with_seed(rng.random())
    }
}

/// Rounds of a statistic.
const ROUNDS: u32 = scaled(20_000, 4000, 20);

/// How far a frequency of [`ROUNDS`] may be from one half: six standard deviations, as some
/// thousand frequencies are looked at.
fn margin(rounds: u32) -> f64 {
    6.0 * 0.5 / f64::from(rounds).sqrt()
}

/// The frequency furthest from one half by which a bit of the hash is flipped.
struct Worst {
    what: &'static str,
    flips: usize,
    change: f64,
}

/// Flips bits of keys with `key` and counts flips of each bit of the hash.
fn avalanche<H: Seeded, K: Hash>(
    what: &'static str,
    bits: u32,
    flips: usize,
    key: impl Fn(u128) -> K,
) -> Worst {
    let mut rng = StdRng::seed_from_u64(u64::from(bits) + flips as u64);
    let (mut flipped, mut ones) = ([[0_u32; 64]; 128], [0_u32; 64]);
    let rounds = if flips == 1 { ROUNDS / 4 } else { ROUNDS };
    for _ in 0..rounds {
        let (hasher, mask) = (H::seeded(&mut rng), u128::MAX >> (128 - bits));
        let random = rng.random::<u128>() & mask;
        let hash = hasher.hash_one(key(random));
        ones.iter_mut().enumerate().for_each(|(bit, count)| *count += (hash >> bit & 1) as u32);
        // Each single bit, or one pair of bits chosen at random.
        let singles = (0..bits).map(|bit| (bit as usize, 1 << bit));
        let pair = loop {
            let [one, other] = [0, 1].map(|_| rng.random_range(0..bits));
            if one != other {
                break [(0, 1 << one | 1 << other)];
            }
        };
        let masks: Vec<(usize, u128)> =
            if flips == 1 { singles.collect() } else { pair.into_iter().collect() };
        for (row, mask) in masks {
            let changed = hash ^ hasher.hash_one(key(random ^ mask));
            let counts = flipped[row].iter_mut().enumerate();
            counts.for_each(|(bit, count)| *count += (changed >> bit & 1) as u32);
        }
    }
    let worst = |counts: &[u32]| {
        let off = |&count: &u32| (f64::from(count) / f64::from(rounds) - 0.5).abs();
        counts.iter().map(off).fold(0.0, f64::max)
    };
    let rows = if flips == 1 { bits as usize } else { 1 };
    let (change, bias) =
        (flipped[..rows].iter().map(|row| worst(row)).fold(0.0, f64::max), worst(&ones));
    let limit = margin(rounds);
    println!("{} {what} {flips}: flips off by {change:.3}, bias {bias:.3}", H::NAME);
    assert!(bias <= limit, "{} {what}: {bias}", H::NAME);
    Worst { what, flips, change }
}

/// All kinds of keys that write words.
fn avalanche_of_all_keys<H: Seeded>() -> Vec<Worst> {
    let kinds = |flips| {
        let mixed = |word: u128| {
            let ports = ((word >> 64) as u16, (word >> 80) as u16);
            (word as u32, (word >> 32) as u32, ports, (word >> 96) as u8)
        };
        [
            avalanche::<H, _>("u8", 8, flips, |word| word as u8),
            avalanche::<H, _>("u16", 16, flips, |word| word as u16),
            avalanche::<H, _>("u32", 32, flips, |word| word as u32),
            avalanche::<H, _>("u64", 64, flips, |word| word as u64),
            avalanche::<H, _>("u128", 128, flips, |word| word),
            avalanche::<H, _>("pair", 128, flips, |word| (word as u64, (word >> 64) as u64)),
            avalanche::<H, _>("bytes", 128, flips, u128::to_ne_bytes),
            avalanche::<H, _>("mixed", 104, flips, mixed),
            avalanche::<H, _>("two blocks", 128, flips, |word| (word, !word)),
        ]
    };
    [1, 2].into_iter().flat_map(kinds).collect()
}

/// A product has bits that are flipped a little less often: one in ten. The limit is for ahash as
/// well; in foldhash, whose second factor is no secret, some are flipped always or never.
#[test]
fn flipped_bits_of_a_key_flip_half_of_the_bits_of_its_hash() {
    let limit = 0.1 + margin(ROUNDS / 4) / 3.0;
    for hash in [
        avalanche_of_all_keys::<Ours>(),
        avalanche_of_all_keys::<OursBySmallSeeds>(),
        avalanche_of_all_keys::<Ahash>(),
    ] {
        for Worst { what, flips, change } in hash {
            assert!(change <= limit, "{what}, {flips} bits: {change}");
        }
    }
    let foldhash = avalanche_of_all_keys::<Foldhash>();
    assert!(foldhash.iter().any(|worst| worst.change > limit), "foldhash is within the limit");
}

/// The chi-square statistic of a part of hashes, divided by its degrees of freedom: about 1 by
/// chance, less if keys are spread more evenly.
fn chi_square(hashes: &[u64], shift: u32, bits: u32) -> f64 {
    let mut counts = vec![0_u32; 1 << bits];
    hashes.iter().for_each(|hash| counts[(hash >> shift) as usize & ((1 << bits) - 1)] += 1);
    let expected = hashes.len() as f64 / counts.len() as f64;
    let off = |&count: &u32| (f64::from(count) - expected).powi(2) / expected;
    counts.iter().map(off).sum::<f64>() / (counts.len() - 1) as f64
}

/// A hash as line tables and concurrent tables use it: the formula of `table::lines::fold`, which
/// takes the lower half, and of `concurrent::policy::mix`.
fn folded(hash: u64) -> u64 {
    let product = u128::from(hash) * 0x9e37_79b9_7f4a_7c15;
    product as u64 ^ (product >> 64) as u64
}

/// The parts of a hash that tables use: the tag, the group of a segment, the directory.
const PARTS: [(u32, u32); 4] = [(56, 8), (32, 6), (0, 6), (0, 10)];

/// The parts of a folded hash that tables use. Of lines: the tag and the bits that follow, and the
/// home line. Of concurrent tables: the note, the bucket, and the shard.
const FOLDED: [(u32, u32); 5] = [(24, 8), (16, 8), (0, 10), (56, 8), (26, 6)];

/// A chi-square statistic, divided by its degrees of freedom, which chance exceeds in none of these
/// tests.
const UNEVEN: f64 = 2.0;

/// Hashes keys under many seeds. Returns the share of seeds with an uneven part of the hash. Folded
/// hashes are even under all seeds. The other limits are those of foldhash, which has one
/// multiplication as well: under some seeds a progression of keys has uneven hashes. With ahash,
/// which multiplies more often, it has none.
fn evenness<H: Seeded, K: Hash>(what: &str, keys: impl Iterator<Item = K> + Clone) -> f64 {
    const SEEDS: usize = scaled(200, 40, 2);
    let mut rng = StdRng::seed_from_u64(9);
    let mut parts = [const { vec![] }; PARTS.len() + FOLDED.len()];
    let mut uneven_seeds = 0;
    for _ in 0..SEEDS {
        let hasher = H::seeded(&mut rng);
        let hashes: Vec<u64> = keys.clone().map(|key| hasher.hash_one(key)).collect();
        let of_hash = PARTS.map(|(shift, bits)| chi_square(&hashes, shift, bits));
        uneven_seeds += usize::from(of_hash.iter().any(|value| *value > UNEVEN));
        let hashes: Vec<u64> = hashes.into_iter().map(folded).collect();
        let of_folded = FOLDED.map(|(shift, bits)| chi_square(&hashes, shift, bits));
        let values = of_hash.into_iter().chain(of_folded);
        parts.iter_mut().zip(values).for_each(|(part, value)| part.push(value));
    }
    let uneven = parts.map(|mut part| {
        part.sort_by(f64::total_cmp);
        (part[SEEDS / 2], part.iter().filter(|value| **value > UNEVEN).count())
    });
    println!("{} {what}: {uneven:.2?}, {uneven_seeds} of {SEEDS} seeds uneven", H::NAME);
    let (of_hash, of_folded) = uneven.split_at(PARTS.len());
    for (median, count) in of_hash {
        assert!(*median < 1.6 && count * 4 <= SEEDS + 8, "{} {what}: {median} {count}", H::NAME);
    }
    for (median, count) in of_folded {
        assert!(*median < 1.6 && count * 100 <= SEEDS, "{} {what}: {median} {count}", H::NAME);
    }
    uneven_seeds as f64 / SEEDS as f64
}

/// Number of keys: some for each of 1024 counters.
const KEYS: u32 = scaled(16_384, 8192, 2048);

/// Returns the mean share of uneven seeds over kinds of keys.
fn evenness_of_all_keys<H: Seeded>() -> f64 {
    let [near, far] = [[10, 0, 0, 1], [192, 0, 2, 1]].map(Ipv4Addr::from);
    let flow = |src: u32, sport: u32| FiveTuple {
        src: Ipv4Addr::from_bits(near.to_bits() + src),
        dst: far,
        sport: sport as u16,
        dport: 443,
        protocol: 6,
    };
    let v6 = |number: u32| FiveTuple {
        src: Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number)),
        dst: Ipv6Addr::LOCALHOST,
        sport: 40_000,
        dport: 443,
        protocol: 17,
    };
    let mut shares = vec![];
    shares.push(evenness::<H, _>("sequential ports", (0..KEYS).map(|port| flow(0, port))));
    shares.push(evenness::<H, _>("sequential addresses", (0..KEYS).map(|host| flow(host, 40_000))));
    shares.push(evenness::<H, _>(
        "a /24",
        (0..KEYS).map(|number| flow(number % 256, 1024 + number / 256)),
    ));
    let both = |number| [flow(number, 1024), flow(number, 1024).reversed()];
    shares.push(evenness::<H, _>("reversed tuples", (0..KEYS / 2).flat_map(both)));
    shares.push(evenness::<H, _>(
        "either version",
        (0..KEYS).map(|port| FlowKey::from(flow(port, port))),
    ));
    shares.push(evenness::<H, _>("sequential addresses of IPv6", (0..KEYS).map(v6)));
    let sparse = (0..128).flat_map(|bit| (0..bit).map(move |other| 1_u128 << bit | 1 << other));
    shares.push(evenness::<H, _>("sparse", sparse));
    let first = |bits: u32| move |number: u32| u128::from(number) << bits;
    for shift in [0, 16, 32, 48, 64, 96, 112] {
        shares.push(evenness::<H, _>("words with zeros below", (0..KEYS).map(first(shift))));
    }
    evenness_of_words::<H>(&mut shares);
    evenness_of_bytes::<H>(&mut shares);
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    println!("{}: {mean:.3} of the seeds are uneven", H::NAME);
    mean
}

fn evenness_of_words<H: Seeded>(shares: &mut Vec<f64>) {
    shares.push(evenness::<H, _>("u8", 0..=u8::MAX));
    shares.push(evenness::<H, _>("u16", (0..KEYS).map(|number| number as u16)));
    shares.push(evenness::<H, _>("u32", 0..KEYS));
    shares.push(evenness::<H, _>("u64", (0..u64::from(KEYS)).map(|number| number << 40)));
    let pairs = (0..KEYS).map(|number| (number % 128, number / 128));
    shares.push(evenness::<H, _>("pairs of u8", pairs.clone().map(|(a, b)| (a as u8, b as u8))));
    shares.push(evenness::<H, _>("pairs of u16", pairs.clone().map(|(a, b)| (a as u16, b as u16))));
    shares.push(evenness::<H, _>("pairs", pairs.clone()));
    shares.push(evenness::<H, _>(
        "pairs of u64",
        pairs.clone().map(|(a, b)| (u64::from(a), u64::from(b))),
    ));
    shares.push(evenness::<H, _>(
        "pairs of u128",
        pairs.map(|(a, b)| (u128::from(a), u128::from(b))),
    ));
}

fn evenness_of_bytes<H: Seeded>(shares: &mut Vec<f64>) {
    let v6 = |number: u32| Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number));
    shares.push(evenness::<H, _>(
        "addresses",
        (0..KEYS).map(|host| Ipv4Addr::from_bits(0x0a00_0000 + host)),
    ));
    shares.push(evenness::<H, _>("addresses of IPv6", (0..KEYS).map(v6)));
    shares.push(evenness::<H, _>("4 bytes", (0..KEYS).map(u32::to_be_bytes)));
    shares
        .push(evenness::<H, _>("8 bytes", (0..KEYS).map(|number| u64::from(number).to_be_bytes())));
    shares.push(evenness::<H, _>(
        "16 bytes",
        (0..KEYS).map(|number| u128::from(number).to_be_bytes()),
    ));
    shares.push(evenness::<H, _>("strings", (0..KEYS).map(|number| number.to_string())));
    shares.push(evenness::<H, _>(
        "strings of 8 bytes",
        (0..KEYS).map(|number| format!("{number:08}")),
    ));
    shares.push(evenness::<H, _>(
        "strings of 16 bytes",
        (0..KEYS).map(|number| format!("{number:016}")),
    ));
}

#[test]
fn bits_that_tables_use_are_even() {
    // One seed of seven, with foldhash one of fourteen. Miri runs too few seeds to compare.
    let is_within = |share: f64, limit| cfg!(miri) || share < limit;
    assert!(is_within(evenness_of_all_keys::<Ours>(), 0.2));
    assert!(is_within(evenness_of_all_keys::<OursBySmallSeeds>(), 0.2));
    assert!(is_within(evenness_of_all_keys::<Ahash>(), 0.001));
    assert!(is_within(evenness_of_all_keys::<Foldhash>(), 0.1));
}

/// Counts the tables that detect a flood of keys in a progression, which is a false one.
fn reseeds<H: Seeded<Build: Clone>, K: Hash + Eq>(what: &str, key: impl Fn(u32) -> K) -> usize {
    const SEEDS: usize = scaled(300, 20, 0);
    let mut rng = StdRng::seed_from_u64(10);
    let has_reseeded = |_: &usize| {
        let mut map = TrashMap::with_hasher(H::seeded(&mut rng));
        map.extend((0..30_000).map(|number| (key(number), ())));
        map.reseeds() > 0
    };
    let count = (0..SEEDS).filter(has_reseeded).count();
    println!("{} {what}: {count} of {SEEDS} tables reseed", H::NAME);
    // Three standard deviations above two tables of a hundred.
    assert!(count <= SEEDS / 50 + 3 * SEEDS.isqrt() / 7, "{} {what}: {count} tables", H::NAME);
    count
}

fn reseeds_of_all_keys<H: Seeded<Build: Clone>>() -> usize {
    let flow = |host, sport| FiveTuple {
        src: Ipv4Addr::from_bits(0x0a00_0001 + host),
        dst: Ipv4Addr::from([192, 0, 2, 1]),
        sport,
        dport: 443,
        protocol: 6,
    };
    [
        reseeds::<H, _>("u32", |number| number),
        reseeds::<H, _>("u64", |number| u64::from(number) << 40),
        reseeds::<H, _>("u128", |number| u128::from(number) << 100),
        reseeds::<H, _>("pairs", |number| (number % 173, number / 173)),
        reseeds::<H, _>("ports", |number| flow(0, number as u16)),
        reseeds::<H, _>("hosts", |number| flow(number, 40_000)),
        reseeds::<H, _>("a /24", |number| flow(number % 256, (1024 + number / 256) as u16)),
        reseeds::<H, _>("either version", |number| FlowKey::from(flow(number, 40_000))),
    ]
    .iter()
    .sum()
}

/// With ahash none does, with foldhash up to one table in a hundred, with the default up to two.
#[test]
#[cfg_attr(miri, ignore = "many keys")]
fn few_tables_reseed_for_sequential_keys() {
    assert_eq!(reseeds_of_all_keys::<Ahash>(), 0);
    reseeds_of_all_keys::<Foldhash>();
    reseeds_of_all_keys::<Ours>();
    reseeds_of_all_keys::<OursBySmallSeeds>();
}

/// By chance, 10^8 hashes of 64 bits have a collision in 1 of 3700 sets of keys.
#[test]
#[cfg_attr(miri, ignore = "many keys")]
fn hashes_of_many_keys_do_not_collide() {
    const MANY: u64 = scaled(100_000_000, 2_000_000, 0);
    let hasher = DefaultHashBuilder::with_seed(1);
    // The hashes of a part at a time, since all of them take 800 MB.
    for part in 0..16 {
        let hashes = (0..MANY).map(|number| {
            let (host, port) = ((number >> 14) as u32, (number & 0x3fff) as u16);
            let src = Ipv4Addr::from_bits(0x0a00_0000 + host);
            let dst = Ipv4Addr::LOCALHOST;
            hasher.hash_one(FiveTuple { src, dst, sport: port, dport: 443, protocol: 6 })
        });
        let mut hashes: Vec<u64> = hashes.filter(|hash| hash >> 60 == part).collect();
        hashes.sort_unstable();
        assert!(hashes.is_sorted_by(|one, next| one < next), "two keys have the same hash");
    }
}

/// Keys whose words are all zero, and words that cancel out in a hash without secret factors.
#[test]
fn no_key_is_special_under_all_seeds() {
    let hash = |seed: u64, key: (u64, u64)| DefaultHashBuilder::with_seed(seed).hash_one(key);
    for key in [(0, 0), (0, u64::MAX), (u64::MAX, 0), (u64::MAX, u64::MAX)] {
        let mut hashes: Vec<u64> = (0..1000).map(|seed| hash(seed, key)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 1000);
    }
    // All keys with one word of zeros differ.
    let mut hashes: Vec<u64> =
        (0..1000).flat_map(|word| [(word, 0), (0, !word)]).map(|key| hash(7, key)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 2000);
}

/// A hash that is the product modulo 2^64 - 1 would be equal for a key and its complement with one
/// seed of two.
#[test]
fn a_key_and_its_complement_have_different_hashes() {
    let differ = |seed: u64| {
        let hasher = DefaultHashBuilder::with_seed(seed);
        [0, 1, u128::from(seed) << 64 | 7].iter().all(|key| {
            let [one, other] = [*key, !key].map(|key: u128| hasher.hash_one(key));
            one.abs_diff(other) > 1 << 20 && one.abs_diff(!other) > 1 << 20
        })
    };
    assert!((0..1000).all(differ));
}

/// Each word of a seed changes the hashes of keys with any number of bits, and of strings.
#[test]
fn all_words_of_a_seed_count() {
    let hashes = |seeds: [u64; 4]| {
        let hasher = DefaultHashBuilder::with_seeds(seeds);
        let words = [hasher.hash_one(1_u8), hasher.hash_one(1_u64), hasher.hash_one(1_u128)];
        (words, [hasher.hash_one("a string"), hasher.hash_one("another")])
    };
    let (words, strings) = hashes([0; 4]);
    for bit in 0..256 {
        let mut seeds = [0; 4];
        seeds[bit / 64] = 1 << (bit % 64);
        let (other_words, other_strings) = hashes(seeds);
        assert!(words.iter().zip(&other_words).all(|(one, other)| one != other), "{bit}");
        assert!(strings.iter().zip(&other_strings).all(|(one, other)| one != other), "{bit}");
    }
}

/// A key whose writes depend on its value, and that does not write their number.
struct Zeros(usize);

impl Hash for Zeros {
    fn hash<S: Hasher>(&self, state: &mut S) {
        (0..self.0).for_each(|_| state.write_u8(0));
    }
}

#[test]
fn the_number_of_bits_counts() {
    for seed in 0..100 {
        let hasher = DefaultHashBuilder::with_seed(seed);
        let hashes: HashSet<u64> = (0..100).map(|len| hasher.hash_one(Zeros(len))).collect();
        assert_eq!(hashes.len(), 100);
        let words = [hasher.hash_one(7_u64), hasher.hash_one((7_u64, 0_u64))];
        assert_ne!(words[0], words[1]);
    }
}

/// Byte strings are a part of a key like other words, and their boundaries count.
#[test]
fn strings_in_keys() {
    let hasher = DefaultHashBuilder::with_seed(3);
    let different = [("a", "bc"), ("ab", "c"), ("abc", ""), ("", "abc"), ("bc", "a")];
    let mut hashes: Vec<u64> = different.iter().map(|key| hasher.hash_one(key)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), different.len());
    assert_eq!(hasher.hash_one("abc"), hasher.hash_one(String::from("abc")));
    assert_eq!(hasher.hash_one([1_u8, 2].as_slice()), hasher.hash_one(vec![1_u8, 2]));
    assert_ne!(hasher.hash_one(("a", 1_u32)), hasher.hash_one(("a", 2_u32)));
    assert_ne!(hasher.hash_one("a"), DefaultHashBuilder::with_seed(4).hash_one("a"));
    assert!(
        !format!("{hasher:?} {:?}", hasher.build_hasher()).contains(|c: char| c.is_ascii_digit())
    );
}
