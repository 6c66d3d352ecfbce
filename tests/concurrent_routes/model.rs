//! `ConcurrentRoutes` against a `RouteTable`, by random updates of all lengths.

use std::fmt::Debug;
use std::sync::Arc;

use flowtable::concurrent::ConcurrentRoutes;
use flowtable::key::bits::Address;
use flowtable::{Prefix, RouteTable};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::random;
use super::{after_collection, turn};
use ::model::scaled;

const STEPS: u32 = scaled(6_000, 600, 150);

/// Every how many steps all invariants are checked.
const CHECK: u32 = if cfg!(miri) { 75 } else { 300 };

type Value = Arc<u64>;

/// A table, its reference model, and the prefixes that were inserted.
struct Checked<A: Address> {
    routes: ConcurrentRoutes<A, Value>,
    model: RouteTable<A, Value>,
    inserted: Vec<Prefix<A>>,
    rng: StdRng,
}

impl<A: Address + Debug + Send> Checked<A> {
    fn new(seed: u64) -> Self {
        let (routes, model) = (ConcurrentRoutes::new(), RouteTable::new());
        Self { routes, model, inserted: Vec::new(), rng: StdRng::seed_from_u64(seed) }
    }

    /// Returns a prefix that was inserted, or another one.
    fn known(&mut self) -> Prefix<A> {
        if self.inserted.is_empty() || self.rng.random_ratio(1, 8) {
            return random::prefix(&mut self.rng);
        }
        let at = self.rng.random_range(0..self.inserted.len());
        self.inserted[at]
    }

    fn insert(&mut self) {
        let at =
            if self.rng.random_ratio(1, 4) { self.known() } else { random::prefix(&mut self.rng) };
        let value = Arc::new(self.rng.random());
        let is_new = self.model.insert(at, Arc::clone(&value)).is_none();
        assert_eq!(self.routes.insert(at, value), Ok(is_new));
        self.inserted.push(at);
    }

    fn remove(&mut self) {
        let at = self.known();
        let existed = self.model.remove(&at).is_some();
        assert_eq!(self.routes.remove(&at), Ok(existed));
    }

    /// Compares the lookups of addresses in and beside a route.
    fn look_up(&mut self) {
        let addresses: Vec<A> = (0..40)
            .map(|nth| match nth % 3 {
                0 => random::address(&mut self.rng),
                1 => self.known().address(),
                _ => self.known().last_address(),
            })
            .collect();
        let pinned = self.routes.pin();
        let (mut found, mut values) = ([None; 40], [None; 40]);
        pinned.lookup_batch(&addresses, |i, route| found[i] = route);
        pinned.lookup_batch_values(&addresses, |i, value| values[i] = value);
        for (address, (found, value)) in addresses.iter().zip(found.into_iter().zip(values)) {
            let expected = self.model.lookup(address);
            assert_eq!(pinned.lookup(address), expected, "{address:?}");
            assert_eq!((found, value), (expected, expected.map(|(_, value)| value)));
        }
        for at in [self.inserted.last(), self.inserted.first()].into_iter().flatten() {
            assert_eq!(pinned.get(at), self.model.get(at));
        }
        assert_eq!(self.routes.len(), self.model.len());
    }

    fn check(&self) {
        self.routes.validate().unwrap();
        assert!(self.routes.pin().iter().eq(self.model.iter()));
    }

    fn run(mut self) {
        for step in 0..STEPS {
            // Grows, and shrinks again.
            let grows = step / (STEPS / 6) % 2 == 0;
            match self.rng.random_range(0..8) {
                0..3 => self.insert(),
                3 if grows => self.insert(),
                3..7 if !grows => self.remove(),
                4 => self.remove(),
                _ if step % 8 == 0 => self.look_up(),
                _ => {}
            }
            if step % CHECK == 0 {
                self.check();
            }
        }
        self.check();
        self.bulk();
        // All of them one by one: what is left is an empty table.
        let prefixes: Vec<_> = self.model.prefixes().collect();
        for at in prefixes {
            assert_eq!(self.routes.remove(&at), Ok(true));
        }
        assert!(self.routes.is_empty());
        self.routes.validate().unwrap();
        after_collection("garbage is freed", || self.routes.garbage() == 0);
        assert_eq!(
            self.routes.allocation_size(),
            ConcurrentRoutes::<A, Value>::new().allocation_size()
        );
    }

    /// Operations on all routes.
    fn bulk(&mut self) {
        let copy = ConcurrentRoutes::from(self.model.clone());
        copy.validate().unwrap();
        assert!(copy.pin().iter().eq(self.model.iter()));
        let withdrawn = self.model.values().filter(|value| ***value % 3 == 0).count();
        self.model.retain(|_, value| **value % 3 != 0);
        assert_eq!(self.routes.retain(|_, value| **value % 3 != 0), Ok(withdrawn));
        self.check();
        let routes = copy.pin().iter().take(30).map(|(at, value)| (at, value.clone())).collect();
        let table: RouteTable<A, Value> = routes;
        copy.replace(table.clone()).unwrap();
        copy.validate().unwrap();
        assert!(copy.pin().iter().eq(table.iter()));
        copy.clear().unwrap();
        copy.validate().unwrap();
        assert!(copy.is_empty() && copy.pin().iter().next().is_none());
        let updates = table.iter().map(|(at, value)| (at, Some(value.clone())));
        copy.apply(updates).unwrap();
        assert!(copy.pin().iter().eq(table.iter()));
        copy.apply(table.prefixes().map(|at| (at, None))).unwrap();
        assert!(copy.is_empty());
    }
}

#[test]
fn addresses_of_8_bits() {
    let _turn = turn();
    Checked::<u8>::new(1).run();
}

#[test]
fn addresses_of_16_bits() {
    let _turn = turn();
    Checked::<u16>::new(2).run();
}

#[test]
fn addresses_of_ipv4() {
    let _turn = turn();
    Checked::<std::net::Ipv4Addr>::new(3).run();
}

#[test]
fn addresses_of_64_bits() {
    let _turn = turn();
    Checked::<u64>::new(4).run();
}

#[test]
fn addresses_of_ipv6() {
    let _turn = turn();
    Checked::<std::net::Ipv6Addr>::new(5).run();
}

#[test]
fn addresses_of_256_bits() {
    let _turn = turn();
    Checked::<[u8; 32]>::new(6).run();
}

#[test]
fn values_of_any_size_and_alignment() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(align(128))]
    struct Wide([u64; 20]);

    let _turn = turn();
    let (small, wide) = (ConcurrentRoutes::<u32, ()>::new(), ConcurrentRoutes::new());
    let mut rng = StdRng::seed_from_u64(7);
    let mut model = RouteTable::new();
    for number in 0..if cfg!(miri) { 12 } else { 600_u32 } {
        let at: Prefix<u32> = random::prefix(&mut rng);
        small.insert(at, ()).unwrap();
        wide.insert(at, Wide([number.into(); 20])).unwrap();
        model.insert(at, Wide([number.into(); 20]));
    }
    assert!(small.pin().iter().map(|(at, ())| at).eq(model.prefixes()));
    assert!(wide.pin().iter().eq(model.iter()));
    for at in model.prefixes() {
        assert_eq!(wide.pin().lookup(&at.address()), model.lookup(&at.address()));
    }
    small.validate().unwrap();
    wide.validate().unwrap();
}
