//! Representations of keys and structures that need a feature: `serde` and `ipnet`.

mod config;
mod images;
mod keys;
mod prefixes;
mod routes;
mod trash;
mod trie;
