//! `LcTrieMap`, `LcRouteTable` and `Unicache`.

mod claims;
mod drops;
mod inconsistent;
mod map;
mod routes;
mod unicache;
