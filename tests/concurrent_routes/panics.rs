//! R8 of `ConcurrentRoutes`: values that panic when they are cloned or dropped, or that use the
//! table, and addresses that panic. Every value is dropped exactly once, and readers see nothing
//! half-done.

use std::sync::{Arc, OnceLock, Weak};

use flowtable::concurrent::ConcurrentRoutes;
use flowtable::key::bits::{Address, BitString};
use flowtable::{Prefix, RouteTable};
use model::bit_strings::{Panicking, with_call, with_panic_after};
use model::counted::{Callback, Counted, alive, forget_leaked, with_panic};
use model::scaled;

use super::{after_collection, turn};

const MANY: u32 = scaled(100, 30, 8);

/// The first number of routes of which some share blocks, so that updates clone values, and the
/// number after the last one.
const NEIGHBORS: (u32, u32) = scaled((0, 100), (0, 50), (26, 34));

type Routes = ConcurrentRoutes<u32, Counted>;

/// Routes of all lengths, that cover each other.
fn at(number: u32) -> Prefix<u32> {
    Prefix::new(number.wrapping_mul(0x9E37_79B9) & 0xF00F_3F0F, number % 33).unwrap()
}

/// Routes that share blocks, some of them above other ones.
fn near(number: u32) -> Prefix<u32> {
    let len = if number % 5 == 0 { 30 } else { 16 + number % 9 };
    Prefix::new(number.wrapping_mul(0x9E37_79B9) >> 26 << 8, len).unwrap()
}

fn value(number: u32) -> Counted {
    Counted::new(number.into())
}

/// The numbers of all routes.
fn numbers(routes: &Routes) -> Vec<(Prefix<u32>, u64)> {
    let pinned = routes.pin();
    let routes = pinned.iter().map(|(at, value)| {
        assert!(value.is_alive());
        (at, value.number)
    });
    routes.collect()
}

/// Frees all garbage, on this thread.
fn reclaim(routes: &Routes) {
    after_collection("garbage is freed", || {
        routes.pin().repin();
        routes.garbage() == 0
    });
}

#[test]
fn r8_values_are_dropped_once() {
    let _turn = turn();
    let routes = Routes::new();
    for number in 0..MANY {
        routes.insert(at(number), value(number)).unwrap();
        routes.remove(&at(number / 2)).unwrap();
        routes.insert(at(number / 3), value(number)).unwrap();
        assert!(numbers(&routes).len() == routes.len());
    }
    reclaim(&routes);
    assert!(alive() >= routes.len());
    routes.retain(|_, value| value.number % 2 == 0).unwrap();
    routes.replace((0..9).map(|number| (at(number), value(number))).collect()).unwrap();
    assert_eq!(numbers(&routes).len(), 9);
    drop(routes);
    after_collection("all are dropped", || alive() == 0);
}

#[test]
fn r8_when_a_clone_panics_nothing_has_changed() {
    let _turn = turn();
    let routes = Routes::new();
    let mut panics = 0;
    for number in NEIGHBORS.0..NEIGHBORS.1 {
        let before = numbers(&routes);
        for good in 0.. {
            let at = if number % 4 == 3 { near(number / 2) } else { near(number) };
            let act = || match number % 4 {
                3 => routes.remove(&at).is_ok(),
                _ => routes.insert(at, value(number)).is_ok(),
            };
            if with_panic(Callback::Clone, good, act).is_some() {
                break;
            }
            panics += 1;
            assert_eq!(numbers(&routes), before);
        }
        if !cfg!(miri) || number % 4 == 0 {
            routes.validate().unwrap();
        }
        reclaim(&routes);
    }
    assert!(panics > MANY / 4);
    let expected = numbers(&routes);
    let table = || expected.iter().map(|&(at, number)| (at, Counted::new(number))).collect();
    let refused: RouteTable<_, _> = table();
    let alive_before = alive() - refused.len();
    assert!(with_panic(Callback::Clone, 2, || drop(routes.replace(refused))).is_none());
    assert_eq!((numbers(&routes), alive()), (expected.clone(), alive_before));
    assert!(with_panic(Callback::Clone, 2, || ConcurrentRoutes::from(table())).is_none());
    assert_eq!(alive(), alive_before);
    drop(routes);
    assert_eq!(alive(), 0);
}

#[test]
fn r8_when_a_drop_panics_the_update_has_been_made() {
    let _turn = turn();
    let routes = Routes::new();
    for number in 0..MANY {
        routes.insert(at(number), value(number)).unwrap();
        // Of garbage, so nothing panics in the caller.
        let new = with_panic(Callback::Drop, 0, || routes.insert(at(number), value(7)).is_ok());
        assert_eq!(new, Some(true));
        assert_eq!(routes.pin().get(&at(number)).map(|value| value.number), Some(7));
    }
    routes.validate().unwrap();
    reclaim(&routes);
    assert!(with_panic(Callback::Drop, 2, || drop(routes)).is_none());
    assert_eq!(alive(), 0);
    forget_leaked();
}

/// A value whose drop changes the table that it was in.
#[derive(Clone, Debug)]
struct Meddler(Option<Weak<ConcurrentRoutes<u8, Meddler>>>, &'static OnceLock<()>);

impl Drop for Meddler {
    fn drop(&mut self) {
        let Some(routes) = self.0.take().and_then(|routes| routes.upgrade()) else { return };
        routes.insert(Prefix::host(9), Self(None, self.1)).unwrap();
        assert!(routes.pin().get(&Prefix::host(9)).is_some());
        let _ = self.1.set(());
    }
}

#[test]
fn r8_a_value_may_use_the_table_when_it_is_dropped() {
    static IS_DROPPED: OnceLock<()> = OnceLock::new();
    let _turn = turn();
    let routes = Arc::new(ConcurrentRoutes::new());
    let value = Meddler(Some(Arc::downgrade(&routes)), &IS_DROPPED);
    routes.insert(Prefix::host(1), value).unwrap();
    routes.remove(&Prefix::host(1)).unwrap();
    after_collection("the value is dropped", || IS_DROPPED.get().is_some());
    assert!(routes.pin().iter().map(|(at, _)| at).eq([Prefix::host(9)]));
}

fn panicking(number: u32) -> Prefix<Panicking> {
    Prefix::new(Panicking(number.wrapping_mul(0x9E37_79B9)), number % 33).unwrap()
}

#[test]
fn r8_when_an_address_panics_nothing_has_changed() {
    let _turn = turn();
    let routes = ConcurrentRoutes::<Panicking, Counted>::new();
    let mut model = RouteTable::<Panicking, u64>::new();
    let mut panics = 0;
    for number in NEIGHBORS.0..NEIGHBORS.1 {
        let at = panicking(number / 2 * 3);
        for calls in 0.. {
            let act = || match number % 2 {
                0 => routes.insert(at, value(number)).is_ok(),
                _ => routes.remove(&panicking(number)).is_ok(),
            };
            if with_panic_after(Some(calls), act).is_ok() {
                break;
            }
            panics += 1;
            let pinned = routes.pin();
            assert!(
                pinned
                    .iter()
                    .map(|(at, value)| (at, value.number))
                    .eq(model.iter().map(|(at, &value)| (at, value)))
            );
        }
        match number % 2 {
            0 => drop(model.insert(at, number.into())),
            _ => drop(model.remove(&panicking(number))),
        }
    }
    assert!(panics > MANY);
    routes.validate().unwrap();
    drop(routes);
    after_collection("all are dropped", || alive() == 0);
}

#[test]
fn r8_an_update_in_an_update_panics_and_does_not_hang() {
    let _turn = turn();
    let routes = Arc::new(ConcurrentRoutes::<Panicking, u32>::new());
    let inner = Arc::clone(&routes);
    let write = move || {
        assert!(inner.pin().lookup(&Panicking(1)).is_none());
        let _ = inner.insert(panicking(1), 1);
    };
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let outer = with_call(write, || routes.insert(panicking(2), 2));
    std::panic::set_hook(hook);
    assert!(outer.is_err() && routes.is_empty());
    assert_eq!(routes.insert(panicking(3), 3), Ok(true));
    assert_eq!(routes.len(), 1);
}

/// A value whose destructor always panics, but for clones in blocks that are being made.
#[derive(Clone)]
struct Panics(Arc<()>);

impl Drop for Panics {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("the destructor of one of {}", Arc::strong_count(&self.0));
        }
    }
}

#[test]
fn r8_when_all_values_of_a_block_panic_all_are_dropped() {
    let _turn = turn();
    let (routes, counter) = (ConcurrentRoutes::<u32, Panics>::new(), Arc::new(()));
    for number in 0..4 {
        routes.insert(Prefix::host(number), Panics(Arc::clone(&counter))).unwrap();
    }
    // Blocks of up to three values, none of which aborts the process.
    after_collection("garbage is freed", || routes.garbage() == 0);
    assert_eq!(Arc::strong_count(&counter), 5);
    std::panic::catch_unwind(|| drop(routes)).expect_err("a destructor panics");
    assert_eq!(Arc::strong_count(&counter), 1);
}

/// An address that keeps the bits behind a prefix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Untruncated(u32);

impl BitString for Untruncated {
    const BITS: u32 = 32;

    fn window(&self, pos: u32) -> u64 {
        self.0.window(pos)
    }
}

impl Address for Untruncated {
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        Self(u32::from_windows(window))
    }

    fn truncated(&self, _: u32) -> Self {
        *self
    }
}

#[test]
fn r8_a_shared_block_is_in_the_slots_of_its_key_only() {
    let _turn = turn();
    let routes = ConcurrentRoutes::<Untruncated, Box<u32>>::new();
    let prefix = |bits, len| Prefix::new(Untruncated(bits), len).unwrap();
    // The second half of its slots, and as many behind them, if the bit behind the prefix counted.
    routes.insert(prefix(0x0080_0000, 8), Box::new(1)).unwrap();
    routes.insert(prefix(0x03FF_FF00, 30), Box::new(2)).unwrap();
    assert_eq!(routes.pin().lookup(&Untruncated(0x0110_0000)).map(|(_, value)| **value), None);
    assert_eq!(routes.remove(&prefix(0, 8)), Ok(true));
    after_collection("garbage is freed", || routes.garbage() == 0);
    routes.validate().unwrap();
    assert_eq!(routes.pin().lookup(&Untruncated(0x0110_0000)).map(|(_, value)| **value), None);
}
