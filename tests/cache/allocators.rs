//! Caches in memory of the caller, with requests that fail.

use flowtable::cache::{CacheError, Replacement};
use flowtable::eviction::SecondChance;
use flowtable::{BoundedCache, SourceHashCache};
use model::caches::bounded::CheckedBounded;
use model::caches::sets::CheckedSets;
use model::caches::{Lockstep, Name, Step, run};
use model::hashers::{Weak, mix};
use model::limited::Limited;

/// A cache whose requests for memory fail, except where a copy is made.
#[derive(Clone)]
struct Starved<'m, L> {
    inner: L,
    memory: &'m Limited,
}

impl<L: Lockstep> Lockstep for Starved<'_, L> {
    fn step(&mut self, step: &Step, now: u32) {
        self.memory.fail_each(usize::from(!matches!(step, Step::Replace(_))));
        self.inner.step(step, now);
        self.memory.fail_each(0);
    }

    fn check(&self) {
        self.inner.check();
    }
}

fn script(seed: u64) -> Vec<Step> {
    let step = |number: u64| {
        let random = mix(seed << 32 | number);
        let name = |more| {
            let random = mix(random + more) as u32;
            Name { index: random % 24, key: random % 24 }
        };
        let names = || (0..34).map(name).collect();
        match random % 32 {
            0..8 => Step::Get(name(0)),
            8..14 => Step::GetOrInsert(name(0)),
            14..24 => Step::Insert(name(0)),
            24..26 => Step::Remove(name(0)),
            26 => Step::GetBatch(names()),
            27 if random >> 32 & 1 == 0 => Step::SetCapacity(1 + (random >> 33) as usize % 60),
            27 => Step::Retain(2 + (random >> 33) as u32 % 4),
            28 => Step::Clear,
            29 => Step::Replace(Replacement::Oldest),
            30 => Step::Fork { with_clone: random >> 32 & 1 == 0 },
            _ => Step::Back,
        }
    };
    (0..if cfg!(miri) { 30 } else { 1000 }).map(step).collect()
}

#[test]
fn caches_whose_requests_fail_are_caches() {
    for period in 0..if cfg!(miri) { 1 } else { 7 } {
        let (mut bounded, mut sets) = (0, 0);
        let most = if cfg!(miri) { 20 } else { 100 };
        let cases = [(1, Weak::Mixed), (30, Weak::Mixed), (most, Weak::Constant)];
        for (capacity, hasher) in cases.into_iter().skip(if cfg!(miri) { 2 } else { 0 }) {
            let memory = Limited::failing_each(period);
            let policy = SecondChance::new();
            let cache = CheckedBounded::new_in(capacity, policy, hasher, &memory);
            match cache {
                Ok(inner) => {
                    memory.fail_each(0);
                    let inner: CheckedBounded<u32, Box<u32>, _, _, _> = inner;
                    run(Starved { inner, memory: &memory }, &script(capacity as u64));
                    bounded += 1;
                }
                Err(error) => assert_eq!(error, CacheError::NoMemory),
            }
            memory.fail_each(period);
            match CheckedSets::<Box<u32>, u32, 3, _>::new_in(capacity, Replacement::Oldest, &memory)
            {
                Ok(inner) => {
                    memory.fail_each(0);
                    run(Starved { inner, memory: &memory }, &script(capacity as u64));
                    sets += 1;
                }
                Err(error) => assert_eq!(error, CacheError::NoMemory),
            }
            assert_eq!(memory.bytes(), 0);
        }
        // Three requests, and one.
        let all = if cfg!(miri) { 1 } else { 3 };
        assert_eq!(bounded, if (1..=3).contains(&period) { 0 } else { all });
        assert!(sets == if period == 1 { 0 } else { all } || period > 2);
    }
}

#[test]
fn without_memory_for_its_policy_there_is_no_cache() {
    let memory = Limited::failing_each(4);
    let policy = SecondChance::new_in(&memory);
    let cache = BoundedCache::<u64, u64, _, _, _>::with_parts_in(10, policy, Weak::Mixed, &memory);
    assert_eq!((cache.err(), memory.bytes()), (Some(CacheError::NoMemory), 0));
}

#[test]
fn caches_report_the_memory_that_they_have() {
    let (memory, capacity) = (Limited::default(), if cfg!(miri) { 10 } else { 5000 });
    let policy = SecondChance::new_in(&memory);
    let mut cache = BoundedCache::with_parts_in(capacity, policy, Weak::Mixed, &memory).unwrap();
    let before = cache.allocation_size();
    assert_eq!(before, memory.bytes());
    let mut clone = cache.clone();
    assert_eq!(memory.bytes(), 2 * before);
    memory.fail_each(1);
    for key in 0..4 * capacity as u64 {
        _ = cache.insert(key, [key; 3]);
        _ = clone.insert(key, [key; 3]);
    }
    drop(clone);
    assert_eq!(memory.bytes(), before, "nothing was allocated by insertions");
    assert_eq!((cache.validate(), cache.allocator().failures()), (Ok(()), 0));
    memory.fail_each(0);
    cache.set_capacity(2 * capacity).unwrap();
    let before = cache.allocation_size();
    assert_eq!(before, memory.bytes());
    memory.fail_each(1);
    cache.extend((0..4 * capacity as u64).map(|key| (key, [key; 3])));
    assert_eq!(cache.set_capacity(3 * capacity), Err(CacheError::NoMemory));
    assert_eq!((cache.len(), cache.capacity()), (2 * capacity, 2 * capacity));
    cache.set_capacity(1).unwrap();
    assert_eq!((cache.len(), memory.bytes(), cache.validate()), (1, before, Ok(())));
    // All memory is there still.
    cache.set_capacity(2 * capacity).unwrap();
    cache.extend((0..4 * capacity as u64).map(|key| (key, [key; 3])));
    assert_eq!((cache.len(), memory.bytes()), (2 * capacity, before));
    memory.fail_each(0);
    let sets = SourceHashCache::<u64, u64, 4, _>::new_in(capacity, &memory).unwrap();
    assert_eq!(sets.allocation_size(), memory.bytes() - before);
    assert_eq!(sets.clone().allocation_size(), sets.allocation_size());
}
