//! Ways of sharing a table.

use std::sync::{Arc, Mutex, RwLock};

use arc_swap::ArcSwap;
use flowtable::concurrent::ConcurrentRoutes;
use left_right::{Absorb, ReadHandle, ReadHandleFactory, WriteHandle};

use super::feed::{Table, Update};

/// A table that one thread reads and another one changes.
pub(crate) trait Shared: Sync {
    /// What a reading thread has of its own.
    type Reader;

    fn new(table: Table) -> Self;
    fn reader(&self) -> Self::Reader;

    /// Calls `look` with a table that does not change meanwhile.
    fn read<R>(&self, reader: &Self::Reader, look: impl FnOnce(&Table) -> R) -> R;

    /// Readers see them one after the other, or all at once.
    fn update(&self, updates: &[Update]);

    /// Updates that readers do not see yet.
    fn pending(&self) -> usize {
        0
    }
}

pub(crate) type Ours = ConcurrentRoutes<std::net::Ipv4Addr, u32>;

impl Shared for Ours {
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
        let is_accepted = match *updates {
            [(prefix, Some(value))] => self.insert(prefix, value).is_ok(),
            [(prefix, None)] => self.remove(&prefix).is_ok(),
            _ => self.apply(updates.iter().copied()).is_ok(),
        };
        assert!(is_accepted, "the limit is far away");
    }

    fn pending(&self) -> usize {
        ConcurrentRoutes::pending(self)
    }
}

/// For as long as nobody changes it.
impl Shared for Table {
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
        unreachable!("nobody changes it");
    }
}

fn put(table: &mut Table, updates: &[Update]) {
    for &(prefix, value) in updates {
        match value {
            Some(value) => table.insert(prefix, value),
            None => table.remove(&prefix),
        };
    }
}

impl Shared for RwLock<Table> {
    type Reader = ();

    fn new(table: Table) -> Self {
        Self::new(table)
    }

    fn reader(&self) {}

    #[inline]
    fn read<R>(&self, (): &(), look: impl FnOnce(&Table) -> R) -> R {
        look(&RwLock::read(self).expect("nobody panics"))
    }

    fn update(&self, updates: &[Update]) {
        put(&mut self.write().expect("nobody panics"), updates);
    }
}

/// Copied as a whole for each call.
impl Shared for ArcSwap<Table> {
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
        put(&mut table, updates);
        self.store(Arc::new(table));
    }
}

/// An entry of its log.
pub(crate) struct Op(Update);

impl Absorb<Op> for Table {
    fn absorb_first(&mut self, op: &mut Op, _: &Self) {
        put(self, &[op.0]);
    }

    fn sync_with(&mut self, first: &Self) {
        self.clone_from(first);
    }
}

pub(crate) struct LeftRight {
    write: Mutex<WriteHandle<Table, Op>>,
    readers: ReadHandleFactory<Table>,
}

/// Published after each call.
impl Shared for LeftRight {
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
        look(&reader.enter().expect("the writer is there"))
    }

    fn update(&self, updates: &[Update]) {
        let mut write = self.write.lock().expect("nobody panics");
        for &update in updates {
            write.append(Op(update));
        }
        write.publish();
    }
}
