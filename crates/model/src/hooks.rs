//! Keys whose `Hash` and `Eq` call a hook.

use core::cell::RefCell;
use core::hash::{Hash, Hasher};

use crate::counted::Callback;

#[derive(Clone, Copy, Debug)]
pub struct Hooked(pub u64);

type Hook = (Callback, u32, Box<dyn FnOnce()>);

thread_local! {
    /// The method, the number of its calls before the hook, and the hook.
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Runs `act` on this thread, in which `callback` calls `hook` after `before` calls without it.
///
/// Returns the result, and whether the hook was called.
pub fn with_hook<R>(
    callback: Callback,
    before: u32,
    hook: impl FnOnce() + 'static,
    act: impl FnOnce() -> R,
) -> (R, bool) {
    HOOK.set(Some((callback, before, Box::new(hook))));
    let result = act();
    (result, HOOK.take().is_none())
}

fn call(callback: Callback) {
    let due = HOOK.with_borrow_mut(|hook| match hook {
        Some((which, before @ 1.., _)) if *which == callback => {
            *before -= 1;
            None
        }
        Some((which, 0, _)) if *which == callback => hook.take(),
        _ => None,
    });
    if let Some((_, _, hook)) = due {
        hook();
    }
}

impl Hash for Hooked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        call(Callback::Hash);
        self.0.hash(state);
    }
}

impl PartialEq for Hooked {
    fn eq(&self, other: &Self) -> bool {
        call(Callback::Eq);
        self.0 == other.0
    }
}

impl Eq for Hooked {}
