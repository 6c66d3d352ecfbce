//! `ConcurrentStore` under interleavings that shuttle chooses.

use std::time::Duration;

use flowtable::Timestamp;
use flowtable::concurrent::ConcurrentStore;
use model::hashers::Weak;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::{check_random, thread};

use super::EXECUTIONS;

/// Tags of a test: several in each shard.
const TAGS: u64 = 6;

type Store = ConcurrentStore<u64, u64, Weak>;

/// Creations less removals, uses less those of removed bindings.
fn act(store: &Store) -> [i64; 2] {
    let mut sums = [0, 0];
    for _ in 0..8 {
        let (tag, now) = (thread_rng().gen_range(0..TAGS), Timestamp::from_nanos(1));
        if thread_rng().r#gen::<bool>() {
            let is_new = store.get_or_insert_with(
                tag,
                now,
                || 0,
                |uses, is_new| {
                    *uses += 1;
                    is_new
                },
            );
            sums[0] += i64::from(is_new.expect("there is room"));
            sums[1] += 1;
        } else if let Some(uses) = store.remove(&tag, now) {
            sums[0] -= 1;
            sums[1] -= uses as i64;
        }
    }
    sums
}

#[test]
fn bindings_are_created_counted_and_removed_once() {
    let execution = || {
        let lifetime = Duration::from_nanos(100);
        let store = Store::with_parts(128, lifetime, Weak::Mixed);
        let store = Arc::new(store.expect("there is memory"));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let store = Arc::clone(&store);
                thread::spawn(move || act(&store))
            })
            .collect();
        let mut sums = [0, 0];
        for thread in threads {
            let of_thread = thread.join().expect("no thread panics");
            sums.iter_mut().zip(of_thread).for_each(|(sum, part)| *sum += part);
        }
        let now = Timestamp::from_nanos(1);
        let values: Vec<u64> = (0..TAGS).filter_map(|tag| store.get(&tag, now)).collect();
        assert_eq!(sums, [values.len() as i64, values.iter().sum::<u64>() as i64]);
        store.validate().unwrap_or_else(|broken| panic!("{broken}"));
    };
    check_random(execution, EXECUTIONS);
}
