//! Two readers beside a writer, and one in Miri, which executes threads in turns.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ::model::scaled;

/// Updates of the tests with threads.
pub(crate) const MANY: u32 = scaled(20_000, 1_600, 6);

/// Where more threads than processors are in each other's way, fewer updates are enough.
pub(crate) const ENOUGH: Duration = Duration::from_secs(if cfg!(miri) { 1000 } else { 1 });

/// Makes updates 1, 2, 3 and so on while two threads read again and again. Each of them has what
/// `begin` returns, and a function for the number of the last update that has returned.
pub(crate) fn beside_updates<R>(
    begin: impl Fn() -> R + Sync,
    mut update: impl FnMut(u32),
    read: impl Fn(&mut R, &dyn Fn() -> u32) + Sync,
) {
    let (is_done, made) = (AtomicBool::new(false), AtomicU32::new(0));
    let reader = || {
        let mut state = begin();
        while !is_done.load(Ordering::Relaxed) {
            read(&mut state, &|| made.load(Ordering::Acquire));
            if cfg!(miri) {
                thread::yield_now();
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(reader);
        if !cfg!(miri) {
            scope.spawn(reader);
        }
        let _done = SetWhenDropped(&is_done);
        let (start, mut now) = (Instant::now(), 0);
        while now < MANY && start.elapsed() < ENOUGH {
            now += 1;
            update(now);
            made.store(now, Ordering::Release);
        }
    });
}

/// Ends threads that wait for a flag, also after a panic.
pub(crate) struct SetWhenDropped<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
