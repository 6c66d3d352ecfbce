//! What the example programs are made of: a module for each program, and what they have in common.
//!
//! ```text
//!     examples/<name>.rs ─► <name>: what it computes and reports
//!                       └─► program, values: the command line, the progress bar, the exit code
//!                           input, trace: the file, the pipe or the capture that it reads
//! ```

pub mod counts;
pub mod ephemeral_services;
pub mod flow_cache;
pub mod input;
pub mod program;
pub mod route_lookup;
#[cfg(feature = "concurrent")]
pub mod shared_reader;
pub mod software_router;
pub mod tcp_demux;
pub mod trace;
pub mod values;
