//! A comparison of demultiplexers on the events of a host.
//!
//! ```text
//!     Recorded: Segment ─► Host ─┐
//!                                ├─► Script ─► Comparison: each Subject replays it ─► Report
//!     Tellers: TPC/A ────────────┘             counted once, then timed in turns
//! ```
//!
//! The script is computed once: arrivals with the expected PCB, sent segments, opening and closing
//! connections. So all demultiplexers get the same events, packet parsing is not timed, and results
//! are compared with the script.
//!
//! A capture has many hosts. All hosts that receive connections are treated as one; [`Host`] has
//! the rules.

mod comparison;
mod examined;
mod host;
mod options;
mod recorded;
mod report;
mod script;
mod segment;
mod subject;
mod tally;
mod tellers;
mod watch;

pub use comparison::{Comparison, Score};
pub use examined::Examined;
pub use host::{Host, Seen};
pub use options::Options;
pub use recorded::Recorded;
pub use report::Report;
pub use script::{Draft, Event, Pcb, Script};
pub use segment::Segment;
pub use subject::Subject;
pub use tally::Tally;
pub use tellers::Tellers;
