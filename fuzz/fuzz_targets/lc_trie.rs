//! `LcTrieMap` compared with `BTreeMap`, every invariant of the trie checked after every step.
#![no_main]

use std::collections::{BTreeMap, btree_map};
use std::ops::{Bound, RangeBounds};

use flowtable::LcTrieMap;
use flowtable::trie::map::Entry;
use flowtable_fuzz::{Edge, EntryOp, Key, Op, Script, Seeds, assert_same, with_keys};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: Script| with_keys!(script.keys, run(script)));

fn run<K: Key>(script: Script) {
    let tuning = script.tuning.tuning();
    let mut pair: Pair<K> = Pair { map: LcTrieMap::with_tuning(tuning), model: BTreeMap::new() };
    for (op, now) in script.ops.into_iter().zip(1..) {
        pair.step(op, now);
        pair.map.validate().expect("invariant");
        assert_eq!(pair.map.len(), pair.model.len());
        assert_eq!(pair.map.tuning(), tuning);
    }
    let shape = pair.map.shape();
    assert_eq!(shape.leaves, pair.model.len());
    assert_eq!(shape.leaves_by_depth.iter().sum::<usize>(), shape.leaves);
    assert_eq!(shape.bytes, pair.map.allocation_size());
    assert!(pair.map.iter().eq(&pair.model));
    assert!(pair.map.into_iter().eq(pair.model));
}

struct Pair<K> {
    map: LcTrieMap<K, u64>,
    model: BTreeMap<K, u64>,
}

impl<K: Key> Pair<K> {
    fn step(&mut self, op: Op, now: u64) {
        match op {
            Op::Insert(seeds) => self.insert(seeds, now),
            Op::Remove(seeds) => {
                for key in seeds.iter().map(K::grow) {
                    assert_eq!(self.map.remove(&key), self.model.remove(&key));
                }
            }
            Op::Get(seed) => self.get(K::grow(seed)),
            Op::GetMut(seed) => {
                let key = K::grow(seed);
                let (ours, theirs) = (self.map.get_mut(&key), self.model.get_mut(&key));
                assert_eq!(ours, theirs);
                ours.into_iter().chain(theirs).for_each(|value| *value ^= now);
            }
            Op::Entry(seed, op) => self.entry(K::grow(seed), op, now),
            Op::Pop { last } => self.pop(last),
            Op::Range(from, to, ends) => self.range(from, to, ends),
            Op::Retain { divisor, keep_multiples } => self.retain(divisor.into(), keep_multiples),
            Op::Iterate(ends) => self.iterate(ends),
            Op::IterMut(ends) => self.iter_mut(ends, now),
            Op::Drain(count, ends) => self.drain(count.into(), ends),
            Op::Clear => {
                self.map.clear();
                self.model.clear();
                assert_eq!(self.map.allocation_size(), 0);
            }
            Op::Clone => {
                let clone = self.map.clone();
                clone.validate().expect("invariant of the clone");
                assert_eq!(clone, self.map);
                self.map = clone;
            }
            Op::ShrinkToFit => self.shrink_to_fit(),
        }
    }

    fn insert(&mut self, seeds: Seeds, now: u64) {
        for (i, key) in seeds.iter().map(K::grow).enumerate() {
            let value = now << 8 | i as u64;
            assert_eq!(self.map.insert(key, value), self.model.insert(key, value));
        }
    }

    fn get(&self, key: K) {
        let Self { map, model } = self;
        assert_eq!(map.get_key_value(&key), model.get_key_value(&key));
        assert_eq!(map.get(&key), model.get(&key));
        assert_eq!(map.contains_key(&key), model.contains_key(&key));
    }

    fn pop(&mut self, last: bool) {
        let Self { map, model } = self;
        let popped = if last { map.pop_last() } else { map.pop_first() };
        assert_eq!(popped, if last { model.pop_last() } else { model.pop_first() });
    }

    fn retain(&mut self, divisor: u64, keep_multiples: bool) {
        let keep = |value: u64| value.is_multiple_of(divisor) == keep_multiples;
        let mut keys = vec![];
        self.map.retain(|key, value| {
            keys.push(*key);
            keep(*value)
        });
        assert!(keys.iter().eq(self.model.keys()));
        self.model.retain(|_, value| keep(*value));
    }

    fn iterate(&self, ends: u64) {
        let Self { map, model } = self;
        let mut iter = map.iter();
        for (i, entry) in model.iter().enumerate() {
            assert_eq!(iter.len(), model.len() - i);
            assert_eq!(iter.next(), Some(entry));
        }
        assert_same(iter, [].into_iter(), ends);
        assert_same(map.iter(), model.iter(), ends);
        assert_same(map.keys(), model.keys(), ends);
        assert_same(map.values(), model.values(), ends);
    }

    fn iter_mut(&mut self, ends: u64, now: u64) {
        let Self { map, model } = self;
        assert_same(map.iter_mut(), model.iter_mut(), ends);
        map.values_mut().for_each(|value| *value += now);
        model.values_mut().for_each(|value| *value += now);
    }

    fn drain(&mut self, count: usize, ends: u64) {
        let (mut drained, theirs) = (self.map.drain(), std::mem::take(&mut self.model));
        assert_eq!(drained.len(), theirs.len());
        let mut theirs = theirs.into_iter();
        for i in 0..count {
            match ends >> (i % 64) & 1 {
                0 => assert_eq!(drained.next(), theirs.next()),
                _ => assert_eq!(drained.next_back(), theirs.next_back()),
            }
            assert_eq!(drained.len(), theirs.len());
        }
    }

    fn shrink_to_fit(&mut self) {
        let map = &mut self.map;
        let (before, bytes) = (map.shape(), map.allocation_size());
        map.shrink_to_fit();
        let after = map.shape();
        assert_eq!(after.leaves_by_depth, before.leaves_by_depth);
        assert_eq!(after.nodes_by_bits, before.nodes_by_bits);
        assert!(map.allocation_size() <= bytes);
    }

    fn entry(&mut self, key: K, op: EntryOp, now: u64) {
        let (ours, theirs) = (self.map.entry(key), self.model.entry(key));
        assert_eq!(ours.key(), theirs.key());
        match (op, ours, theirs) {
            (EntryOp::Key, ours, _) => assert_eq!(ours.key(), &key),
            (EntryOp::OrInsert, ours, theirs) => {
                assert_eq!(ours.or_insert(now), theirs.or_insert(now));
            }
            (EntryOp::AndModify, ours, theirs) => {
                let ours = ours.and_modify(|value| *value += 1).or_default();
                assert_eq!(ours, theirs.and_modify(|value| *value += 1).or_default());
            }
            (op, Entry::Occupied(mut ours), btree_map::Entry::Occupied(mut theirs)) => match op {
                EntryOp::Insert => assert_eq!(ours.insert(now), theirs.insert(now)),
                EntryOp::Remove => assert_eq!(ours.remove_entry(), theirs.remove_entry()),
                _ => {
                    assert_eq!(ours.get(), theirs.get());
                    *ours.get_mut() ^= now;
                    *theirs.into_mut() ^= now;
                }
            },
            (op, Entry::Vacant(ours), btree_map::Entry::Vacant(theirs)) => match op {
                EntryOp::Insert => assert_eq!(ours.insert(now), theirs.insert(now)),
                _ => assert_eq!(ours.into_key(), theirs.into_key()),
            },
            (_, ours, theirs) => panic!("{ours:?} is not {theirs:?}"),
        }
    }

    fn range(&mut self, from: Edge, to: Edge, ends: u64) {
        let range = (from.bound::<K>(), to.bound::<K>());
        let inside = self.model.iter().filter(|(key, _)| range.contains(*key));
        assert_same(self.map.range(range), inside, ends);
        let inside = self.model.iter_mut().filter(|(key, _)| range.contains(*key));
        assert_same(self.map.range_mut(range), inside, ends);
        if let Bound::Included(key) = range.0 {
            let (mut rest, mut expected) = (self.map.split_off(&key), self.model.split_off(&key));
            assert!(rest.iter().eq(&expected));
            rest.validate().expect("invariant of the rest");
            self.map.append(&mut rest);
            self.model.append(&mut expected);
        }
    }
}
