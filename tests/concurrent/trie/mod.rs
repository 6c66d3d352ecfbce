//! `ConcurrentLcTrie`.

#[cfg(not(sanitizer = "address"))]
mod guarantees;
mod misuse;
#[cfg(not(sanitizer = "thread"))]
mod model;
