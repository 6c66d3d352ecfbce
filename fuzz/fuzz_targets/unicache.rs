//! `Unicache` compared with a reference model: a sorted vector of entries.
#![no_main]

use arbitrary::Arbitrary;
use flowtable::eviction::PassiveGc;
use flowtable::trie::unicache::Unicache;
use flowtable_fuzz::{Key, Op, Script, with_keys};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    threshold: u8,
    goal: u8,
    /// One in this many entries is in use; 0 for none.
    in_use: u8,
    script: Script,
}

fuzz_target!(|input: Input| with_keys!(input.script.keys, run(input)));

/// Few different scores, so that there are ties; `None` for an entry in use.
fn score(value: u64, in_use: u64) -> Option<u64> {
    (in_use == 0 || !value.is_multiple_of(in_use)).then_some(value / 2 % 8)
}

fn run<K: Key>(Input { threshold, goal, in_use, script }: Input) {
    let gc = PassiveGc::new(1 + usize::from(threshold % 96), 1 + usize::from(goal % 16));
    let (gc, in_use) = (gc.expect("both are above 0"), u64::from(in_use));
    let mut cache = Unicache::with_tuning(gc, script.tuning.tuning());
    let mut model = Model { entries: vec![], gc, in_use, rover: None };
    let mut now = 0;
    for op in script.ops {
        match op {
            Op::Insert(seeds) => {
                for key in seeds.iter().map(K::grow) {
                    now += 1;
                    let mut evicted = vec![];
                    let old = cache.insert(
                        key,
                        now,
                        |_, value| score(*value, in_use),
                        |key, value| evicted.push((key, value)),
                    );
                    assert_eq!((old, evicted), model.insert(key, now));
                    if in_use == 0 {
                        assert!(cache.len() <= gc.threshold());
                    }
                }
            }
            Op::Remove(seeds) => {
                for key in seeds.iter().map(K::grow) {
                    assert_eq!(cache.remove(&key), model.remove(&key));
                }
            }
            Op::Get(seed) => {
                assert_eq!(cache.get(&K::grow(seed)), model.get_mut(&K::grow(seed)).as_deref())
            }
            Op::GetMut(seed) => {
                let (ours, theirs) = (cache.get_mut(&K::grow(seed)), model.get_mut(&K::grow(seed)));
                assert_eq!(ours, theirs);
                ours.into_iter().chain(theirs).for_each(|value| *value += 1);
            }
            Op::Retain { divisor, keep_multiples } => {
                let keep = |value: u64| value.is_multiple_of(divisor.into()) == keep_multiples;
                cache.retain(|_, value| keep(*value));
                model.entries.retain(|(_, value)| keep(*value));
            }
            Op::Clear => {
                cache.clear();
                model = Model { entries: vec![], rover: None, ..model };
            }
            _ => assert!(cache.iter().eq(model.entries.iter().map(|(key, value)| (key, value)))),
        }
        cache.validate().expect("invariant");
        assert_eq!(cache.len(), model.entries.len());
    }
    assert!(cache.into_iter().eq(model.entries));
}

struct Model<K> {
    /// In the order of the keys.
    entries: Vec<(K, u64)>,
    gc: PassiveGc,
    in_use: u64,
    rover: Option<K>,
}

impl<K: Key> Model<K> {
    fn place(&self, key: &K) -> Result<usize, usize> {
        self.entries.binary_search_by_key(key, |(key, _)| *key)
    }

    fn get_mut(&mut self, key: &K) -> Option<&mut u64> {
        self.place(key).ok().map(|at| &mut self.entries[at].1)
    }

    fn remove(&mut self, key: &K) -> Option<u64> {
        self.place(key).ok().map(|at| self.entries.remove(at).1)
    }

    fn insert(&mut self, key: K, value: u64) -> (Option<u64>, Vec<(K, u64)>) {
        if let Some(old) = self.get_mut(&key) {
            return (Some(std::mem::replace(old, value)), vec![]);
        }
        let full = self.entries.len() >= self.gc.threshold();
        let evicted = if full { self.collect() } else { vec![] };
        let at = self.place(&key).expect_err("the key is new");
        self.entries.insert(at, (key, value));
        (None, evicted)
    }

    /// The lowest of each ring of four after the rover, the later one of a tie.
    fn collect(&mut self) -> Vec<(K, u64)> {
        let behind = match self.rover.map(|rover| self.place(&rover)) {
            None => 0,
            Some(Ok(at)) => at + 1,
            Some(Err(at)) => at,
        };
        let mut around = self.entries.clone();
        let count = around.len();
        around.rotate_left(behind % count.max(1));
        let rings = around.chunks(4).take(self.gc.goal());
        self.rover = rings.clone().flatten().last().map(|(key, _)| *key).or(self.rover);
        let victims: Vec<K> = rings.filter_map(|ring| lowest(ring, self.in_use)).collect();
        victims.into_iter().filter_map(|key| Some((key, self.remove(&key)?))).collect()
    }
}

fn lowest<K: Key>(ring: &[(K, u64)], in_use: u64) -> Option<K> {
    let scored = ring.iter().rev().filter_map(|(key, value)| Some((score(*value, in_use)?, *key)));
    scored.min_by_key(|&(score, _)| score).map(|(_, key)| key)
}
