//! The collector of this crate: its participants, and the pins of structures themselves.
//!
//! It is not crossbeam's default collector, where a pin of any other library in the process would
//! delay the reclamation of garbage, until the limits refuse writes. Each thread has a participant,
//! which is registered when it pins first.

use core::sync::atomic::Ordering;

use crossbeam_epoch::{Guard, LocalHandle};

pub(super) use chosen::{is_pinned, pin, register, with_participant};

use super::sync::fence;

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
