//! Workloads and reference results of the five papers, shared by tests, fuzz targets and the paper bench.

pub mod demux_1992;
pub mod ephemeral_2002;
pub mod scheduling_2001;
pub mod source_hash_1995;
pub mod trash_2006;
