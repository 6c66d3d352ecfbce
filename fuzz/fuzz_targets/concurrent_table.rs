//! `ConcurrentTable` compared with `HashMap` on one thread, with pins that are held and released,
//! and every invariant checked after every script, with good and weak hashers, for values of one
//! word and of several.
#![no_main]

use std::collections::HashMap;
use std::fmt::Debug;

use arbitrary::Arbitrary;
use flowtable::ConcurrentTable;
use flowtable::concurrent::{NoUninit, Pinned};
use flowtable_fuzz::{Key, Seed, Seeds};
use libfuzzer_sys::fuzz_target;
use model::hashers::Weak;

#[derive(Arbitrary, Debug)]
struct Input {
    hasher: u8,
    limit: Option<u16>,
    is_wide: bool,
    ops: Vec<Op>,
}

#[derive(Arbitrary, Debug)]
enum Op {
    Insert(Seeds),
    GetOrInsert(Seed),
    Replace(Seed),
    Update(Seed),
    Remove(Seeds),
    Get(Seed),
    GetBatch(Seeds),
    Retain { divisor: u8, keep_multiples: bool },
    Clear,
    ShrinkToFit,
    Repin,
    Flush,
    Hold,
    LetGo,
}

type Pin<'t, V> = Pinned<'t, ConcurrentTable<u64, V, Weak>>;

fuzz_target!(|input: Input| match input.is_wide {
    false => run(input, |now| now),
    true => run(input, |now| [now, !now, now << 7]),
});

fn run<V: NoUninit + Debug + PartialEq>(input: Input, value: fn(u64) -> V) {
    let mut table = ConcurrentTable::with_hasher(Weak::from_byte(input.hasher));
    if let Some(limit) = input.limit {
        table = table.with_garbage_limit(limit.into(), 0);
    }
    let mut model = HashMap::new();
    {
        let mut held = Vec::new();
        let mut pin = table.pin();
        for (now, op) in input.ops.into_iter().enumerate() {
            match op {
                Op::Repin => pin.repin(),
                Op::Hold => held.push(table.pin()),
                Op::LetGo => drop(held.pop()),
                op => step(&pin, &mut model, op, value(now as u64)),
            }
            assert_eq!(pin.len(), model.len());
        }
        assert!(pin.iter().all(|(key, value)| model.get(&key) == Some(&value)));
        assert_eq!(pin.iter().count(), model.len());
    }
    table.validate().expect("invariant");
}

fn step<V: NoUninit + Debug + PartialEq>(
    pin: &Pin<'_, V>,
    model: &mut HashMap<u64, V>,
    op: Op,
    value: V,
) {
    match op {
        Op::Insert(seeds) => {
            for key in seeds.iter().map(u64::grow) {
                if let Ok(old) = pin.insert(key, value) {
                    assert_eq!(old, model.insert(key, value));
                }
            }
        }
        Op::GetOrInsert(seed) => {
            let key = u64::grow(seed);
            if let Ok(found) = pin.get_or_insert(&key, value) {
                assert_eq!(found, *model.entry(key).or_insert(value));
            }
        }
        Op::Replace(seed) => {
            let key = u64::grow(seed);
            if let Ok(old) = pin.replace(&key, value) {
                let theirs = model.get_mut(&key).map(|old| std::mem::replace(old, value));
                assert_eq!(old, theirs);
            }
        }
        Op::Update(seed) => {
            let key = u64::grow(seed);
            if let Ok(new) = pin.update(&key, |_| value) {
                assert_eq!(new.is_some(), model.contains_key(&key));
                model.entry(key).and_modify(|old| *old = value);
            }
        }
        op => step_without_values(pin, model, op),
    }
}

fn step_without_values<V: NoUninit + Debug + PartialEq>(
    pin: &Pin<'_, V>,
    model: &mut HashMap<u64, V>,
    op: Op,
) {
    match op {
        Op::Remove(seeds) => {
            for key in seeds.iter().map(u64::grow) {
                assert_eq!(pin.remove(&key), model.remove(&key));
            }
        }
        Op::Get(seed) => {
            let key = u64::grow(seed);
            assert_eq!(pin.get(&key), model.get(&key).copied());
        }
        Op::GetBatch(seeds) => {
            let keys: Vec<u64> = seeds.iter().map(u64::grow).collect();
            let mut found = vec![None; keys.len()];
            pin.get_batch(&keys, flowtable::write_to(&mut found));
            assert!(found.into_iter().eq(keys.iter().map(|key| model.get(key).copied())));
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
        Op::ShrinkToFit => pin.shrink_to_fit(),
        _ => pin.flush(),
    }
}
