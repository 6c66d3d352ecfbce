//! The memory of `ConcurrentRoutes`: its pool of blocks.

use std::sync::Arc;
use std::sync::mpsc::channel;

use flowtable::Prefix;
use flowtable::concurrent::ConcurrentRoutes;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};

use super::{after_collection, turn};

const COUNT: usize = if cfg!(miri) { 60 } else { 20_000 };

/// The bytes of a chunk, and of one that is spare.
const CHUNK: usize = 16 << 10;

/// Routes that share blocks, in random order.
fn prefixes(count: usize) -> Vec<Prefix<u32>> {
    let mut rng = StdRng::seed_from_u64(3);
    let mut prefix = || {
        let address = rng.random_range(0..64) << 24 | rng.random::<u32>() & 0x0F_FFFF;
        Prefix::new(address, *[19, 20, 22, 24, 24, 24, 24, 28].choose(&mut rng).unwrap()).unwrap()
    };
    let mut prefixes: Vec<_> = (0..count).map(|_| prefix()).collect();
    prefixes.sort();
    prefixes.dedup();
    prefixes.shuffle(&mut StdRng::seed_from_u64(4));
    prefixes
}

fn reclaim<V: Clone + Send + 'static>(routes: &ConcurrentRoutes<u32, V>) {
    after_collection("garbage is freed", || routes.garbage() == 0);
}

/// Returns the bytes of a table without garbage.
fn bytes<V: Clone + Send + 'static>(routes: &ConcurrentRoutes<u32, V>) -> usize {
    reclaim(routes);
    routes.validate().unwrap();
    routes.allocation_size()
}

#[test]
fn memory_does_not_grow_with_updates() {
    let _turn = turn();
    let mut prefixes = prefixes(COUNT);
    let new = || prefixes.iter().map(|&at| (at, 7)).collect::<ConcurrentRoutes<_, u32>>();
    let routes = new();
    let first = bytes(&routes);
    let mut rng = StdRng::seed_from_u64(5);
    for _ in 0..10 {
        // Each route is withdrawn, and announced again after others.
        prefixes.shuffle(&mut rng);
        for (nth, at) in prefixes.iter().enumerate() {
            assert_eq!(routes.remove(at), Ok(true));
            if nth >= 9 {
                assert_eq!(routes.insert(prefixes[nth - 9], 8), Ok(true));
            }
        }
        for &at in &prefixes[prefixes.len().saturating_sub(9)..] {
            routes.insert(at, 8).unwrap();
        }
        let now = bytes(&routes);
        assert!(now <= first + first / 8 + 4 * CHUNK, "{now} bytes, {first} at first");
    }
}

#[test]
fn memory_is_used_again_after_all_routes_are_withdrawn() {
    let _turn = turn();
    let prefixes = prefixes(COUNT);
    let routes = ConcurrentRoutes::new();
    let mut first = None;
    for _ in 0..10 {
        prefixes.iter().for_each(|&at| assert_eq!(routes.insert(at, 7_u32), Ok(true)));
        let now = bytes(&routes);
        let first = *first.get_or_insert(now);
        assert!(now <= first + 4 * CHUNK, "{now} bytes, {first} at first");
        prefixes.iter().for_each(|at| assert_eq!(routes.remove(at), Ok(true)));
        assert_eq!(bytes(&routes), 0, "all memory is given back");
    }
}

#[test]
fn most_memory_is_given_back_with_most_routes() {
    let _turn = turn();
    let prefixes = prefixes(COUNT);
    let routes: ConcurrentRoutes<_, u32> = prefixes.iter().map(|&at| (at, 7)).collect();
    let before = bytes(&routes);
    let (kept, withdrawn) = prefixes.split_at(prefixes.len() / 20);
    withdrawn.iter().for_each(|at| assert_eq!(routes.remove(at), Ok(true)));
    let copy: ConcurrentRoutes<_, u32> = kept.iter().map(|&at| (at, 7)).collect();
    let (now, least) = (bytes(&routes), bytes(&copy));
    println!("{before} bytes, then {now}, {least} at least");
    assert!(now <= 2 * least + 8 * CHUNK, "{now} bytes, where {least} are enough");
}

#[test]
fn a_pin_protects_blocks_after_their_table_is_dropped() {
    let _turn = turn();
    let value = Arc::new(7);
    let routes: ConcurrentRoutes<u32, _> =
        prefixes(100).into_iter().map(|at| (at, Arc::clone(&value))).collect();
    let at = routes.pin().iter().next().map(|(at, _)| at).unwrap();
    let (is_pinned, end) = (channel(), channel::<()>());
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let guard = flowtable::concurrent::pin();
            is_pinned.0.send(()).unwrap();
            end.1.recv().unwrap();
            drop(guard);
        });
        is_pinned.1.recv().unwrap();
        // Retired, and not freed before the pin ends: the table and its pool are gone then.
        routes.insert(at, Arc::new(8)).unwrap();
        routes.remove(&at).unwrap();
        drop(routes);
        assert!(Arc::strong_count(&value) > 1);
        end.0.send(()).unwrap();
        reader.join().unwrap();
    });
    after_collection("all values are dropped", || Arc::strong_count(&value) == 1);
}

#[test]
fn values_of_all_sizes() {
    fn check<V: Clone + Send + PartialEq + std::fmt::Debug + 'static>(value: V) {
        let routes = ConcurrentRoutes::new();
        let prefixes = prefixes(if cfg!(miri) { 10 } else { 300 });
        for &at in &prefixes {
            assert_eq!(routes.insert(at, value.clone()), Ok(true));
        }
        let pinned = routes.pin();
        for at in &prefixes {
            assert_eq!(pinned.get(at), Some(&value));
            assert_eq!(
                pinned.get(at).map_or(0, |value| (&raw const *value).addr()) % align_of::<V>(),
                0
            );
        }
        drop(pinned);
        assert!(bytes(&routes) >= prefixes.len() * size_of::<V>());
        prefixes.iter().for_each(|at| assert_eq!(routes.remove(at), Ok(true)));
        assert_eq!(bytes(&routes), 0);
    }

    #[derive(Clone, Debug, PartialEq)]
    #[repr(align(32))]
    struct Aligned(u8);

    #[derive(Clone, Debug, PartialEq)]
    #[repr(align(4096))]
    struct Page(u8);

    #[derive(Clone, Debug, PartialEq)]
    #[repr(align(64))]
    struct Nothing;

    let _turn = turn();
    check(());
    check(Nothing);
    check(1_u8);
    check([1_u16; 3]);
    check(1_u128);
    check(Aligned(1));
    check([7_u64; 10]);
    check([7_u64; 1000]);
    check(Page(1));
}
