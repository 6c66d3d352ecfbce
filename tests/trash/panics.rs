//! User code may panic wherever a `TrashMap` calls it. The map remains valid: only entries that
//! were to be removed are lost, none is duplicated, and none leaks.

use core::cell::Cell;
use std::collections::BTreeMap;
use std::panic::resume_unwind;

use flowtable::TrashMap;
use model::counted::{Callback, Counted, alive, forget_leaked, with_panic};
use model::hashers::{Weak, mix};
use model::scaled;

/// Over 64 bytes with the key, it is boxed.
type Value<const PAD: usize> = (Counted, [u8; PAD]);
type Map<const PAD: usize> = TrashMap<Counted, Value<PAD>, Weak>;
/// Values by key.
type Content = BTreeMap<u64, u64>;

fn value<const PAD: usize>(number: u64) -> Value<PAD> {
    (Counted::new(number), [0; PAD])
}

fn map<const PAD: usize>(hasher: Weak, count: u64) -> Map<PAD> {
    let mut map = TrashMap::with_hasher(hasher);
    map.extend((0..count).map(|key| (Counted::new(key), value(key))));
    map
}

fn content<const PAD: usize>(map: &Map<PAD>) -> Content {
    let content: Content = map.iter().map(|(key, value)| (key.number, value.0.number)).collect();
    assert_eq!(content.len(), map.len(), "keys are unique");
    content
}

/// Checks a map after an operation that panicked between two contents: it has the entries that both
/// have, and none that neither has.
///
/// The return value of a function leaks when one of its arguments panics in its drop: a bug of the
/// compiler, <https://github.com/rust-lang/rust/issues/47949>. These leaks are allowed.
fn check<const PAD: usize>(map: &Map<PAD>, before: &Content, after: &Content, what: &str) {
    map.validate().unwrap_or_else(|broken| panic!("{what}: {broken}"));
    let now = content(map);
    for (key, value) in &now {
        let allowed = before.get(key) == Some(value) || after.get(key) == Some(value);
        assert!(allowed, "{what}: {key} has the wrong value {value}");
        let key = Counted::new(*key);
        assert!(map.contains_key(&key), "{what}: {key:?} cannot be found");
    }
    for key in before.keys().filter(|key| after.contains_key(key)) {
        assert!(now.contains_key(key), "{what}: {key} is lost");
    }
    assert!(map.iter().all(|(key, value)| key.is_alive() && value.0.is_alive()), "{what}");
    let forgiven = if what.contains("Drop") { 2 } else { 0 };
    let leaked = alive() - 2 * map.len();
    assert!(leaked <= forgiven, "{what}: {leaked} have leaked");
}

/// An operation on a map and on its content.
struct Act<const PAD: usize> {
    name: &'static str,
    on_map: fn(&mut Map<PAD>),
    on_model: fn(&mut Content),
}

/// Keys that are not in the map.
const NEW: core::ops::Range<u64> = 100_000..100_100;

fn changes<const PAD: usize>() -> [Act<PAD>; 8] {
    [
        Act {
            name: "insert",
            on_map: |map| drop(map.insert(Counted::new(NEW.start), value(1))),
            on_model: |model| model.extend([(NEW.start, 1)]),
        },
        Act {
            name: "overwrite",
            on_map: |map| drop(map.insert(Counted::new(7), value(1))),
            on_model: |model| model.extend([(7, 1)]),
        },
        Act {
            name: "remove",
            on_map: |map| drop(map.remove(&Counted::new(7))),
            on_model: |model| model.retain(|key, _| *key != 7),
        },
        Act {
            name: "entry",
            on_map: |map| {
                map.entry(Counted::new(7)).or_insert_with(|| value(0)).0 = Counted::new(1);
            },
            on_model: |model| model.extend([(7, 1)]),
        },
        Act {
            name: "extend",
            on_map: |map| map.extend(NEW.map(|key| (Counted::new(key), value(2)))),
            on_model: |model| model.extend(NEW.map(|key| (key, 2))),
        },
        Act {
            name: "insert_batch",
            on_map: |map| {
                let keys = NEW.chain(0..50);
                map.insert_batch(keys.map(|key| (Counted::new(key), value(2))), |_, _| ());
            },
            on_model: |model| model.extend(NEW.chain(0..50).map(|key| (key, 2))),
        },
        Act {
            name: "get_batch_mut",
            on_map: |map| {
                let keys: Vec<Counted> = (0..50).map(Counted::new).collect();
                map.get_batch_mut(&keys, |_, found| found.unwrap().0 = Counted::new(3));
            },
            on_model: |model| model.extend((0..50).map(|key| (key, 3))),
        },
        Act {
            name: "get_disjoint_mut",
            on_map: |map| {
                let found = map.get_disjoint_mut([&Counted::new(1), &Counted::new(2)]);
                found.into_iter().flatten().for_each(|value| value.0 = Counted::new(4));
            },
            on_model: |model| model.extend([(1, 4), (2, 4)]),
        },
    ]
}

fn wholes<const PAD: usize>() -> [Act<PAD>; 9] {
    [
        Act {
            name: "retain",
            on_map: |map| map.retain(|key, _| key.number % 3 == 0),
            on_model: |model| model.retain(|key, _| key % 3 == 0),
        },
        Act { name: "reserve", on_map: |map| map.reserve(3 * map.len()), on_model: |_| () },
        Act {
            name: "shrink_to_fit",
            on_map: |map| {
                map.retain(|key, _| key.number % 3 == 0);
                map.shrink_to_fit();
            },
            on_model: |model| model.retain(|key, _| key % 3 == 0),
        },
        Act { name: "clear", on_map: |map| map.clear(), on_model: |model| model.clear() },
        Act {
            name: "drain",
            on_map: |map| map.drain().take(40).for_each(drop),
            on_model: |model| model.clear(),
        },
        Act {
            name: "into_iter",
            on_map: |map| {
                let taken = core::mem::replace(map, TrashMap::with_hasher(*map.hasher()));
                taken.into_iter().skip(20).step_by(2).take(20).for_each(drop);
            },
            on_model: |model| model.clear(),
        },
        Act { name: "clone", on_map: |map| drop(map.clone()), on_model: |_| () },
        Act {
            name: "drop",
            on_map: |map| drop(core::mem::replace(map, TrashMap::with_hasher(*map.hasher()))),
            on_model: |model| model.clear(),
        },
        Act {
            name: "equality and shape",
            on_map: |map| {
                assert_eq!(map.shape().entries, map.len());
                assert!(map.eq(&map));
            },
            on_model: |_| (),
        },
    ]
}

/// The calls that panic are at most this part of their number apart.
const CLOSE: u32 = scaled(8, 1, 1);

/// Makes each kind of callback panic in each operation, some calls later each time, until it does
/// not.
fn fail_everywhere<const PAD: usize>(acts: &[Act<PAD>], hasher: Weak, count: u64) {
    for act in acts {
        for callback in [Callback::Hash, Callback::Eq, Callback::Clone, Callback::Drop] {
            let mut good = 0;
            loop {
                let what = format!("{} of {count}, {hasher:?}, {callback:?} no. {good}", act.name);
                let mut map: Map<PAD> = map(hasher, count);
                let before = content(&map);
                let mut after = before.clone();
                (act.on_model)(&mut after);
                let done = with_panic(callback, good, || (act.on_map)(&mut map));
                check(&map, &before, &after, &what);
                if done.is_some() {
                    assert_eq!((content(&map), alive()), (after, 2 * map.len()), "{what}");
                    break;
                }
                // The map can be used afterwards.
                (act.on_map)(&mut map);
                check(&map, &after, &after, &what);
                drop(map);
                forget_leaked();
                good += 1 + good / CLOSE;
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn in_slots() {
    let count = 300;
    fail_everywhere::<0>(&changes(), Weak::Mixed, count);
    fail_everywhere::<0>(&wholes(), Weak::Mixed, count);
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn in_boxes() {
    fail_everywhere::<150>(&changes(), Weak::Mixed, 300);
    fail_everywhere::<150>(&wholes(), Weak::Mixed, 300);
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by in_slots")]
fn in_many_segments() {
    let count = scaled(3000, 1100, 1100);
    fail_everywhere::<0>(&changes(), Weak::Mixed, count);
    fail_everywhere::<0>(&wholes(), Weak::Mixed, count);
}

#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn during_a_migration() {
    for &count in scaled(&[72, 100, 138, 150, 190][..], &[100, 150], &[100]) {
        fail_everywhere::<0>(&changes(), Weak::Constant, count);
        fail_everywhere::<0>(&wholes(), Weak::Constant, count);
        fail_everywhere::<150>(&changes(), Weak::Constant, count);
        fail_everywhere::<150>(&wholes(), Weak::Constant, count);
    }
}

/// Steps of growth, shrinking and migration are interrupted at any call, and repeated.
#[test]
fn during_growth_and_shrinking() {
    fn test<const PAD: usize>(hasher: Weak, top: u64) {
        let (mut map, mut model): (Map<PAD>, Content) =
            (TrashMap::with_hasher(hasher), BTreeMap::new());
        let mut panics = 0;
        for i in 0..2 * top {
            let (callback, good) =
                ([Callback::Hash, Callback::Eq][i as usize % 2], mix(i) as u32 % 300);
            let key = i % top;
            let mut after = model.clone();
            let done = with_panic(callback, good, || {
                if i < top {
                    drop(map.insert(Counted::new(key), value(key)));
                } else {
                    drop(map.remove(&Counted::new(key)));
                }
            });
            if i < top {
                after.insert(key, key)
            } else {
                after.remove(&key)
            };
            if done.is_none() {
                panics += 1;
                check(
                    &map,
                    &model,
                    &after,
                    &format!("{hasher:?}, {i} with {callback:?} no. {good}"),
                );
                if i < top {
                    map.insert(Counted::new(key), value(key));
                } else {
                    map.remove(&Counted::new(key));
                }
            }
            model = after;
            assert_eq!(map.len(), model.len());
        }
        assert!(panics > 5 || cfg!(miri), "{hasher:?}: {panics}");
        assert!(map.is_empty());
        drop(map);
        assert_eq!(alive(), 0);
    }
    let top = if cfg!(miri) { 30 } else { 2500 };
    for hasher in [Weak::Mixed, Weak::TopHalf, Weak::Three] {
        if cfg!(miri) && hasher != Weak::Mixed {
            break;
        }
        test::<0>(hasher, top);
        test::<150>(hasher, top / 2);
    }
}

/// An operation whose closures call another one first, on a map and on its content.
type Closures<const PAD: usize> = (&'static str, fn(&mut Map<PAD>, &dyn Fn()), fn(&mut Content));

/// Operations on one entry at a time.
fn closures_of_entries<const PAD: usize>() -> [Closures<PAD>; 3] {
    [
        (
            "retain",
            |map, burn| {
                map.retain(|key, _| {
                    burn();
                    key.number % 2 == 0
                });
            },
            |model| model.retain(|key, _| key % 2 == 0),
        ),
        (
            "or_insert_with",
            |map, burn| {
                NEW.for_each(|key| {
                    map.entry(Counted::new(key)).or_insert_with(|| {
                        burn();
                        value(1)
                    });
                });
            },
            |model| model.extend(NEW.map(|key| (key, 1))),
        ),
        (
            "and_modify",
            |map, burn| {
                map.entry(Counted::new(3))
                    .and_modify(|_| (0..100).for_each(|_| burn()))
                    .or_insert_with(|| value(9));
            },
            |_| (),
        ),
    ]
}

/// Operations on many entries.
fn closures_of_batches<const PAD: usize>() -> [Closures<PAD>; 4] {
    [
        (
            "get_batch_mut",
            |map, burn| {
                let keys: Vec<Counted> = (20..80).map(Counted::new).collect();
                map.get_batch_mut(&keys, |_, found| {
                    burn();
                    found.into_iter().for_each(|value| value.0 = Counted::new(5));
                });
            },
            |model| {
                model.range_mut(20..80).for_each(|(_, value)| *value = 5);
            },
        ),
        (
            "replaced of insert_batch",
            |map, burn| {
                let entries = (20..60).chain(NEW).map(|key| (Counted::new(key), value(6)));
                map.insert_batch(entries, |_, _| burn());
            },
            |model| model.extend((20..60).chain(NEW).map(|key| (key, 6))),
        ),
        (
            "entries of insert_batch",
            |map, burn| {
                let entry = |key| {
                    burn();
                    (Counted::new(key), value(6))
                };
                map.insert_batch((20..60).chain(NEW).map(entry), |_, _| ());
            },
            |model| model.extend((20..60).chain(NEW).map(|key| (key, 6))),
        ),
        (
            "entries of extend",
            |map, burn| {
                map.extend(NEW.map(|key| {
                    burn();
                    (Counted::new(key), value(6))
                }));
            },
            |model| model.extend(NEW.map(|key| (key, 6))),
        ),
    ]
}

/// Closures that panic after some number of calls.
#[test]
#[cfg_attr(miri, ignore = "slow; covered by other tests")]
fn by_closures() {
    fn test<const PAD: usize>(hasher: Weak, good: u64) {
        let count = 200;
        for (name, on_map, on_model) in
            closures_of_entries().into_iter().chain(closures_of_batches())
        {
            let mut map: Map<PAD> = map(hasher, count);
            let before = content(&map);
            let mut after = before.clone();
            on_model(&mut after);
            let left = Cell::new(good);
            let burn = || match left.get() {
                0 => resume_unwind(Box::new("intended")),
                more => left.set(more - 1),
            };
            let done =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| on_map(&mut map, &burn)));
            check(&map, &before, &after, &format!("{name}, {hasher:?}, call {good}"));
            if done.is_ok() {
                assert_eq!(content(&map), after, "{name}");
            }
        }
        assert_eq!(alive(), 0);
    }
    for hasher in [Weak::Mixed, Weak::Constant] {
        for good in [0, 1, 5, 33, 90] {
            test::<0>(hasher, good);
            test::<150>(hasher, good);
        }
    }
}
