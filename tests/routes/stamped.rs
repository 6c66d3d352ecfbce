//! Stamps of routes: a decision is stale if and only if its route has changed.

use flowtable::Prefix;
use flowtable::routes::{Refreshed, RouteStamp, StampedRoutes};
use model::cases;
use proptest::collection::vec;
use proptest::prelude::*;

/// A route of the model: the number of the change with which it began tells it from all others.
type Route = (Prefix<u16>, u32);

#[derive(Clone, Copy, Debug)]
enum Op {
    Insert(Prefix<u16>),
    Remove(Prefix<u16>),
    Retain(u32),
    Extract(u32),
    Clear,
    /// A packet of the flow of this address, which has a decision from then on.
    Packet(u16),
}

/// The routes, and the decision of each flow: its stamp, and the route of the model.
#[derive(Default)]
struct Run {
    ours: StampedRoutes<u16, u32>,
    routes: Vec<Route>,
    flows: Vec<(u16, RouteStamp, Option<Route>)>,
    changes: u32,
}

impl Run {
    fn best(&self, address: u16) -> Option<Route> {
        let inside = self.routes.iter().filter(|(prefix, _)| prefix.contains(&address));
        inside.max_by_key(|(prefix, _)| prefix.len()).copied()
    }

    fn covering(&self, prefix: Prefix<u16>) -> Option<Route> {
        let upper = self
            .routes
            .iter()
            .filter(|(other, _)| other.len() < prefix.len() && other.contains(&prefix.address()));
        upper.max_by_key(|(other, _)| other.len()).copied()
    }

    /// Checks that a change leaves the stamps of all flows alone but those of these routes.
    fn assert_others_current(&self, before: &[bool], touched: &[Option<Route>]) {
        for ((address, stamp, route), was_current) in self.flows.iter().zip(before) {
            let is_current = self.ours.is_current(stamp);
            assert!(!is_current || *was_current, "{address}: a stamp never becomes current");
            assert!(!is_current || self.best(*address) == *route, "{address}: stale, unnoticed");
            let is_touched = touched.contains(route);
            assert!(is_touched || is_current == *was_current, "{address} of {route:?}");
        }
    }

    fn step(&mut self, op: Op) {
        let current: Vec<bool> =
            self.flows.iter().map(|(_, stamp, _)| self.ours.is_current(stamp)).collect();
        match op {
            Op::Insert(prefix) => {
                self.changes += 1;
                let old = self.routes.iter().position(|(other, _)| *other == prefix);
                let old = old.map(|at| self.routes.swap_remove(at));
                let touched = [old.or_else(|| self.covering(prefix))];
                self.routes.push((prefix, self.changes));
                let before = self.ours.insert(prefix, self.changes);
                assert_eq!(before, old.map(|(_, value)| value));
                self.assert_others_current(&current, &touched);
            }
            Op::Remove(prefix) => {
                let old = self.routes.iter().position(|(other, _)| *other == prefix);
                let old = old.map(|at| self.routes.swap_remove(at));
                assert_eq!(self.ours.remove(&prefix), old.map(|(_, value)| value));
                let touched: Vec<_> = old.into_iter().map(Some).collect();
                self.assert_others_current(&current, &touched);
            }
            Op::Retain(modulus) => {
                let is_kept = |value: u32| value % modulus != 0;
                let gone = self.routes.iter().filter(|route| !is_kept(route.1));
                let touched: Vec<_> = gone.map(|route| Some(*route)).collect();
                self.routes.retain(|route| is_kept(route.1));
                self.ours.retain(|_, value| is_kept(*value));
                self.assert_others_current(&current, &touched);
            }
            Op::Extract(modulus) => {
                let is_removed = |value: u32| value % modulus == 0;
                let mut gone = self.routes.clone();
                gone.retain(|route| is_removed(route.1));
                gone.sort_unstable();
                self.routes.retain(|route| !is_removed(route.1));
                let removed = self.ours.extract_if(|_, value| is_removed(*value));
                assert!(removed.eq(gone.iter().copied()));
                let touched: Vec<_> = gone.into_iter().map(Some).collect();
                self.assert_others_current(&current, &touched);
            }
            Op::Clear => {
                self.routes.clear();
                self.ours.clear();
            }
            Op::Packet(address) => self.packet(address),
        }
        assert_eq!(self.ours.len(), self.routes.len());
        let addresses: Vec<u16> = (0..40).map(|at| at * 1639).collect();
        let mut found = [None; 41];
        self.ours.lookup_batch(&addresses, |i, route| found[i] = route);
        assert!(found.iter().zip(&addresses).all(|(found, at)| *found == self.ours.lookup(at)));
        self.ours.validate().unwrap_or_else(|broken| panic!("{broken}"));
    }

    /// The decision of a flow is the same if and only if its route is.
    fn packet(&mut self, address: u16) {
        let best = self.best(address);
        assert_eq!(self.ours.lookup(&address).map(|(at, value)| (at, *value)), best);
        let at = self.flows.iter().position(|flow| flow.0 == address).unwrap_or_else(|| {
            let (stamp, found) = match address % 2 {
                0 => self.ours.resolve(&address),
                // A flow without a decision has to make one.
                _ => {
                    let mut stamp = RouteStamp::default();
                    assert!(!self.ours.is_current(&stamp));
                    match self.ours.refresh(&address, &mut stamp) {
                        Refreshed::Same => panic!("there was no decision"),
                        Refreshed::Changed(found) => (stamp, found),
                    }
                }
            };
            assert_eq!(found.map(|(at, value)| (at, *value)), best);
            self.flows.push((address, stamp, best));
            self.flows.len() - 1
        });
        let (_, stamp, route) = &mut self.flows[at];
        if self.ours.is_current(stamp) {
            return assert_eq!(*route, best);
        }
        match self.ours.refresh(&address, stamp) {
            Refreshed::Same => assert_eq!(*route, best),
            Refreshed::Changed(found) => {
                assert_ne!(*route, best);
                *route = found.map(|(at, value)| (at, *value));
                assert_eq!(*route, best);
            }
        }
        assert!(self.ours.is_current(stamp));
    }
}

/// Few prefixes and addresses, so that they meet.
fn prefixes() -> impl Strategy<Value = Prefix<u16>> {
    (0..16_u16, 0..=16_u32)
        .prop_map(|(bits, len)| Prefix::new(bits << 12 | bits, len).expect("at most 16 bits"))
}

fn addresses() -> impl Strategy<Value = u16> {
    (0..16_u16, 0..16_u16).prop_map(|(high, low)| high << 12 | low)
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => prefixes().prop_map(Op::Insert),
        4 => prefixes().prop_map(Op::Remove),
        12 => addresses().prop_map(Op::Packet),
        1 => (1..5_u32).prop_map(Op::Retain),
        1 => (2..6_u32).prop_map(Op::Extract),
        1 => Just(Op::Clear),
    ];
    vec(op, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(100, 1)))]

    #[test]
    fn exactly_the_flows_under_a_change_are_stale(ops in ops()) {
        let mut run = Run::default();
        ops.into_iter().for_each(|op| run.step(op));
    }
}

#[test]
fn cells_are_reused_and_old_stamps_stay_stale() {
    let mut routes = StampedRoutes::<u32, u32>::new();
    let prefix = |number| Prefix::new(number << 12, 20).expect("it is 20 bits long");
    let mut stamps = vec![];
    for round in 0..3 {
        for number in 0..2000 {
            routes.insert(prefix(number), round);
            stamps.push((number << 12, routes.resolve(&(number << 12)).0));
        }
        let bytes = routes.allocation_size();
        routes.validate().unwrap_or_else(|broken| panic!("{broken}"));
        (0..2000).for_each(|number| assert_eq!(routes.remove(&prefix(number)), Some(round)));
        routes.validate().unwrap_or_else(|broken| panic!("{broken}"));
        assert!(routes.is_empty() && bytes > 2000 * 16 && bytes < 2000 * 200, "{bytes}");
        for (address, mut stamp) in stamps.iter().copied() {
            assert!(!routes.is_current(&stamp));
            assert_eq!(routes.refresh(&address, &mut stamp), Refreshed::Changed(None));
            assert!(routes.is_current(&stamp));
        }
    }
    // A copy has its own changes.
    let mut copy = routes.clone();
    let (stamp, _) = routes.resolve(&5);
    copy.insert(prefix(0), 1);
    assert_eq!((routes.is_current(&stamp), copy.is_current(&stamp)), (true, false));
    assert_eq!(size_of::<RouteStamp>(), 12);
}
