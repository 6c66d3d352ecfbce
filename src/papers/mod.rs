//! Mechanisms of the papers other than tables, for study and comparison.
//!
//! | module | subject | paper |
//! |---|---|---|
//! | [`hash`] | XOR folding, Fletcher's checksum, CRCs | Jain; Chandranmenon, Varghese, 3.4 |
//! | [`source_index`] | assignment of indices, equations of source hashing | the same, 3 |
//! | [`threaded`] | labels that routing protocols distribute | the same, 4 |
//! | [`dml`] | the data manipulation header | the same, 5 |
//! | [`esp`] | packets that compute with ephemeral state | Calvert, Griffioen, Wen |
//! | [`schedule`] | proportional share, queue estimator, throttle | Qie, Bavier, Peterson, Karlin |
//!
//! The tables of the papers are modules of the root: [`trie`](crate::trie),
//! [`demux`](crate::demux), [`cache`](crate::cache), [`ephemeral`](crate::ephemeral) and
//! [`eviction`](crate::eviction).
//!
//! The feature `papers`, which is a default feature, compiles this module.

pub mod dml;
pub mod esp;
pub mod hash;
pub mod schedule;
pub mod source_index;
pub mod threaded;
