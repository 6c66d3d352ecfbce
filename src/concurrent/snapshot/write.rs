//! Updates: the one path of all writes.
//!
//! ```text
//!     clone values │ pin, lock ─ is the spare copy free? ── yes: catch up, apply, swap ─┐
//!                  │     ↑              │ no                queue full: refuse          │
//!                  │     └── help ──────┴── for too long: queue ────────────┴→ unlock │ help, drop
//! ```
//!
//! Other writers wait only between lock and unlock, for at most as many updates as the limit
//! allows.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::copies::{Pin, Writer};
use super::log::{Garbage, Log, Update};
use super::{SnapshotRoutes, WouldExceed};
use crate::concurrent::garbage::is_freeing;
use crate::concurrent::sync::{IS_CHECKED, yield_now};
use crate::key::bits::Address;
use crate::memory::Allocator;
use crate::routes::RouteTable;

/// The visibility of an update after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publication {
    /// Every later pin observes the update.
    Visible,
    /// Readers delay the update: it becomes visible with a later update, or by
    /// [`publish`](SnapshotRoutes::publish).
    Pending,
}

/// How often a writer helps the collector before it yields: some microseconds, the duration of a
/// burst of reads. The collector needs three rounds.
const ROUNDS: usize = if IS_CHECKED || cfg!(miri) { 3 } else { 32 };

/// The lock of a table's writers.
type Locked<'c, A, V, M> = Writer<'c, RouteTable<A, V, M>, Log<A, V>>;

impl<A: Address, V: Clone, M: Allocator + Clone> SnapshotRoutes<A, V, M> {
    /// Makes updates, unless they exceed the limit.
    pub(super) fn write<U>(&self, updates: U) -> Result<Publication, WouldExceed<U>>
    where
        U: IntoIterator<Item = Update<A, V>> + AsRef<[Update<A, V>]>,
    {
        // Dropped after the lock is released: that runs code of the values.
        let mut garbage = Garbage::new();
        let (count, limit) = (updates.as_ref().len(), self.limit);
        let (pin, mut writer, is_free) = self.lock_for_update(count, &mut garbage);
        if let Err(retired) = writer.log().admit(count, is_free, limit) {
            return Err(WouldExceed { refused: updates, retired, limit, is_full: false });
        }
        writer.log().extend(updates);
        let caught_up = if is_free { catch_up(&pin, &mut writer, &mut garbage) } else { Ok(()) };
        let is_pending = writer.log().pending() > 0;
        drop(writer);
        caught_up.unwrap_or_else(|panic| resume_unwind(panic));
        // Without the lock: it runs closures that others have deferred.
        pin.help();
        Ok(if is_pending { Publication::Pending } else { Publication::Visible })
    }

    /// Makes a table the active copy, if the spare one has no readers. Updates that are not visible
    /// are dropped: they were made before. The other copy is replaced by a clone before its next
    /// use.
    #[expect(clippy::result_large_err, reason = "what is refused is what came in")]
    pub(super) fn swap_in(
        &self,
        table: RouteTable<A, V, M>,
    ) -> Result<(), WouldExceed<RouteTable<A, V, M>>> {
        // Dropped after the lock is released: that runs code of the values.
        let mut garbage = Garbage::new();
        // No update, so that it yields to readers.
        let (pin, mut writer, _) = self.lock_for_update(0, &mut garbage);
        let mut table = table;
        let retired = writer.log().bytes();
        let Some((spare, log)) = writer.spare() else {
            return Err(WouldExceed { refused: table, retired, limit: self.limit, is_full: false });
        };
        core::mem::swap(spare, &mut table);
        garbage.tables.push(table);
        log.roll_back(&mut garbage);
        log.swapped();
        writer.swap(&pin);
        drop(writer);
        // Without the lock: it runs closures that others have deferred.
        pin.help();
        Ok(())
    }

    /// Takes the lock, and returns whether the spare copy is free. If readers delay that, helps the
    /// collector for some microseconds. Yields only to publish or if `count` more updates exceed
    /// the limit: on a busy CPU that may take milliseconds, and a queued update costs nothing.
    ///
    /// Each round pins before it takes the lock, and helps the collector after it has released the
    /// lock: both may run deferred closures, such as the drop of a value that writes here.
    fn lock_for_update(
        &self,
        count: usize,
        garbage: &mut Garbage<A, V, M>,
    ) -> (Pin, Locked<'_, A, V, M>, bool) {
        let mut clone = None;
        let mut round = 0;
        loop {
            let pin = Pin::new();
            let mut writer = self.copies.lock();
            replace_spare(&mut writer, clone.take(), garbage);
            let is_unused = writer.spare().is_some();
            let is_free = is_unused && writer.log().poisoned().is_none();
            // A clone for a copy that has readers could not be used yet.
            let poisoned = writer.log().poisoned().filter(|_| is_unused);
            let is_urgent = count == 0 || writer.log().admit(count, false, self.limit).is_err();
            // Within a destructor, this thread itself delays the collector.
            let patience = if is_urgent && !is_freeing() { self.patience } else { 0 };
            if is_free || round >= patience.saturating_add(ROUNDS) {
                return (pin, writer, is_free);
            }
            drop(writer);
            match poisoned {
                Some(version) => clone = Some((version, RouteTable::clone(&self.pin()))),
                None => pin.help(),
            }
            drop(pin);
            if round >= ROUNDS {
                yield_now();
            }
            round += 1;
        }
    }
}

/// Replaces a poisoned spare copy by a clone of the active one, if there is one of the right
/// version.
fn replace_spare<A: Address, V, M: Allocator + Clone>(
    writer: &mut Locked<'_, A, V, M>,
    clone: Option<(u64, RouteTable<A, V, M>)>,
    garbage: &mut Garbage<A, V, M>,
) {
    let Some((version, mut table)) = clone else { return };
    // If another thread was faster, the clone may be outdated.
    let is_current = writer.log().poisoned() == Some(version);
    if let Some((spare, log)) = writer.spare().filter(|_| is_current) {
        core::mem::swap(spare, &mut table);
        log.spare_replaced();
    }
    garbage.tables.push(table);
}

/// Brings the spare copy, which is free, up to date, and swaps if there are new updates.
///
/// The methods of addresses may panic meanwhile. That poisons the copy, and drops all updates that
/// are not visible, some of which it contains.
fn catch_up<A: Address, V, M: Allocator + Clone>(
    pin: &Pin,
    writer: &mut Locked<'_, A, V, M>,
    garbage: &mut Garbage<A, V, M>,
) -> std::thread::Result<()> {
    let is_new = writer.log().pending() > 0;
    let Some((spare, log)) = writer.spare() else { return Ok(()) };
    let applied = catch_unwind(AssertUnwindSafe(|| log.apply_to(spare, garbage)));
    if applied.is_err() {
        log.roll_back(garbage);
    } else if is_new {
        log.swapped();
        writer.swap(pin);
    }
    applied
}
