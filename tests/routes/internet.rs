//! `RouteTable` with the routes of the Internet, compared with a reference model, and a sample of
//! them with `LcRouteTable`.
//!
//! The routes are in the data folder (see `capture::data`); without it these tests are skipped.

use core::fmt::Debug;
use core::hash::Hash;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use flowtable::key::bits::Address;
use flowtable::routes::RouteShape;
use flowtable::trie::routes::LcRouteTable;
use flowtable::{Prefix, RouteTable};
use model::routes::by_length::RoutesByLength;
use model::scaled;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// The routes of one family, in the order of the file.
fn routes<A: Address + FromStr>(lines: &str) -> Vec<Prefix<A>> {
    lines.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The table, its reference model, and the routes in random order.
struct Real<A> {
    ours: RouteTable<A, u32>,
    model: RoutesByLength<A, u32>,
    routes: Vec<Prefix<A>>,
    rng: StdRng,
}

/// The number of addresses of each kind.
const ADDRESSES: usize = scaled(100_000, 4000, 20_000);

impl<A: Address + Debug + Hash> Real<A> {
    fn new(mut routes: Vec<Prefix<A>>) -> Self {
        let mut rng = StdRng::seed_from_u64(1);
        routes.shuffle(&mut rng);
        let (mut ours, mut model) = (RouteTable::new(), RoutesByLength::new());
        for (&route, value) in routes.iter().zip(0..) {
            assert_eq!((ours.insert(route, value), model.insert(route, value)), (None, None));
        }
        Self { ours, model, routes, rng }
    }

    fn anywhere(&mut self) -> A {
        let bits: [u64; 2] = self.rng.random();
        A::from_windows(|pos| bits[usize::from(pos > 0)])
    }

    /// A random address in a prefix.
    fn inside(&mut self, prefix: &Prefix<A>) -> A {
        let (first, other) = (prefix.address(), self.anywhere());
        let hidden = other.truncated(prefix.len());
        A::from_windows(|pos| first.window(pos) | (other.window(pos) ^ hidden.window(pos)))
    }

    /// Uniform ones, those in any route, those in a few popular ones, and both ends of routes.
    fn addresses(&mut self) -> [Vec<A>; 4] {
        let count = self.routes.len() as f64;
        let uniform = (0..ADDRESSES).map(|_| self.anywhere()).collect();
        let covered = (0..ADDRESSES).map(|_| {
            let at = self.rng.random_range(0..self.routes.len());
            let route = self.routes[at];
            self.inside(&route)
        });
        let covered = covered.collect();
        let popular = (0..ADDRESSES).map(|_| {
            // The logarithms of Zipf's ranks are uniform, about.
            let route = self.routes[count.powf(self.rng.random::<f64>()) as usize - 1];
            self.inside(&route)
        });
        let popular = popular.collect();
        let all = A::from_windows(|_| u64::MAX);
        let ends =
            self.routes.iter().step_by(self.routes.len() / ADDRESSES + 1).flat_map(|route| {
                let (first, hidden) = (route.address(), all.truncated(route.len()));
                let last = A::from_windows(|pos| {
                    first.window(pos) | (all.window(pos) ^ hidden.window(pos))
                });
                [first, last]
            });
        [uniform, covered, popular, ends.collect()]
    }

    /// Compares all lookups, one by one and in batches.
    fn compare(&mut self) {
        self.ours.validate().unwrap_or_else(|broken| panic!("{broken}"));
        assert_eq!(self.ours.len(), self.model.len());
        for addresses in self.addresses() {
            let mut found = vec![None; addresses.len()];
            self.ours.lookup_batch(&addresses, |i, route| found[i] = route);
            for (address, found) in addresses.iter().zip(found) {
                assert_eq!(found, self.model.lookup(address), "{address:?}");
                assert_eq!(found, self.ours.lookup(address), "{address:?}");
            }
            let mut values = vec![None; addresses.len()];
            self.ours.lookup_batch_values(&addresses, |i, value| values[i] = value);
            for (address, value) in addresses.iter().zip(values) {
                let found = self.model.lookup(address);
                assert_eq!(value, found.map(|(_, value)| value), "{address:?}");
            }
        }
        assert!(self.ours.prefixes().eq(self.model.prefixes()));
        for route in self.routes.iter().step_by(101) {
            assert_eq!(self.ours.get(route), self.model.get(route));
            let covers = (0..=route.len()).filter_map(|len| {
                let cover = Prefix::new(route.address(), len).expect("it is in range");
                Some((cover, self.model.get(&cover)?))
            });
            assert!(self.ours.covering(route).eq(covers), "{route:?}");
        }
    }

    /// Compares lookups with `LcRouteTable` for one route in `every`.
    fn compare_with_reference(&mut self, every: usize) {
        let sample = self.routes.iter().zip(0..).step_by(every);
        let sample: Vec<(Prefix<A>, u32)> = sample.map(|(&route, value)| (route, value)).collect();
        let ours: RouteTable<A, u32> = sample.iter().copied().collect();
        let mut reference = LcRouteTable::new();
        for &(route, value) in &sample {
            assert_eq!(reference.insert(route, value), None);
        }
        assert!(ours.iter().eq(reference.iter()));
        for addresses in self.addresses() {
            for address in addresses.iter().step_by(5) {
                assert_eq!(ours.lookup(address), reference.lookup(address), "{address:?}");
            }
        }
    }

    /// Withdraws routes, and announces most of them again, in other orders.
    fn update(&mut self, count: usize) {
        for round in 0..count / 100 {
            let picks: Vec<usize> =
                (0..60).map(|_| self.rng.random_range(0..self.routes.len())).collect();
            for &at in &picks {
                let route = self.routes[at];
                assert_eq!(self.ours.remove(&route), self.model.remove(&route), "{route:?}");
            }
            for (&at, value) in picks.iter().rev().zip(0..40) {
                let (route, value) = (self.routes[at], round as u32 + value);
                let old = self.model.insert(route, value);
                assert_eq!(self.ours.insert(route, value), old, "{route:?}");
            }
        }
        self.routes.retain(|route| self.model.get(route).is_some());
    }

    /// Removes the last routes until `left` remain, and returns the allocated bytes.
    fn withdraw(&mut self, left: usize) -> usize {
        for route in self.routes.drain(left..) {
            let value = self.model.remove(&route);
            assert!(value.is_some());
            assert_eq!(self.ours.remove(&route), value, "{route:?}");
        }
        self.ours.allocation_size()
    }
}

/// Runs all comparisons; `bytes_per_route` is the upper bound of the memory. Seeds are fixed.
fn test<A: Address + FromStr + Debug + Hash>(count: usize, every: usize, bytes_per_route: f64) {
    let Some(lines) = capture::data::routes("routes::internet") else { return };
    // One route in some of the table.
    const SOME: usize = scaled(1, 8, 1);
    let all = routes(&lines);
    assert_eq!(all.len(), count);
    let count = count.div_ceil(SOME);
    let mut real: Real<A> = Real::new(all.into_iter().step_by(SOME).collect());
    let bytes = real.ours.allocation_size();
    assert_eq!(real.ours.len(), count);
    let per_route = bytes as f64 / count as f64;
    println!("{bytes} bytes, {per_route:.1} for each of {count} routes");
    assert!(SOME > 1 || per_route <= bytes_per_route, "{per_route} bytes for a route");
    real.compare();
    real.compare_with_reference(every);
    real.update(scaled(100_000, 4000, 20_000));
    real.compare();
    assert!(real.ours.len() > count * 3 / 4);
    real.routes.shuffle(&mut StdRng::seed_from_u64(2));
    let half = real.withdraw(count / 2);
    println!("{half} bytes for half of them");
    real.compare();
    assert_eq!(real.withdraw(0), 0, "all memory is freed");
    assert!(real.ours.is_empty() && real.ours.iter().next().is_none());
    real.ours.validate().unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn v4_routes_of_the_whole_internet() {
    test::<Ipv4Addr>(901_899, 10, 24.0);
}

#[test]
fn v6_routes_of_the_whole_internet() {
    test::<Ipv6Addr>(160_147, 2, 46.0);
}

/// The numbers in the documentation of `RouteTable`, for these routes in random order.
#[test]
fn the_documented_shape() {
    fn shape<A: Address + FromStr>(lines: &str) -> RouteShape {
        let mut routes = routes::<A>(lines);
        routes.shuffle(&mut StdRng::seed_from_u64(1));
        // One by one: a collected table has sorted its routes first.
        let mut table = RouteTable::new();
        for (prefix, value) in routes.into_iter().zip(0_u32..) {
            table.insert(prefix, value);
        }
        table.shape()
    }
    #[track_caller]
    fn assert_shape(shape: &RouteShape, tables: usize, nodes: f64, bytes: f64) {
        println!("{shape}");
        assert_eq!(shape.direct_tables, tables);
        assert!((shape.average_nodes() - nodes).abs() < 0.05, "{}", shape.average_nodes());
        let bytes_of_one = shape.bytes() as f64 / shape.routes as f64;
        assert!((bytes_of_one - bytes).abs() < 0.1, "{bytes_of_one} bytes a route, not {bytes}");
    }
    let Some(lines) = capture::data::routes("routes::internet") else { return };
    assert_shape(&shape::<Ipv4Addr>(&lines), 52, 1.0, 15.6);
    assert_shape(&shape::<Ipv6Addr>(&lines), 3, 4.3, 40.4);
}
