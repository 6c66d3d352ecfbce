//! A contestant: a table, and the loops that measure it, compiled for that table alone.

use std::hint::black_box;
use std::time::{Duration, Instant};

use flowtable::Prefix;
use rand::Rng;
use rand::rngs::StdRng;

use super::family::Family;
use crate::contestant::BURST;
use crate::entrant::{Entrant, Timed};

/// A prefix, and a next hop.
#[derive(Clone, Copy)]
pub(crate) struct Route<A> {
    pub(crate) prefix: Prefix<A>,
    pub(crate) value: u32,
}

impl<A: Family> Route<A> {
    /// A next hop of 16 bits; above these is the length of the prefix. So tables that do not tell it
    /// are checked by it, too.
    pub(crate) fn new(prefix: Prefix<A>, rng: &mut StdRng) -> Self {
        Self { prefix, value: prefix.len() << 16 | u32::from(rng.random::<u16>()) }
    }
}

/// A route that is announced, or whose value is replaced; or that is withdrawn, which is no value.
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

/// What a look-up finds.
#[derive(Clone, Copy)]
pub(crate) struct Match {
    /// Bits of the prefix.
    pub(crate) len: u32,
    pub(crate) value: u32,
}

impl Match {
    /// Of a table that does not tell the length.
    #[inline]
    pub(crate) fn silent(value: u32) -> Self {
        Self { len: value >> 16, value }
    }

    /// What is summed up, so that both have to be read.
    #[inline]
    pub(crate) fn digest(self) -> u64 {
        u64::from(self.len) << 32 | u64::from(self.value)
    }
}

/// What a table has to be able to do.
pub(crate) trait Table<A: Family>: Sized {
    fn build(routes: &[Route<A>]) -> Self;

    fn lookup(&self, address: A) -> Option<Match>;

    /// What there is to say of what it looks like inside.
    fn shape(&self) -> Option<String> {
        None
    }

    /// The sum of a burst of look-ups: one after the other, where a table knows nothing better.
    #[inline]
    fn burst(&self, addresses: &[A; BURST]) -> u64 {
        let digests =
            addresses.iter().map(|&address| self.lookup(address).map_or(0, Match::digest));
        digests.fold(0, u64::wrapping_add)
    }
}

/// A table whose routes come and go.
pub(crate) trait Live<A: Family>: Table<A> + Default {
    fn announce(&mut self, prefix: &Prefix<A>, value: u32);
    fn withdraw(&mut self, prefix: &Prefix<A>) -> Option<u32>;
}

/// For those that are built from one route after the other.
#[inline]
pub(crate) fn filled<A: Family, T: Live<A>>(routes: &[Route<A>]) -> T {
    let mut table = T::default();
    routes.iter().for_each(|route| table.announce(&route.prefix, route.value));
    table
}

/// How look-ups follow each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// The machine may overlap them.
    Single,
    /// The value found says which address is next.
    Chain,
    /// In bursts of [`BURST`].
    Burst,
}

/// A table whose type is not known to who makes it work. One call is one turn.
pub(crate) trait Work<A> {
    /// Whether its routes come and go.
    fn is_live(&self) -> bool;

    /// How long it takes to build a table; dropping the former one excluded.
    fn build(&mut self, routes: &[Route<A>]) -> Duration;

    fn look_up(&self, how: How, addresses: &[A]) -> Timed;

    fn shape(&self) -> Option<String>;

    fn update(&mut self, updates: &[Update<A>]) -> Timed;

    /// Applies `updates` to an empty table; notes the nanoseconds from each to the next.
    fn pace(&mut self, updates: &[Update<A>], ns: &mut [u32]);

    fn clear(&mut self);
}

/// The loops of tables whose routes come and go.
struct Loops<A, T> {
    empty: fn() -> T,
    update: fn(&mut T, &[Update<A>]) -> Timed,
    pace: fn(&mut T, &[Update<A>], &mut [u32]),
}

pub(crate) type Contestant<A> = Entrant<dyn Work<A>>;

/// A table; and its loops, if routes come and go.
struct Turns<A, T> {
    table: Option<T>,
    loops: Option<Loops<A, T>>,
}

/// A table whose routes come and go.
pub(crate) fn live<A: Family, T: Live<A> + 'static>() -> Box<dyn Work<A>> {
    let loops = Loops { empty: T::default, update, pace };
    Box::new(Turns { table: None::<T>, loops: Some(loops) })
}

/// A table that is built at once and stays as it is.
pub(crate) fn fixed<A: Family, T: Table<A> + 'static>() -> Box<dyn Work<A>> {
    Box::new(Turns { table: None::<T>, loops: None })
}

impl<A, T> Turns<A, T> {
    fn parts(&mut self) -> (&mut Option<T>, &Loops<A, T>) {
        (&mut self.table, self.loops.as_ref().expect("the table's routes come and go"))
    }
}

impl<A: Family, T: Table<A>> Work<A> for Turns<A, T> {
    fn is_live(&self) -> bool {
        self.loops.is_some()
    }

    fn build(&mut self, routes: &[Route<A>]) -> Duration {
        self.table = None;
        let start = Instant::now();
        self.table = Some(build(black_box(routes)));
        start.elapsed()
    }

    fn look_up(&self, how: How, addresses: &[A]) -> Timed {
        let table = self.table.as_ref().expect("there is a table");
        // As if the addresses were others each time: so no look-up is done ahead of the clock.
        let addresses = black_box(addresses);
        match how {
            How::Single => singles(table, addresses),
            How::Chain => chain(table, addresses),
            How::Burst => bursts(table, addresses),
        }
    }

    fn shape(&self) -> Option<String> {
        self.table.as_ref()?.shape()
    }

    fn update(&mut self, updates: &[Update<A>]) -> Timed {
        let (table, loops) = self.parts();
        (loops.update)(table.as_mut().expect("there is a table"), black_box(updates))
    }

    fn pace(&mut self, updates: &[Update<A>], ns: &mut [u32]) {
        let (table, loops) = self.parts();
        *table = None;
        (loops.pace)(table.insert((loops.empty)()), black_box(updates), ns);
    }

    fn clear(&mut self) {
        self.table = None;
    }
}

#[inline(never)]
fn build<A: Family, T: Table<A>>(routes: &[Route<A>]) -> T {
    T::build(routes)
}

#[inline(never)]
fn singles<A: Family, T: Table<A>>(table: &T, addresses: &[A]) -> Timed {
    let start = Instant::now();
    let mut sum = 0_u64;
    for &address in addresses {
        sum = sum.wrapping_add(table.lookup(address).map_or(0, Match::digest));
    }
    Timed::new(start.elapsed(), addresses.len(), sum)
}

/// Values are small, so it is always the address behind; but the machine cannot know before it has the
/// value. Where nothing is found there is none to wait for: such look-ups may overlap if the machine
/// foresees it.
#[inline(never)]
fn chain<A: Family, T: Table<A>>(table: &T, addresses: &[A]) -> Timed {
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
fn bursts<A: Family, T: Table<A>>(table: &T, addresses: &[A]) -> Timed {
    let start = Instant::now();
    let mut sum = 0_u64;
    for burst in addresses.chunks_exact(BURST) {
        sum = sum.wrapping_add(table.burst(burst.try_into().expect("a burst has that length")));
    }
    Timed::new(start.elapsed(), addresses.len() / BURST * BURST, sum)
}

/// The values that were withdrawn are summed up.
#[inline(never)]
fn update<A: Family, T: Live<A>>(table: &mut T, updates: &[Update<A>]) -> Timed {
    let start = Instant::now();
    let mut sum = 0_u64;
    for update in updates {
        sum = sum.wrapping_add(apply(table, update));
    }
    Timed::new(start.elapsed(), updates.len(), sum)
}

#[inline(never)]
fn pace<A: Family, T: Live<A>>(table: &mut T, updates: &[Update<A>], ns: &mut [u32]) {
    let mut last = Instant::now();
    for (update, ns) in updates.iter().zip(ns) {
        black_box(apply(table, update));
        let now = Instant::now();
        *ns = now.duration_since(last).as_nanos().try_into().unwrap_or(u32::MAX);
        last = now;
    }
}

#[inline(always)]
fn apply<A: Family, T: Live<A>>(table: &mut T, update: &Update<A>) -> u64 {
    match update.value {
        Some(value) => {
            table.announce(&update.prefix, value);
            0
        }
        None => table.withdraw(&update.prefix).map_or(0, u64::from),
    }
}
