//! A comparison of demultiplexers over what a host hears, says and does.
//!
//! ```text
//!     Recorded: Segment ─► Host ─┐
//!                                ├─► Script ─► Comparison: each Subject plays it, ─► Report
//!     Tellers: TPC/A ────────────┘             counted once, then timed in turns
//! ```
//!
//! The script is written once: which segment arrives and whether it has a PCB, which one is sent,
//! when a connection gets its PCB and when that goes. So all variants are asked the same, none is
//! held up by the reading of packets, and what each of them finds can be compared with what the
//! script says is there.
//!
//! A capture is of many hosts. Here there is one: all that are asked for connections, as if they
//! were one machine. [`Host`] has the rules.

mod comparison;
mod subject;
mod examined;
mod host;
mod options;
mod recorded;
mod report;
mod script;
mod segment;
mod tally;
mod tellers;

pub use comparison::{Comparison, Score};
pub use subject::{Subject, Pcb};
pub use examined::Examined;
pub use host::{Host, Seen};
pub use options::Options;
pub use recorded::Recorded;
pub use report::Report;
pub use script::{Draft, Event, Script};
pub use segment::Segment;
pub use tally::Tally;
pub use tellers::Tellers;
