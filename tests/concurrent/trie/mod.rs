//! `ConcurrentLcTrie`.

mod guarantees;
mod misuse;
mod model;
