//! How updates are made: one way for all of them.
//!
//! ```text
//!     clone values │ pin, lock ─ is the spare copy free? ── yes: catch up, apply, swap ─┐
//!                  │     ↑              │ no                no room: refuse             │
//!                  │     └── help ──────┴── for too long: queue ────────────────────────┴→ unlock │ help, drop
//! ```
//!
//! Only what is between lock and unlock keeps other writers waiting, and that is at most as many updates
//! as the limit allows.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::copies::{Pin, Writer};
use super::log::{Garbage, Log, Update};
use super::{ConcurrentRoutes, WouldExceed};
use crate::concurrent::sync::{IS_CHECKED, yield_now};
use crate::key::bits::Address;
use crate::routes::RouteTable;

/// What has become of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publication {
    /// Every pin that begins from now on has it.
    Visible,
    /// A reader is in the way: it waits for the next update, or for
    /// [`publish`](ConcurrentRoutes::publish).
    Pending,
}

/// How often a writer helps the collector on before it yields: some microseconds, as long as a reader
/// takes for a burst. The collector needs three rounds.
const ROUNDS: usize = if IS_CHECKED || cfg!(miri) { 3 } else { 32 };

/// The lock of a table's writers.
type Locked<'c, A, V> = Writer<'c, RouteTable<A, V>, Log<A, V>>;

impl<A: Address, V: Clone> ConcurrentRoutes<A, V> {
    /// The one way in for updates.
    pub(super) fn write<U>(&self, updates: U) -> Result<Publication, WouldExceed<U>>
    where
        U: IntoIterator<Item = Update<A, V>> + AsRef<[Update<A, V>]>,
    {
        // Outlives the lock: to drop it runs code of the values.
        let mut garbage = Garbage::new();
        let (count, limit) = (updates.as_ref().len(), self.limit);
        let (pin, mut writer, is_free) = self.enter(count, &mut garbage);
        if let Err(retired) = writer.log().admit(count, is_free, limit) {
            return Err(WouldExceed { refused: updates, retired, limit });
        }
        writer.log().extend(updates);
        let settled = if is_free { settle(&pin, &mut writer, &mut garbage) } else { Ok(()) };
        let is_pending = writer.log().pending() > 0;
        drop(writer);
        settled.unwrap_or_else(|panic| resume_unwind(panic));
        // Behind the lock: it runs what others have deferred.
        pin.help();
        Ok(if is_pending { Publication::Pending } else { Publication::Visible })
    }

    /// The lock, and whether the spare copy may be changed. If readers are in the way it helps the
    /// collector on, for some microseconds. It yields only to publish or if `count` more updates have no
    /// room: on a busy machine that may take milliseconds, and to be queued is no loss.
    ///
    /// Each round pins before it takes the lock, and helps the collector behind it: both may run what
    /// others have deferred, such as the drop of a value that writes here.
    fn enter(&self, count: usize, garbage: &mut Garbage<A, V>) -> (Pin, Locked<'_, A, V>, bool) {
        let mut fresh = None;
        let mut round = 0;
        loop {
            let pin = Pin::new();
            let mut writer = self.copies.lock();
            mend(&mut writer, fresh.take(), garbage);
            let torn = writer.log().torn();
            let is_free = torn.is_none() && writer.spare().is_some();
            let is_urgent = count == 0 || writer.log().admit(count, false, self.limit).is_err();
            let patience = if is_urgent { self.patience } else { 0 };
            if is_free || round >= patience.saturating_add(ROUNDS) {
                return (pin, writer, is_free);
            }
            drop(writer);
            match torn {
                Some(version) => fresh = Some((version, RouteTable::clone(&self.pin()))),
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

/// Exchanges a spare copy in which something has panicked for a clone of the active one, of the version
/// that is said, if there is one.
fn mend<A: Address, V>(
    writer: &mut Locked<'_, A, V>,
    fresh: Option<(u64, RouteTable<A, V>)>,
    garbage: &mut Garbage<A, V>,
) {
    let Some((version, mut table)) = fresh else { return };
    // If another thread has been faster, what was cloned may be old.
    let is_wanted = writer.log().torn() == Some(version);
    if let Some((spare, log)) = writer.spare().filter(|_| is_wanted) {
        core::mem::swap(spare, &mut table);
        log.mended();
    }
    garbage.tables.push(table);
}

/// Brings the spare copy up to date and swaps, if there is something new. The copy is free.
///
/// The methods of addresses may panic meanwhile. The copy is good for nothing then; so is all that
/// readers have not seen, part of which is in it.
fn settle<A: Address, V>(
    pin: &Pin,
    writer: &mut Locked<'_, A, V>,
    garbage: &mut Garbage<A, V>,
) -> std::thread::Result<()> {
    let is_new = writer.log().pending() > 0;
    let Some((spare, log)) = writer.spare() else { return Ok(()) };
    let played = catch_unwind(AssertUnwindSafe(|| log.play(spare, garbage)));
    if played.is_err() {
        log.roll_back(garbage);
    } else if is_new {
        log.swapped();
        writer.swap(pin);
    }
    played
}
