//! `ConcurrentRoutes` under interleavings that shuttle chooses. A region is wide there from two
//! routes on.

use flowtable::{ConcurrentRoutes, Prefix, RouteTable};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

use super::{EXECUTIONS, both};

type Routes = ConcurrentRoutes<u32, u64>;
type Update = (Prefix<u32>, Option<u64>);

/// Addresses whose routes are looked up: of one word of a wide region, and of two.
const ADDRESSES: [u32; 3] = [0x0A01_0203, 0x0A01_0207, 0x0B01_0203];

/// Updates of one writer.
const UPDATES: usize = 12;

fn random_updates() -> Vec<Update> {
    let mut rng = thread_rng();
    let mut update = |now: usize| {
        let address = ADDRESSES[rng.gen_range(0..ADDRESSES.len())];
        let len = [0, 4, 6, 7, 11, 12, 13, 20, 30, 32][rng.gen_range(0..10)];
        let value = rng.gen_range(0..3) > 0;
        (Prefix::new(address, len).unwrap(), value.then_some(now as u64))
    };
    (0..UPDATES).map(&mut update).collect()
}

/// Returns the answer for an address after each update, before the first one included.
fn answers(updates: &[Update], address: u32) -> Vec<Option<(Prefix<u32>, u64)>> {
    let mut table = RouteTable::new();
    let mut answers = vec![None];
    for &(at, value) in updates {
        match value {
            Some(value) => drop(table.insert(at, value)),
            None => drop(table.remove(&at)),
        }
        answers.push(table.lookup(&address).map(|(at, &value)| (at, value)));
    }
    answers
}

fn check(routes: &Routes) {
    routes.flush();
    while routes.garbage() > 0 {
        routes.flush();
    }
    routes.validate().unwrap_or_else(|broken| panic!("{broken}"));
}

fn lookups() {
    let routes = Arc::new(Routes::new().with_garbage_limit(usize::MAX, 0));
    let updates = Arc::new(random_updates());
    let progress = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let readers: Vec<_> = (0..2)
        .map(|reader| {
            let (routes, progress) = (Arc::clone(&routes), Arc::clone(&progress));
            let address = ADDRESSES[(reader + thread_rng().gen_range(0..2)) % ADDRESSES.len()];
            let answers = answers(&updates, address);
            thread::spawn(move || {
                let [begun, done] = &*progress;
                let (mut pinned, mut last) = (routes.pin(), 0);
                for _ in 0..6 {
                    let first = done.load(Ordering::SeqCst).max(last);
                    let found = pinned.lookup(&address).map(|(at, &value)| (at, value));
                    let mut states = first..=begun.load(Ordering::SeqCst);
                    last = states.find(|&state| answers[state] == found).expect("R1, R3");
                    if last % 3 == 0 {
                        pinned.repin();
                    }
                }
            })
        })
        .collect();
    let [begun, done] = &*progress;
    for (nth, &(at, value)) in (1..).zip(&*updates) {
        begun.store(nth, Ordering::SeqCst);
        match value {
            Some(value) => drop(routes.insert(at, value).unwrap()),
            None => drop(routes.remove(&at).unwrap()),
        }
        done.store(nth, Ordering::SeqCst);
    }
    readers.into_iter().for_each(|reader| reader.join().expect("no thread panics"));
    check(&routes);
}

#[test]
fn routes_lookups_are_of_a_moment() {
    both(EXECUTIONS, lookups);
}

fn writers() {
    let routes = Arc::new(Routes::new().with_garbage_limit(usize::MAX, 0));
    let writers: Vec<_> = (0..3_u64)
        .map(|mine| {
            let routes = Arc::clone(&routes);
            thread::spawn(move || {
                for now in 0..6_u64 {
                    let at = Prefix::new(ADDRESSES[0], 7 + mine as u32 + 3 * now as u32).unwrap();
                    assert_eq!(routes.insert(at, mine), Ok(None));
                    if now % 2 == 0 {
                        assert_eq!(routes.remove(&at), Ok(Some(mine)));
                    }
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().expect("no thread panics"));
    assert_eq!(routes.len(), 9);
    check(&routes);
}

#[test]
fn routes_writers_take_turns() {
    both(EXECUTIONS, writers);
}
