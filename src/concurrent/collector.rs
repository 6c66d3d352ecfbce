//! The collector of this crate: its participants, and the pins of structures themselves.
//!
//! It is not crossbeam's default collector, where a pin of any other library in the process would
//! delay the reclamation of garbage, until the limits refuse writes. Each thread has a participant,
//! which is registered when it pins first.

pub(super) use chosen::{is_pinned, pin, register};

#[cfg(not(any(crossbeam_loom, shuttle)))]
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

    /// Pins the participant of the thread. It stays in its epoch, if it is pinned already.
    #[inline]
    pub(crate) fn pin() -> Guard {
        with_participant(LocalHandle::pin)
    }

    /// Returns whether the participant of the thread is pinned.
    #[inline]
    pub(crate) fn is_pinned() -> bool {
        with_participant(LocalHandle::is_pinned)
    }

    /// Applies a function to the participant of the thread, or if the thread is ending and has
    /// unregistered it, to another one.
    #[inline]
    fn with_participant<R>(apply: impl Fn(&LocalHandle) -> R) -> R {
        PARTICIPANT.try_with(&apply).unwrap_or_else(|_| apply(&register()))
    }
}

/// Under a checker, the default collector: only crossbeam can create one for each execution.
#[cfg(any(crossbeam_loom, shuttle))]
mod chosen {
    use crossbeam_epoch::LocalHandle;
    pub(crate) use crossbeam_epoch::{is_pinned, pin};

    /// Registers a participant.
    pub(crate) fn register() -> LocalHandle {
        crossbeam_epoch::default_collector().register()
    }
}
