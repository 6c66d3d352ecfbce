//! Two copies of something: one to read, and one to write.
//!
//! When the writer's thread W swaps, a reader's thread R may look into the copy that was active. W must
//! not change it before R is gone:
//!
//! ```text
//!     W    1 store active     2 defer a closure      …           5 load is_free    6 change the spare
//!     R    3 pin     4 load active, look     … unpin
//!     any thread                                     the closure: store is_free
//! ```
//!
//! 1. The collector puts a `SeqCst` fence between 1 and the epoch that it notes with the closure, and one
//!    between the epoch that it notes of R at 3, and 4. If R's fence is the first of the two, the closure
//!    has no earlier epoch than R, and does not run before R unpins. If W's is, R sees 1 at 4, and is
//!    not in W's way.
//! 2. The unpinning happens before the closure, by the collector; that stores `is_free` with Release, and 5
//!    loads it with Acquire. So what R reads it has read before 6.
//! 3. What W has changed before 1 R sees at 4, since 1 is Release and 4 is Acquire.
//!
//! So nobody reads what is being changed, and everybody reads what has been changed.
//!
//! A pin that goes on to the other copy needs that fence, too, and `Guard::repin` has none.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;

use crossbeam_epoch::Guard;

use crate::concurrent::lock::{Held, Lock};
use crate::concurrent::sync::{Arc, AtomicBool, AtomicUsize, Ordering, fence};

/// Far enough from others that what is written there is in no line that is read here: two lines, since
/// processors fetch them in pairs.
#[repr(align(128))]
struct Apart<T>(T);

/// A pin of the default collector, which is the one of all readers and writers.
pub(super) struct Pin(Guard);

impl Pin {
    /// May run what others have deferred.
    #[inline]
    pub(super) fn new() -> Self {
        Self(crossbeam_epoch::pin())
    }

    /// Hands over what this thread has deferred, and helps the collector on. May run what others have
    /// deferred.
    pub(super) fn help(&self) {
        self.0.flush();
    }
}

/// Two copies of a `T`, and an `L` under the lock of the writers.
pub(super) struct Copies<T, L> {
    copies: [Apart<UnsafeCell<T>>; 2],
    /// Which of them is for readers: 0 or 1. Changed under the lock.
    active: Apart<AtomicUsize>,
    /// Whether no reader is left in the other one. Cleared under the lock, set by the collector.
    is_free: Arc<AtomicBool>,
    lock: Lock<L>,
}

// SAFETY: readers of all threads have shared references to a copy, so `T` is `Sync`. Whoever has the lock
// changes the other one, and may drop what another thread has put there, so `T` and `L` are `Send`.
unsafe impl<T: Send + Sync, L: Send> Sync for Copies<T, L> {}

impl<T, L> Copies<T, L> {
    pub(super) fn new(active: T, spare: T, log: L) -> Self {
        Self {
            copies: [Apart(UnsafeCell::new(active)), Apart(UnsafeCell::new(spare))],
            active: Apart(AtomicUsize::new(0)),
            is_free: Arc::new(AtomicBool::new(true)),
            lock: Lock::new(log),
        }
    }

    /// The active copy.
    #[inline]
    pub(super) fn pin(&self) -> Pinned<'_, T, L> {
        let pin = Pin::new();
        let active = self.active();
        Pinned { pin, copies: self, active }
    }

    #[inline]
    fn active(&self) -> *const T {
        // Acquire: pairs with the Release in swap(); what the writer has changed is seen.
        self.copies[self.active.0.load(Ordering::Acquire) & 1].0.get()
    }

    /// Waits for the lock.
    ///
    /// # Panics
    ///
    /// If this thread has one, of whatever structure: two threads could wait for each other.
    pub(super) fn lock(&self) -> Writer<'_, T, L> {
        Writer { copies: self, log: self.lock.lock() }
    }
}

/// A copy that nobody changes as long as this is there.
pub(super) struct Pinned<'c, T, L> {
    pin: Pin,
    copies: &'c Copies<T, L>,
    /// Was active at some time since `pin` is there.
    active: *const T,
}

impl<T, L> Pinned<'_, T, L> {
    #[inline]
    pub(super) fn get(&self) -> &T {
        // SAFETY: step 1 above; and the copies are borrowed.
        unsafe { &*self.active }
    }

    /// The copy that is active now. If the thread has another pin, that one still holds up the writers.
    #[inline]
    pub(super) fn repin(&mut self) {
        self.pin.0.repin();
        // The fence of step 1, between the epoch that was noted and the look: pairs with the one that the
        // collector has between a swap and the epoch of its closure.
        fence(Ordering::SeqCst);
        self.active = self.copies.active();
    }
}

/// Who has the lock.
pub(super) struct Writer<'c, T, L> {
    copies: &'c Copies<T, L>,
    log: Held<'c, L>,
}

impl<T, L> Writer<'_, T, L> {
    pub(super) fn log(&mut self) -> &mut L {
        &mut self.log
    }

    /// The spare copy, and what is under the lock; if no reader is left in it.
    pub(super) fn spare(&mut self) -> Option<(&mut T, &mut L)> {
        // Acquire: pairs with the Release of the closure; readers have read what they have read.
        if !self.copies.is_free.load(Ordering::Acquire) {
            return None;
        }
        let spare = self.spare_at();
        // SAFETY: steps 1 and 2 above. Writers take turns, and this one is borrowed.
        Some((unsafe { &mut *spare }, &mut self.log))
    }

    /// Asks the spare copy, whose readers do not mind.
    pub(super) fn ask<R>(&self, question: impl FnOnce(&T, &L) -> R) -> R {
        let spare = self.spare_at();
        // SAFETY: only writers change it; they take turns, and this one is borrowed.
        question(unsafe { &*spare }, &self.log)
    }

    /// Makes the spare copy the active one. It has been free, and is not until the readers have gone.
    pub(super) fn swap(&mut self, pin: &Pin) {
        let Copies { active, is_free, .. } = self.copies;
        // Relaxed, for this and the next: they are only changed under the lock, but for a closure that
        // there is none of now. What the next closure stores comes later, since it is deferred later.
        assert!(
            is_free.load(Ordering::Relaxed),
            "readers are in the copy that they would be sent to"
        );
        is_free.store(false, Ordering::Relaxed);
        let next = 1 - active.0.load(Ordering::Relaxed);
        // Release: pairs with the Acquire in active(); publishes what has changed in the copy.
        active.0.store(next, Ordering::Release);
        let is_free = Arc::clone(is_free);
        // Release: pairs with the Acquire in spare(); no reader reads any more.
        pin.0.defer(move || is_free.store(true, Ordering::Release));
    }

    fn spare_at(&self) -> *mut T {
        // Relaxed: only changed under the lock.
        let active = self.copies.active.0.load(Ordering::Relaxed);
        self.copies.copies[1 - active].0.get()
    }
}
