//! `LcTrieMap` with keys that violate their contracts, and with a hash without entropy.

use std::hash::{BuildHasher, Hash};
use std::panic::catch_unwind;

use flowtable::key::bits::{BitString, Headed};
use flowtable::{FiveTuple, LcTrieMap};
use model::bit_strings::Inconsistent;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A type that violates the contract of `BitString`: its order is not that of its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Disordered(u8);

impl BitString for Disordered {
    const BITS: u32 = 8;

    fn window(&self, pos: u32) -> u64 {
        self.0.reverse_bits().window(pos)
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn keys_with_an_inconsistent_order_lose_only_the_order() {
    let mut map: LcTrieMap<Disordered, u8> =
        (0..=255).map(|byte| (Disordered(byte), byte)).collect();
    assert_eq!((map.len(), map.iter().count(), map.iter().rev().count()), (256, 256, 256));
    assert!((0..=255).all(|byte| map.remove(&Disordered(byte)) == Some(byte)));
}

/// Operations may lose keys and panic, but they terminate.
#[test]
fn operations_on_keys_with_inconsistent_bits_terminate() {
    let mut rng = StdRng::seed_from_u64(1);
    let keys: Vec<Inconsistent> =
        (0..if cfg!(miri) { 8 } else { 500 }).map(|_| Inconsistent(rng.random())).collect();
    let _ = catch_unwind(|| {
        let mut map: LcTrieMap<Inconsistent, ()> = keys.iter().map(|&key| (key, ())).collect();
        assert!(map.iter().count() <= map.len() && map.range(..).rev().count() <= map.len());
        map.retain(|key, ()| key.0 % 2 == 0);
        map.values_mut().for_each(drop);
        map.extend(keys.iter().map(|&key| (key, ())));
    });
}

/// A constant hash: all keys have one header, and the keys after it separate them.
#[test]
fn a_hash_without_entropy() {
    struct Constant;
    impl BuildHasher for Constant {
        type Hasher = std::hash::DefaultHasher;
        fn build_hasher(&self) -> Self::Hasher {
            Self::Hasher::new()
        }
        fn hash_one<T: Hash>(&self, _: T) -> u64 {
            7
        }
    }
    let tuple = |i: u32| FiveTuple {
        src: core::net::Ipv4Addr::from(i),
        dst: core::net::Ipv4Addr::LOCALHOST,
        sport: i as u16,
        dport: 80,
        protocol: 6,
    };
    let count = if cfg!(miri) { 15 } else { 500 };
    let map: LcTrieMap<_, u32> =
        (0..count).map(|i| (Headed::new(tuple(i), &Constant), i)).collect();
    map.validate().unwrap();
    assert!((0..count).all(|i| map.get(&Headed::new(tuple(i), &Constant)) == Some(&i)));
    assert!(map.shape().max_depth() <= 104, "at most the bits of a key");
}
