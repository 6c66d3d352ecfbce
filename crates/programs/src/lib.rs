//! The implementation of the example programs: a module for each, and shared modules.
//!
//! ```text
//!     examples/<name>.rs ─► <name>: computation and report
//!                       └─► program, values: the command line, the progress bar, the exit code
//!                           input, trace, packet_counts: the file, the pipe or the capture
//!                           that it reads
//! ```

pub mod counts;
pub mod ephemeral_services;
pub mod flow_cache;
pub mod ftp;
pub mod input;
pub mod packet_counts;
pub mod program;
pub mod route_lookup;
#[cfg(feature = "concurrent")]
pub mod shared_reader;
pub mod software_router;
pub mod tcp_demux;
pub mod trace;
pub mod values;
