//! R6 of `SnapshotRoutes`: values that panic when they are cloned or dropped, or that use the
//! table, and addresses that panic. Every value is dropped exactly once, and readers see nothing
//! half-done.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use flowtable::ConcurrentMap;
use flowtable::concurrent::{Publication, SnapshotRoutes, pin};
use flowtable::{Prefix, RouteTable};
use model::bit_strings::{Panicking, with_call, with_panic_after};
use model::counted::{Callback, Counted, alive, forget_leaked, with_panic};
use model::threads::eventually;

use super::turn;

const MANY: u8 = if cfg!(miri) { 6 } else { 100 };

type Routes = SnapshotRoutes<u8, Counted>;

fn at(number: u8) -> Prefix<u8> {
    Prefix::new(number, u32::from(number) % 9).unwrap()
}

fn value(number: u8) -> Counted {
    Counted::new(number.into())
}

/// Living values are in the two copies, once each, and nowhere else.
fn check(routes: &Routes) {
    assert_eq!(routes.publish(), Publication::Visible);
    let pinned = routes.pin();
    if !cfg!(miri) {
        pinned.validate().unwrap();
    }
    assert!(pinned.values().all(Counted::is_alive));
    assert_eq!(alive(), 2 * pinned.len());
}

#[test]
fn r6_values_are_dropped_once() {
    let _turn = turn();
    let routes = Routes::new().with_limit(20 * size_of::<Counted>(), 0);
    for round in 0..3 {
        let pinned = (round == 1).then(|| routes.pin());
        for number in 0..MANY {
            drop(routes.insert(at(number), value(number)));
            let _ = routes.remove(&at(number / 2));
            let burst =
                (number..number.saturating_add(3)).map(|at| (self::at(at), Some(value(at))));
            drop(routes.apply(burst));
        }
        drop(pinned);
        check(&routes);
    }
    let pinned = routes.pin();
    (0..9).for_each(|number| drop(routes.insert(at(number), value(number))));
    drop(pinned);
    assert!(routes.pending() > 0);
    drop(routes);
    assert_eq!(alive(), 0);
}

#[test]
fn r6_when_a_clone_panics_nothing_has_changed() {
    let _turn = turn();
    let routes = Routes::new();
    let burst = || (0..5).map(|number| (at(number), Some(value(number))));
    assert!(with_panic(Callback::Clone, 0, || routes.insert(at(1), value(1))).is_none());
    assert!(with_panic(Callback::Clone, 3, || routes.apply(burst())).is_none());
    assert_eq!((alive(), routes.len(), routes.pending()), (0, 0, 0));
    assert_eq!(routes.apply(burst()), Ok(Publication::Visible));
    check(&routes);
    let table = RouteTable::clone(&routes.pin());
    drop(routes);
    assert!(with_panic(Callback::Clone, 3, || Routes::from(table)).is_none());
    assert_eq!(alive(), 0);
}

#[test]
fn r6_when_a_drop_panics_the_update_has_been_made() {
    let _turn = turn();
    let routes = Routes::new();
    for number in 0..MANY {
        routes.insert(at(number), value(number)).unwrap();
    }
    for number in 0..MANY {
        // The value in the one copy is replaced now, that in the other one by the next update.
        let new = with_panic(Callback::Drop, 0, || routes.insert(at(number), value(200)));
        assert!(new.is_none() || routes.pin().get(&at(number)).is_some());
        assert_eq!(routes.pin().get(&at(number)), Some(&value(200)));
    }
    check(&routes);
    let pinned = routes.pin();
    let none = (0..MANY).map(|number| (at(number), None));
    assert!(with_panic(Callback::Drop, 2, || routes.apply(none)).is_none());
    assert!(!pinned.is_empty() && routes.is_empty());
    drop(pinned);
    assert!(with_panic(Callback::Drop, 1, || routes.publish()).is_none());
    check(&routes);
    forget_leaked();
}

/// A value whose drop changes the table that it was in.
#[derive(Clone, Debug)]
struct Meddler(Option<Rc<SnapshotRoutes<u8, Meddler>>>);

impl Drop for Meddler {
    fn drop(&mut self) {
        let Some(routes) = self.0.take() else { return };
        routes.insert(Prefix::host(9), Self(None)).unwrap();
        routes.publish();
        assert!(routes.pin().contains(&Prefix::host(9)) && routes.pending() == 0);
    }
}

#[test]
fn r6_a_value_may_use_the_table_when_it_is_dropped() {
    let _turn = turn();
    let routes = Rc::new(SnapshotRoutes::new());
    routes.insert(Prefix::host(1), Meddler(Some(Rc::clone(&routes)))).unwrap();
    routes.remove(&Prefix::host(1)).unwrap();
    routes.publish();
    assert!(routes.pin().prefixes().eq([Prefix::host(9)]));
    routes.remove(&Prefix::host(9)).unwrap();
    routes.publish();
    assert_eq!(Rc::strong_count(&routes), 1);
}

fn panicking(number: u32) -> Prefix<Panicking> {
    Prefix::new(Panicking(number.wrapping_mul(0x9e37_79b9)), number % 33).unwrap()
}

/// Routes with reference models: what readers see, and what they see once all updates are
/// published.
struct Checked {
    routes: SnapshotRoutes<Panicking, Counted>,
    visible: RouteTable<Panicking, u64>,
    written: RouteTable<Panicking, u64>,
}

impl Checked {
    /// Applies updates; `window` panics after `calls` calls. Returns whether it panicked.
    fn apply(&mut self, numbers: &[u32], calls: Option<u64>) -> bool {
        let burst: Vec<_> = numbers.iter().map(|&at| (panicking(at), u64::from(at))).collect();
        let values =
            burst.iter().map(|&(at, value)| (at, Some(Counted::new(value)))).collect::<Vec<_>>();
        match with_panic_after(calls, || self.routes.apply(values)) {
            Ok(publication) => {
                self.written.extend(burst);
                if publication == Ok(Publication::Visible) {
                    self.visible = self.written.clone();
                }
                false
            }
            Err(_) => {
                self.written = self.visible.clone();
                assert_eq!(self.routes.pending(), 0, "unpublished updates are discarded");
                true
            }
        }
    }

    fn check(&self) {
        let pinned = self.routes.pin();
        if !cfg!(miri) {
            pinned.validate().unwrap();
        }
        assert!(pinned.values().all(Counted::is_alive));
        let seen = pinned.iter().map(|(at, value)| (at, value.number));
        assert!(seen.eq(self.visible.iter().map(|(at, &value)| (at, value))));
    }
}

#[test]
fn r6_when_an_address_panics_readers_see_what_they_saw() {
    let _turn = turn();
    let routes = SnapshotRoutes::new();
    let mut checked = Checked { routes, visible: RouteTable::new(), written: RouteTable::new() };
    let mut panics = 0;
    for number in 0..4 * u32::from(MANY) {
        // Every fourth time updates are pending when the panic happens.
        if number % 4 == 0 {
            let _pin = pin();
            (0..3).for_each(|more| assert!(!checked.apply(&[number + more], None)));
        }
        panics += u32::from(checked.apply(&[number, number + 1], Some(u64::from(number % 29))));
        checked.check();
    }
    assert!(panics > u32::from(MANY) / 4);
    assert_eq!(checked.routes.publish(), Publication::Visible);
    assert_eq!(alive(), 2 * checked.routes.len());
    drop(checked);
    assert_eq!(alive(), 0);
}

#[test]
fn r6_an_update_in_an_update_panics_and_does_not_hang() {
    let _turn = turn();
    let routes = Rc::new(SnapshotRoutes::<Panicking, u32>::new());
    let inner = Rc::clone(&routes);
    let write = move || {
        assert!(inner.pin().is_empty());
        let _ = inner.insert(panicking(1), 1);
    };
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let outer = with_call(write, || routes.insert(panicking(2), 2));
    std::panic::set_hook(hook);
    assert!(outer.is_err() && routes.is_empty());
    assert_eq!(routes.insert(panicking(3), 3), Ok(Publication::Visible));
    assert_eq!(routes.len(), 1);
}

/// Routes that destructors write.
static WRITTEN: LazyLock<SnapshotRoutes<u16, usize>> = LazyLock::new(SnapshotRoutes::new);

static DROPPED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The destructors that this thread runs, one within the other.
    static RUNNING: Cell<usize> = const { Cell::new(0) };
}

/// A value that writes a route when it is dropped.
struct Writes(u16);

impl Drop for Writes {
    fn drop(&mut self) {
        let running = RUNNING.get();
        RUNNING.set(running + 1);
        let _ = WRITTEN.insert(Prefix::host(self.0), running);
        RUNNING.set(running);
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn r6_destructors_of_garbage_that_write_do_not_nest() {
    let _turn = turn();
    let many: u16 = 5000;
    let map = ConcurrentMap::new().with_garbage_limit(usize::MAX, 0);
    // Nothing is freed under this pin. Then all is, and each value writes.
    let guard = pin();
    for number in 0..many {
        map.pin().insert(number, Writes(number)).unwrap();
        map.pin().remove(&number);
        map.pin().flush();
    }
    drop(guard);
    eventually("all values are dropped", || {
        map.pin().flush();
        DROPPED.load(Ordering::Relaxed) == many.into()
    });
    eventually("all routes are visible", || WRITTEN.publish() == Publication::Visible);
    assert!(WRITTEN.pin().values().all(|running| *running == 0));
    assert_eq!(WRITTEN.len(), many.into());
}
