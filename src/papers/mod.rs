//! What the papers describe besides tables, for study and comparison.
//!
//! | module | subject | paper |
//! |---|---|---|
//! | [`hash`] | XOR folding, Fletcher's checksum and CRCs as hashes of packet headers | Jain; Chandranmenon and Varghese, section 3.4 |
//! | [`source_index`] | assignment of indices, identifiers of flows, the equations of source hashing | Chandranmenon and Varghese, section 3 |
//! | [`threaded`] | threaded indices: labels that routing protocols distribute | Chandranmenon and Varghese, section 4 |
//! | [`dml`] | the data manipulation header: byte ranges for integrated layer processing | Chandranmenon and Varghese, section 5 |
//! | [`esp`] | packets that compute with ephemeral state | Calvert, Griffioen and Wen |
//! | [`schedule`] | proportional share, queue estimator, batching throttle, a pipeline of threads | Qie, Bavier, Peterson and Karlin |
//!
//! The tables of the papers are modules of the root: [`trie`](crate::trie), [`demux`](crate::demux),
//! [`cache`](crate::cache), [`ephemeral`](crate::ephemeral) and [`eviction`](crate::eviction).
//!
//! The feature `papers`, which is a default feature, compiles this module.

pub mod dml;
pub mod esp;
pub mod hash;
pub mod schedule;
pub mod source_index;
pub mod threaded;
