//! The example programs: their modules, and the output of the built examples.
//!
//! Some of these tests run the examples. `cargo test` at the root of the repository builds them
//! first; `cargo test -p flowtable-programs` does not, and a test then prints the command that
//! does.

mod binary;
mod cases;
mod clock;
mod conversation;
mod decompression;
mod ephemeral_services;
mod examples;
mod flow_cache;
mod frames;
mod ftp;
mod headers;
mod limits;
mod meter;
mod reading;
mod route_lookup;
mod run;
#[cfg(feature = "concurrent")]
mod shared_reader;
mod software_router;
mod tcp_demux;
