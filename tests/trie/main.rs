//! `LcTrieMap`, `LcRouteTable` and `Unicache`.

mod map;
mod routes;
#[cfg(feature = "serde")]
mod serde;
mod unicache;
