//! `ConcurrentLcTrie`.

mod guarantees;
mod model;
