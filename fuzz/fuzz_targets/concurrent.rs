//! `ConcurrentMap` compared with `HashMap` on one thread, with pins that are held and released, and
//! every invariant checked after every step, with good and weak hashers.
#![no_main]

use std::collections::HashMap;

use arbitrary::Arbitrary;
use flowtable::ConcurrentMap;
use flowtable::concurrent::{Compute, Computed, Pinned, Refused};
use flowtable_fuzz::{Key, Seed, Seeds};
use libfuzzer_sys::fuzz_target;
use model::hashers::Weak;

#[derive(Arbitrary, Debug)]
struct Input {
    hasher: u8,
    limit: Option<u16>,
    ops: Vec<Op>,
}

#[derive(Arbitrary, Debug)]
enum Op {
    Insert(Seeds),
    GetOrInsert(Seed),
    Update(Seed),
    Compute(Seed, Decision),
    Remove(Seeds),
    Get(Seed),
    GetBatch(Seeds),
    Retain { divisor: u8, keep_multiples: bool },
    Clear,
    Repin,
    Flush,
    Hold,
    LetGo,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Decision {
    Keep,
    Put,
    Remove,
}

type Map = ConcurrentMap<u64, Box<u64>, Weak>;

fuzz_target!(|input: Input| {
    let mut map: Map = ConcurrentMap::with_hasher(Weak::from_byte(input.hasher));
    if let Some(limit) = input.limit {
        map = map.with_garbage_limit(limit.into(), 0);
    }
    let mut model = HashMap::new();
    {
        let mut held = Vec::new();
        let mut pin = map.pin();
        for (now, op) in input.ops.into_iter().enumerate() {
            match op {
                Op::Repin => pin.repin(),
                Op::Hold => held.push(map.pin()),
                Op::LetGo => drop(held.pop()),
                op => step(&pin, &mut model, op, now as u64),
            }
            assert_eq!(pin.len(), model.len());
            assert!(pin.iter().all(|(key, value)| model.get(key) == Some(value)));
            assert_eq!(pin.iter().count(), model.len());
        }
    }
    map.validate().expect("invariant");
});

fn step(pin: &Pinned<'_, Map>, model: &mut HashMap<u64, Box<u64>>, op: Op, now: u64) {
    let value = || Box::new(now);
    match op {
        Op::Insert(seeds) => {
            for key in seeds.iter().map(u64::grow) {
                match pin.insert(key, value()) {
                    Ok(old) => assert_eq!(old, model.insert(key, value()).as_ref()),
                    Err(error) => assert_eq!(error.refused, (key, value())),
                }
            }
        }
        Op::GetOrInsert(seed) => {
            let key = u64::grow(seed);
            if let Ok(found) = pin.get_or_insert_with(&key, value) {
                assert_eq!(found, model.entry(key).or_insert_with(value));
            }
        }
        Op::Update(seed) => {
            let key = u64::grow(seed);
            if let Ok(new) = pin.update(&key, |old| Box::new(**old + 1)) {
                let theirs = model.get_mut(&key).map(|old| {
                    **old += 1;
                    &*old
                });
                assert_eq!(new, theirs);
            }
        }
        Op::Compute(seed, decision) => compute(pin, model, u64::grow(seed), decision, now),
        Op::Remove(seeds) => {
            for key in seeds.iter().map(u64::grow) {
                assert_eq!(pin.remove(&key), model.remove(&key).as_ref());
            }
        }
        Op::Get(seed) => {
            let key = u64::grow(seed);
            assert_eq!(pin.get(&key), model.get(&key));
            assert_eq!(pin.get_key_value(&key), model.get_key_value(&key));
        }
        Op::GetBatch(seeds) => {
            let keys: Vec<u64> = seeds.iter().map(u64::grow).collect();
            let mut found = vec![None; keys.len()];
            pin.get_batch(&keys, flowtable::write_to(&mut found));
            assert!(found.into_iter().eq(keys.iter().map(|key| model.get(key))));
        }
        Op::Retain { divisor, keep_multiples } => {
            let keep = |key: &u64| (key % u64::from(divisor.max(1)) == 0) == keep_multiples;
            pin.retain(|key, _| keep(key));
            model.retain(|key, _| keep(key));
        }
        Op::Clear => {
            pin.clear();
            model.clear();
        }
        _ => pin.flush(),
    }
}

fn compute(
    pin: &Pinned<'_, Map>,
    model: &mut HashMap<u64, Box<u64>>,
    key: u64,
    decision: Decision,
    now: u64,
) {
    let computed = pin.compute(&key, |found| {
        assert_eq!(found, model.get(&key));
        match decision {
            Decision::Keep => Compute::Keep,
            Decision::Put => Compute::Insert(Box::new(now)),
            Decision::Remove => Compute::Remove,
        }
    });
    let before = model.get(&key).cloned();
    match computed {
        Err(error) => assert!(matches!(error, Refused::Garbage { .. })),
        Ok(Computed::Kept(value)) => assert_eq!(value, before.as_ref()),
        Ok(Computed::Removed(value)) => assert_eq!(Some(value), model.remove(&key).as_ref()),
        Ok(Computed::Inserted(new)) => assert_eq!(model.insert(key, new.clone()), None),
        Ok(Computed::Updated { old, new }) => {
            assert_eq!(model.insert(key, new.clone()).as_ref(), Some(old));
        }
    }
}
