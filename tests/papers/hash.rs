//! The hashes without a key: published values, bitwise reference models, and input in pieces.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

use flowtable::papers::hash::{
    Crc8Pair, Crc16, Crc32, Fletcher16, XorFold8, XorFold16, hash_bytes,
};
use proptest::collection::vec;
use proptest::prelude::*;

const CHECK: &[u8] = b"123456789";

#[test]
fn hashes_have_their_published_values() {
    assert_eq!(hash_bytes::<Crc8Pair>(&[&[0; 6], CHECK].concat()), 0x00f4, "CRC-8/SMBUS");
    assert_eq!(hash_bytes::<Crc16>(CHECK), 0x29b1, "CRC-16/IBM-3740");
    assert_eq!(hash_bytes::<Crc32>(CHECK), 0xcbf4_3926, "CRC-32/ISO-HDLC");
    let vectors: [(&[u8], _); 3] = [(b"abcde", 0xc8f0), (b"abcdef", 0x2057), (b"abcdefgh", 0x0627)];
    for (text, sum) in vectors {
        assert_eq!(hash_bytes::<Fletcher16>(text), sum);
    }
    // Computed by hand.
    assert_eq!(hash_bytes::<XorFold16>(CHECK), 0x0031 ^ 0x3233 ^ 0x3435 ^ 0x3637 ^ 0x3839);
    assert_eq!(hash_bytes::<XorFold8>(CHECK), 0x31);
    assert_eq!(hash_bytes::<XorFold16>(&[10, 1, 3, 28, 10, 2, 7, 5, 0, 0, 0, 9]), 0x0413);
}

/// A reference model of CRCs of `width` bits: bit by bit, the most significant bit first.
fn bitwise(width: u32, polynomial: u64, start: u64, bytes: impl Iterator<Item = u8>) -> u64 {
    let mask = (1 << width) - 1;
    bytes.fold(start, |register, byte| {
        (0..8).rev().fold(register, |register, bit| {
            let carry = register >> (width - 1) & 1 ^ u64::from(byte) >> bit & 1;
            ((register << 1) ^ (carry * polynomial)) & mask
        })
    })
}

fn model_pair(bytes: &[u8]) -> u64 {
    let (first, second) = bytes.split_at(bytes.len().min(6));
    let crc = |bytes: &[u8]| bitwise(8, 0x07, 0, bytes.iter().copied());
    crc(first) << 8 | crc(second)
}

fn model_crc32(bytes: &[u8]) -> u64 {
    let reflected = bytes.iter().map(|byte| byte.reverse_bits());
    let crc = bitwise(32, 0x04c1_1db7, u64::from(u32::MAX), reflected) as u32;
    (!crc.reverse_bits()).into()
}

fn model_fletcher(bytes: &[u8]) -> u64 {
    let step = |(first, second), &byte: &u8| {
        let first = (first + u64::from(byte)) % 255;
        (first, (second + first) % 255)
    };
    let (first, second) = bytes.iter().fold((0, 0), step);
    second << 8 | first
}

fn model_fold(bytes: &[u8]) -> u64 {
    let padding = vec![0; bytes.len() % 2];
    let words = [&padding, bytes].concat();
    words.chunks(2).fold(0, |fold, word| fold ^ (u64::from(word[0]) << 8 | u64::from(word[1])))
}

/// The hash of bytes that are written in pieces, cut at `cuts`.
fn in_pieces<H: Hasher + Default>(bytes: &[u8], cuts: &[usize]) -> u64 {
    let mut hasher = BuildHasherDefault::<H>::default().build_hasher();
    let mut rest = bytes;
    for cut in cuts {
        let (piece, next) = rest.split_at(cut % (rest.len() + 1));
        hasher.write(piece);
        rest = next;
    }
    hasher.write(rest);
    hasher.finish()
}

proptest! {
    #[test]
    fn hashes_match_their_bitwise_models(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(hash_bytes::<Crc8Pair>(&bytes), model_pair(&bytes));
        let crc16 = bitwise(16, 0x1021, 0xffff, bytes.iter().copied());
        prop_assert_eq!(hash_bytes::<Crc16>(&bytes), crc16);
        prop_assert_eq!(hash_bytes::<Crc32>(&bytes), model_crc32(&bytes));
        prop_assert_eq!(hash_bytes::<Fletcher16>(&bytes), model_fletcher(&bytes));
        prop_assert_eq!(hash_bytes::<XorFold16>(&bytes), model_fold(&bytes));
        let [.., high, low] = hash_bytes::<XorFold16>(&bytes).to_be_bytes();
        prop_assert_eq!(hash_bytes::<XorFold8>(&bytes), (high ^ low).into());
    }

    #[test]
    fn a_hash_is_independent_of_the_pieces(
        bytes in vec(any::<u8>(), 0..40),
        cuts in vec(any::<usize>(), 0..5),
    ) {
        prop_assert_eq!(in_pieces::<XorFold8>(&bytes, &cuts), hash_bytes::<XorFold8>(&bytes));
        prop_assert_eq!(in_pieces::<XorFold16>(&bytes, &cuts), hash_bytes::<XorFold16>(&bytes));
        prop_assert_eq!(in_pieces::<Crc8Pair>(&bytes, &cuts), hash_bytes::<Crc8Pair>(&bytes));
        prop_assert_eq!(in_pieces::<Crc16>(&bytes, &cuts), hash_bytes::<Crc16>(&bytes));
        prop_assert_eq!(in_pieces::<Crc32>(&bytes, &cuts), hash_bytes::<Crc32>(&bytes));
        prop_assert_eq!(in_pieces::<Fletcher16>(&bytes, &cuts), hash_bytes::<Fletcher16>(&bytes));
    }

    #[test]
    fn a_crc_detects_bursts_and_is_linear(
        [a, b, c] in any::<[[u8; 12]; 3]>(),
        burst in 1_u32..=u32::MAX,
        at in 0_u32..64,
    ) {
        let xor = |a: [u8; 12], b: [u8; 12]| std::array::from_fn(|i| a[i] ^ b[i]);
        let shifted = |burst: u32| {
            let mut bytes = [0; 12];
            bytes.copy_from_slice(&(u128::from(burst) << at).to_be_bytes()[4..]);
            bytes
        };
        prop_assert_ne!(hash_bytes::<Crc32>(&xor(a, shifted(burst))), hash_bytes::<Crc32>(&a));
        let short = (burst as u16).max(1).into();
        prop_assert_ne!(hash_bytes::<Crc16>(&xor(a, shifted(short))), hash_bytes::<Crc16>(&a));
        let all = xor(xor(a, b), c);
        for hash in [hash_bytes::<Crc32>, hash_bytes::<Crc16>, hash_bytes::<Crc8Pair>] {
            prop_assert_eq!(hash(&all), hash(&a) ^ hash(&b) ^ hash(&c));
        }
    }
}

#[test]
fn fletcher_does_not_overflow_and_has_65025_values() {
    for length in [4095, 4096, 4097, 20_000] {
        // A first byte that is not the largest one, then only the largest.
        let bytes = [vec![254], vec![255; length]].concat();
        assert_eq!(hash_bytes::<Fletcher16>(&bytes), model_fletcher(&bytes));
    }
    let pairs = (0..=u16::MAX).map(|pair| hash_bytes::<Fletcher16>(&pair.to_be_bytes()));
    assert_eq!(pairs.collect::<HashSet<_>>().len(), 255 * 255);
}

#[test]
fn the_hash_of_an_array_includes_its_length() {
    let hasher = BuildHasherDefault::<Crc32>::default();
    assert_ne!(hasher.hash_one(*b"123456789"), 0xcbf4_3926);
    let mut hasher = hasher.build_hasher();
    hasher.write(CHECK);
    assert_eq!(hasher.finish(), 0xcbf4_3926);
}
