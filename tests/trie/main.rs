//! `LcTrieMap`, `LcRouteTable` and `Unicache`.

mod claims;
mod map;
mod routes;
#[cfg(feature = "serde")]
mod serde;
mod unicache;
