//! `LcTrieMap`, `LcRouteTable` and `Unicache`.

mod claims;
mod map;
mod routes;
mod unicache;
