//! Ways of sharing a route table between threads.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, RwLock};

use arc_swap::ArcSwap;
use flowtable::Prefix;
use flowtable::concurrent::{ConcurrentRoutes, PinnedRoutes};
use left_right::{Absorb, ReadHandle, ReadHandleFactory, WriteHandle};

use super::feed::{Table, Update};
use crate::subject::BURST;

/// The lookups of [`BURST`] addresses under one pin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lookups {
    Single,
    Burst,
}

/// A table that looks up addresses.
pub(crate) trait LookUp {
    fn one(&self, address: &Ipv4Addr) -> Option<(Prefix<Ipv4Addr>, &u32)>;

    fn batch<'t>(
        &'t self,
        addresses: &[Ipv4Addr],
        found: &mut [Option<(Prefix<Ipv4Addr>, &'t u32)>],
    );
}

impl LookUp for Table {
    #[inline(always)]
    fn one(&self, address: &Ipv4Addr) -> Option<(Prefix<Ipv4Addr>, &u32)> {
        self.lookup(address)
    }

    #[inline(always)]
    fn batch<'t>(
        &'t self,
        addresses: &[Ipv4Addr],
        found: &mut [Option<(Prefix<Ipv4Addr>, &'t u32)>],
    ) {
        self.lookup_batch(addresses, |i, route| found[i] = route);
    }
}

impl LookUp for PinnedRoutes<'_, Ipv4Addr, u32> {
    #[inline(always)]
    fn one(&self, address: &Ipv4Addr) -> Option<(Prefix<Ipv4Addr>, &u32)> {
        self.lookup(address)
    }

    #[inline(always)]
    fn batch<'t>(
        &'t self,
        addresses: &[Ipv4Addr],
        found: &mut [Option<(Prefix<Ipv4Addr>, &'t u32)>],
    ) {
        self.lookup_batch(addresses, |i, route| found[i] = route);
    }
}

impl Lookups {
    /// Looks up addresses. Returns a sum of the routes, so that they are used.
    #[inline(always)]
    fn run(self, table: &impl LookUp, addresses: &[Ipv4Addr]) -> u64 {
        let number = |(prefix, &value): (Prefix<Ipv4Addr>, &u32)| {
            u64::from(prefix.len()) << 32 | u64::from(value)
        };
        if self == Self::Single {
            return addresses.iter().filter_map(|address| table.one(address)).map(number).sum();
        }
        let mut found = [None; BURST];
        table.batch(addresses, &mut found);
        found.into_iter().flatten().map(number).sum()
    }
}

/// A table that one thread reads while another one updates it.
pub(crate) trait SharedTable: Sync {
    /// The state of a reading thread.
    type Reader;

    fn new(table: Table) -> Self;
    fn reader(&self) -> Self::Reader;

    /// Looks up addresses, and returns the sum of [`Lookups::run`].
    fn read(&self, reader: &Self::Reader, lookups: Lookups, addresses: &[Ipv4Addr]) -> u64;

    /// Applies updates, which become visible one by one or at once.
    fn update(&self, updates: &[Update]);
}

pub(crate) type Ours = ConcurrentRoutes<Ipv4Addr, u32>;

impl SharedTable for Ours {
    type Reader = ();

    fn new(table: Table) -> Self {
        table.into()
    }

    fn reader(&self) {}

    #[inline]
    fn read(&self, (): &(), lookups: Lookups, addresses: &[Ipv4Addr]) -> u64 {
        lookups.run(&self.pin(), addresses)
    }

    fn update(&self, updates: &[Update]) {
        self.apply(updates.iter().copied()).expect("the garbage is below its limit");
    }
}

/// Without a writer.
impl SharedTable for Table {
    type Reader = ();

    fn new(table: Table) -> Self {
        table
    }

    fn reader(&self) {}

    #[inline]
    fn read(&self, (): &(), lookups: Lookups, addresses: &[Ipv4Addr]) -> u64 {
        lookups.run(self, addresses)
    }

    fn update(&self, _: &[Update]) {
        unreachable!("there is no writer");
    }
}

fn apply(table: &mut Table, updates: &[Update]) {
    for &(prefix, value) in updates {
        match value {
            Some(value) => table.insert(prefix, value),
            None => table.remove(&prefix),
        };
    }
}

/// A table that is not shared: updates are made to another one.
pub(crate) struct Apart {
    read: Table,
    written: Mutex<Table>,
}

impl SharedTable for Apart {
    type Reader = ();

    fn new(table: Table) -> Self {
        Self { written: Mutex::new(table.clone()), read: table }
    }

    fn reader(&self) {}

    #[inline]
    fn read(&self, (): &(), lookups: Lookups, addresses: &[Ipv4Addr]) -> u64 {
        lookups.run(&self.read, addresses)
    }

    fn update(&self, updates: &[Update]) {
        apply(&mut self.written.lock().expect("no thread panics"), updates);
    }
}

impl SharedTable for RwLock<Table> {
    type Reader = ();

    fn new(table: Table) -> Self {
        Self::new(table)
    }

    fn reader(&self) {}

    #[inline]
    fn read(&self, (): &(), lookups: Lookups, addresses: &[Ipv4Addr]) -> u64 {
        lookups.run(&*RwLock::read(self).expect("no thread panics"), addresses)
    }

    fn update(&self, updates: &[Update]) {
        apply(&mut self.write().expect("no thread panics"), updates);
    }
}

/// Copied as a whole for each call of `update`.
impl SharedTable for ArcSwap<Table> {
    type Reader = ();

    fn new(table: Table) -> Self {
        Self::from_pointee(table)
    }

    fn reader(&self) {}

    #[inline]
    fn read(&self, (): &(), lookups: Lookups, addresses: &[Ipv4Addr]) -> u64 {
        lookups.run(&**self.load(), addresses)
    }

    fn update(&self, updates: &[Update]) {
        let mut table = Table::clone(&self.load());
        apply(&mut table, updates);
        self.store(Arc::new(table));
    }
}

/// An entry of the log of `left-right`.
pub(crate) struct Op(Update);

impl Absorb<Op> for Table {
    fn absorb_first(&mut self, op: &mut Op, _: &Self) {
        apply(self, &[op.0]);
    }

    fn sync_with(&mut self, first: &Self) {
        self.clone_from(first);
    }
}

pub(crate) struct LeftRight {
    write: Mutex<WriteHandle<Table, Op>>,
    readers: ReadHandleFactory<Table>,
}

/// Published after each call of `update`.
impl SharedTable for LeftRight {
    type Reader = ReadHandle<Table>;

    fn new(table: Table) -> Self {
        let (write, reader) = left_right::new_from_empty(table);
        Self { write: Mutex::new(write), readers: reader.factory() }
    }

    fn reader(&self) -> ReadHandle<Table> {
        self.readers.handle()
    }

    #[inline]
    fn read(&self, reader: &ReadHandle<Table>, lookups: Lookups, addresses: &[Ipv4Addr]) -> u64 {
        lookups.run(&*reader.enter().expect("the writer is alive"), addresses)
    }

    fn update(&self, updates: &[Update]) {
        let mut write = self.write.lock().expect("no thread panics");
        for &update in updates {
            write.append(Op(update));
        }
        write.publish();
    }
}
