//! `ConcurrentMap`, `ConcurrentTable` and `ConcurrentLcTrie`.
//!
//! With `--cfg shuttle` the primitives of the library are those of shuttle, which work only in the
//! tests of the module `shuttle`.
//!
//! Modules that do not run under a sanitizer are not compiled for it, since that takes minutes.
#![cfg(feature = "concurrent")]

/// The results of a burst, in an array.
macro_rules! get_batch {
    ($pin:expr, $keys:expr) => {{
        let keys = $keys;
        let mut found = keys.map(|_| None);
        $pin.get_batch(keys, flowtable::write_to(&mut found));
        found
    }};
}

#[cfg(not(any(shuttle, sanitizer)))]
mod claims;
#[cfg(not(any(shuttle, sanitizer = "thread")))]
mod destructors;
#[cfg(not(any(shuttle, sanitizer = "address")))]
mod guarantees;
#[cfg(not(any(shuttle, sanitizer = "thread")))]
mod leaks;
#[cfg(not(any(shuttle, sanitizer = "thread")))]
mod linearizable;
#[cfg(not(any(shuttle, sanitizer = "thread")))]
mod misuse;
#[cfg(not(any(shuttle, sanitizer = "thread")))]
mod model;
mod perform;
#[cfg(not(any(shuttle, sanitizer)))]
mod set;
#[cfg(shuttle)]
mod shuttle;
#[cfg(not(shuttle))]
mod table;
#[cfg(not(shuttle))]
mod trie;

#[cfg(not(shuttle))]
#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::new();
