//! `ConcurrentMap`, `ConcurrentTable`, `ConcurrentLcTrie` and `ConcurrentStore`.
//!
//! With `--cfg shuttle` the primitives of the library are those of shuttle, which work only in the
//! tests of the module `shuttle`.
#![cfg(feature = "concurrent")]

#[cfg(not(shuttle))]
mod claims;
#[cfg(not(shuttle))]
mod ephemeral;
#[cfg(not(shuttle))]
mod guarantees;
#[cfg(not(shuttle))]
mod leaks;
#[cfg(not(shuttle))]
mod linearizable;
#[cfg(not(shuttle))]
mod misuse;
#[cfg(not(shuttle))]
mod model;
mod perform;
#[cfg(shuttle)]
mod shuttle;
#[cfg(not(shuttle))]
mod table;
#[cfg(not(shuttle))]
mod trie;

#[cfg(not(shuttle))]
#[global_allocator]
static ALLOCATOR: ::model::alloc::Counting = ::model::alloc::Counting::new();
