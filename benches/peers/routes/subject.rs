//! Route tables as subjects: what is measured, and the loops, compiled for each table.

use std::hint::black_box;
use std::time::{Duration, Instant};

use flowtable::Prefix;
use rand::Rng;
use rand::rngs::StdRng;

use super::family::Family;
use crate::subject::{BURST, Subject, Timed};

/// A prefix with a next hop.
#[derive(Clone, Copy)]
pub(crate) struct Route<A> {
    pub(crate) prefix: Prefix<A>,
    pub(crate) value: u32,
}

impl<A: Family> Route<A> {
    /// Makes a route with a random next hop in the low 16 bits and the length of the prefix above
    /// them, by which tables that do not return the prefix are checked, too.
    pub(crate) fn new(prefix: Prefix<A>, rng: &mut StdRng) -> Self {
        Self { prefix, value: prefix.len() << 16 | u32::from(rng.random::<u16>()) }
    }
}

/// An announcement with a new or changed value, or a withdrawal, which has none.
#[derive(Clone, Copy)]
pub(crate) struct Update<A> {
    pub(crate) prefix: Prefix<A>,
    pub(crate) value: Option<u32>,
}

impl<A: Copy> Update<A> {
    pub(crate) fn announce(route: &Route<A>) -> Self {
        Self { prefix: route.prefix, value: Some(route.value) }
    }

    pub(crate) fn withdraw(route: &Route<A>) -> Self {
        Self { prefix: route.prefix, value: None }
    }
}

/// The result of a lookup.
#[derive(Clone, Copy)]
pub(crate) struct Match {
    /// The length of the prefix.
    pub(crate) len: u32,
    pub(crate) value: u32,
}

impl Match {
    /// The match of a table that does not return the length.
    #[inline]
    pub(crate) fn without_length(value: u32) -> Self {
        Self { len: value >> 16, value }
    }

    /// A term of the sum that depends on both fields.
    #[inline]
    pub(crate) fn digest(self) -> u64 {
        u64::from(self.len) << 32 | u64::from(self.value)
    }
}

/// The methods of a route table that are measured.
pub(crate) trait LpmTable<A: Family>: Sized {
    fn build(routes: &[Route<A>]) -> Self;

    fn lookup(&self, address: A) -> Option<Match>;

    /// A description of the table's structure.
    fn shape(&self) -> Option<String> {
        None
    }

    /// The sum of a batch of lookups; one at a time, unless the table has a batched lookup.
    #[inline]
    fn burst(&self, addresses: &[A; BURST]) -> u64 {
        let digests =
            addresses.iter().map(|&address| self.lookup(address).map_or(0, Match::digest));
        digests.fold(0, u64::wrapping_add)
    }

    /// The sum of a batch of lookups, whose digests are of the values only.
    #[inline]
    fn burst_of_values(&self, addresses: &[A; BURST]) -> u64 {
        self.burst(addresses)
    }
}

/// A route table with updates.
pub(crate) trait Updatable<A: Family>: LpmTable<A> + Default {
    fn announce(&mut self, prefix: &Prefix<A>, value: u32);
    fn withdraw(&mut self, prefix: &Prefix<A>) -> Option<u32>;
}

/// Builds a table that cannot be collected from an iterator by announcing each route.
#[inline]
pub(crate) fn filled<A: Family, T: Updatable<A>>(routes: &[Route<A>]) -> T {
    let mut table = T::default();
    routes.iter().for_each(|route| table.announce(&route.prefix, route.value));
    table
}

/// The dependence of lookups on each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookupMode {
    /// Independent: the CPU may overlap them.
    Single,
    /// The next address depends on the value found.
    Chain,
    /// In batches of [`BURST`].
    Burst,
    /// In batches of [`BURST`], without prefixes.
    Values,
}

/// The benchmarks of one table. One call is one turn.
pub(crate) trait RouteBenchmark<A> {
    /// Whether the table has updates.
    fn is_updatable(&self) -> bool;

    /// Returns the time to build a table. The drop of the former table is not timed.
    fn build(&mut self, routes: &[Route<A>]) -> Duration;

    fn run_lookups(&self, how: LookupMode, addresses: &[A]) -> Timed;

    fn shape(&self) -> Option<String>;

    fn update(&mut self, updates: &[Update<A>]) -> Timed;

    /// Applies `updates` to an empty table, and stores the nanoseconds of each in `ns`.
    fn time_updates(&mut self, updates: &[Update<A>], ns: &mut [u32]);

    fn clear(&mut self);
}

/// The loops of updates.
struct UpdateLoops<A, T> {
    empty: fn() -> T,
    update: fn(&mut T, &[Update<A>]) -> Timed,
    time_updates: fn(&mut T, &[Update<A>], &mut [u32]),
}

pub(crate) type RouteSubject<A> = Subject<dyn RouteBenchmark<A>>;

/// A table, and the loops of its updates if it has any.
struct Loops<A, T> {
    table: Option<T>,
    updates: Option<UpdateLoops<A, T>>,
}

/// Returns the benchmarks of a table with updates.
pub(crate) fn updatable<A: Family, T: Updatable<A> + 'static>() -> Box<dyn RouteBenchmark<A>> {
    let updates = UpdateLoops { empty: T::default, update, time_updates };
    Box::new(Loops { table: None::<T>, updates: Some(updates) })
}

/// Returns the benchmarks of a table without updates.
pub(crate) fn fixed<A: Family, T: LpmTable<A> + 'static>() -> Box<dyn RouteBenchmark<A>> {
    Box::new(Loops { table: None::<T>, updates: None })
}

impl<A, T> Loops<A, T> {
    fn parts(&mut self) -> (&mut Option<T>, &UpdateLoops<A, T>) {
        (&mut self.table, self.updates.as_ref().expect("the table has updates"))
    }
}

impl<A: Family, T: LpmTable<A>> RouteBenchmark<A> for Loops<A, T> {
    fn is_updatable(&self) -> bool {
        self.updates.is_some()
    }

    fn build(&mut self, routes: &[Route<A>]) -> Duration {
        self.table = None;
        let start = Instant::now();
        self.table = Some(build(black_box(routes)));
        start.elapsed()
    }

    fn run_lookups(&self, how: LookupMode, addresses: &[A]) -> Timed {
        let table = self.table.as_ref().expect("the table is built");
        // An opaque value, so that no lookup is moved before the start of the clock.
        let addresses = black_box(addresses);
        match how {
            LookupMode::Single => singles(table, addresses),
            LookupMode::Chain => chain(table, addresses),
            LookupMode::Burst => bursts(table, addresses, T::burst),
            LookupMode::Values => bursts(table, addresses, T::burst_of_values),
        }
    }

    fn shape(&self) -> Option<String> {
        self.table.as_ref()?.shape()
    }

    fn update(&mut self, updates: &[Update<A>]) -> Timed {
        let (table, loops) = self.parts();
        (loops.update)(table.as_mut().expect("the table is built"), black_box(updates))
    }

    fn time_updates(&mut self, updates: &[Update<A>], ns: &mut [u32]) {
        let (table, loops) = self.parts();
        *table = None;
        (loops.time_updates)(table.insert((loops.empty)()), black_box(updates), ns);
    }

    fn clear(&mut self) {
        self.table = None;
    }
}

#[inline(never)]
fn build<A: Family, T: LpmTable<A>>(routes: &[Route<A>]) -> T {
    T::build(routes)
}

#[inline(never)]
fn singles<A: Family, T: LpmTable<A>>(table: &T, addresses: &[A]) -> Timed {
    let start = Instant::now();
    let mut sum = 0_u64;
    for &address in addresses {
        sum = sum.wrapping_add(table.lookup(address).map_or(0, Match::digest));
    }
    Timed::new(start.elapsed(), addresses.len(), sum)
}

/// Looks up one address after the other. The next index depends on the value, whose top bit is
/// always clear, so the CPU cannot overlap lookups, except after a correctly predicted miss.
#[inline(never)]
fn chain<A: Family, T: LpmTable<A>>(table: &T, addresses: &[A]) -> Timed {
    let start = Instant::now();
    let (mut at, mut sum) = (0, 0_u64);
    while let Some(&address) = addresses.get(at) {
        let digest = table.lookup(address).map_or(0, Match::digest);
        sum = sum.wrapping_add(digest);
        at += 1 + (digest as u32 >> 31) as usize;
    }
    Timed::new(start.elapsed(), addresses.len(), sum)
}

#[inline(never)]
fn bursts<A: Family, T: LpmTable<A>>(
    table: &T,
    addresses: &[A],
    burst: impl Fn(&T, &[A; BURST]) -> u64,
) -> Timed {
    let start = Instant::now();
    let mut sum = 0_u64;
    for chunk in addresses.chunks_exact(BURST) {
        let addresses = chunk.try_into().expect("the length of a chunk");
        sum = sum.wrapping_add(burst(table, addresses));
    }
    Timed::new(start.elapsed(), addresses.len() / BURST * BURST, sum)
}

/// Applies updates. The sum is that of the withdrawn values.
#[inline(never)]
fn update<A: Family, T: Updatable<A>>(table: &mut T, updates: &[Update<A>]) -> Timed {
    let start = Instant::now();
    let mut sum = 0_u64;
    for update in updates {
        sum = sum.wrapping_add(apply(table, update));
    }
    Timed::new(start.elapsed(), updates.len(), sum)
}

#[inline(never)]
fn time_updates<A: Family, T: Updatable<A>>(table: &mut T, updates: &[Update<A>], ns: &mut [u32]) {
    let mut last = Instant::now();
    for (update, ns) in updates.iter().zip(ns) {
        black_box(apply(table, update));
        let now = Instant::now();
        *ns = now.duration_since(last).as_nanos().try_into().unwrap_or(u32::MAX);
        last = now;
    }
}

#[inline(always)]
fn apply<A: Family, T: Updatable<A>>(table: &mut T, update: &Update<A>) -> u64 {
    match update.value {
        Some(value) => {
            table.announce(&update.prefix, value);
            0
        }
        None => table.withdraw(&update.prefix).map_or(0, u64::from),
    }
}
