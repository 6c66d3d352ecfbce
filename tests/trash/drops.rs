//! Every key and value inserted into a `TrashMap` is dropped exactly once by each of its methods.

use flowtable::TrashMap;
use flowtable::trash::Entry;
use model::counted::{Counted, alive};
use model::hashers::{Weak, mix};
use model::scaled;

const MANY: u64 = scaled(5000, 800, 10);

/// Over 64 bytes with the key, it is boxed.
type Value<const PAD: usize> = (Counted, [u8; PAD]);
type Map<const PAD: usize> = TrashMap<Counted, Value<PAD>, Weak>;

fn value<const PAD: usize>(number: u64) -> Value<PAD> {
    (Counted::new(number), [number as u8; PAD])
}

fn map<const PAD: usize>(count: u64, hasher: Weak) -> Map<PAD> {
    let mut map = TrashMap::with_hasher(hasher);
    map.extend((0..count).map(|key| (Counted::new(key), value(key))));
    map
}

/// Checks that the entries of the map are alive, and nothing else.
fn check<const PAD: usize>(map: &Map<PAD>) {
    map.validate().unwrap();
    for (key, value) in map {
        assert!(key.is_alive() && value.0.is_alive() && key.number == value.0.number);
        assert_eq!(value.1, [key.number as u8; PAD]);
    }
    assert_eq!(alive(), 2 * map.len());
}

/// Runs a test with entries in slots and in boxes, without a flood and with one.
fn with_all(inline: fn(Weak), boxed: fn(Weak)) {
    for &hasher in if cfg!(miri) { [Weak::Top].as_slice() } else { &[Weak::Mixed, Weak::Top] } {
        inline(hasher);
        assert_eq!(alive(), 0, "in slots, {hasher:?}");
        boxed(hasher);
        assert_eq!(alive(), 0, "in boxes, {hasher:?}");
    }
}

#[test]
fn by_growth_and_overwriting() {
    fn test<const PAD: usize>(hasher: Weak) {
        let mut map: Map<PAD> = TrashMap::with_hasher(hasher);
        for key in 0..MANY {
            assert!(map.insert(Counted::new(key), value(key)).is_none());
            if key % 500 == 0 {
                check(&map);
            }
        }
        check(&map);
        for key in 0..MANY / 2 {
            let old = map.insert(Counted::new(key), value(key));
            assert!(old.is_some_and(|(old, _)| old.number == key && old.is_alive()));
        }
        check(&map);
        let mut replaced = 0;
        let batch = (0..MANY).map(|key| (Counted::new(key / 2), value(key / 2)));
        map.insert_batch(batch, |_, old| replaced += u64::from(old.0.is_alive()));
        assert_eq!(replaced, MANY);
        check(&map);
    }
    with_all(test::<0>, test::<150>);
}

#[test]
fn by_removal_and_shrinking() {
    fn test<const PAD: usize>(hasher: Weak) {
        let mut map: Map<PAD> = map(MANY, hasher);
        for key in 0..MANY - MANY / 10 {
            let key = Counted::new(key);
            if key.number % 2 == 0 {
                assert!(map.remove(&key).unwrap().0.is_alive());
            } else {
                let (old, value) = map.remove_entry(&key).unwrap();
                assert!(old.is_alive() && value.0.is_alive());
            }
            drop(key);
            if map.len() % 500 == 0 {
                check(&map);
            }
        }
        map.shrink_to_fit();
        check(&map);
        map.reserve(MANY as usize);
        check(&map);
    }
    with_all(test::<0>, test::<150>);
}

#[test]
fn by_entries() {
    fn test<const PAD: usize>(hasher: Weak) {
        let mut map: Map<PAD> = TrashMap::with_hasher(hasher);
        for i in 0..MANY {
            let key = mix(i) % (MANY / 4);
            match map.entry(Counted::new(key)) {
                Entry::Vacant(entry) if i % 5 == 0 => drop(entry.into_key()),
                Entry::Vacant(entry) if i % 7 == 0 => assert!(entry.key().is_alive()),
                Entry::Vacant(entry) => drop(entry.insert(value(key)).0.is_alive()),
                Entry::Occupied(mut entry) if i % 2 == 0 => drop(entry.insert(value(key))),
                Entry::Occupied(entry) if i % 3 == 0 => drop(entry.remove()),
                Entry::Occupied(entry) if i % 5 == 0 => drop(entry.remove_entry()),
                Entry::Occupied(entry) => assert!(entry.key().is_alive()),
            }
            map.entry(Counted::new(i / 2)).or_insert_with(|| value(i / 2));
            if i % 500 == 0 {
                check(&map);
            }
        }
        check(&map);
    }
    with_all(test::<0>, test::<150>);
}

#[test]
fn by_retain_and_clear() {
    fn test<const PAD: usize>(hasher: Weak) {
        let mut map: Map<PAD> = map(MANY, hasher);
        map.retain(|key, _| key.number % 3 == 0);
        assert_eq!(map.len() as u64, MANY.div_ceil(3));
        check(&map);
        map.retain(|_, _| false);
        check(&map);
        map.extend((0..MANY).map(|key| (Counted::new(key), value(key))));
        map.clear();
        assert_eq!((alive(), map.len()), (0, 0));
        check(&map);
    }
    with_all(test::<0>, test::<150>);
}

#[test]
fn by_iterators_that_stop_half_way() {
    fn test<const PAD: usize>(hasher: Weak) {
        let half = MANY as usize / 2;
        let mut map: Map<PAD> = map(MANY, hasher);
        let drained: Vec<_> = map.drain().take(half).collect();
        assert_eq!((drained.len(), map.len(), alive()), (half, 0, 2 * half));
        map.extend(drained);
        check(&map);
        let mut taken = map.clone().into_iter();
        assert!(taken.by_ref().take(half / 2).all(|(key, value)| key.number == value.0.number));
        assert_eq!(alive(), 2 * half + 2 * taken.len());
        drop(taken);
        check(&map);
        assert!(map.clone().into_keys().take(5).all(|key| key.is_alive()));
        assert!(map.clone().into_values().take(5).all(|value| value.0.is_alive()));
        drop(map.clone().drain());
        check(&map);
        drop(map.into_iter());
    }
    with_all(test::<0>, test::<150>);
}

#[test]
fn by_clones() {
    fn test<const PAD: usize>(hasher: Weak) {
        let map: Map<PAD> = map(MANY, hasher);
        let mut clone = map.clone();
        assert_eq!(alive(), 2 * (map.len() + clone.len()));
        clone.retain(|key, _| key.number % 2 == 0);
        assert_eq!(alive(), 2 * (map.len() + clone.len()));
        clone.clone_from(&map);
        assert_eq!(alive(), 4 * map.len());
        drop(clone);
        check(&map);
    }
    with_all(test::<0>, test::<150>);
}

/// During a migration there are two tables to be dropped.
#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn during_a_reseeding_at_any_time() {
    fn test<const PAD: usize>(_: Weak) {
        for count in (60..400).step_by(3) {
            let mut map: Map<PAD> = map(count, Weak::Three);
            check(&map);
            map.clone().retain(|key, _| key.number % 2 == 0);
            check(&map);
            if count % 2 == 0 {
                assert_eq!(map.drain().take(70).count() as u64, count.min(70));
                assert_eq!(alive(), 0);
            }
        }
    }
    with_all(test::<0>, test::<150>);
}
