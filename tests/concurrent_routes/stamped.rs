//! `ConcurrentStampedRoutes`: against the table for one thread, and the guarantees G1 to G5.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use flowtable::Prefix;
use flowtable::concurrent::{ConcurrentStampedRoutes, Pinned, pin};
use flowtable::key::bits::Address;
use flowtable::routes::{Refreshed, RouteStamp, StampedRoutes};
use model::counted::{Callback, Counted, with_panic};
use model::scaled;
use model::threads::eventually;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::readers::{ENOUGH, MANY, SetWhenDropped, beside_updates};
use super::{random, turn};

const STEPS: u32 = if cfg!(miri) { 100 } else { 3_000 };

type Routes<V> = ConcurrentStampedRoutes<u32, V>;

/// The stamps of a flow, of both tables.
struct Flow<A> {
    address: A,
    ours: RouteStamp,
    model: RouteStamp,
}

/// A table, and the one for one thread as its model.
struct Checked<A: Address> {
    ours: ConcurrentStampedRoutes<A, u32>,
    model: StampedRoutes<A, u32>,
    flows: Vec<Flow<A>>,
    inserted: Vec<Prefix<A>>,
    rng: StdRng,
}

impl<A: Address + Debug + Send> Checked<A> {
    fn new(seed: u64) -> Self {
        let routes = [(Prefix::default_route(), 1), (Prefix::default_route(), 2)];
        let (ours, model) = (routes.into_iter().collect(), routes.into_iter().collect());
        let (flows, inserted) = (Vec::new(), Vec::new());
        Self { ours, model, flows, inserted, rng: StdRng::seed_from_u64(seed) }
    }

    /// Returns a prefix that was inserted, or another one.
    fn prefix(&mut self) -> Prefix<A> {
        let at = self.rng.random_range(0..=2 * self.inserted.len());
        self.inserted.get(at).copied().unwrap_or_else(|| random::prefix(&mut self.rng))
    }

    fn update(&mut self, number: u32) {
        let at = self.prefix();
        if self.rng.random_ratio(3, 5) {
            let is_new = self.model.insert(at, number).is_none();
            assert_eq!(self.ours.insert(at, number), Ok(is_new), "{at:?}");
            self.inserted.push(at);
        } else {
            assert_eq!(self.ours.remove(&at), Ok(self.model.remove(&at).is_some()), "{at:?}");
        }
    }

    /// A flow's packet, in both tables.
    fn packet(&mut self) {
        let address = match self.rng.random_range(0..2) {
            0 => self.prefix().last_address(),
            _ => random::address(&mut self.rng),
        };
        let pinned = self.ours.pin();
        let Some(flow) = self.flows.iter_mut().find(|flow| flow.address == address) else {
            let (ours, found) = pinned.resolve(&address);
            let (model, expected) = self.model.resolve(&address);
            assert_eq!((found, pinned.lookup(&address)), (expected, expected));
            return self.flows.push(Flow { address, ours, model });
        };
        let refreshed = pinned.refresh(&address, &mut flow.ours);
        assert_eq!(refreshed, self.model.refresh(&address, &mut flow.model));
    }

    /// Looks up the addresses of all flows in one burst.
    fn burst(&self) {
        let addresses: Vec<A> = self.flows.iter().map(|flow| flow.address).collect();
        let mut found = vec![];
        let pinned = self.ours.pin();
        pinned.lookup_batch(&addresses, |index, route| {
            assert_eq!(index, found.len());
            found.push(route);
        });
        assert!(found.iter().copied().eq(addresses.iter().map(|address| pinned.lookup(address))));
    }

    fn run(mut self) {
        for step in 0..STEPS {
            match self.rng.random_range(0..2) {
                0 => self.update(step),
                _ => self.packet(),
            }
            for Flow { address, ours, model } in &self.flows {
                let expected = self.model.is_current(model);
                assert_eq!(self.ours.is_current(ours), expected, "{address:?} at {step}");
            }
            if step % 10 == 9 {
                self.burst();
            }
            self.flows.truncate(100);
            if step % 100 == 99 {
                self.ours.validate().unwrap();
                assert!(self.ours.pin().iter().eq(self.model.iter()));
            }
        }
        self.ours.retain(|_, value| value % 2 == 0).unwrap();
        self.model.retain(|_, value| value % 2 == 0);
        assert!(self.ours.pin().iter().eq(self.model.iter()));
        assert!(self.inserted.iter().all(|at| self.ours.pin().get(at) == self.model.get(at)));
        self.ours.clear().unwrap();
        assert!(self.ours.is_empty());
        assert!(self.flows.iter().all(|flow| !self.ours.is_current(&flow.ours)));
        self.ours.validate().unwrap();
    }
}

#[test]
fn stamps_are_current_as_in_the_table_for_one_thread() {
    let _turn = turn();
    Checked::<u8>::new(1).run();
    Checked::<u32>::new(2).run();
    Checked::<u128>::new(3).run();
}

/// The decision of a flow.
#[derive(Clone, Copy, Default)]
struct Decision {
    stamp: RouteStamp,
    value: u32,
}

/// The value that a packet of a flow uses.
fn packet(
    pinned: &Pinned<'_, ConcurrentStampedRoutes<u32, Box<u32>>>,
    address: u32,
    Decision { stamp, value }: &mut Decision,
) -> u32 {
    if !pinned.is_current(stamp) {
        match pinned.refresh(&address, stamp) {
            Refreshed::Same => {}
            Refreshed::Changed(route) => *value = **route.expect("there is always a route").1,
        }
    }
    *value
}

/// Runs readers beside a writer that makes numbered updates. A packet uses the value of an update
/// that is at most `hidden` older than the last one that had returned, and than any value that the
/// thread has used before.
fn packets_beside_updates(routes: &Routes<Box<u32>>, hidden: u32, update: impl FnMut(u32)) {
    const FLOWS: [u32; 4] = [0x0A01_0203; 4];
    let begin = || (routes.pin(), 0, FLOWS.map(|_| Decision::default()));
    beside_updates(begin, update, |(pinned, last, flows), made| {
        for (address, flow) in FLOWS.into_iter().zip(flows) {
            let made_before = made();
            let now = packet(pinned, address, flow);
            assert!(now + hidden >= made_before, "G1: {now} after {made_before}");
            assert!(now + hidden >= *last, "G2: {now} after {last}");
            *last = now.max(*last);
        }
        pinned.repin();
    });
}

fn at(len: u32) -> Prefix<u32> {
    Prefix::new(0x0A01_0203, len).unwrap()
}

#[test]
fn g1_g2_no_flow_uses_a_route_that_was_replaced() {
    let _turn = turn();
    for len in [0, 16, 28] {
        let routes: Routes<Box<u32>> = [(at(len), Box::new(0))].into_iter().collect();
        packets_beside_updates(&routes, 0, |now| {
            eventually("the update is admitted", || routes.insert(at(len), now.into()).is_ok());
        });
        routes.validate().unwrap();
    }
}

#[test]
fn g1_g2_no_flow_uses_a_route_that_was_withdrawn_or_is_covered() {
    let _turn = turn();
    let lens = [8, 24, 32, 6, 12, 25, 18];
    let at = |now: u32| at(lens[now as usize % lens.len()]);
    let routes: Routes<Box<u32>> = [(at(0), Box::new(0))].into_iter().collect();
    // The longer one of two routes hides the later one.
    packets_beside_updates(&routes, 1, |now| {
        let admitted = |update: &dyn Fn() -> Option<bool>| {
            eventually("the update is admitted", || update().inspect(|is| assert!(is)).is_some());
        };
        admitted(&|| routes.insert(at(now), now.into()).ok());
        admitted(&|| routes.remove(&at(now - 1)).ok());
    });
    routes.validate().unwrap();
    assert_eq!(routes.len(), 1);
}

#[test]
fn g1_g2_with_two_writers() {
    let _turn = turn();
    let routes: Routes<Box<u32>> = [(at(16), Box::new(0))].into_iter().collect();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut host = 0_u32;
            while !is_done.load(Ordering::Relaxed) {
                host = (host + 1) % 64;
                let beside = Prefix::host(0x0A01_0300 + host);
                _ = routes.insert(beside, Box::new(host));
                _ = routes.remove(&beside);
            }
        });
        let _done = SetWhenDropped(&is_done);
        packets_beside_updates(&routes, 0, |now| {
            eventually("the update is admitted", || routes.insert(at(16), now.into()).is_ok());
        });
    });
    routes.validate().unwrap();
}

#[test]
fn g3_other_stamps_remain_current() {
    let _turn = turn();
    let lens = [8, 24, 12, 32];
    let beside = Prefix::new(0x0B00_0000_u32, 8).unwrap();
    let routes: Routes<u32> = [(at(8), 1), (beside, 2)].into_iter().collect();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let pinned = routes.pin();
            let (stamps, mut own) = ([0x0B01_0203, 7].map(|to| pinned.resolve(&to).0), 0);
            while !is_done.load(Ordering::Relaxed) {
                assert!(stamps.iter().all(|stamp| routes.is_current(stamp)));
                // Also one that is made now.
                own += u32::from(pinned.is_current(&pinned.resolve(&0x0B00_0001).0));
            }
            assert!(own > 0 || cfg!(miri));
        });
        let start = Instant::now();
        for now in (0..MANY).take_while(|_| start.elapsed() < ENOUGH) {
            for len in lens {
                _ = routes.insert(at(len), now);
            }
            lens[1..].iter().for_each(|&len| _ = routes.remove(&at(len)));
        }
        is_done.store(true, Ordering::Relaxed);
    });
    // Without writers a stamp is current.
    assert!(routes.is_current(&routes.pin().resolve(&0x0A01_0203).0));
}

#[test]
fn g4_stamps_are_checked_under_any_guard_or_none() {
    let _turn = turn();
    let routes: Routes<u32> = [(at(8), 1)].into_iter().collect();
    let guard = pin();
    let pinned = routes.pinned(&guard);
    let (stamp, found) = pinned.resolve(&0x0A00_0001);
    assert_eq!((found, routes.is_current(&stamp)), (Some((at(8), &1)), true));
    assert!(!routes.is_current(&RouteStamp::default()));
    // Not even in a table that has no cells yet.
    let empty = Routes::<u32>::default();
    assert!(!empty.is_current(&RouteStamp::default()) && !empty.is_current(&stamp));
    assert_eq!(
        format!("{routes:?} {empty:?}"),
        format!("{:?} {{}}", [(at(8), 1)].into_iter().collect::<StampedRoutes<_, _>>())
    );
}

#[test]
fn g5_when_a_clone_panics_decisions_look_up_and_are_the_same() {
    let _turn = turn();
    let routes = Routes::<Counted>::new();
    let mut panics = 0;
    for number in 0..scaled(60, 20, 8) {
        let at = Prefix::new(0x0A01_0000 + number % 5, 16 + number % 17).unwrap();
        let mut stamps = [0x0A01_0000, 0x0A01_0003, 7].map(|to| (to, routes.pin().resolve(&to).0));
        let before = routes.len();
        for good in 0.. {
            let act = || match number % 3 {
                2 => routes.remove(&at).is_ok(),
                _ => routes.insert(at, Counted::new(number.into())).is_ok(),
            };
            if with_panic(Callback::Clone, good, act).is_some() {
                break;
            }
            panics += 1;
            assert_eq!(routes.len(), before);
            routes.validate().unwrap();
            for (to, stamp) in &mut stamps {
                let refreshed = routes.pin().refresh(to, stamp) == Refreshed::Same;
                assert!(refreshed && routes.is_current(stamp), "{to:x}");
            }
        }
        routes.validate().unwrap();
        assert!(stamps.iter().all(|(to, _)| routes.is_current(&routes.pin().resolve(to).0)));
    }
    assert!(panics > 5);
}

#[test]
fn a_refused_update_changes_no_stamp() {
    let _turn = turn();
    let routes = Routes::<u32>::new().with_garbage_limit(10_000, 0);
    let pinned = routes.pin();
    let refused = (0..).find_map(|value| routes.insert(at(24), value).err()).unwrap();
    let stamp = pinned.resolve(&0x0A01_0203).0;
    assert!(routes.insert(at(25), 0).is_err() && routes.remove(&at(24)).is_err());
    assert!(routes.clear().is_err() && routes.retain(|_, _| false).is_err());
    assert!(routes.is_current(&stamp) && refused.refused.0 == at(24));
    routes.validate().unwrap();
}

#[test]
fn cells_are_used_again_and_old_stamps_stay_stale() {
    let _turn = turn();
    let count = if cfg!(miri) { 20 } else { 2000 };
    let routes = Routes::<Arc<u32>>::new();
    let (prefix, value) = (|number: u32| Prefix::new(number << 12, 20).unwrap(), Arc::new(7));
    let (mut stamps, mut bytes) = (vec![], None);
    for _ in 0..3 {
        for number in 0..count {
            assert_eq!(routes.insert(prefix(number), value.clone()).ok(), Some(true));
            stamps.push((number << 12, routes.pin().resolve(&(number << 12)).0));
        }
        routes.validate().unwrap();
        let now = routes.allocation_size();
        assert_eq!(*bytes.get_or_insert(now), now, "no cell is lost");
        (0..count).for_each(|number| assert_eq!(routes.remove(&prefix(number)), Ok(true)));
        routes.validate().unwrap();
        for (address, mut stamp) in stamps.iter().copied() {
            assert!(!routes.is_current(&stamp));
            assert_eq!(routes.pin().refresh(&address, &mut stamp), Refreshed::Changed(None));
            assert!(routes.is_current(&stamp));
        }
    }
}

#[test]
fn can_be_sent_and_shared() {
    fn is<T: Send + Sync>() {}
    is::<ConcurrentStampedRoutes<u32, String>>();
}
