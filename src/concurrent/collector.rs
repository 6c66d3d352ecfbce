//! The collector of this crate: its participants, and the pins of structures themselves.
//!
//! It is not crossbeam's default collector, where a pin of any other library in the process would
//! delay the reclamation of garbage, until the limits refuse writes. Each thread has a participant,
//! which is registered when it pins first.

pub(super) use chosen::{is_pinned, pin, register};

#[cfg(not(crossbeam_loom))]
mod chosen {
    use std::sync::LazyLock;

    use crossbeam_epoch::{Collector, Guard, LocalHandle};

    static COLLECTOR: LazyLock<Collector> = LazyLock::new(Collector::new);

    std::thread_local! {
        static PARTICIPANT: LocalHandle = register();
    }

    /// Registers a participant.
    pub(crate) fn register() -> LocalHandle {
        COLLECTOR.register()
    }

    /// Pins the participant of the thread, or if the thread is ending and has unregistered it,
    /// another one. It stays in its epoch, if it is pinned already.
    #[inline]
    pub(crate) fn pin() -> Guard {
        PARTICIPANT.try_with(LocalHandle::pin).unwrap_or_else(|_| register().pin())
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
}
