//! Models of the two copies for loom, which runs them in all interleavings with few preemptions.
//!
//! A copy is a cell of loom, which reports a read beside a change.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::copies::{Copies, Pin};
use crate::concurrent::guard::pin;

/// A copy, which has the number of its last update.
struct CheckedCopy(UnsafeCell<u32>);

// SAFETY: loom reports concurrent accesses of which one is a change.
#[allow(unsafe_code)]
unsafe impl Sync for CheckedCopy {}

impl CheckedCopy {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn get(&self) -> u32 {
        self.0.with(|number| {
            // SAFETY: loom reports a change beside this.
            #[allow(unsafe_code)]
            unsafe {
                *number
            }
        })
    }

    fn set(&mut self, number: u32) {
        self.0.with_mut(|own| {
            // SAFETY: loom reports an access beside this.
            #[allow(unsafe_code)]
            unsafe {
                *own = number;
            }
        });
    }
}

/// The log is the number of the next update.
type Shared = Copies<CheckedCopy, u32>;

/// Makes an update, if the spare copy is free. Returns whether it was.
fn update(shared: &Shared) -> bool {
    let pin = Pin::new();
    let mut writer = shared.lock();
    let is_free = match writer.spare() {
        None => false,
        Some((spare, next)) => {
            *next += 1;
            spare.set(*next);
            true
        }
    };
    if is_free {
        writer.swap(&pin);
    }
    drop(writer);
    pin.help();
    is_free
}

/// Reads twice by one pin. Returns the number of the last update that is visible.
fn read(shared: &Shared) -> u32 {
    let pinned = shared.read(pin());
    let first = pinned.get().get();
    crate::concurrent::sync::yield_now();
    assert_eq!(pinned.get().get(), first, "a pin is a snapshot");
    first
}

/// Runs two closures concurrently, and then a third one.
fn concurrently([one, other, then]: [fn(&Shared); 3]) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 10_000;
    builder.check(move || {
        let shared = Arc::new(Shared::new(CheckedCopy::new(), CheckedCopy::new(), 0));
        let clone = Arc::clone(&shared);
        let thread = thread::spawn(move || one(&clone));
        other(&shared);
        thread.join().unwrap();
        then(&shared);
    });
}

#[test]
fn a_copy_is_not_changed_while_it_is_read() {
    concurrently([
        |shared| {
            assert!(update(shared), "the first one is free");
            for _ in 0..4 {
                update(shared);
            }
        },
        |shared| _ = read(shared),
        |shared| assert!(read(shared) >= 1, "an update is visible after its call"),
    ]);
}

#[test]
fn a_repin_does_not_go_back() {
    concurrently([
        |shared| {
            for _ in 0..4 {
                update(shared);
            }
        },
        |shared| {
            let mut pinned = shared.read(pin());
            let first = pinned.get().get();
            pinned.repin();
            assert!(pinned.get().get() >= first);
        },
        |_| {},
    ]);
}

#[test]
fn writers_exclude_each_other() {
    concurrently([
        |shared| _ = update(shared),
        |shared| _ = update(shared),
        |shared| {
            let next = *shared.lock().log();
            assert_eq!(read(shared), next);
        },
    ]);
}
