//! Several tables and a map that are read by one thread: with one guard, or with a pin for each.

use std::cell::RefCell;
use std::thread;

use flowtable::concurrent::{ConcurrentMap, Guard, Publication, SnapshotRoutes, pin};
use flowtable::{DefaultHashBuilder, Prefix};

use super::turn;

const UPDATES: u32 = if cfg!(miri) { 4 } else { 40 };

/// Writes to the map, whose garbage is many times its limit.
const WRITES: u32 = if cfg!(miri) { 20 } else { 800 };

/// Repins after which an update is visible: the collector needs three.
const REPINS: usize = 8;

type Routes<A> = SnapshotRoutes<A, u32>;

/// A map whose limit, of which a key may use an eighth, is enough for a hundred batches: those of
/// earlier tests are freed first.
fn flows() -> ConcurrentMap<u32, [u32; 16]> {
    ConcurrentMap::with_hasher(DefaultHashBuilder::with_seed(1)).with_garbage_limit(1 << 21, 0)
}

/// Makes updates of two tables and of a map, and counts those that are visible after `repin`, of
/// each structure.
fn visible(
    repin: &mut impl FnMut(),
    v4: (&Routes<u32>, &mut dyn FnMut() -> Option<u32>),
    v6: (&Routes<u128>, &mut dyn FnMut() -> Option<u32>),
) -> [u32; 2] {
    let mut visible = [0; 2];
    for update in 0..UPDATES {
        v4.0.insert(Prefix::default_route(), update).unwrap();
        v6.0.insert(Prefix::default_route(), update).unwrap();
        for _ in 0..REPINS {
            repin();
            let is_visible = [v4.0.publish(), v6.0.publish()] == [Publication::Visible; 2];
            if is_visible {
                break;
            }
        }
        repin();
        visible[0] += u32::from((v4.1)() == Some(update));
        visible[1] += u32::from((v6.1)() == Some(update));
    }
    visible
}

#[test]
fn one_guard_moves_all_structures_on() {
    let _turn = turn();
    let (v4, v6) = (Routes::<u32>::new(), Routes::<u128>::new());
    let guard = RefCell::new(pin());
    let mut see_v4 = || v4.pinned(&guard.borrow()).lookup(&1).map(|(_, &value)| value);
    let mut see_v6 = || v6.pinned(&guard.borrow()).lookup(&1).map(|(_, &value)| value);
    let mut repin = || guard.borrow_mut().repin();
    assert_eq!(visible(&mut repin, (&v4, &mut see_v4), (&v6, &mut see_v6)), [UPDATES; 2]);
}

#[test]
fn two_pins_of_a_thread_move_on_when_both_are_repinned() {
    let _turn = turn();
    let (v4, v6) = (Routes::<u32>::new(), Routes::<u128>::new());
    let (here, there) = (RefCell::new(v4.pin()), RefCell::new(v6.pin()));
    let mut see_v4 = || here.borrow().lookup(&1).map(|(_, &value)| value);
    let mut see_v6 = || there.borrow().lookup(&1).map(|(_, &value)| value);
    let mut repin = || {
        here.borrow_mut().repin();
        there.borrow_mut().repin();
    };
    assert_eq!(visible(&mut repin, (&v4, &mut see_v4), (&v6, &mut see_v6)), [UPDATES; 2]);
}

#[test]
fn no_write_is_refused_while_all_pins_of_a_thread_are_repinned() {
    let _turn = turn();
    let (routes, flows) = (Routes::<u32>::new(), flows());
    let (mut routes_pin, mut flows_pin) = (routes.pin(), flows.pin());
    let mut shared = pin();
    for write in 0..WRITES {
        flows_pin.insert(7, [write; 16]).expect("its own pin is repinned");
        flows_pin.flush();
        for _ in 0..3 {
            routes_pin.repin();
            flows_pin.repin();
            shared.repin();
        }
        assert_eq!(flows.pinned(&shared).get(&7), Some(&[write; 16]));
    }
}

#[test]
fn a_pin_protects_what_it_has_read_while_others_of_the_thread_are_repinned() {
    let _turn = turn();
    let flows = flows().with_garbage_limit(usize::MAX, 0);
    let mut first = pin();
    let second = flows.pin();
    flows.pinned(&first).insert(7, [0; 16]).unwrap();
    let value = second.get(&7).unwrap();
    for write in 1..WRITES {
        flows.pinned(&first).insert(7, [write; 16]).unwrap();
        flows.pinned(&first).flush();
        first.repin();
    }
    // Reused memory would have another value.
    assert_eq!(value, &[0; 16]);
    assert!(flows.garbage() > 0);
}

#[test]
fn guards_end_in_any_order_and_with_their_thread() {
    thread_local! {
        static KEPT: RefCell<Vec<Guard>> = const { RefCell::new(Vec::new()) };
    }
    let _turn = turn();
    for keep in [false, true] {
        let ended = thread::spawn(move || {
            let mut guards: Vec<Guard> = (0..4).map(|_| pin()).collect();
            // The first one is that of the thread's own participant.
            drop(guards.remove(0));
            guards.push(pin());
            guards.swap(0, 2);
            guards.pop();
            guards.iter_mut().for_each(Guard::repin);
            if keep {
                KEPT.set(guards);
            }
        });
        ended.join().unwrap();
    }
    // No pin is left behind: garbage is freed.
    let flows = flows();
    for write in 0..WRITES {
        let pin = flows.pin();
        pin.insert(7, [write; 16]).expect("no pin is left");
        pin.flush();
    }
}
