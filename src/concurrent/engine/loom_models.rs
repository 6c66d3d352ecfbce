//! Models of the protocols for loom, which runs them in all interleavings with few preemptions:
//! for ids of entries, and for entries of one word and of two words in the slots.
//!
//! Under a checker a table has at most two shards, and a segment one group before it grows. All
//! keys of a model are in one shard, unless it is split, and have one home if the model requires
//! it.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash, Hasher};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::storage::Storage;
use super::{Engine, Slot};
use crate::concurrent::policy::{mix, root_of};
use crate::concurrent::{ConcurrentMap, ConcurrentTable, collector};

/// The distribution of keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spread {
    /// In the first shard, with different homes.
    Apart,
    /// In the first shard, with one home.
    Together,
    /// Odd ones in the second shard.
    Shards,
}

/// The hasher of a key.
struct SpreadHasher(Spread, u64);

impl BuildHasher for Spread {
    type Hasher = SpreadHasher;

    fn build_hasher(&self) -> SpreadHasher {
        SpreadHasher(*self, 0)
    }
}

impl Hasher for SpreadHasher {
    fn finish(&self) -> u64 {
        self.1
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, id: u64) {
        let (from, root) = match self.0 {
            Spread::Apart => (id << 40, 0),
            Spread::Together => (1 << 40, 0),
            Spread::Shards => (id << 40, id as usize % 2),
        };
        self.1 = (from..).find(|&hash| root_of(mix(hash)) == root).unwrap();
    }
}

/// A table of numbers by numbers.
trait Subject: Sync + Send + 'static {
    /// Slots of a group.
    const SLOTS: u64;
    /// Entries of a segment with one group that is full: the next one makes it grow.
    const FULL: u64 = Self::SLOTS - Self::SLOTS.div_ceil(5);

    fn new(spread: Spread) -> Self;
    fn insert(&self, key: u64, number: u64);
    fn remove(&self, key: u64);
    /// Reads keys under one pin.
    fn reads<const N: usize>(&self, keys: [u64; N]) -> [Option<u64>; N];
    fn len(&self) -> usize;
    fn visited(&self) -> Vec<u64>;

    fn get(&self, key: u64) -> Option<u64> {
        self.reads([key])[0]
    }
}

/// A number whose reads loom checks: they must happen after it was written, which is after the pin
/// of the writer began.
struct Checked(UnsafeCell<u64>);

// SAFETY: it is not changed after its creation.
unsafe impl Sync for Checked {}

impl Checked {
    fn new(number: u64) -> Self {
        let cell = UnsafeCell::new(0);
        // SAFETY: no other thread has it.
        cell.with_mut(|own| unsafe { *own = number });
        Self(cell)
    }

    fn get(&self) -> u64 {
        // SAFETY: as above.
        self.0.with(|number| unsafe { *number })
    }
}

// The keys of entries that are found in a slot are compared: that is a read, too.
impl PartialEq for Checked {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Checked {}

impl Hash for Checked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.get());
    }
}

type Ids = ConcurrentMap<Checked, Checked, Spread>;
type Word = ConcurrentTable<u64, u64, Spread>;
type Words = ConcurrentTable<u64, [u64; 2], Spread>;

/// Splits the first shard of a table, whose entries have hashes by `hash_of`.
fn open_all<C: Storage>(engine: &Engine<C>, hash_of: impl Fn(Slot<'_, C>) -> u64) {
    let pin = collector::pin();
    let writer = engine.lock(0, &pin);
    let split = writer.split(writer.segment(0), 0, |slot, _| hash_of(slot));
    drop(writer);
    engine.retire(split.unwrap(), &pin);
}

macro_rules! subject {
    ($type:ty, $slots:expr, $key:expr, $number_of_key:expr, $new:expr, $number:expr) => {
        impl Subject for $type {
            const SLOTS: u64 = $slots;

            fn new(spread: Spread) -> Self {
                let new = Self::with_hasher(spread);
                if spread != Spread::Shards {
                    open_all(&new.engine, |_| unreachable!("a table without entries"));
                }
                new
            }
            fn insert(&self, key: u64, number: u64) {
                assert!(self.pin().insert($key(key), $new(number)).is_ok());
            }
            fn remove(&self, key: u64) {
                self.pin().remove(&$key(key));
            }
            fn reads<const N: usize>(&self, keys: [u64; N]) -> [Option<u64>; N] {
                let (pin, keys) = (self.pin(), keys.map($key));
                keys.each_ref().map(|key| pin.get(key).map($number))
            }
            fn len(&self) -> usize {
                Self::len(self)
            }
            fn visited(&self) -> Vec<u64> {
                self.pin().iter().map(|(key, _)| $number_of_key(key)).collect()
            }
        }
    };
}

subject!(Ids, 12, Checked::new, Checked::get, Checked::new, Checked::get);
subject!(Word, 7, |key| key, |key| key, |number| number, |number| number);
subject!(Words, 5, |key| key, |key| key, |number| [number; 2], |[one, other]: [u64; 2]| {
    assert_eq!(one, other, "A2");
    one
});

/// Makes a table with the keys up to a number, and runs two closures concurrently on it, and then a
/// third one.
fn concurrently<T: Subject>(spread: Spread, filled: u64, closures: [fn(&T); 3]) {
    check(loom::model::Builder::new(), spread, filled, closures);
}

fn check<T: Subject>(
    mut builder: loom::model::Builder,
    spread: Spread,
    filled: u64,
    [one, other, then]: [fn(&T); 3],
) {
    // Filling a table takes many steps, without another thread.
    builder.max_branches = 20_000;
    builder.check(move || {
        let table = Arc::new(T::new(spread));
        (1..=filled).for_each(|key| table.insert(key, key));
        let clone = Arc::clone(&table);
        let thread = thread::spawn(move || one(&clone));
        other(&table);
        thread.join().unwrap();
        then(&table);
    });
}

/// Returns a builder that allows at least three preemptions.
fn three_preemptions() -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.map(|bound| bound.max(3));
    builder
}

fn publish<T: Subject>() {
    concurrently::<T>(
        Spread::Apart,
        0,
        [
            |table| table.insert(1, 7),
            |table| {
                let [first, second] = table.reads([1, 1]);
                assert!(first.is_none_or(|value| value == 7), "A2");
                assert!(first.is_none() || second.is_some(), "A4");
            },
            |table| assert_eq!(table.get(1), Some(7), "A1"),
        ],
    );
}

fn replace<T: Subject>() {
    concurrently::<T>(
        Spread::Apart,
        1,
        [
            |table| (2..=3).for_each(|number| table.insert(1, number)),
            |table| {
                let [first, second] = table.reads([1, 1]).map(|number| number.expect("A3"));
                assert!((1..=3).contains(&first) && second >= first, "A4");
            },
            |table| assert_eq!((table.get(1), table.len()), (Some(3), 1)),
        ],
    );
}

/// The last entry has the tag of the first, and its slot, if slots are reused. The others keep the
/// segment from being merged.
///
/// With two preemptions, the model would not detect a Relaxed store of the id of the last entry:
/// it needs three.
fn reuse<T: Subject>() {
    check::<T>(
        three_preemptions(),
        Spread::Together,
        5,
        [
            |table| {
                table.remove(1);
                table.insert(6, 6);
            },
            |table| {
                let [leaves, comes] = table.reads([1, 6]);
                assert!(leaves.is_none_or(|own| own == 1), "A2");
                assert!(comes.is_none_or(|own| own == 6), "A2");
            },
            |table| assert_eq!(table.reads([1, 5, 6]), [None, Some(5), Some(6)]),
        ],
    );
}

/// The last entry has overflowed; one in the home is removed.
fn remove<T: Subject>() {
    concurrently::<T>(
        Spread::Together,
        T::SLOTS + 1,
        [
            |table| table.remove(1),
            |table| assert_eq!(table.get(T::SLOTS + 1), Some(T::SLOTS + 1), "A3"),
            |table| {
                assert_eq!(table.reads([1, 2, T::SLOTS + 1]), [None, Some(2), Some(T::SLOTS + 1)])
            },
        ],
    );
}

/// A key that has overflowed is removed, and inserted in its home, in the first word of tags.
fn move_home<T: Subject>() {
    concurrently::<T>(
        Spread::Together,
        T::SLOTS + 1,
        [
            |table| {
                table.remove(1);
                table.remove(T::SLOTS + 1);
                table.insert(T::SLOTS + 1, 80);
            },
            |table| {
                let seen = table.reads([T::SLOTS + 1, T::SLOTS + 1]);
                assert!(seen[0] != Some(80) || seen[1] == Some(80), "A4");
                assert!(seen[0].is_some() || seen[1] != Some(T::SLOTS + 1), "A4");
            },
            |table| assert_eq!(table.reads([1, T::SLOTS + 1]), [None, Some(80)]),
        ],
    );
}

/// A full segment is copied to a larger one, or split.
fn grow<T: Subject>() {
    concurrently::<T>(
        Spread::Apart,
        T::FULL,
        [
            |table| table.insert(T::FULL + 1, 6),
            |table| {
                let [stays, first, second] = table.reads([T::FULL, T::FULL + 1, T::FULL + 1]);
                assert_eq!(stays, Some(T::FULL), "A3");
                assert!(first.is_none() || second.is_some(), "A4");
            },
            |table| {
                assert_eq!((table.get(T::FULL + 1), table.len()), (Some(6), T::FULL as usize + 1))
            },
        ],
    );
}

#[test]
fn publish_an_entry_is_seen_whole_or_not_at_all() {
    publish::<Ids>();
    publish::<Word>();
    publish::<Words>();
}

#[test]
fn replace_the_old_value_or_the_new_one() {
    replace::<Ids>();
    replace::<Word>();
    replace::<Words>();
}

#[test]
fn reuse_of_a_slot_under_the_same_tag() {
    reuse::<Ids>();
    reuse::<Word>();
}

#[test]
fn remove_an_overflowed_entry_is_found() {
    remove::<Ids>();
    remove::<Word>();
}

#[test]
fn move_a_key_that_returns_to_its_home_is_absent_in_between() {
    move_home::<Ids>();
}

#[test]
fn grow_remaining_entries_are_found_in_the_old_segment_or_in_the_new() {
    grow::<Ids>();
    grow::<Word>();
}

/// The shard is split: half of its keys move into a new shard.
fn split_shard<T: Subject>() {
    concurrently::<T>(
        Spread::Shards,
        T::FULL,
        [
            |table| table.insert(T::FULL + 1, 6),
            |table| {
                let found = table.reads([1, 2, T::FULL + 1]);
                assert_eq!(found[..2], [Some(1), Some(2)], "A3");
                let (least, len) =
                    (T::FULL as usize + usize::from(found[2].is_some()), table.len());
                assert!((least..T::FULL as usize + 2).contains(&len), "an entry is not counted");
            },
            |table| {
                assert_eq!((table.get(T::FULL + 1), table.len()), (Some(6), T::FULL as usize + 1))
            },
        ],
    );
}

/// The shard is split while all entries are visited.
fn visit_both_shards<T: Subject>() {
    concurrently::<T>(
        Spread::Shards,
        T::FULL,
        [
            |table| table.insert(T::FULL + 1, 6),
            |table| {
                let mut visited = table.visited();
                visited.sort_unstable();
                visited.retain(|&key| key <= T::FULL);
                assert!(visited.into_iter().eq(1..=T::FULL), "B1");
            },
            |table| assert_eq!(table.visited().len(), T::FULL as usize + 1),
        ],
    );
}

#[test]
fn split_shard_entries_are_found_in_the_old_segment_or_in_the_new() {
    split_shard::<Ids>();
    split_shard::<Word>();
}

#[test]
fn split_shard_no_insertion_is_lost() {
    // A writer chooses the lock of the only shard, and acquires it after the split: its key, the
    // only one, is in the other shard then. One preemption is enough, of the second function: after
    // the choice, or during the split, if the writer finds the lock taken. With two, there are too
    // many interleavings.
    let split: fn(&Word) = |table| open_all(&table.engine, |_| table.hasher().hash_one(1_u64));
    let insert: fn(&Word) = |table| {
        table.insert(1, 7);
        assert_eq!(table.len(), 1, "an entry is not counted");
    };
    for [first, second] in [[split, insert], [insert, split]] {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(1);
        let then = |table: &Word| assert_eq!((table.get(1), table.len()), (Some(7), 1), "A1");
        check::<Word>(builder, Spread::Shards, 0, [first, second, then]);
    }
}

#[test]
fn split_shard_all_entries_are_visited_once() {
    visit_both_shards::<Ids>();
    visit_both_shards::<Word>();
}

#[test]
fn split_and_double_the_directory() {
    // Two groups of words, full.
    concurrently::<Words>(
        Spread::Apart,
        8,
        [
            |table| table.insert(9, 9),
            |table| assert_eq!(table.reads([1, 8]), [Some(1), Some(8)], "A3"),
            |table| assert_eq!(table.reads([1, 2, 9]), [Some(1), Some(2), Some(9)]),
        ],
    );
}

#[test]
fn replace_two_words_in_a_later_group() {
    // The first group is full of entries, the new value is in the second one.
    concurrently::<Words>(
        Spread::Together,
        6,
        [
            |table| table.insert(1, 9),
            |table| {
                let [first, second] = table.reads([1, 1]).map(|number| number.expect("A3"));
                assert!((first == 1 || first == 9) && (second == 9 || second == first), "A4");
            },
            |table| assert_eq!((table.get(1), table.len()), (Some(9), 6)),
        ],
    );
}

#[test]
fn add_no_addition_is_lost_while_a_segment_grows() {
    concurrently::<Word>(
        Spread::Apart,
        Word::FULL,
        [
            |table| {
                table.insert(Word::FULL + 1, 0);
                assert!(table.pin().fetch_add(&1, 1).is_some());
            },
            |table| assert!(table.pin().fetch_add(&1, 1).is_some()),
            |table| assert_eq!(table.get(1), Some(3), "C2"),
        ],
    );
}

#[test]
fn merge_remaining_entries_are_found_in_the_old_segments_or_in_the_new() {
    // Split, and then few.
    concurrently::<Ids>(
        Spread::Apart,
        Ids::FULL + 1,
        [
            |map| {
                let before = map.allocation_size();
                (3..=Ids::FULL + 1).for_each(|key| map.remove(key));
                assert!(map.allocation_size() < before, "nothing was merged");
            },
            |map| {
                let pin = map.pin();
                assert_eq!(pin.get(&Checked::new(1)).map(Checked::get), Some(1), "A3");
                assert_eq!(pin.iter().filter(|(key, _)| key.get() <= 2).count(), 2, "B1");
            },
            |map| assert_eq!(map.reads([1, 2, 3]), [Some(1), Some(2), None]),
        ],
    );
}

/// The key of the first slot is inserted again in the next group, as the home is full again. With
/// two preemptions, the model would not detect a traversal that ignores removals.
#[test]
fn visit_a_key_that_moves_to_a_later_group_once() {
    check::<Ids>(
        three_preemptions(),
        Spread::Together,
        Ids::SLOTS + 1,
        [
            |map| {
                map.remove(1);
                map.insert(Ids::SLOTS + 2, 0);
                map.insert(1, 0);
            },
            |map| {
                let pin = map.pin();
                let visited: Vec<u64> = pin.keys().map(Checked::get).collect();
                let times = |key| visited.iter().filter(|&&own| own == key).count();
                assert!([1, Ids::SLOTS + 2].iter().all(|&key| times(key) <= 1), "B2");
                assert!((2..=Ids::SLOTS + 1).all(|key| times(key) == 1), "B1");
            },
            |map| assert_eq!(map.len() as u64, Ids::SLOTS + 2),
        ],
    );
}

/// A value that records its drop.
struct Alive(Arc<AtomicBool>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

#[test]
fn retire_nothing_is_dropped_under_a_pin() {
    loom::model(|| {
        let alive = Arc::new(AtomicBool::new(true));
        let map = Arc::new(ConcurrentMap::with_hasher(Spread::Apart));
        assert!(map.pin().insert(1_u64, Alive(Arc::clone(&alive))).is_ok());
        let clone = Arc::clone(&map);
        let thread = thread::spawn(move || {
            clone.pin().remove(&1);
            // The epoch advances twice before anything is dropped.
            for _ in 0..3 {
                clone.pin().flush();
            }
        });
        let pin = map.pin();
        if let Some(value) = pin.get(&1) {
            assert!(value.0.load(Ordering::SeqCst), "dropped under the pin");
        }
        drop(pin);
        thread.join().unwrap();
    });
}
