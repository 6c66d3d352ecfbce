//! Workloads, published figures and reference models of five papers.
//!
//! Shared by the tests, the fuzz targets and the bench `paper`.

pub mod demux_1992;
pub mod ephemeral_2002;
pub mod scheduling_2001;
pub mod source_hash_1995;
pub mod trash_2006;
