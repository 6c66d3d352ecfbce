//! A router on one processor: real packets, a schedule, and a clock that is the sum of what things
//! cost.
//!
//! ```text
//!     Receiver ─► Read ─► Classifier ─► path of a function and a port ───────► Write ─► Sender
//!     ring        thread  flow ► PathId    ▒▒▒ ─► Forward: Forwarder ─► ▒▒▒        thread   ring, link
//!     ▒▒▒▒        per port              input  thread per path      output     per port ▒▒▒▒
//!                                       queue                       queue
//! ```
//!
//! Which thread is next, and for how long, is what [`Scheduler`](flowtable::schedule::Scheduler)
//! says under a [`Plan`]. Packets are forwarded in earnest: what leaves has another TTL, right
//! checksums and the address of the next hop. Time is what [`Costs`] say that a step takes, so a
//! [`Comparison`] of plans ends alike on all machines.

mod cards;
pub mod checksum;
mod classifier;
mod comparison;
mod costs;
mod datagram;
mod function;
mod job;
mod occupancies;
mod options;
mod plan;
mod ports;
mod report;
mod rewrite;
mod router;
mod stages;
mod tally;
mod traffic;

pub use classifier::{Classifier, PathId};
pub use comparison::{Agreement, Comparison};
pub use costs::Costs;
pub use datagram::Datagram;
pub use function::{Function, Refusal, Forwarder};
pub use job::Job;
pub use options::Options;
pub use plan::Plan;
pub use ports::{Port, Routes};
pub use report::Report;
pub use router::{Frame, Router};
pub use tally::{Outcome, PathTally};
pub use traffic::{Arrival, Traffic};
