//! A key and value that knows how many of it are alive, and panics when it is told to.
#![allow(dead_code, reason = "not every test panics")]

use core::cell::{Cell, RefCell};
use core::fmt;
use core::hash::{Hash, Hasher};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What code of a user's type does for a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Hash,
    Eq,
    Clone,
    Drop,
}

thread_local! {
    static NEXT: Cell<u64> = const { Cell::new(0) };
    static ALIVE: RefCell<BTreeSet<u64>> = const { RefCell::new(BTreeSet::new()) };
    static DROPPED_TWICE: Cell<u64> = const { Cell::new(0) };
    /// The deed that is going to panic, and how many of it come before.
    static FUSE: Cell<Option<(Deed, u32)>> = const { Cell::new(None) };
}

/// Told apart by a number; each one, clones included, is alive under an identity of its own. It owns
/// nothing, so that being dropped twice is noticed without being undefined.
pub(crate) struct Counted {
    pub(crate) number: u64,
    identity: u64,
}

impl Counted {
    pub(crate) fn new(number: u64) -> Self {
        let identity = NEXT.get();
        NEXT.set(identity + 1);
        ALIVE.with_borrow_mut(|alive| alive.insert(identity));
        Self { number, identity }
    }

    pub(crate) fn is_alive(&self) -> bool {
        ALIVE.with_borrow(|alive| alive.contains(&self.identity))
    }
}

/// How many are alive on this thread. Nothing may have been dropped twice so far.
pub(crate) fn alive() -> usize {
    assert_eq!(DROPPED_TWICE.get(), 0, "dropped more than once");
    ALIVE.with_borrow(BTreeSet::len)
}

/// Begins again with none alive.
pub(crate) fn forget_leaked() {
    ALIVE.with_borrow_mut(BTreeSet::clear);
}

/// Runs `act`, whose `deed` panics after so many good ones. Nothing if it did panic.
pub(crate) fn with_fuse<R>(deed: Deed, good: u32, act: impl FnOnce() -> R) -> Option<R> {
    FUSE.set(Some((deed, good)));
    let result = catch_unwind(AssertUnwindSafe(act));
    FUSE.set(None);
    result.ok()
}

fn burn(deed: Deed) {
    match FUSE.get() {
        Some((which, 0)) if which == deed => {
            FUSE.set(None);
            // Without the hook, which would print it.
            std::panic::resume_unwind(Box::new(deed));
        }
        Some((which, left)) if which == deed => FUSE.set(Some((deed, left - 1))),
        _ => {}
    }
}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        burn(Deed::Hash);
        self.number.hash(state);
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        burn(Deed::Eq);
        self.number == other.number
    }
}

impl Eq for Counted {}

impl Clone for Counted {
    fn clone(&self) -> Self {
        burn(Deed::Clone);
        Self::new(self.number)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if !ALIVE.with_borrow_mut(|alive| alive.remove(&self.identity)) {
            DROPPED_TWICE.set(DROPPED_TWICE.get() + 1);
        }
        burn(Deed::Drop);
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)
    }
}
