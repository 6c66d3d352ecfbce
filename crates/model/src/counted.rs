//! Keys and values whose live instances are counted and whose methods can be made to panic.

use core::cell::{Cell, RefCell};
use core::fmt;
use core::hash::{Hash, Hasher};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A method of a key or value type that a structure calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callback {
    Hash,
    Eq,
    Clone,
    Drop,
}

thread_local! {
    static NEXT: Cell<u64> = const { Cell::new(0) };
    static ALIVE: RefCell<BTreeSet<u64>> = const { RefCell::new(BTreeSet::new()) };
    static DROPPED_TWICE: Cell<u64> = const { Cell::new(0) };
    /// The method that is going to panic, and the number of its calls before that.
    static PANIC: Cell<Option<(Callback, u32)>> = const { Cell::new(None) };
}

/// A key or value that equals those of its number; each instance has an identity.
///
/// It owns no memory, so a double drop is detected without undefined behaviour.
pub struct Counted {
    pub number: u64,
    identity: u64,
}

impl Counted {
    pub fn new(number: u64) -> Self {
        let identity = NEXT.get();
        NEXT.set(identity + 1);
        ALIVE.with_borrow_mut(|alive| alive.insert(identity));
        Self { number, identity }
    }

    pub fn is_alive(&self) -> bool {
        ALIVE.with_borrow(|alive| alive.contains(&self.identity))
    }
}

/// Returns the number of live instances on this thread, and checks that none was dropped twice.
pub fn alive() -> usize {
    assert_eq!(DROPPED_TWICE.get(), 0, "dropped more than once");
    ALIVE.with_borrow(BTreeSet::len)
}

/// Resets the count of live instances to zero.
pub fn forget_leaked() {
    ALIVE.with_borrow_mut(BTreeSet::clear);
}

/// Runs `act`, in which `callback` panics after `good` calls. `None` if it has panicked.
pub fn with_panic<R>(callback: Callback, good: u32, act: impl FnOnce() -> R) -> Option<R> {
    PANIC.set(Some((callback, good)));
    let result = catch_unwind(AssertUnwindSafe(act));
    PANIC.set(None);
    result.ok()
}

fn panic_if_due(callback: Callback) {
    match PANIC.get() {
        Some((which, 0)) if which == callback => {
            PANIC.set(None);
            // Without the panic hook, which would print it.
            std::panic::resume_unwind(Box::new(callback));
        }
        Some((which, left)) if which == callback => PANIC.set(Some((callback, left - 1))),
        _ => {}
    }
}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        panic_if_due(Callback::Hash);
        self.number.hash(state);
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        panic_if_due(Callback::Eq);
        self.number == other.number
    }
}

impl Eq for Counted {}

impl Clone for Counted {
    fn clone(&self) -> Self {
        panic_if_due(Callback::Clone);
        Self::new(self.number)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if !ALIVE.with_borrow_mut(|alive| alive.remove(&self.identity)) {
            DROPPED_TWICE.set(DROPPED_TWICE.get() + 1);
        }
        panic_if_due(Callback::Drop);
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)
    }
}
