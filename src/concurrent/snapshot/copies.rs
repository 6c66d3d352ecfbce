//! Two copies of a structure: one for readers, one for the writer.
//!
//! When the writer's thread W swaps, a reader's thread R may access the formerly active copy. W
//! must not change it before R has unpinned:
//!
//! ```text
//!     W    1 store active     2 defer a closure      …     5 load is_free    6 change the spare
//!     R    3 pin     4 load active, read     … unpin
//!     any thread                                     the closure: store is_free
//! ```
//!
//! 1. The collector executes a `SeqCst` fence between 1 and its load of the epoch for the closure,
//!    and one between the store of R's epoch at 3, and 4. If R's fence is the first of the two, W
//!    loads an epoch to which the collector had advanced before that fence, or a later one; each
//!    later advance observes R, so there is one more at most until R unpins, and the closure runs
//!    two epochs later. If W's fence is the first, R observes 1 at 4, and reads the other copy.
//! 2. The unpinning happens before the closure, by the collector; the closure stores `is_free` with
//!    Release, and 5 loads it with Acquire. So R's reads happen before 6.
//! 3. R observes at 4 what W has changed before 1, since 1 is Release and 4 is Acquire.
//!
//! So no reader accesses a copy that is being changed, and every reader observes all earlier
//! changes.
//!
//! A repin that switches to the other copy is a new pin in this respect.
#![allow(unsafe_code)]

use core::borrow::Borrow;
use core::cell::UnsafeCell;

use crate::concurrent::collector;
use crate::concurrent::garbage::help;
use crate::concurrent::guard::Guard;
use crate::concurrent::lock::{Lock, LockGuard};
use crate::concurrent::sync::{Arc, AtomicBool, AtomicUsize, Ordering};

/// A value in cache lines of its own: two of them, since CPUs prefetch them in pairs.
#[repr(align(128))]
struct CachePadded<T>(T);

/// A pin of a writer. It is short, so it is nested if the thread is pinned.
pub(super) struct Pin(crossbeam_epoch::Guard);

impl Pin {
    /// Pins the thread. May run deferred closures of others.
    #[inline]
    pub(super) fn new() -> Self {
        Self(collector::pin())
    }

    /// Flushes the closures that this thread has deferred, and helps the collector. May run
    /// deferred closures of others.
    pub(super) fn help(&self) {
        help(&self.0);
    }
}

/// Two copies of a `T`, and an `L` under the lock of the writers.
pub(super) struct Copies<T, L> {
    copies: [CachePadded<UnsafeCell<T>>; 2],
    /// The index of the active copy, 0 or 1. Changed under the lock.
    active: CachePadded<AtomicUsize>,
    /// Whether the spare copy has no readers. Cleared under the lock, set by the collector.
    is_free: Arc<AtomicBool>,
    lock: Lock<L>,
}

// SAFETY: readers of all threads have shared references to a copy, so `T` is `Sync`. The lock
// holder changes the other one, and may drop values that another thread has inserted, so `T` and
// `L` are `Send`.
unsafe impl<T: Send + Sync, L: Send> Sync for Copies<T, L> {}

impl<T, L> Copies<T, L> {
    pub(super) fn new(active: T, spare: T, log: L) -> Self {
        Self {
            copies: [CachePadded(UnsafeCell::new(active)), CachePadded(UnsafeCell::new(spare))],
            active: CachePadded(AtomicUsize::new(0)),
            is_free: Arc::new(AtomicBool::new(true)),
            lock: Lock::new(log),
        }
    }

    /// Returns the active copy, which is not changed while the guard exists.
    #[inline]
    pub(super) fn read<G: Borrow<Guard>>(&self, guard: G) -> Pinned<'_, T, L, G> {
        let active = self.active();
        Pinned { guard, copies: self, active }
    }

    #[inline]
    fn active(&self) -> *const T {
        // Acquire: pairs with the Release in swap(); the changes of the writer are visible.
        self.copies[self.active.0.load(Ordering::Acquire) & 1].0.get()
    }

    /// Takes the lock, and waits for it if necessary.
    ///
    /// # Panics
    ///
    /// If this thread holds a lock of any structure: two threads could deadlock.
    pub(super) fn lock(&self) -> Writer<'_, T, L> {
        Writer { copies: self, log: self.lock.lock() }
    }
}

/// A pinned copy, which is not changed during its lifetime.
pub(super) struct Pinned<'c, T, L, G> {
    guard: G,
    copies: &'c Copies<T, L>,
    /// A copy that was active at some time since `guard` exists.
    active: *const T,
}

impl<T, L, G: Borrow<Guard>> Pinned<'_, T, L, G> {
    #[inline]
    pub(super) fn get(&self) -> &T {
        // SAFETY: step 1 above; and the copies are borrowed.
        unsafe { &*self.active }
    }
}

impl<T, L> Pinned<'_, T, L, Guard> {
    /// Switches to the active copy.
    #[inline]
    pub(super) fn repin(&mut self) {
        self.guard.repin();
        self.active = self.copies.active();
    }
}

/// The lock of the writers, held.
pub(super) struct Writer<'c, T, L> {
    copies: &'c Copies<T, L>,
    log: LockGuard<'c, L>,
}

impl<T, L> Writer<'_, T, L> {
    pub(super) fn log(&mut self) -> &mut L {
        &mut self.log
    }

    /// Returns mutable references to the spare copy and the log, if the copy has no readers.
    pub(super) fn spare(&mut self) -> Option<(&mut T, &mut L)> {
        // Acquire: pairs with the Release of the closure; all reads have happened before.
        if !self.copies.is_free.load(Ordering::Acquire) {
            return None;
        }
        let spare = self.spare_at();
        // SAFETY: steps 1 and 2 above. Writers exclude each other, and this one is borrowed.
        Some((unsafe { &mut *spare }, &mut self.log))
    }

    /// Calls a function with the spare copy and the log, also while the copy has readers.
    pub(super) fn with_spare<R>(&self, read: impl FnOnce(&T, &L) -> R) -> R {
        let spare = self.spare_at();
        // SAFETY: only writers change it; they exclude each other, and this one is borrowed.
        read(unsafe { &*spare }, &self.log)
    }

    /// Makes the spare copy, which is free, the active one. The other one is free when its readers
    /// have ended.
    pub(super) fn swap(&mut self, pin: &Pin) {
        let Copies { active, is_free, .. } = self.copies;
        // Relaxed, for this and the next: they are only changed under the lock, and by a closure,
        // of which none is pending now. The store of the next closure is later, since it is
        // deferred later.
        assert!(is_free.load(Ordering::Relaxed), "the spare copy has readers");
        is_free.store(false, Ordering::Relaxed);
        let next = 1 - active.0.load(Ordering::Relaxed);
        // Release: pairs with the Acquire in active(); publishes what has changed in the copy.
        active.0.store(next, Ordering::Release);
        let is_free = Arc::clone(is_free);
        // Release: pairs with the Acquire in spare(); all reads have happened before.
        pin.0.defer(move || is_free.store(true, Ordering::Release));
    }

    fn spare_at(&self) -> *mut T {
        // Relaxed: only changed under the lock.
        let active = self.copies.active.0.load(Ordering::Relaxed);
        self.copies.copies[1 - active].0.get()
    }
}
