//! R6 of `ConcurrentRoutes`: addresses that panic, and that are inconsistent.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use flowtable::concurrent::ConcurrentRoutes;
use flowtable::key::bits::{Address, BitString};
use flowtable::{Prefix, RouteTable};

use super::turn;

thread_local! {
    /// The calls of `window` until one panics; and a number that some of them are changed by.
    static CALLS: Cell<u32> = const { Cell::new(u32::MAX) };
    static NOISE: Cell<u64> = const { Cell::new(0) };
}

/// An address of 192 bits whose windows may panic, or differ from one call to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fickle([u64; 3]);

impl BitString for Fickle {
    const BITS: u32 = 192;

    fn window(&self, pos: u32) -> u64 {
        CALLS.set(CALLS.get() - 1);
        assert!(CALLS.get() > 0, "a method of an address panics");
        let noise = NOISE.get();
        NOISE.set(noise.rotate_left(7).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let word = |at: u32| self.0.get(at as usize).copied().unwrap_or(0);
        let (at, shift) = (pos / 64, pos % 64);
        let high = word(at) << shift;
        let low = word(at + 1).checked_shr(64 - shift).unwrap_or(0);
        (high | low) ^ if noise % 5 == 1 { noise } else { 0 }
    }
}

impl Address for Fickle {
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        Self([window(0), window(64), window(128)])
    }
}

fn prefix(number: u64) -> Prefix<Fickle> {
    let bits = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Prefix::new(Fickle([bits & 0x3 << 61 | bits >> 40, bits, bits >> 7]), bits as u32 % 193)
        .unwrap()
}

#[test]
fn r6_when_an_address_panics_the_next_writer_repairs() {
    let _turn = turn();
    let count = if cfg!(miri) { 3 } else { 60 };
    for calls in 1..count {
        let routes = ConcurrentRoutes::<Fickle, u64>::new();
        for number in 0..count.into() {
            CALLS.set(if number % 3 == 2 { calls } else { u32::MAX });
            let update = || match number % 4 {
                3 => drop(routes.remove(&prefix(number - 3))),
                _ => drop(routes.insert(prefix(number), number)),
            };
            let _ = catch_unwind(AssertUnwindSafe(update));
            CALLS.set(u32::MAX);
            routes.validate().unwrap();
        }
        routes.insert(Prefix::default_route(), 1).unwrap();
        routes.validate().unwrap();
        let (table, pinned) = (routes.to_table(), routes.pin());
        for number in 0..count.into() {
            let address = prefix(number).address();
            assert_eq!(pinned.lookup(&address), table.lookup(&address));
        }
    }
}

#[test]
fn r6_inconsistent_addresses_are_no_undefined_behaviour() {
    let _turn = turn();
    CALLS.set(u32::MAX);
    let (rounds, count) = if cfg!(miri) { (1, 30) } else { (20, 2000) };
    for round in 0..rounds {
        let routes = ConcurrentRoutes::<Fickle, [u64; 2]>::new();
        let mut pinned = routes.pin();
        NOISE.set(round * 2 + 1);
        for number in 0..count {
            let at = prefix(number % 700);
            let result = catch_unwind(AssertUnwindSafe(|| match number % 3 {
                2 => drop(routes.remove(&prefix(number / 2))),
                _ => drop(routes.insert(at, [number; 2])),
            }));
            drop(result);
            let found = catch_unwind(AssertUnwindSafe(|| {
                pinned.lookup(&at.address()).map(|(_, &value)| value)
            }));
            // Reused or freed memory would have other values.
            if let Ok(Some([first, second])) = found {
                assert_eq!(first, second);
            }
            pinned.repin();
        }
        NOISE.set(0);
        drop(pinned);
        drop(routes.replace(RouteTable::new()));
        routes.validate().unwrap();
    }
}
