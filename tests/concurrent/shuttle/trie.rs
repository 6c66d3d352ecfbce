//! `ConcurrentLcTrie` under interleavings that shuttle chooses.

use flowtable::concurrent::ConcurrentLcTrie;
use model::histories::{Call, Clock, is_linearizable, random_op};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::thread;

use super::{EXECUTIONS, both};
use crate::perform::perform_on_trie;

type Trie = ConcurrentLcTrie<u64, u64>;

/// Keys that no history uses; they make the root grow and shrink.
fn churn(trie: &Trie) {
    let keys = (0..8_u64).map(|nth| nth << 61 | 1 << 40);
    keys.clone().for_each(|key| assert_eq!(trie.pin().insert(key, key), Ok(None)));
    keys.for_each(|key| assert_eq!(trie.pin().remove(&key), Some(&key)));
}

fn histories() {
    let (seed, clock) = (thread_rng().r#gen::<u64>() >> 24, Arc::new(Clock::new()));
    let trie = Arc::new(Trie::new().with_garbage_limit(usize::MAX, 0));
    let calls = Arc::new(std::sync::Mutex::new(vec![]));
    let threads: Vec<_> = (0..4_u64)
        .map(|me| {
            let (trie, clock, calls) = (Arc::clone(&trie), Arc::clone(&clock), calls.clone());
            thread::spawn(move || {
                if me == 3 {
                    return churn(&trie);
                }
                let pinned = trie.pin();
                let call = |nth: u64| {
                    let (key, op) = random_op(seed << 8 | me << 4 | nth, 3);
                    perform_on_trie(&pinned, &clock, key, op)
                };
                let mine: Vec<Call> = (0..4).map(call).collect();
                calls.lock().unwrap().extend(mine);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
    while trie.garbage() > 0 {
        trie.pin().flush();
    }
    trie.validate().unwrap_or_else(|broken| panic!("{broken}"));
    let mut calls = calls.lock().unwrap().clone();
    calls.sort_by_key(|call| call.begun);
    assert!(is_linearizable(&calls), "{calls:#?}");
}

#[test]
fn histories_of_a_trie_are_linearizable() {
    both(EXECUTIONS, histories);
}
