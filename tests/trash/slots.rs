//! Entries of a table by the numbers of their slots.

use model::cases;
use std::collections::HashSet;
use std::hash::BuildHasher;

use flowtable::TrashTable;
use model::hashers::Weak;
use proptest::prelude::*;

const KEYS: u32 = if cfg!(miri) { 40 } else { 4000 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(30, 1)))]

    #[test]
    fn each_entry_has_one_number(
        count in 0..KEYS,
        removed in 1..7_u32,
        weak in proptest::sample::select(&Weak::ALL),
    ) {
        let hash = |key: &u32| weak.hash_one(key);
        let mut table = TrashTable::new();
        prop_assert_eq!((table.num_buckets(), table.get_bucket(0)), (0, None));
        for key in 0..count {
            let entry = table.insert_unique(hash(&key), key, hash);
            let slot = entry.bucket_index();
            prop_assert_eq!(table.get_bucket(slot), Some(&key));
        }
        table.retain(|key| *key % removed == 0, hash);

        let slots: Vec<usize> = table.iter_buckets().collect();
        let entry = |&slot: &usize| *table.get_bucket(slot).unwrap();
        let entries: HashSet<u32> = slots.iter().map(entry).collect();
        prop_assert_eq!(slots.len(), table.len());
        prop_assert_eq!(&entries, &table.iter().copied().collect::<HashSet<u32>>());
        let occupied = (0..table.num_buckets()).filter(|&slot| table.get_bucket(slot).is_some());
        prop_assert_eq!(occupied.collect::<HashSet<_>>(), slots.iter().copied().collect());
        prop_assert_eq!(table.get_bucket(table.num_buckets()), None);
        prop_assert_eq!(table.get_bucket(usize::MAX), None);

        for key in entries.iter().take(50) {
            let slot = table.find_bucket_index(hash(key), |own| own == key).unwrap();
            prop_assert_eq!(table.get_bucket_mut(slot), Some(&mut key.clone()));
            let mut of_hash = table.iter_hash_buckets(hash(key));
            prop_assert!(of_hash.any(|other| other == slot));
            prop_assert_eq!(
                table.iter_hash_buckets(hash(key)).count(),
                table.iter_hash(hash(key)).count()
            );
        }
        for key in &entries {
            let slot = table.find_bucket_index(hash(key), |own| own == key).unwrap();
            let entry = table.get_bucket_entry(slot).unwrap();
            prop_assert_eq!(entry.bucket_index(), slot);
            prop_assert_eq!(entry.remove(hash), *key);
            if *key % 64 == 0 {
                table.validate(hash).unwrap();
            }
        }
        prop_assert!(table.is_empty() && table.get_bucket_entry(0).is_err());
    }
}
