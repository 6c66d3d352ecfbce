//! `TrashTable` compared with a `HashMap`, for several hashes and types of entries, with the
//! invariants checked after each step; hashes that change, and panics.

use core::cell::{Cell, RefCell};
use core::fmt::Debug;
use core::hash::BuildHasher;
use model::cases;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use flowtable::TrashTable;
use flowtable::trash::table::Entry;
use model::hashers::{Weak, mix};
use proptest::collection::vec;
use proptest::prelude::*;

/// An entry made of a key and a value.
trait Make: Clone + Debug + PartialEq {
    fn make(key: u32, value: u32) -> Self;
    fn key(&self) -> u32;
}

impl Make for (u32, u32) {
    fn make(key: u32, value: u32) -> Self {
        (key, value)
    }
    fn key(&self) -> u32 {
        self.0
    }
}

impl Make for (u32, String) {
    fn make(key: u32, value: u32) -> Self {
        (key, value.to_string())
    }
    fn key(&self) -> u32 {
        self.0
    }
}

/// Too large for a slot.
impl Make for [u32; 40] {
    fn make(key: u32, value: u32) -> Self {
        core::array::from_fn(|at| if at == 0 { key } else { value })
    }
    fn key(&self) -> u32 {
        self[0]
    }
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u32, u32, u32),
    Remove(u32, u32, u32),
    Find(u32, u32),
    FindEntry(u32, u32),
    EntryInsert(u32, u32),
    EntryOr(u32, u32),
    EntryRemove(u32),
    Batch(Vec<u32>),
    Disjoint([u32; 3], u32),
    IterHash(u32, u32),
    SetAll(u32),
    Retain(u64),
    Extract(u64, usize),
    Drain(usize),
    Clone,
    Reserve(usize),
    ShrinkTo(usize),
    Clear,
}

const KEYS: u32 = if cfg!(miri) { 40 } else { 3000 };
const RUN: u32 = if cfg!(miri) { 20 } else { 600 };

fn op() -> impl Strategy<Value = Op> {
    let (key, value) = (|| 0..KEYS, any::<u32>());
    let run = || (key(), 1..8_u32, 0..RUN);
    prop_oneof![
        10 => run().prop_map(|(first, apart, count)| Op::Insert(first, apart, count)),
        7 => run().prop_map(|(first, apart, count)| Op::Remove(first, apart, count)),
        3 => (key(), value).prop_map(|(key, value)| Op::Find(key, value)),
        3 => (key(), value).prop_map(|(key, value)| Op::FindEntry(key, value)),
        3 => (key(), value).prop_map(|(key, value)| Op::EntryInsert(key, value)),
        3 => (key(), value).prop_map(|(key, value)| Op::EntryOr(key, value)),
        3 => key().prop_map(Op::EntryRemove),
        2 => vec(key(), 0..100).prop_map(Op::Batch),
        2 => ([key(), key(), key()], value).prop_map(|(keys, value)| Op::Disjoint(keys, value)),
        3 => (key(), value).prop_map(|(key, value)| Op::IterHash(key, value)),
        1 => value.prop_map(Op::SetAll),
        2 => (0..4_u64).prop_map(Op::Retain),
        2 => (0..4_u64, 0..900_usize).prop_map(|(picked, most)| Op::Extract(picked, most)),
        1 => (0..50_usize).prop_map(Op::Drain),
        1 => Just(Op::Clone),
        1 => (0..4000_usize).prop_map(Op::Reserve),
        2 => (0..2000_usize).prop_map(Op::ShrinkTo),
        1 => Just(Op::Clear),
    ]
}

struct Pair<T> {
    ours: TrashTable<T>,
    model: HashMap<u32, T>,
    weak: Weak,
}

/// The hash of an entry.
fn hasher<T: Make>(weak: Weak) -> impl Fn(&T) -> u64 + Copy {
    move |entry| weak.hash_one(entry.key())
}

impl<T: Make> Pair<T> {
    fn step(&mut self, op: Op) {
        match op {
            Op::Insert(first, apart, count) => {
                (0..count).for_each(|i| self.insert((first + i * apart) % KEYS, i));
            }
            Op::Remove(first, apart, count) => {
                (0..count).for_each(|i| self.remove((first + i * apart) % KEYS));
            }
            Op::Batch(keys) => self.batch(&keys),
            Op::Disjoint(keys, value) => self.disjoint(keys, value),
            Op::IterHash(key, value) => self.iter_hash(key, value),
            Op::Find(..)
            | Op::FindEntry(..)
            | Op::EntryInsert(..)
            | Op::EntryOr(..)
            | Op::EntryRemove(_) => self.one(op),
            op => self.whole(op),
        }
        self.compare();
    }

    fn insert(&mut self, key: u32, value: u32) {
        let (hash, eq) = (self.weak.hash_one(key), |entry: &T| entry.key() == key);
        let entry = T::make(key, value);
        let old = self.model.insert(key, entry.clone());
        if let Some(own) = self.ours.find_mut(hash, eq) {
            assert_eq!(Some(core::mem::replace(own, entry)), old);
            return;
        }
        assert_eq!(old, None);
        let inserted = if value % 2 == 0 {
            self.ours.insert_unique(hash, entry.clone(), hasher(self.weak))
        } else {
            self.ours.try_insert_unique(hash, entry.clone(), hasher(self.weak)).unwrap()
        };
        assert_eq!(inserted.get(), &entry);
    }

    fn remove(&mut self, key: u32) {
        let eq = |entry: &T| entry.key() == key;
        let removed = self.ours.remove(self.weak.hash_one(key), eq, hasher(self.weak));
        assert_eq!(removed, self.model.remove(&key));
    }

    /// Applies an operation on one key.
    fn one(&mut self, op: Op) {
        let Self { ours, model, weak } = self;
        let (hash, rehash) = (|key: u32| weak.hash_one(key), hasher(*weak));
        match op {
            Op::Find(key, value) => {
                let eq = |entry: &T| entry.key() == key;
                assert_eq!(ours.find(hash(key), eq), model.get(&key));
                for found in ours.find_mut(hash(key), eq).into_iter().chain(model.get_mut(&key)) {
                    *found = T::make(key, value);
                }
            }
            Op::FindEntry(key, value) => {
                match ours.find_entry(hash(key), |entry| entry.key() == key) {
                    Ok(mut entry) => {
                        let old = entry.replace(T::make(key, value));
                        assert_eq!(Some(old), model.insert(key, T::make(key, value)));
                    }
                    Err(absent) => assert_eq!(
                        (absent.into_table().len(), model.get(&key)),
                        (model.len(), None)
                    ),
                }
            }
            Op::EntryInsert(key, value) => {
                let entry = ours.entry(hash(key), |entry| entry.key() == key, rehash);
                assert_eq!(entry.insert(T::make(key, value)).get(), &T::make(key, value));
                model.insert(key, T::make(key, value));
            }
            Op::EntryOr(key, value) => {
                let eq = |entry: &T| entry.key() == key;
                let entry = ours.try_entry(hash(key), eq, rehash).unwrap();
                let entry = entry.and_modify(|own| *own = T::make(key, 7));
                let theirs = model.entry(key).and_modify(|own| *own = T::make(key, 7));
                let theirs = theirs.or_insert(T::make(key, value));
                assert_eq!(entry.or_insert(T::make(key, value)).into_mut(), theirs);
            }
            Op::EntryRemove(key) => {
                match ours.entry(hash(key), |entry| entry.key() == key, rehash) {
                    Entry::Occupied(entry) => {
                        assert_eq!(Some(entry.remove(rehash)), model.remove(&key));
                    }
                    Entry::Vacant(_) => assert_eq!(model.get(&key), None),
                }
            }
            op => unreachable!("{op:?} is handled by the caller"),
        }
    }

    fn batch(&mut self, keys: &[u32]) {
        let hashes: Vec<u64> = keys.iter().map(|key| self.weak.hash_one(key)).collect();
        let mut found = vec![];
        self.ours.find_batch(
            &hashes,
            |i, entry| entry.key() == keys[i],
            |i, entry| {
                assert_eq!(i, found.len(), "in order, and each once");
                found.push(entry);
            },
        );
        assert!(found.into_iter().eq(keys.iter().map(|key| self.model.get(key))));
    }

    fn disjoint(&mut self, keys: [u32; 3], value: u32) {
        if keys[0] == keys[1] || keys[1] == keys[2] || keys[0] == keys[2] {
            return;
        }
        let hashes = keys.map(|key| self.weak.hash_one(key));
        let found = self.ours.get_disjoint_mut(hashes, |i, entry| entry.key() == keys[i]);
        for (key, found) in keys.into_iter().zip(found) {
            let theirs = self.model.get_mut(&key);
            assert_eq!(found, theirs);
            found.into_iter().chain(theirs).for_each(|own| *own = T::make(key, value));
        }
    }

    /// All entries with a hash are visited, and none twice.
    fn iter_hash(&mut self, key: u32, value: u32) {
        let Self { ours, model, weak } = self;
        let hash = weak.hash_one(key);
        let has_hash = |key: &u32| weak.hash_one(key) == hash;
        let mut keys: Vec<u32> = ours.iter_hash(hash).map(T::key).collect();
        keys.sort_unstable();
        let visited = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), visited);
        assert!(
            model.keys().filter(|key| has_hash(key)).all(|key| keys.binary_search(key).is_ok())
        );
        ours.iter_hash_mut(hash).for_each(|own| *own = T::make(own.key(), value));
        keys.into_iter().for_each(|key| drop(model.insert(key, T::make(key, value))));
    }

    /// Applies an operation on the whole table.
    fn whole(&mut self, op: Op) {
        let Self { ours, model, weak } = self;
        let rehash = hasher(*weak);
        match op {
            Op::SetAll(value) => {
                ours.iter_mut().for_each(|own| *own = T::make(own.key(), value));
                model.iter_mut().for_each(|(&key, own)| *own = T::make(key, value));
            }
            Op::Retain(picked) => {
                let keeps = |key: u32| mix(key.into()) % 4 != picked;
                let mut calls = 0;
                ours.retain(
                    |own| {
                        calls += 1;
                        keeps(own.key())
                    },
                    rehash,
                );
                assert_eq!(calls, model.len());
                model.retain(|&key, _| keeps(key));
            }
            Op::Extract(picked, most) => {
                let picks = |key: u32| mix(key.into()) % 4 == picked;
                let extracted: Vec<T> =
                    ours.extract_if(|own| picks(own.key()), rehash).take(most).collect();
                let expected = model.keys().filter(|key| picks(**key)).count().min(most);
                assert_eq!(extracted.len(), expected);
                for entry in extracted {
                    assert!(picks(entry.key()));
                    assert_eq!(model.remove(&entry.key()), Some(entry));
                }
            }
            Op::Drain(count) => {
                let mut drain = ours.drain();
                assert_eq!(drain.len(), model.len());
                for entry in drain.by_ref().take(count) {
                    assert_eq!(model.remove(&entry.key()), Some(entry));
                }
                assert_eq!(drain.len(), model.len());
                model.clear();
            }
            Op::Clone => *ours = ours.clone(),
            Op::Reserve(more) => {
                ours.reserve(more, rehash);
                assert!(ours.capacity() >= ours.len() + more);
                assert_eq!(ours.try_reserve(more / 2, rehash), Ok(()));
            }
            Op::ShrinkTo(capacity) => {
                let before = (ours.allocation_size(), ours.capacity());
                ours.shrink_to(capacity, rehash);
                assert!(ours.allocation_size() <= before.0);
                assert!(ours.capacity() >= ours.len().max(capacity.min(before.1)));
                if capacity == 0 && ours.is_empty() {
                    assert_eq!(ours.allocation_size(), 0);
                }
            }
            _ => {
                ours.clear();
                model.clear();
                assert_eq!((ours.allocation_size(), ours.is_flooded()), (0, false));
            }
        }
    }

    fn compare(&self) {
        let Self { ours, model, weak } = self;
        ours.validate(hasher(*weak)).unwrap();
        assert_eq!((ours.len(), ours.iter().len()), (model.len(), model.len()));
        assert!(ours.iter().all(|entry| model.get(&entry.key()) == Some(entry)));
        for (key, entry) in model {
            let found = ours.find(weak.hash_one(key), |own| own.key() == *key);
            assert_eq!(found, Some(entry));
        }
    }
}

fn run<T: Make>(ops: Vec<Op>, weak: Weak) {
    let mut pair: Pair<T> = Pair { ours: TrashTable::new(), model: HashMap::new(), weak };
    ops.into_iter().for_each(|op| pair.step(op));
    assert_eq!(pair.ours.shape(hasher(weak)).entries, pair.model.len());
    assert!(pair.ours.into_iter().all(|entry| pair.model.remove(&entry.key()) == Some(entry)));
    assert!(pair.model.is_empty());
}

fn weak() -> impl Strategy<Value = Weak> {
    proptest::sample::select(&Weak::ALL)
}

const STEPS: usize = if cfg!(miri) { 6 } else { 120 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(40, 1)))]

    #[test]
    fn numbers(ops in vec(op(), STEPS), weak in weak()) {
        run::<(u32, u32)>(ops, weak);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow; covered by numbers")]
    fn strings(ops in vec(op(), STEPS), weak in weak()) {
        run::<(u32, String)>(ops, weak);
    }

    #[test]
    fn boxed_for_their_size(ops in vec(op(), STEPS), weak in weak()) {
        run::<[u32; 40]>(ops, weak);
    }

    /// With hashes that change at every call entries may get lost to searches, and nothing worse:
    /// each is returned or dropped once.
    #[test]
    fn hashes_that_change(steps in vec((0..4_u8, any::<u64>()), 0..RUN as usize * 4)) {
        let alive = Rc::new(());
        let calls = Cell::new(0);
        let random = |_: &Rc<()>| {
            calls.set(calls.get() + 1);
            mix(calls.get())
        };
        let mut table = TrashTable::new();
        let mut removed = vec![];
        for (step, hash) in steps {
            match step {
                0 | 1 => drop(table.insert_unique(hash, Rc::clone(&alive), random)),
                2 => removed.extend(table.remove(hash, |_| hash % 2 == 0, random)),
                _ if hash % 16 == 0 => {
                    removed.extend(table.extract_if(|_| hash % 64 == 0, random).take(9));
                }
                _ => drop(table.find_mut(hash, |_| true).map(|entry| Rc::strong_count(entry))),
            }
            prop_assert_eq!(Rc::strong_count(&alive), 1 + table.len() + removed.len());
        }
        table.retain(|_| false, random);
        table.shrink_to_fit(random);
        prop_assert_eq!(Rc::strong_count(&alive), 1 + table.len() + removed.len());
        prop_assert_eq!(table.iter().count(), table.len());
        drop(table);
        prop_assert_eq!(Rc::strong_count(&alive), 1 + removed.len());
    }
}

/// A hasher or a comparison that panics leaves a table as it was.
#[test]
fn closures_that_panic() {
    let fuse = Cell::new(0);
    let burn = || {
        fuse.set(fuse.get() - 1);
        assert!(fuse.get() > 0, "the fuse has burnt");
    };
    let hash = |number: &u32| mix((*number).into());
    let panicking = |number: &u32| {
        burn();
        hash(number)
    };
    let eq = |wanted: u32| {
        move |number: &u32| {
            burn();
            *number == wanted
        }
    };
    let mut table = TrashTable::new();
    let (count, mut panics) = (if cfg!(miri) { 60 } else { 3000 }, 0);
    for number in 0..count {
        fuse.set(1 + number % 300);
        let insertion = || {
            table.entry(hash(&number), eq(number), panicking).or_insert(number);
        };
        if catch_unwind(AssertUnwindSafe(insertion)).is_err() {
            panics += 1;
            assert_eq!(table.find(hash(&number), |own| *own == number), None);
            table.insert_unique(hash(&number), number, hash);
        }
        assert_eq!(table.len() as u32, number + 1);
    }
    table.validate(hash).unwrap();
    for number in 0..count {
        fuse.set(1 + number % 100);
        let removal = || table.remove(hash(&number), eq(number), panicking);
        match catch_unwind(AssertUnwindSafe(removal)) {
            Ok(removed) => assert_eq!(removed, Some(number)),
            Err(_) => {
                panics += 1;
                // It may be that the table has panicked as it got smaller, after the removal.
                table.remove(hash(&number), |own| *own == number, hash);
            }
        }
        assert_eq!(table.len() as u32, count - 1 - number);
        if number % 16 == 0 {
            table.validate(hash).unwrap();
        }
    }
    assert!(panics > 10 || cfg!(miri), "{panics}");
}

/// A removal by a hash that names the group in which an entry is, and not its home, leaves a mark
/// without an entry: nothing may read the slot.
#[test]
fn a_removal_by_another_hash_leaves_nothing_behind() {
    const GROUP: u64 = 1 << 32;
    let hash = |name: &str| (name.bytes().filter(|byte| *byte == b'x').count() as u64) << 57;
    let removed: RefCell<HashSet<String>> = RefCell::new(HashSet::new());
    // It reads the strings, so that Miri and AddressSanitizer detect the use of a freed one.
    let hasher = |name: &String| {
        assert!(!removed.borrow().contains(name), "hashed after its removal");
        hash(name)
    };
    let mut table = TrashTable::with_capacity(60);
    let entries: Vec<_> = (1..=17).map(|len| "x".repeat(len)).collect();
    for entry in &entries {
        table.insert_unique(hash(entry), entry.clone(), hasher);
    }
    // The last one is in the group after its home.
    let last = entries.last().expect("17 entries");
    let taken = table.remove(hash(last) | GROUP, |name| name == last, hasher);
    assert_eq!(taken.as_ref(), Some(last));
    removed.borrow_mut().extend(taken);
    for entry in &entries[..16] {
        let taken = table.remove(hash(entry), |name| name == entry, hasher);
        assert_eq!(taken.as_ref(), Some(entry));
        removed.borrow_mut().extend(taken);
    }
    assert!(table.is_empty());
}

/// A predicate may empty the entries that it removes.
#[test]
fn entries_may_change_before_their_removal() {
    let hasher = |name: &String| (name.len() as u64) << 57 | (name.len() as u64 % 3) << 32;
    let mut table = TrashTable::with_capacity(60);
    for len in 1..=50 {
        table.insert_unique(hasher(&"x".repeat(len)), "x".repeat(len), hasher);
    }
    let mut emptied = vec![];
    table.retain(
        |name| {
            let is_kept = name.len() % 2 == 0;
            if !is_kept {
                emptied.push(core::mem::take(name));
            }
            is_kept
        },
        hasher,
    );
    assert_eq!((emptied.len(), table.len()), (25, 25));
    table.validate(hasher).expect("invariants hold");
    for len in (2..=50).step_by(2) {
        assert!(table.find(hasher(&"x".repeat(len)), |name| name.len() == len).is_some());
    }
}
