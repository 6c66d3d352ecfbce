//! Addresses that violate the contract of `BitString`, or panic: results may be wrong and methods
//! may panic, but each returned reference is to the value of a route, and each value is dropped
//! once.
//!
//! Values are boxed so that Miri and AddressSanitizer detect violations.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use flowtable::key::bits::{Address, BitString};
use flowtable::{Prefix, RouteTable};

thread_local! {
    /// The number of correct windows before a wrong one; negative for no wrong ones.
    static RIGHT: Cell<i32> = const { Cell::new(-1) };
    static FAULT: Cell<Fault> = const { Cell::new(Fault::Panic) };
}

/// The fault of a window.
#[derive(Clone, Copy)]
enum Fault {
    Panic,
    Once(u64),
    FromThenOn(u64),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Inconsistent(u32);

impl BitString for Inconsistent {
    const BITS: u32 = 32;

    fn window(&self, pos: u32) -> u64 {
        let (right, window) = (RIGHT.get(), self.0.window(pos));
        if right > 0 {
            RIGHT.set(right - 1);
        }
        if right != 0 {
            return window;
        }
        match FAULT.get() {
            Fault::Panic => {
                RIGHT.set(-1);
                panic!("a window panics")
            }
            Fault::Once(flipped) => {
                RIGHT.set(-1);
                window ^ flipped
            }
            Fault::FromThenOn(flipped) => window ^ flipped,
        }
    }
}

impl Address for Inconsistent {
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        Self(u32::from_windows(window))
    }

    fn truncated(&self, len: u32) -> Self {
        Self(self.0.truncated(len))
    }
}

/// Runs `work`, in which a window is wrong after `right` correct ones.
fn wrong_after(right: i32, work: impl FnOnce()) {
    RIGHT.set(right);
    // A panic is allowed.
    let _ = catch_unwind(AssertUnwindSafe(work));
    RIGHT.set(-1);
}

fn address(group: u32) -> Inconsistent {
    Inconsistent(0x0800_0001 | group << 14)
}

fn prefix(group: u32, len: u32) -> Prefix<Inconsistent> {
    Prefix::new(address(group), len).expect("the length is in range")
}

/// Enough routes for a direct table, some of which are stored in its slots.
fn table() -> RouteTable<Inconsistent, Box<u32>> {
    let (routes, groups) = if cfg!(miri) { (5, 3) } else { (4200, 40) };
    let long = (0..routes).map(|i| (Inconsistent(0x0800_0000 | i << 10), 24, i));
    let short = (0..groups).map(|group| (address(group), 18, group));
    let make = |(at, len, value)| (Prefix::new(at, len).expect("it fits"), Box::new(value));
    long.chain(short).map(make).collect()
}

fn read_all(table: &RouteTable<Inconsistent, Box<u32>>) {
    let addresses: Vec<_> = (0..if cfg!(miri) { 4 } else { 64 }).map(address).collect();
    let mut found = vec![None; addresses.len()];
    table.lookup_batch(&addresses, |i, route| found[i] = route);
    for (address, found) in addresses.iter().zip(found) {
        let values = [found, table.lookup(address)].into_iter().flatten();
        assert!(values.map(|(_, value)| **value).all(|value| value < 5000 || value == 7777));
        assert!(table.matches(address).all(|(_, value)| **value < 10_000));
    }
}

fn assert_sound(fault: Fault) {
    let (most, step) = if cfg!(miri) { (6, 4) } else { (40, 1) };
    for right in (1..most).step_by(step) {
        FAULT.set(fault);
        let mut table = table();
        let changes = [(2, 30), (1, 18), (3, 17), (7, 16), (12, 12), (5, 24), (1, 3)];
        for &(group, len) in &changes[..if cfg!(miri) { 2 } else { 7 }] {
            let prefix = prefix(group, len);
            wrong_after(right, || drop(table.insert(prefix, Box::new(7777))));
            read_all(&table);
            wrong_after(right, || drop(table.remove(&prefix)));
            read_all(&table);
            wrong_after(right, || read_all(&table));
        }
        wrong_after(right, || table.retain(|prefix, _| prefix.len() == 24));
        read_all(&table);
        wrong_after(right, || drop(table.iter().collect::<Vec<_>>()));
        table.shrink_to_fit();
        read_all(&table);
    }
}

#[test]
fn a_window_may_panic() {
    assert_sound(Fault::Panic);
}

#[test]
#[cfg_attr(miri, ignore = "covered by the other two")]
fn a_window_may_be_wrong_once() {
    assert_sound(Fault::Once(u64::MAX));
    assert_sound(Fault::Once(1 << 63));
}

#[test]
fn windows_may_be_wrong_from_some_call_on() {
    assert_sound(Fault::FromThenOn(u64::MAX));
}

/// An address whose window at bit 24 is always inverted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Skewed(u64);

impl BitString for Skewed {
    const BITS: u32 = 64;

    fn window(&self, pos: u32) -> u64 {
        if pos == 24 { !self.0 << 24 } else { self.0.window(pos) }
    }
}

impl Address for Skewed {
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        Self(window(0))
    }
}

#[test]
fn windows_may_contradict_each_other() {
    let mut table = RouteTable::new();
    let at = 0x1234_5678_9ABC_DEF0;
    table.insert(Prefix::new(Skewed(at), 30).expect("it fits"), Box::new(2));
    for slot in 0..64 {
        let address = Skewed(at & !(63 << 34) | slot << 34);
        assert!(table.lookup(&address).is_none_or(|(_, value)| **value == 2));
        let mut found = [table.lookup(&address)];
        table.lookup_batch(&[address], |i, route| found[i] = route);
        assert!(found[0].is_none_or(|(_, value)| **value == 2));
    }
}

/// An address of more bits than are read once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Wide(Inconsistent, [u8; 20]);

impl BitString for Wide {
    const BITS: u32 = 32 + 160;

    fn window(&self, pos: u32) -> u64 {
        self.0.window(32);
        (self.0.0, self.1).window(pos)
    }
}

impl Address for Wide {
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        let (head, rest) = <(u32, [u8; 20])>::from_windows(window);
        Self(Inconsistent(head), rest)
    }
}

/// The slot of a route is read before its node is created.
#[test]
fn an_insertion_that_panics_leaves_no_node_without_routes() {
    FAULT.set(Fault::Panic);
    let route = |byte, len| Prefix::new(Wide(address(1), [byte; 20]), len).expect("it fits");
    for right in 0..8 {
        let mut table = RouteTable::from([(route(9, 60), 1)]);
        let new = route(7, 70);
        wrong_after(right, || _ = table.insert(new, 2));
        assert_eq!(table.validate(), Ok(()), "after {right} windows");
        assert_eq!(table.len(), 1 + usize::from(table.contains(&new)));
    }
}
