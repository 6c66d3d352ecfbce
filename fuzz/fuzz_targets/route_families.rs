//! `Routes` and `PrefixSet` compared with an ordered map, and decisions by `StampedRoutes` and
//! `ConcurrentStampedRoutes` with what the map answers: a decision that is current is right.
#![no_main]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arbitrary::Arbitrary;
use flowtable::concurrent::ConcurrentStampedRoutes;
use flowtable::routes::{PrefixSet, Refreshed, RouteStamp, StampedRoutes};
use flowtable::{AnyPrefix, Prefix, Routes};
use libfuzzer_sys::fuzz_target;

/// The maximum number of steps.
const MANY: usize = 100;

#[derive(Arbitrary, Debug)]
struct Input {
    ops: Vec<Op>,
}

/// A prefix of either family. Few bits differ, so that prefixes cover each other.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Seed {
    is_wide: bool,
    flipped: u8,
    len: u8,
}

impl Seed {
    fn address(self) -> IpAddr {
        let bits = (0xa5_u128 << 120) ^ 1_u128.rotate_right(u32::from(self.flipped % 128));
        match self.is_wide {
            false => Ipv4Addr::from_bits((bits >> 96) as u32).into(),
            true => Ipv6Addr::from_bits(bits).into(),
        }
    }

    fn prefix(self) -> AnyPrefix {
        let len = self.len % if self.is_wide { 129 } else { 33 };
        AnyPrefix::new(self.address(), len).expect("within the address")
    }
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Op {
    Insert(Seed),
    Remove(Seed),
    RemoveCovered(Seed),
    Lookup([Seed; 3]),
    /// Decides for an address, and keeps the decision.
    Resolve(Seed),
    Retain(u8),
    Collect,
    /// Of the set with the prefixes that are this long, or longer.
    Sets(u8),
    Clear,
}

type Model = BTreeMap<AnyPrefix, u64>;
type Narrow = Prefix<Ipv4Addr>;

/// A decision: the address, the stamp, and the route and its value.
struct Decision<'t> {
    address: Ipv4Addr,
    stamps: [RouteStamp; 2],
    route: Option<(Narrow, u64)>,
    routes: &'t ConcurrentStampedRoutes<Ipv4Addr, u64>,
}

struct Tables<'t> {
    model: Model,
    routes: Routes<u64>,
    set: PrefixSet<Ipv4Addr>,
    stamped: StampedRoutes<Ipv4Addr, u64>,
    shared: &'t ConcurrentStampedRoutes<Ipv4Addr, u64>,
    decisions: Vec<Decision<'t>>,
}

fuzz_target!(|input: Input| {
    let shared = ConcurrentStampedRoutes::new().with_garbage_limit(usize::MAX, 0);
    let mut tables = Tables {
        model: Model::new(),
        routes: Routes::new(),
        set: PrefixSet::new(),
        stamped: StampedRoutes::new(),
        shared: &shared,
        decisions: Vec::new(),
    };
    for (op, now) in input.ops.into_iter().take(MANY).zip(0..) {
        tables.step(op, now);
        tables.check_decisions();
    }
    tables.check();
});

fn lookup(model: &Model, address: IpAddr) -> Option<(AnyPrefix, &u64)> {
    let containing = model.iter().filter(|(prefix, _)| prefix.contains(address));
    containing.map(|(prefix, value)| (*prefix, value)).max_by_key(|(prefix, _)| prefix.len())
}

impl Tables<'_> {
    fn step(&mut self, op: Op, now: u64) {
        match op {
            Op::Insert(seed) => self.insert(seed.prefix(), now),
            Op::Remove(seed) => self.remove(seed.prefix()),
            Op::RemoveCovered(seed) => {
                let prefix = seed.prefix();
                let covered = self.model.keys().copied().filter(|one| prefix.covers(one));
                let covered: Vec<AnyPrefix> = covered.collect();
                let mut copy = self.routes.clone();
                let removed = match &prefix {
                    AnyPrefix::V4(prefix) => copy.v4.remove_covered(prefix),
                    AnyPrefix::V6(prefix) => copy.v6.remove_covered(prefix),
                };
                assert_eq!(removed, covered.len());
                covered.into_iter().for_each(|one| self.remove(one));
                assert_eq!(copy, self.routes);
            }
            Op::Lookup(seeds) => self.look_up(seeds),
            Op::Resolve(seed) => self.resolve(Seed { is_wide: false, ..seed }),
            Op::Retain(most) => self.retain(|prefix| prefix.len() <= most % 64),
            Op::Collect => {
                self.routes = self.routes.clone().into_iter().collect();
                self.set = self.set.clone().into_iter().collect();
            }
            Op::Sets(least) => {
                let is_long = |prefix: &Narrow| prefix.len() >= u32::from(least % 33);
                let long: PrefixSet<Ipv4Addr> = self.set.iter().filter(is_long).collect();
                assert_eq!(self.set.union(&long), self.set);
                assert_eq!(self.set.intersection(&long), long);
                assert!(self.set.difference(&long).iter().all(|prefix| !is_long(&prefix)));
            }
            Op::Clear => self.retain(|_| false),
        }
    }

    fn insert(&mut self, prefix: AnyPrefix, now: u64) {
        let old = self.model.insert(prefix, now);
        assert_eq!(self.routes.insert(prefix, now), old);
        if let AnyPrefix::V4(prefix) = prefix {
            assert_eq!(self.set.insert(prefix), old.is_none());
            assert_eq!(self.stamped.insert(prefix, now), old);
            assert_eq!(self.shared.insert(prefix, now), Ok(old.is_none()));
        }
    }

    fn remove(&mut self, prefix: AnyPrefix) {
        let old = self.model.remove(&prefix);
        assert_eq!(self.routes.remove(&prefix), old);
        if let AnyPrefix::V4(prefix) = prefix {
            assert_eq!(self.set.remove(&prefix), old.is_some());
            assert_eq!(self.stamped.remove(&prefix), old);
            assert_eq!(self.shared.remove(&prefix), Ok(old.is_some()));
        }
    }

    fn retain(&mut self, keep: impl Fn(AnyPrefix) -> bool) {
        let before = self.model.len();
        self.model.retain(|prefix, _| keep(*prefix));
        // By either method.
        if before % 2 == 0 {
            self.routes.retain(|prefix, _| keep(prefix));
            self.set.retain(|prefix| keep(prefix.into()));
            self.stamped.retain(|prefix, _| keep(prefix.into()));
        } else {
            self.routes.retain(|prefix, _| keep(prefix));
            assert_eq!(self.routes.len(), self.model.len());
            let removed = self.set.extract_if(|prefix| !keep(prefix.into())).count();
            assert_eq!(removed, self.stamped.extract_if(|at, _| !keep(at.into())).count());
        }
        assert!(self.shared.retain(|prefix, _| keep(prefix.into())).is_ok());
    }

    fn look_up(&self, seeds: [Seed; 3]) {
        let addresses = seeds.map(Seed::address);
        let (mut found, mut values) = ([None; 3], [None; 3]);
        self.routes.lookup_batch(&addresses, |i, route| found[i] = route);
        self.routes.lookup_batch(&addresses, |i, route| values[i] = route.map(|it| it.1));
        for ((address, found), value) in addresses.into_iter().zip(found).zip(values) {
            let expected = lookup(&self.model, address);
            assert_eq!(self.routes.lookup(address), expected);
            assert_eq!((found, value), (expected, expected.map(|(_, value)| value)));
            let IpAddr::V4(address) = address else { continue };
            let narrow =
                self.stamped.lookup(&address).map(|(prefix, value)| (prefix.into(), value));
            assert_eq!(narrow, expected);
            assert_eq!(self.set.lookup(&address).map(AnyPrefix::from), expected.map(|(at, _)| at));
        }
        for prefix in seeds.map(Seed::prefix) {
            assert_eq!(self.routes.get(&prefix), self.model.get(&prefix));
            let AnyPrefix::V4(narrow) = prefix else { continue };
            let covered = self.model.keys().copied().filter(|one| prefix.covers(one));
            assert!(self.set.covered(&narrow).map(AnyPrefix::from).eq(covered));
            let covering = self.model.keys().copied().filter(|one| one.covers(&prefix));
            assert!(self.set.covering(&narrow).map(AnyPrefix::from).eq(covering));
        }
    }

    fn resolve(&mut self, seed: Seed) {
        let IpAddr::V4(address) = seed.address() else { unreachable!("of IPv4") };
        let (stamp, route) = self.stamped.resolve(&address);
        let route = route.map(|(prefix, value)| (prefix, *value));
        let pin = self.shared.pin();
        let (other, there) = pin.resolve(&address);
        assert_eq!(there.map(|(prefix, value)| (prefix, *value)), route);
        let (stamps, routes) = ([stamp, other], self.shared);
        self.decisions.push(Decision { address, stamps, route, routes });
    }

    /// Checks that current decisions are right, and refreshes the others.
    fn check_decisions(&mut self) {
        let Self { decisions, stamped, model, .. } = self;
        for Decision { address, stamps: [one, other], route, routes } in decisions {
            let now = lookup(model, (*address).into());
            let now = now.map(|(prefix, value)| (prefix.try_into().expect("of IPv4"), *value));
            let pin = routes.pin();
            let is_same = *route == now;
            assert!(is_same || !stamped.is_current(one) && !routes.is_current(other));
            if !stamped.is_current(one) {
                let refreshed = stamped.refresh(address, one);
                assert_eq!(matches!(refreshed, Refreshed::Same), is_same);
            }
            if !routes.is_current(other) {
                let refreshed = pin.refresh(address, other);
                assert_eq!(matches!(refreshed, Refreshed::Same), is_same);
            }
            assert!(stamped.is_current(one) && routes.is_current(other));
            *route = now;
        }
    }

    fn check(&self) {
        let all = || self.model.iter().map(|(prefix, value)| (*prefix, value));
        assert!(self.routes.iter().eq(all()));
        let narrow = || {
            let narrow = all().filter(|(prefix, _)| prefix.is_ipv4());
            narrow.map(|(prefix, value)| (Narrow::try_from(prefix).expect("of IPv4"), value))
        };
        assert!(self.set.iter().eq(narrow().map(|(prefix, _)| prefix)));
        assert!(self.stamped.iter().eq(narrow()));
        assert!(self.shared.pin().iter().eq(narrow()));
        self.stamped.validate().expect("invariant");
        self.shared.validate().expect("invariant");
    }
}
