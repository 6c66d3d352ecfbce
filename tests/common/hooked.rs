//! A key with whose `Hash` and `Eq` a thread can do something.
#![allow(dead_code, reason = "not every test needs all")]

use core::cell::RefCell;
use core::hash::{Hash, Hasher};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Hash,
    Eq,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Hooked(pub(crate) u64);

type Hook = (Deed, u32, Box<dyn FnOnce()>);

thread_local! {
    /// The deed, how many of it come before, and what is done then.
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Has `hook` called by the `deed` of this thread that comes after so many. False if it has not come.
pub(crate) fn with_hook<R>(
    deed: Deed,
    before: u32,
    hook: impl FnOnce() + 'static,
    act: impl FnOnce() -> R,
) -> (R, bool) {
    HOOK.set(Some((deed, before, Box::new(hook))));
    let result = act();
    (result, HOOK.take().is_none())
}

fn call(deed: Deed) {
    let due = HOOK.with_borrow_mut(|hook| match hook {
        Some((which, before @ 1.., _)) if *which == deed => {
            *before -= 1;
            None
        }
        Some((which, 0, _)) if *which == deed => hook.take(),
        _ => None,
    });
    if let Some((_, _, hook)) = due {
        hook();
    }
}

impl Hash for Hooked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        call(Deed::Hash);
        self.0.hash(state);
    }
}

impl PartialEq for Hooked {
    fn eq(&self, other: &Self) -> bool {
        call(Deed::Eq);
        self.0 == other.0
    }
}

impl Eq for Hooked {}
