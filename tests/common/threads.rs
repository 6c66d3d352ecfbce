//! Threads beside each other, and a watch over those that might hang.
#![allow(dead_code, reason = "not every test needs all")]

use std::panic::resume_unwind;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Sanitizers and Miri are slow, and so is a machine with other work.
const PATIENCE: Duration = Duration::from_secs(if cfg!(miri) { 600 } else { 120 });

/// Runs each of the writers once, and beside them the readers, over and over until the writers are
/// done. A reader is told how often it has run before.
pub(crate) fn beside(writers: &[&(dyn Fn() + Sync)], readers: &[&(dyn Fn(u64) + Sync)]) {
    let busy = AtomicUsize::new(writers.len());
    let start = Barrier::new(writers.len() + readers.len());
    thread::scope(|scope| {
        for writer in writers {
            scope.spawn(|| {
                // Also when it panics, so that the readers do not wait for ever.
                let _leaving = Leaving(&busy);
                start.wait();
                writer();
            });
        }
        for reader in readers {
            scope.spawn(|| {
                start.wait();
                let mut round = 0;
                while round == 0 || busy.load(Ordering::Acquire) > 0 {
                    reader(round);
                    round += 1;
                    if cfg!(miri) {
                        thread::yield_now();
                    }
                }
            });
        }
    });
}

struct Leaving<'a>(&'a AtomicUsize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Runs `act` in a thread of its own, and fails when it hangs.
#[track_caller]
pub(crate) fn without_hanging<R: Send + 'static>(act: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = channel();
    let thread = thread::spawn(move || {
        let result = act();
        // The watch may have given up.
        let _ = sender.send(());
        result
    });
    match receiver.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Timeout) => panic!("it hangs"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        }
    }
}

/// Tries again and again until it is so, and fails when it does not come to that.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        thread::yield_now();
    }
}

/// Runs `act` in another thread, and waits for it.
pub(crate) fn elsewhere<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(act).join().unwrap_or_else(|panic| resume_unwind(panic)))
}

/// Runs `act` while another thread holds what `hold` makes, a pin, say.
pub(crate) fn while_held<H, R>(hold: impl FnOnce() -> H + Send, act: impl FnOnce() -> R) -> R {
    let (held, is_held) = channel();
    let (release, is_released) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let holding = hold();
            held.send(()).expect("the other side waits");
            // An error when `act` has panicked.
            let _ = is_released.recv();
            drop(holding);
        });
        is_held.recv().expect("it is held");
        // Let go of at the end, or by a panic.
        let _release = release;
        act()
    })
}
