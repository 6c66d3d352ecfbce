//! Tables with the hash of a network card.

use core::hash::{BuildHasher, Hasher};

use flowtable::hash::Rss;
use flowtable::hash::source_index::Toeplitz;
use flowtable::{FiveTuple, FourTuple, Prehashed, TrashMap};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::source_index::{bits, model_toeplitz};

proptest! {
    #[test]
    fn the_input_is_all_bytes_of_a_key(
        key: [u8; 40],
        parts in vec(vec(any::<u8>(), 0..50), 0..5),
    ) {
        let mut hasher = Rss::new(Toeplitz::new(key)).build_hasher();
        parts.iter().for_each(|part| hasher.write(part));
        let mut bytes = parts.concat();
        if [16, 40].contains(&bytes.len()) {
            bytes.truncate(bytes.len() - 4);
        }
        let expected = model_toeplitz(&key, &bits(&bytes));
        prop_assert_eq!(hasher.finish(), Rss::table_hash(expected));
    }

    #[test]
    fn integers_are_written_with_the_most_significant_byte_first(
        key: [u8; 40], a: u8, b: u16, c: u32, d: u64, e: u128, f: usize,
    ) {
        let rss = Rss::new(Toeplitz::new(key));
        let (mut integers, mut bytes) = (rss.build_hasher(), rss.build_hasher());
        integers.write_u8(a);
        bytes.write(&a.to_be_bytes());
        integers.write_u16(b);
        bytes.write(&b.to_be_bytes());
        integers.write_u32(c);
        bytes.write(&c.to_be_bytes());
        integers.write_u64(d);
        bytes.write(&d.to_be_bytes());
        integers.write_u128(e);
        bytes.write(&e.to_be_bytes());
        integers.write_usize(f);
        bytes.write(&f.to_be_bytes());
        prop_assert_eq!(integers.finish(), bytes.finish());
    }
}

#[test]
fn lengths_with_and_without_the_last_word() {
    let hash = |len: usize| {
        let mut hasher = Rss::default().build_hasher();
        (0..len).for_each(|byte| hasher.write_u8(byte as u8 + 1));
        hasher.finish()
    };
    for len in 0..100 {
        let bytes: Vec<u8> = (1..=len as u8).collect();
        let input = if [16, 40].contains(&len) { &bytes[..len - 4] } else { &bytes };
        let key = microsoft();
        assert_eq!(hash(len), Rss::table_hash(model_toeplitz(&key, &bits(input))), "{len} bytes");
    }
}

/// The key, read off the hash: the contribution of bit i is the 32 bits from there on.
fn microsoft() -> [u8; 40] {
    core::array::from_fn(|byte| {
        let mut input = [0; 40];
        input[byte] = 0x80;
        (Toeplitz::MICROSOFT.hash(&input) >> 24) as u8
    })
}

fn flow(number: u32) -> FiveTuple<u32> {
    let sport = 1024 + (number % 50_000) as u16;
    FiveTuple { src: 0x0a00_0000 + number / 7, dst: 0xc000_0201, sport, dport: 443, protocol: 6 }
}

/// A map of one core has the packets of one queue, whose hashes have equal low bits.
#[test]
fn a_map_of_one_queue_takes_the_hashes_of_its_card() {
    let toeplitz = Toeplitz::MICROSOFT;
    let mut map = TrashMap::with_hasher(Rss::new(toeplitz));
    let wanted = if cfg!(miri) { 300 } else { 30_000 };
    let queue = (0..).map(flow).map(|flow| (toeplitz.hash(&flow.sockets()), flow));
    let queue: Vec<_> = queue.filter(|(hash, _)| hash % 8 == 5).take(wanted).collect();
    for &(hash, flow) in &queue {
        let flow = Prehashed { hash: Rss::table_hash(hash), key: &flow };
        assert_eq!(map.entry_ref(flow).or_insert(hash), &hash);
    }
    assert_eq!((map.len(), map.reseeds()), (wanted, 0));
    for &(hash, flow) in &queue {
        assert_eq!(map.get(Prehashed { hash: Rss::table_hash(hash), key: &flow }), Some(&hash));
        assert_eq!(map.get(&flow), Some(&hash));
    }
    assert_eq!(map.validate(), Ok(()));
    for &(hash, flow) in &queue {
        let flow = Prehashed { hash: Rss::table_hash(hash), key: &flow };
        assert_eq!(map.remove(flow), Some(hash));
    }
}

/// With the symmetric key both directions of a flow have one hash, and are two entries.
#[test]
fn both_directions_have_one_hash_by_the_symmetric_key() {
    let mut map = TrashMap::with_hasher(Rss::new(Toeplitz::SYMMETRIC));
    let there = FourTuple { src: 0x0a00_0001_u32, dst: 0xc000_0201, sport: 40_000, dport: 443 };
    let hash = Rss::table_hash(Toeplitz::SYMMETRIC.hash(&there));
    assert_eq!(map.entry_ref(Prehashed { hash, key: &there }).or_insert(1), &1);
    let back = Prehashed { hash, key: &there.reversed() };
    assert_eq!(map.entry_ref(back).or_insert(2), &2);
    assert_eq!((map.get(&there), map.get(&there.reversed())), (Some(&1), Some(&2)));
    assert_eq!(map.get(back), Some(&2));
}

/// Hashes of a card are 32 bits: different ones stay different.
#[test]
fn table_hashes_differ() {
    let mut hashes: Vec<u64> = (0..10_000_u32).map(|i| Rss::table_hash(i << 7)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 10_000);
}
