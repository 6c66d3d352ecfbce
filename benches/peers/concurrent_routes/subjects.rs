//! Ways of sharing a route table between threads.

use std::sync::{Arc, Mutex, RwLock};

use arc_swap::ArcSwap;
use flowtable::Prefix;
use flowtable::concurrent::{ConcurrentRoutes, Pinned};
use left_right::{Absorb, ReadHandle, ReadHandleFactory, WriteHandle};

use super::feed::{Table, Update};
use crate::routes::family::Family;
use crate::subject::BURST;

/// The lookups of [`BURST`] addresses under one pin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookups {
    Single,
    Burst,
}

/// A table that looks up addresses.
pub(crate) trait LookUp<A> {
    fn one(&self, address: &A) -> Option<(Prefix<A>, &u32)>;

    fn batch<'t>(&'t self, addresses: &[A], found: &mut [Option<(Prefix<A>, &'t u32)>]);
}

impl<A: Family> LookUp<A> for Table<A> {
    #[inline(always)]
    fn one(&self, address: &A) -> Option<(Prefix<A>, &u32)> {
        self.lookup(address)
    }

    #[inline(always)]
    fn batch<'t>(&'t self, addresses: &[A], found: &mut [Option<(Prefix<A>, &'t u32)>]) {
        self.lookup_batch(addresses, |i, route| found[i] = route);
    }
}

impl<A: Family> LookUp<A> for Pinned<'_, ConcurrentRoutes<A, u32>> {
    #[inline(always)]
    fn one(&self, address: &A) -> Option<(Prefix<A>, &u32)> {
        self.lookup(address)
    }

    #[inline(always)]
    fn batch<'t>(&'t self, addresses: &[A], found: &mut [Option<(Prefix<A>, &'t u32)>]) {
        self.lookup_batch(addresses, |i, route| found[i] = route);
    }
}

impl Lookups {
    /// Looks up addresses. Returns a sum of the routes, so that they are used.
    #[inline(always)]
    fn run<A: Family>(self, table: &impl LookUp<A>, addresses: &[A]) -> u64 {
        let number =
            |(prefix, &value): (Prefix<A>, &u32)| u64::from(prefix.len()) << 32 | u64::from(value);
        if self == Self::Single {
            return addresses.iter().filter_map(|address| table.one(address)).map(number).sum();
        }
        let mut found = [None; BURST];
        table.batch(addresses, &mut found);
        found.into_iter().flatten().map(number).sum()
    }
}

/// A table that one thread reads while another one updates it.
pub(crate) trait SharedTable<A>: Sync {
    /// The state of a reading thread.
    type Reader;

    fn new(table: Table<A>) -> Self;
    fn reader(&self) -> Self::Reader;

    /// Looks up addresses, and returns the sum of [`Lookups::run`].
    fn read(&self, reader: &Self::Reader, lookups: Lookups, addresses: &[A]) -> u64;

    /// Applies updates, which become visible one by one or at once.
    fn update(&self, updates: &[Update<A>]);
}

pub(crate) type Ours<A> = ConcurrentRoutes<A, u32>;

impl<A: Family> SharedTable<A> for Ours<A> {
    type Reader = ();

    fn new(table: Table<A>) -> Self {
        table.into()
    }

    fn reader(&self) {}

    #[inline]
    fn read(&self, (): &(), lookups: Lookups, addresses: &[A]) -> u64 {
        lookups.run(&self.pin(), addresses)
    }

    fn update(&self, updates: &[Update<A>]) {
        self.apply(updates.iter().copied()).expect("the garbage is below its limit");
    }
}

/// Without a writer.
impl<A: Family> SharedTable<A> for Table<A> {
    type Reader = ();

    fn new(table: Table<A>) -> Self {
        table
    }

    fn reader(&self) {}

    #[inline]
    fn read(&self, (): &(), lookups: Lookups, addresses: &[A]) -> u64 {
        lookups.run(self, addresses)
    }

    fn update(&self, _: &[Update<A>]) {
        unreachable!("there is no writer");
    }
}

fn apply<A: Family>(table: &mut Table<A>, updates: &[Update<A>]) {
    for &(prefix, value) in updates {
        match value {
            Some(value) => table.insert(prefix, value),
            None => table.remove(&prefix),
        };
    }
}

/// A table that is not shared: updates are made to another one.
pub(crate) struct Apart<A> {
    read: Table<A>,
    written: Mutex<Table<A>>,
}

impl<A: Family> SharedTable<A> for Apart<A> {
    type Reader = ();

    fn new(table: Table<A>) -> Self {
        Self { written: Mutex::new(table.clone()), read: table }
    }

    fn reader(&self) {}

    #[inline]
    fn read(&self, (): &(), lookups: Lookups, addresses: &[A]) -> u64 {
        lookups.run(&self.read, addresses)
    }

    fn update(&self, updates: &[Update<A>]) {
        apply(&mut self.written.lock().expect("no thread panics"), updates);
    }
}

impl<A: Family> SharedTable<A> for RwLock<Table<A>> {
    type Reader = ();

    fn new(table: Table<A>) -> Self {
        Self::new(table)
    }

    fn reader(&self) {}

    #[inline]
    fn read(&self, (): &(), lookups: Lookups, addresses: &[A]) -> u64 {
        lookups.run(&*RwLock::read(self).expect("no thread panics"), addresses)
    }

    fn update(&self, updates: &[Update<A>]) {
        apply(&mut self.write().expect("no thread panics"), updates);
    }
}

/// Copied as a whole for each call of `update`.
impl<A: Family> SharedTable<A> for ArcSwap<Table<A>> {
    type Reader = ();

    fn new(table: Table<A>) -> Self {
        Self::from_pointee(table)
    }

    fn reader(&self) {}

    #[inline]
    fn read(&self, (): &(), lookups: Lookups, addresses: &[A]) -> u64 {
        lookups.run(&**self.load(), addresses)
    }

    fn update(&self, updates: &[Update<A>]) {
        let mut table = Table::<A>::clone(&self.load());
        apply(&mut table, updates);
        self.store(Arc::new(table));
    }
}

/// An entry of the log of `left-right`.
pub(crate) struct Op<A>(Update<A>);

impl<A: Family> Absorb<Op<A>> for Table<A> {
    fn absorb_first(&mut self, op: &mut Op<A>, _: &Self) {
        apply(self, &[op.0]);
    }

    fn sync_with(&mut self, first: &Self) {
        self.clone_from(first);
    }
}

pub(crate) struct LeftRight<A: Family> {
    write: Mutex<WriteHandle<Table<A>, Op<A>>>,
    readers: ReadHandleFactory<Table<A>>,
}

/// Published after each call of `update`.
impl<A: Family> SharedTable<A> for LeftRight<A> {
    type Reader = ReadHandle<Table<A>>;

    fn new(table: Table<A>) -> Self {
        let (write, reader) = left_right::new_from_empty(table);
        Self { write: Mutex::new(write), readers: reader.factory() }
    }

    fn reader(&self) -> ReadHandle<Table<A>> {
        self.readers.handle()
    }

    #[inline]
    fn read(&self, reader: &ReadHandle<Table<A>>, lookups: Lookups, addresses: &[A]) -> u64 {
        lookups.run(&*reader.enter().expect("the writer is alive"), addresses)
    }

    fn update(&self, updates: &[Update<A>]) {
        let mut write = self.write.lock().expect("no thread panics");
        for &update in updates {
            write.append(Op(update));
        }
        write.publish();
    }
}
