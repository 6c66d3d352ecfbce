//! `TrashTable` compared with `HashMap`, every invariant checked after every step, with good and
//! weak hashes; and with hashes that change, where each entry must be returned or dropped once.
#![no_main]

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::BuildHasher;
use std::rc::Rc;

use arbitrary::Arbitrary;
use flowtable::TrashTable;
use flowtable::trash::table::Entry;
use flowtable_fuzz::{Key, Seed, Seeds};
use libfuzzer_sys::fuzz_target;
use model::hashers::{Weak, mix};

#[derive(Arbitrary, Debug)]
struct Input {
    entries: Entries,
    hasher: u8,
    ops: Vec<Op>,
}

/// Entries in slots and in boxes, and entries whose hash changes.
#[derive(Arbitrary, Debug)]
enum Entries {
    Words,
    Boxed,
    Inconsistent,
}

#[derive(Arbitrary, Debug)]
enum Op {
    Insert(Seeds),
    Entry(Seeds),
    Remove(Seeds),
    EntryRemove(Seed),
    FindEntry(Seed),
    FindBatch(Seeds),
    GetDisjointMut([Seed; 3]),
    IterHash(Seed),
    IterMut,
    Retain(u8),
    ExtractIf(u8, u8),
    Drain(u8),
    Clone,
    Reserve(u16),
    ShrinkTo(u16),
    Clear,
}

fuzz_target!(|input: Input| match input.entries {
    Entries::Words => run::<u64>(input, |now| now),
    Entries::Boxed => run::<[u64; 12]>(input, |now| [now; 12]),
    Entries::Inconsistent => inconsistent(input.ops),
});

fn run<V: Clone + Debug + PartialEq>(input: Input, make: fn(u64) -> V) {
    let weak = Weak::from_byte(input.hasher);
    let mut pair = Pair { table: TrashTable::new(), model: HashMap::new(), weak, make, now: 0 };
    for op in input.ops {
        pair.step(op);
        pair.compare();
    }
    let entries: HashMap<u64, V> = pair.table.into_iter().collect();
    assert_eq!(entries, pair.model);
}

struct Pair<V> {
    table: TrashTable<(u64, V)>,
    model: HashMap<u64, V>,
    weak: Weak,
    make: fn(u64) -> V,
    now: u64,
}

impl<V: Clone + Debug + PartialEq> Pair<V> {
    /// Returns a new value.
    fn value(&mut self) -> V {
        self.now += 1;
        (self.make)(self.now)
    }

    fn step(&mut self, op: Op) {
        let value = self.value();
        let Self { table, model, weak, .. } = self;
        let hash = |key: u64| weak.hash_one(key);
        let hasher = |entry: &(u64, V)| weak.hash_one(entry.0);
        match op {
            Op::Insert(seeds) => {
                for key in seeds.iter().map(u64::grow) {
                    if model.insert(key, value.clone()).is_some() {
                        assert!(table.remove(hash(key), |own| own.0 == key, hasher).is_some());
                    }
                    table.insert_unique(hash(key), (key, value.clone()), hasher);
                }
            }
            Op::Entry(seeds) => {
                for key in seeds.iter().map(u64::grow) {
                    let entry = table.entry(hash(key), |own| own.0 == key, hasher);
                    let own = entry.or_insert((key, value.clone())).into_mut();
                    assert_eq!(&own.1, model.entry(key).or_insert(value.clone()));
                }
            }
            Op::Remove(seeds) => {
                for key in seeds.iter().map(u64::grow) {
                    let removed = table.remove(hash(key), |own| own.0 == key, hasher);
                    assert_eq!(removed, model.remove_entry(&key));
                }
            }
            Op::EntryRemove(seed) => {
                let key = u64::grow(seed);
                match table.entry(hash(key), |own| own.0 == key, hasher) {
                    Entry::Occupied(entry) => {
                        assert_eq!(Some(entry.remove(hasher)), model.remove_entry(&key));
                    }
                    Entry::Vacant(_) => assert!(!model.contains_key(&key)),
                }
            }
            Op::FindEntry(seed) => {
                let key = u64::grow(seed);
                let found = table.find_entry(hash(key), |own| own.0 == key).ok();
                let found = found.map(|mut entry| entry.replace((key, value.clone())).1);
                let theirs = model.get_mut(&key).map(|own| std::mem::replace(own, value));
                assert_eq!(found, theirs);
            }
            Op::FindBatch(seeds) => {
                let keys: Vec<u64> = seeds.iter().map(u64::grow).collect();
                let hashes: Vec<u64> = keys.iter().map(|&key| hash(key)).collect();
                let eq = |i: usize, own: &(u64, V)| own.0 == keys[i];
                table.find_batch(&hashes, eq, |i, found| {
                    assert_eq!(found.map(|own| &own.1), model.get(&keys[i]));
                });
            }
            Op::GetDisjointMut(seeds) => {
                let keys = seeds.map(u64::grow);
                if keys[0] == keys[1] || keys[1] == keys[2] || keys[0] == keys[2] {
                    return;
                }
                let found = table.get_disjoint_mut(keys.map(hash), |i, own| own.0 == keys[i]);
                for (key, found) in keys.into_iter().zip(found) {
                    let (ours, theirs) = (found.map(|own| &mut own.1), model.get_mut(&key));
                    assert_eq!(ours, theirs);
                    ours.into_iter().chain(theirs).for_each(|own| *own = value.clone());
                }
            }
            Op::IterHash(seed) => {
                let key = u64::grow(seed);
                let found = table.iter_hash(hash(key)).filter(|own| own.0 == key).count();
                assert_eq!(found, usize::from(model.contains_key(&key)));
                for own in table.iter_hash_mut(hash(key)) {
                    own.1 = value.clone();
                    assert!(model.insert(own.0, value.clone()).is_some());
                }
            }
            op => self.whole(op, value),
        }
    }

    /// Applies an operation on the whole table.
    fn whole(&mut self, op: Op, value: V) {
        let Self { table, model, weak, .. } = self;
        let hasher = |entry: &(u64, V)| weak.hash_one(entry.0);
        let picks = |key: u64, divisor: u8| mix(key) % u64::from(divisor.max(1)) == 0;
        match op {
            Op::IterMut => {
                table.iter_mut().for_each(|own| own.1 = value.clone());
                model.values_mut().for_each(|own| *own = value.clone());
            }
            Op::Retain(divisor) => {
                table.retain(|own| !picks(own.0, divisor), hasher);
                model.retain(|&key, _| !picks(key, divisor));
            }
            Op::ExtractIf(divisor, most) => {
                let expected = model.keys().filter(|&&key| picks(key, divisor)).count();
                let extracted = table.extract_if(|own| picks(own.0, divisor), hasher);
                let extracted: Vec<_> = extracted.take(most.into()).collect();
                assert_eq!(extracted.len(), expected.min(most.into()));
                for (key, value) in extracted {
                    assert_eq!(model.remove(&key), Some(value));
                }
            }
            Op::Drain(count) => {
                let mut drain = table.drain();
                for (key, value) in drain.by_ref().take(count.into()) {
                    assert_eq!(model.remove(&key), Some(value));
                }
                assert_eq!(drain.len(), model.len());
                model.clear();
            }
            Op::Clone => *table = table.clone(),
            Op::Reserve(more) => {
                table.reserve(usize::from(more % 4096), hasher);
                assert!(table.capacity() >= table.len() + usize::from(more % 4096));
            }
            Op::ShrinkTo(capacity) => {
                let before = table.allocation_size();
                table.shrink_to(capacity.into(), hasher);
                assert!(table.allocation_size() <= before);
            }
            _ => {
                table.clear();
                model.clear();
            }
        }
    }

    fn compare(&self) {
        let Self { table, model, weak, .. } = self;
        table.validate(|own| weak.hash_one(own.0)).expect("invariant");
        assert_eq!((table.len(), table.iter().count()), (model.len(), model.len()));
        assert!(table.iter().all(|(key, value)| model.get(key) == Some(value)));
        let find = |key: &u64| table.find(weak.hash_one(key), |own| own.0 == *key);
        assert!(model.iter().all(|(key, value)| find(key).map(|own| &own.1) == Some(value)));
    }
}

/// Hashes that change at every call.
fn inconsistent(ops: Vec<Op>) {
    let (alive, calls) = (Rc::new(()), Cell::new(0));
    let random = |_: &Rc<()>| {
        calls.set(calls.get() + 1);
        mix(calls.get())
    };
    let (mut table, mut removed) = (TrashTable::new(), vec![]);
    for op in ops {
        match op {
            Op::Insert(seeds) | Op::Entry(seeds) => {
                for key in seeds.iter().map(u64::grow) {
                    table.insert_unique(mix(key), Rc::clone(&alive), random);
                }
            }
            Op::Remove(seeds) | Op::FindBatch(seeds) => {
                for key in seeds.iter().map(u64::grow) {
                    removed.extend(table.remove(mix(key), |_| true, random));
                }
            }
            Op::ExtractIf(_, most) | Op::Drain(most) => {
                removed.extend(table.extract_if(|_| true, random).take(most.into()));
            }
            Op::Retain(divisor) => table.retain(|own| random(own) % 8 > divisor.into(), random),
            Op::Clone => table = table.clone(),
            Op::Reserve(more) => table.reserve(usize::from(more % 4096), random),
            Op::ShrinkTo(capacity) => table.shrink_to(capacity.into(), random),
            _ => table.shrink_to_fit(random),
        }
        assert_eq!(Rc::strong_count(&alive), 1 + table.len() + removed.len());
        assert_eq!(table.iter().count(), table.len());
    }
    drop(table);
    assert_eq!(Rc::strong_count(&alive), 1 + removed.len());
}
