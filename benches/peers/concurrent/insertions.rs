//! Insertions and the lookups beside them, each of which is timed.

use std::array;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::Key;
use super::histogram::Histogram;
use super::shared_map::{SharedMap, View};
use crate::subject::BURST;

/// The lookups of a reader beside a writer.
pub(crate) struct ReaderTimes {
    pub(crate) times: Histogram,
    /// Lookups that missed a present key.
    pub(crate) missed: usize,
}

/// Fills `map` in this thread, while another thread looks up random present keys.
pub(crate) fn beside_a_reader<M: SharedMap>(
    map: &M,
    keys: &[Key],
    inserts: &mut [u32],
) -> ReaderTimes {
    let filled = AtomicUsize::new(0);
    thread::scope(|scope| {
        let reader = scope.spawn(|| read(&mut map.view(), keys, &filled));
        write(&mut map.view(), keys, &filled, inserts);
        reader.join().expect("the reader does not panic")
    })
}

/// Inserts all keys, and publishes their number once per batch: the counter is shared with the
/// reader, whose accesses cost time that is not the map's.
#[inline(never)]
fn write<V: View>(view: &mut V, keys: &[Key], filled: &AtomicUsize, times: &mut [u32]) {
    let mut last = Instant::now();
    for (at, (&key, time)) in keys.iter().zip(times).enumerate() {
        if at % BURST == 0 {
            // Release: pairs with the Acquire of the reader.
            filled.store(at, Ordering::Release);
            view.repin();
        }
        view.insert(key, at as u64);
        (*time, last) = since(last);
    }
    filled.store(keys.len(), Ordering::Release);
}

/// Looks up random present keys. They are picked in batches before the clock is read, so that cache
/// misses on the array of keys are not timed.
#[inline(never)]
fn read<V: View>(view: &mut V, keys: &[Key], filled: &AtomicUsize) -> ReaderTimes {
    let mut rng = SmallRng::seed_from_u64(5);
    let (mut times, mut missed) = (Histogram::new(), 0);
    loop {
        // Acquire: pairs with the Release of the writer.
        let present = filled.load(Ordering::Acquire);
        if present == keys.len() {
            return ReaderTimes { times, missed };
        }
        if present == 0 {
            spin_loop();
            continue;
        }
        let picked: [Key; BURST] = array::from_fn(|_| keys[rng.random_range(0..present)]);
        let mut last = Instant::now();
        view.repin();
        for key in &picked {
            missed += usize::from(black_box(view.get(key)).is_none());
            let time;
            (time, last) = since(last);
            times.record(time);
        }
    }
}

/// Returns the nanoseconds since `last`, and the present time.
#[inline]
fn since(last: Instant) -> (u32, Instant) {
    let now = Instant::now();
    (now.duration_since(last).as_nanos().try_into().unwrap_or(u32::MAX), now)
}
