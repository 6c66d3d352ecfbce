//! Concurrent threads, and a time limit for those that might hang.

use std::panic::resume_unwind;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Sanitizers and Miri are slow, and so is a loaded machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs each writer once, and the readers repeatedly until all writers have finished.
///
/// A reader is given the number of its previous runs.
pub fn run_concurrently(writers: &[&(dyn Fn() + Sync)], readers: &[&(dyn Fn(u64) + Sync)]) {
    // Miri executes threads in turns: more of them take it longer.
    let readers = if cfg!(miri) { &readers[..readers.len().min(1)] } else { readers };
    let busy = AtomicUsize::new(writers.len());
    let start = Barrier::new(writers.len() + readers.len());
    thread::scope(|scope| {
        for writer in writers {
            scope.spawn(|| {
                // Also in a panic, so that the readers end.
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

/// Runs `act` on a thread of its own, and panics when it hangs.
#[track_caller]
pub fn without_hanging<R: Send + 'static>(act: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = channel();
    let thread = thread::spawn(move || {
        let result = act();
        // The receiver may have timed out.
        let _ = sender.send(());
        result
    });
    match receiver.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Timeout) => panic!("a thread hangs"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        }
    }
}

/// Waits for a condition, and panics when it does not become true.
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        thread::yield_now();
    }
}

/// Runs `act` on another thread, and waits for it.
pub fn on_other_thread<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(act).join().unwrap_or_else(|panic| resume_unwind(panic)))
}

/// Runs `act` while another thread holds the result of `hold`, such as a pin.
pub fn while_held<H, R>(hold: impl FnOnce() -> H + Send, act: impl FnOnce() -> R) -> R {
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
        is_held.recv().expect("the other thread holds it");
        // Released at the end, or by a panic.
        let _release = release;
        act()
    })
}
