//! The words that keys write to a hasher, as the module of flow keys documents them.

use core::hash::{Hash, Hasher};
use core::net::{Ipv4Addr, Ipv6Addr};

use flowtable::{FiveTuple, FlowKey, FourTuple, Prefix};
use proptest::prelude::*;

/// The written words: the number of bits and the value of each word.
#[derive(Default)]
struct Words(Vec<(u32, u128)>);

impl Hasher for Words {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are written in words");
    }
    fn write_u16(&mut self, word: u16) {
        self.0.push((16, word.into()));
    }
    fn write_u64(&mut self, word: u64) {
        self.0.push((64, word.into()));
    }
    fn write_u128(&mut self, word: u128) {
        self.0.push((128, word));
    }
    fn finish(&self) -> u64 {
        unreachable!("the words are compared")
    }
}

fn words(key: impl Hash) -> Vec<(u32, u128)> {
    let mut words = Words::default();
    key.hash(&mut words);
    words.0
}

/// The words as bytes, the most significant first.
fn bytes(key: impl Hash) -> Vec<u8> {
    let word = |(bits, word): (u32, u128)| word.to_be_bytes()[16 - bits as usize / 8..].to_vec();
    words(key).into_iter().flat_map(word).collect()
}

#[test]
fn ipv4_keys_are_one_word() {
    let (src, dst) = (Ipv4Addr::new(1, 2, 3, 4), Ipv4Addr::new(5, 6, 7, 8));
    let (sport, dport, protocol) = (0x090a, 0x0b0c, 0x0d);
    let key = FiveTuple { src, dst, sport, dport, protocol };
    assert_eq!(words(key.sockets()), [(128, 0x0102_0304_0506_0708_090a_0b0c_0000_0000)]);
    assert_eq!(words(key), [(128, 0x0102_0304_0506_0708_090a_0b0c_0d00_0000)]);
    assert_eq!(words(FlowKey::V4(key)), [(128, 0x0102_0304_0506_0708_090a_0b0c_0d00_0004)]);
    assert_eq!(words(Prefix::new(src, 24).unwrap()), [(64, 0x0102_0300_0000_0018)]);
}

#[test]
fn ipv6_keys_are_two_words_and_a_rest() {
    let (a, b) =
        (0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10, 0x1112_1314_1516_1718_191a_1b1c_1d1e_1f20);
    let [src, dst] = [a, b].map(Ipv6Addr::from_bits);
    let (sport, dport, protocol) = (0x2122, 0x2324, 0x25);
    let key = FiveTuple { src, dst, sport, dport, protocol };
    let rest = 0x2122_2324_0000_0000;
    assert_eq!(words(key.sockets()), [(128, a), (128, b), (64, rest)]);
    assert_eq!(words(key), [(128, a), (128, b), (64, rest | 0x2500_0000)]);
    assert_eq!(words(FlowKey::V6(key)), [(128, a), (128, b), (64, rest | 0x2500_0006)]);
    assert_eq!(words(Prefix::new(src, 128).unwrap()), [(128, a), (16, 128)]);
}

#[test]
fn other_widths_are_written_in_as_few_words() {
    let four = FourTuple { src: 0x01_u8, dst: 0x02, sport: 0x0304, dport: 0x0506 };
    assert_eq!(words(four), [(64, 0x0102_0304_0506_0000)]);
    let wide = FourTuple { src: [1; 6], dst: [2; 6], sport: 0x0304, dport: 0x0506 };
    assert_eq!(words(wide), [(128, 0x0101_0101_0101_0202_0202_0202_0304_0506)]);
    let widest = FourTuple { src: [1; 8], dst: [2; 8], sport: 3, dport: 4 };
    let addresses = 0x0101_0101_0101_0101_0202_0202_0202_0202;
    assert_eq!(words(widest), [(128, addresses), (64, 0x0003_0004_0000_0000)]);
    // The length has the last two bytes, of the narrower word if it can.
    assert_eq!(words(Prefix::new([1_u8; 6], 48).unwrap()), [(64, 0x0101_0101_0101_0030)]);
    assert_eq!(words(Prefix::new(1_u64 << 56, 9).unwrap()), [(128, 1 << 120 | 9)]);
    assert_eq!(
        words(Prefix::new([1_u8; 14], 112).unwrap()),
        [(128, 0x0101_0101_0101_0101_0101_0101_0101_0070)]
    );
    assert_eq!(words(Prefix::new([1_u8; 15], 0).unwrap()), [(128, 0), (16, 0)]);
}

/// Keys of few values, so that words of different keys are often equal.
fn flow() -> impl Strategy<Value = FlowKey> {
    // Boxed: 32 of them on the stack are too many without optimization.
    let byte = || prop_oneof![Just(0_u8), Just(4), Just(6), any::<u8>()].boxed();
    let rest = (byte(), byte(), byte()).prop_map(|(a, b, c)| (a.into(), b.into(), c));
    let addresses = prop::array::uniform32(byte());
    (addresses, rest, any::<bool>()).prop_map(|(bytes, (sport, dport, protocol), is_v6)| {
        let [a, b] = [0, 16].map(|from| u128::from_be_bytes(*bytes[from..].first_chunk().unwrap()));
        if is_v6 {
            let [src, dst] = [a, b].map(Ipv6Addr::from_bits);
            FiveTuple { src, dst, sport, dport, protocol }.into()
        } else {
            let [src, dst] = [a, b].map(|bits| Ipv4Addr::from_bits(bits as u32));
            FiveTuple { src, dst, sport, dport, protocol }.into()
        }
    })
}

proptest! {
    /// The last byte is the version, so the bytes of several keys are read from the end.
    #[test]
    fn the_words_of_several_keys_determine_them(keys in prop::collection::vec(flow(), 0..6)) {
        let mut bytes: Vec<u8> = keys.iter().flat_map(bytes).collect();
        for key in keys.iter().rev() {
            let length = match bytes.last() {
                Some(4) => 16,
                Some(6) => 40,
                other => panic!("version {other:?}"),
            };
            let own = bytes.split_off(bytes.len() - length);
            prop_assert_eq!(own, self::bytes(key));
        }
        prop_assert!(bytes.is_empty());
    }

    #[test]
    fn keys_are_equal_if_their_words_are(a in flow(), b in flow(), bit in 0_u32..104) {
        prop_assert_eq!(a == b, words(a) == words(b));
        prop_assert_eq!(a, a.reversed().reversed());
        if let FlowKey::V4(tuple) = a {
            // Each single bit counts.
            let flip = |first: u32, width: u32| match bit.checked_sub(first) {
                Some(bit) if bit < width => 1_u64 << bit,
                _ => 0,
            };
            let other = FiveTuple {
                src: Ipv4Addr::from_bits(tuple.src.to_bits() ^ flip(0, 32) as u32),
                dst: Ipv4Addr::from_bits(tuple.dst.to_bits() ^ flip(32, 32) as u32),
                sport: tuple.sport ^ flip(64, 16) as u16,
                dport: tuple.dport ^ flip(80, 16) as u16,
                protocol: tuple.protocol ^ flip(96, 8) as u8,
            };
            prop_assert_ne!(a, FlowKey::V4(other));
            prop_assert_ne!(words(a), words(FlowKey::V4(other)));
        }
    }
}
