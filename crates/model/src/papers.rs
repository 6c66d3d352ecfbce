//! Workloads, published figures and reference models of five papers.
//!
//! Shared by the tests, the fuzz targets and the bench `paper`.

pub mod demux_1992;
#[cfg(feature = "papers")]
pub mod ephemeral_2002;
#[cfg(feature = "papers")]
pub mod scheduling_2001;
#[cfg(feature = "papers")]
pub mod source_hash_1995;
pub mod trash_2006;
