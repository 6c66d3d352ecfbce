//! Ways of sharing a route table between threads.

use std::sync::{Arc, Mutex, RwLock};

use arc_swap::ArcSwap;
use flowtable::concurrent::ConcurrentRoutes;
use left_right::{Absorb, ReadHandle, ReadHandleFactory, WriteHandle};

use super::feed::{Table, Update};

/// A table that one thread reads while another one updates it.
pub(crate) trait SharedTable: Sync {
    /// The state of a reading thread.
    type Reader;

    fn new(table: Table) -> Self;
    fn reader(&self) -> Self::Reader;

    /// Calls `look` with a table that does not change during the call.
    fn read<R>(&self, reader: &Self::Reader, look: impl FnOnce(&Table) -> R) -> R;

    /// Applies updates, which become visible one by one or at once.
    fn update(&self, updates: &[Update]);

    /// The number of updates that are not visible to readers yet.
    fn pending(&self) -> usize {
        0
    }
}

pub(crate) type Ours = ConcurrentRoutes<std::net::Ipv4Addr, u32>;

impl SharedTable for Ours {
    type Reader = ();

    fn new(table: Table) -> Self {
        table.into()
    }

    fn reader(&self) {}

    #[inline]
    fn read<R>(&self, (): &(), look: impl FnOnce(&Table) -> R) -> R {
        look(&self.pin())
    }

    fn update(&self, updates: &[Update]) {
        let is_applied = match *updates {
            [(prefix, Some(value))] => self.insert(prefix, value).is_ok(),
            [(prefix, None)] => self.remove(&prefix).is_ok(),
            _ => self.apply(updates.iter().copied()).is_ok(),
        };
        assert!(is_applied, "the table is below its limit");
    }

    fn pending(&self) -> usize {
        ConcurrentRoutes::pending(self)
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
    fn read<R>(&self, (): &(), look: impl FnOnce(&Table) -> R) -> R {
        look(self)
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

impl SharedTable for RwLock<Table> {
    type Reader = ();

    fn new(table: Table) -> Self {
        Self::new(table)
    }

    fn reader(&self) {}

    #[inline]
    fn read<R>(&self, (): &(), look: impl FnOnce(&Table) -> R) -> R {
        look(&RwLock::read(self).expect("no thread panics"))
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
    fn read<R>(&self, (): &(), look: impl FnOnce(&Table) -> R) -> R {
        look(&self.load())
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
    fn read<R>(&self, reader: &ReadHandle<Table>, look: impl FnOnce(&Table) -> R) -> R {
        look(&reader.enter().expect("the writer is alive"))
    }

    fn update(&self, updates: &[Update]) {
        let mut write = self.write.lock().expect("no thread panics");
        for &update in updates {
            write.append(Op(update));
        }
        write.publish();
    }
}
