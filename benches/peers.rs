//! Us against the best, on the same keys, in one run: `cargo bench --bench peers [-- KEYS…]`.
//!
//! These machines are noisy, so the contestants take turns, a round each, and the medians of their
//! rounds are compared. A round of look-ups walks a random order of the keys; nothing is batched.
//! The hash is part of the time for everybody who needs one.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Instant;

use flowtable::{DefaultHashBuilder, FiveTuple, Headed, LcTrieMap};
use hashbrown::{DefaultHashBuilder as Foldhash, HashMap};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// 13 bytes of information in 14: the keys that the crate is for.
type Key = FiveTuple<Ipv4Addr>;

/// What a contestant is asked to do.
trait Table {
    fn insert(&mut self, key: Key, value: u64);
    fn get(&self, key: Key) -> Option<u64>;
    fn remove(&mut self, key: Key);
}

impl<S: BuildHasher> Table for HashMap<Key, u64, S> {
    fn insert(&mut self, key: Key, value: u64) {
        HashMap::insert(self, key, value);
    }
    fn get(&self, key: Key) -> Option<u64> {
        HashMap::get(self, &key).copied()
    }
    fn remove(&mut self, key: Key) {
        HashMap::remove(self, &key);
    }
}

impl Table for BTreeMap<Key, u64> {
    fn insert(&mut self, key: Key, value: u64) {
        BTreeMap::insert(self, key, value);
    }
    fn get(&self, key: Key) -> Option<u64> {
        BTreeMap::get(self, &key).copied()
    }
    fn remove(&mut self, key: Key) {
        BTreeMap::remove(self, &key);
    }
}

/// The paper's TRASH: the plain trie over headed keys.
struct Trash {
    trie: LcTrieMap<Headed<Key>, u64>,
    hasher: DefaultHashBuilder,
}

impl Table for Trash {
    fn insert(&mut self, key: Key, value: u64) {
        self.trie.insert(Headed::new(key, &self.hasher), value);
    }
    fn get(&self, key: Key) -> Option<u64> {
        self.trie.get(&Headed::new(key, &self.hasher)).copied()
    }
    fn remove(&mut self, key: Key) {
        self.trie.remove(&Headed::new(key, &self.hasher));
    }
}

fn contestants() -> Vec<(&'static str, Box<dyn Table>)> {
    vec![
        ("hashbrown + foldhash", Box::new(HashMap::with_hasher(Foldhash::default()))),
        ("hashbrown + ahash", Box::new(HashMap::with_hasher(DefaultHashBuilder::new()))),
        ("BTreeMap", Box::<BTreeMap<Key, u64>>::default()),
        (
            "LcTrieMap, headed keys",
            Box::new(Trash { trie: LcTrieMap::new(), hasher: DefaultHashBuilder::new() }),
        ),
    ]
}

fn random_key(rng: &mut StdRng) -> Key {
    FiveTuple {
        src: rng.random::<u32>().into(),
        dst: rng.random::<u32>().into(),
        sport: rng.random(),
        dport: rng.random(),
        protocol: 6,
    }
}

const ROUNDS: usize = 15;

/// Nanoseconds for each of `keys`.
fn timed(keys: &[Key], mut each: impl FnMut(Key)) -> f64 {
    let start = Instant::now();
    keys.iter().for_each(|&key| each(key));
    start.elapsed().as_nanos() as f64 / keys.len() as f64
}

/// Nanoseconds for each of `keys`, where the value found says which key is next: always the one
/// behind, but the machine cannot know before it has the value. Nothing overlaps.
fn timed_dependent(keys: &[Key], table: &dyn Table) -> f64 {
    let start = Instant::now();
    let mut at = 0;
    while at < keys.len() {
        at += 1 + table.get(keys[at]).expect("all keys are there") as usize;
    }
    start.elapsed().as_nanos() as f64 / keys.len() as f64
}

fn median(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

const COLUMNS: [&str; 4] = ["hit", "dependent hit", "miss", "remove + insert"];

/// One table of [`COLUMNS`], each in nanoseconds and as a multiple of the first contestant's.
fn measure(keys: usize) {
    let mut rng = StdRng::seed_from_u64(1);
    let mut present: Vec<Key> = (0..keys).map(|_| random_key(&mut rng)).collect();
    let absent: Vec<Key> = (0..keys.min(1 << 20)).map(|_| random_key(&mut rng)).collect();
    let mut tables = contestants();
    for (_, table) in &mut tables {
        timed(&present, |key| table.insert(key, 0));
    }
    let mut rounds = vec![COLUMNS.map(|_| Vec::new()); tables.len()];
    for _ in 0..ROUNDS {
        present.shuffle(&mut rng);
        let some = &present[..keys.min(1 << 20)];
        for ((_, table), [hit, dependent, miss, churn]) in tables.iter_mut().zip(&mut rounds) {
            hit.push(timed(some, |key| assert!(black_box(table.get(key)).is_some())));
            dependent.push(timed_dependent(&some[..some.len().min(1 << 18)], table.as_ref()));
            miss.push(timed(&absent, |key| assert!(black_box(table.get(key)).is_none())));
            churn.push(timed(&some[..some.len() / 4], |key| {
                table.remove(key);
                table.insert(key, 0);
            }));
        }
    }
    let medians: Vec<[f64; 4]> = rounds.into_iter().map(|columns| columns.map(median)).collect();
    print!("\n{:26}", format!("{keys} keys, ns"));
    COLUMNS.iter().for_each(|column| print!("{column:>17}"));
    println!();
    for ((name, _), columns) in tables.iter().zip(&medians) {
        print!("{name:26}");
        for (ns, first) in columns.iter().zip(&medians[0]) {
            print!("{ns:10.1} ({:4.2})", ns / first);
        }
        println!();
    }
}

fn main() {
    let asked: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let sizes = if asked.is_empty() { &[1_000, 100_000, 1_000_000][..] } else { &asked };
    println!("14-byte keys, 8-byte values; medians of {ROUNDS} interleaved rounds; 4 KiB pages");
    sizes.iter().for_each(|&keys| measure(keys));
}
