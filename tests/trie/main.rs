//! `LcTrieMap`, `LcRouteTable` and `Unicache`.

mod claims;
mod drops;
mod map;
mod routes;
mod unicache;
