//! The collector of this crate, and the garbage of structures.
//!
//! The collector is not crossbeam's default collector, where a pin of any other library in the
//! process would delay the reclamation of garbage, until the limits refuse writes. Each thread has
//! a participant, which is registered when it pins first.
//!
//! Garbage is memory that is retired and not freed yet. Retired memory is counted and deferred to
//! the collector, which calls back when all earlier pins have ended; then it is freed and
//! subtracted. The collector does not bound garbage: the count does, as writers compare it with a
//! limit first.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::any::Any;
use core::cell::Cell;
use core::hint::black_box;
use core::mem;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crossbeam_epoch::{Guard, LocalHandle};

use super::sync::{Arc, AtomicUsize, FREEING, Freeing, Ordering, fence, yield_now};
use crate::table::error::TryReserveError;

pub(super) use chosen::{is_pinned, pin, register, with_participant};

/// Pins a participant.
#[inline]
pub(super) fn pin_of(participant: &LocalHandle) -> Guard {
    begin_pin();
    participant.pin()
}

/// Orders the accesses of previous pins before the store of the epoch of the next one.
///
/// The end of a pin stores with Release. But the collector may observe the relaxed store of the
/// next pin instead, which by the rules of C++20 does not continue the release sequence.
#[inline]
pub(super) fn begin_pin() {
    // Release: pairs with the Acquire fence of the collector, which has loaded the epoch.
    fence(Ordering::Release);
}

#[cfg(not(crossbeam_loom))]
mod chosen {
    use core::cell::RefCell;
    use core::mem::ManuallyDrop;
    use std::sync::LazyLock;

    use crossbeam_epoch::{Collector, Guard, LocalHandle};

    use super::pin_of;

    static COLLECTOR: LazyLock<Collector> = LazyLock::new(Collector::new);

    std::thread_local! {
        static PARTICIPANT: LocalHandle = register();
        /// The participant of a thread that frees garbage while it ends. It has no destructor, so
        /// that it exists until the very end of a thread.
        static LAST: RefCell<ManuallyDrop<Option<LocalHandle>>> =
            const { RefCell::new(ManuallyDrop::new(None)) };
    }

    /// Registers a participant.
    pub(crate) fn register() -> LocalHandle {
        COLLECTOR.register()
    }

    /// Pins the participant of the thread, or its substitute if the thread is ending and has
    /// unregistered it. A participant that is pinned already stays in its epoch.
    #[inline]
    pub(crate) fn pin() -> Guard {
        PARTICIPANT.try_with(pin_of).unwrap_or_else(|_| pin_other())
    }

    #[cold]
    fn pin_other() -> Guard {
        let last = LAST.with_borrow(|last| last.as_ref().map(pin_of));
        last.unwrap_or_else(|| register().pin())
    }

    /// Calls a function that frees garbage, and may pin. If the thread is ending, all of its pins
    /// are of one participant, and nested: the first pin of a participant frees other garbage, and
    /// a participant for each of them would free that recursively.
    pub(crate) fn with_participant(free: impl FnOnce()) {
        if PARTICIPANT.try_with(|_| ()).is_ok() {
            return free();
        }
        LAST.with_borrow_mut(|last| **last = Some(register()));
        let pin = pin();
        free();
        drop(pin);
        drop(LAST.with_borrow_mut(|last| last.take()));
    }

    /// Returns whether the participant of the thread is pinned, or `None` if the thread is ending
    /// and has unregistered it.
    #[inline]
    pub(crate) fn is_pinned() -> Option<bool> {
        PARTICIPANT.try_with(LocalHandle::is_pinned).ok()
    }
}

/// Under loom, the default collector: only crossbeam can create one for each execution.
#[cfg(crossbeam_loom)]
mod chosen {
    use crossbeam_epoch::LocalHandle;
    pub(crate) use crossbeam_epoch::pin;

    /// Registers a participant.
    pub(crate) fn register() -> LocalHandle {
        crossbeam_epoch::default_collector().register()
    }

    /// Returns whether the participant of the thread is pinned.
    pub(crate) fn is_pinned() -> Option<bool> {
        Some(crossbeam_epoch::is_pinned())
    }

    pub(crate) fn with_participant(free: impl FnOnce()) {
        free();
    }
}

/// The default limit, in bytes.
pub(super) const LIMIT: usize = 64 << 20;

/// How often a writer above the limit helps the collector before it yields: the epoch has to
/// advance twice, and should not fail to because of a reader that has just begun.
const HELP: usize = 4;

/// The number of functions that crossbeam defers at once: as many more append the former ones to
/// its queue.
const BATCH: usize = 64;

/// The cost of a deferred function, in bytes, most of it in the collector: a batch of functions of
/// 32 bytes, one of them used.
pub(super) const OVERHEAD: usize = BATCH * 32 + 256;

/// Tests that there is memory for what the collector allocates when memory is deferred.
///
/// Crossbeam's allocations cannot fail: they end the program. So a writer tests first, while it
/// holds all other memory of the write, and retires nothing if the test fails. Another thread may
/// still take the memory in between. Nothing tests for what crossbeam itself allocates: for the
/// first pin of a thread, when one pin in 128 helps it and fills a batch, and when a thread ends.
pub(super) fn test_memory() -> Result<(), TryReserveError> {
    let mut test = Vec::<u8>::new();
    let reserved = test.try_reserve_exact(2 * OVERHEAD);
    // The compiler would omit an allocation that is not used.
    black_box(&mut test);
    let layout = Layout::array::<u8>(2 * OVERHEAD).map_err(|_| TryReserveError::OVERFLOW)?;
    reserved.map_err(|_| TryReserveError::memory(layout))
}

/// How often a dropped structure helps the collector, which frees eight batches at a time.
const LAST_HELP: usize = 16;

/// The garbage of a structure, and its limit.
#[derive(Debug)]
pub(super) struct Garbage {
    /// The bytes that are deferred and not freed yet.
    retired: Arc<AtomicUsize>,
    /// The limit, in bytes.
    pub(super) limit: usize,
    /// How often a writer above the limit yields to readers.
    pub(super) patience: u32,
}

impl Garbage {
    pub(super) fn new() -> Self {
        Self { retired: Arc::new(AtomicUsize::new(0)), limit: LIMIT, patience: 0 }
    }

    /// Returns the bytes that are deferred and not freed yet.
    pub(super) fn retired(&self) -> usize {
        // Acquire: pairs with the Release in `defer`.
        self.retired.load(Ordering::Acquire)
    }

    /// Returns whether there is more than the limit.
    pub(super) fn is_above_limit(&self) -> bool {
        self.retired() > self.limit
    }

    /// Defers `free`, which frees `bytes` bytes and does not panic, until all earlier pins have
    /// ended; helps the collector to free garbage deferred before. That runs code of users:
    /// destructors of garbage.
    ///
    /// # Safety
    ///
    /// `free` may run on any thread and at any later time, when all pins have ended that exist now.
    pub(super) unsafe fn defer(&self, bytes: usize, pin: &Guard, free: impl FnOnce()) {
        // Relaxed: added before it can be subtracted, by this thread or by one that the collector
        // synchronises with it.
        self.retired.fetch_add(bytes, Ordering::Relaxed);
        let retired = Arc::clone(&self.retired);
        let deferred = move || {
            if is_freeing() {
                free();
            } else {
                set_freeing(Freeing::Yes);
                with_participant(|| {
                    free();
                    append_retired();
                });
                set_freeing(Freeing::No);
            }
            // Release: pairs with the Acquire in `retired`: a thread that observes the subtraction
            // observes the effects of the destructors.
            retired.fetch_sub(bytes, Ordering::Release);
        };
        // SAFETY: by the contract; the counter is shared.
        unsafe { pin.defer_unchecked(deferred) };
        help(pin);
    }

    /// Helps the collector until there is no longer too much. Returns whether that succeeded.
    #[cold]
    #[inline(never)]
    pub(super) fn reduce(&self, pin: &Guard, has_too_much: impl Fn() -> bool) -> bool {
        // Within a destructor, this thread itself delays the collector.
        let patience = if is_freeing() { 0 } else { self.patience };
        for attempt in 0..=patience {
            if attempt > 0 {
                yield_now();
            }
            for _ in 0..HELP {
                help(pin);
                if !has_too_much() {
                    return true;
                }
            }
        }
        false
    }

    /// Helps the collector to free the last garbage of a structure that is dropped, for which it
    /// otherwise waits for the next pin.
    pub(super) fn reduce_at_drop(&self) {
        for _ in 0..LAST_HELP {
            if self.retired() == 0 {
                break;
            }
            help(&pin());
        }
    }
}

/// Helps the collector to free garbage that no pin protects any more. It does not help within a
/// destructor that the collector runs: if the destructor removed entries, further destructors would
/// run, recursively. The garbage of that destructor is [appended](append_retired) to the queue
/// after it. Nor does it help without memory, which the collector needs for its queue.
pub(super) fn help(pin: &Guard) {
    if is_freeing() {
        set_freeing(Freeing::HasRetired);
    } else if test_memory().is_ok() {
        pin.flush();
    }
}

/// Appends the garbage that destructors have retired to the queue of the collector. It would
/// otherwise stay with this thread, which may be a reader that retires nothing more.
///
/// Not by a flush, which would run other destructors.
fn append_retired() {
    if set_freeing(Freeing::Yes) == Freeing::HasRetired && test_memory().is_ok() {
        let pin = pin();
        (0..BATCH).for_each(|_| pin.defer(|| ()));
    }
}

/// Returns whether this thread frees garbage. That is always known, except under a checker, whose
/// threads may free garbage after their thread-locals are destroyed.
pub(super) fn is_freeing() -> bool {
    FREEING.try_with(Cell::get).is_ok_and(|freeing| freeing != Freeing::No)
}

/// Sets whether this thread frees garbage, and returns the former value.
fn set_freeing(freeing: Freeing) -> Freeing {
    FREEING.try_with(|own| own.replace(freeing)).unwrap_or(Freeing::No)
}

/// The result of a drop: the panic payload, if it has panicked.
pub(super) type Dropped = Result<(), Box<dyn Any + Send>>;

/// Returns the first of two panics, and drops the second if both have panicked.
pub(super) fn first_panic(first: Dropped, second: Dropped) -> Dropped {
    if first.is_err() {
        forget_panic(second);
        return first;
    }
    second
}

/// Drops a panic payload. If that panics, drops its payload, too; after four of them it leaks.
pub(super) fn forget_panic(dropped: Dropped) {
    let mut panic = dropped.err();
    for _ in 0..4 {
        let Some(carried) = panic else { return };
        panic = catch_unwind(AssertUnwindSafe(|| drop(carried))).err();
    }
    mem::forget(panic);
}
