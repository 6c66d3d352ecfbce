//! `IdHasher`: random keys are their own hashes, of any width.

use std::collections::HashSet;
use std::hash::BuildHasher;

use flowtable::TrashMap;
use flowtable::hash::IdHasher;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

#[test]
fn the_last_eight_bytes_are_the_hash() {
    assert_eq!(IdHasher.hash_one(0x0123_4567_89ab_cdef_u64), 0x0123_4567_89ab_cdef);
    let id = |first: u8| [first, 1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(IdHasher.hash_one(id(0)), IdHasher.hash_one(id(9)), "routing information");
    assert_ne!(IdHasher.hash_one([1_u8, 2, 3]), IdHasher.hash_one([1_u8, 2, 4]));
}

/// Tags and groups are by the upper and middle bits, which short keys must reach, too.
#[test]
fn random_keys_of_each_length_have_all_tags() {
    let mut rng = StdRng::seed_from_u64(7);
    for len in 1..=20 {
        let keys: HashSet<Vec<u8>> =
            (0..4000).map(|_| (0..len).map(|_| rng.random()).collect()).collect();
        let tags: HashSet<u64> = keys.iter().map(|key| IdHasher.hash_one(key) >> 56).collect();
        let least = if len < 4 { 1 } else { 250 };
        assert!(tags.len() >= least, "{} tags of {len} bytes", tags.len());
        let map: TrashMap<&[u8], usize, IdHasher> =
            keys.iter().enumerate().map(|(number, key)| (key.as_slice(), number)).collect();
        map.validate().unwrap();
        assert!(
            keys.iter()
                .enumerate()
                .all(|(number, key)| { map.get(key.as_slice()) == Some(&number) })
        );
    }
}
