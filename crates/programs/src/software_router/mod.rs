//! A router on one simulated CPU: real packets, a schedule, and a clock that adds up costs.
//!
//! ```text
//!     Receiver ─► Read ─► Classifier ─► path of a function and a port ───────► Write ─► Sender
//!     ring        thread  flow ► PathId ▒▒▒ ─► Forward: Forwarder ─► ▒▒▒       thread   ring, link
//!     ▒▒▒▒        per port              input  thread per path      output     per port ▒▒▒▒
//!                                       queue                       queue
//! ```
//!
//! [`Scheduler`](flowtable::schedule::Scheduler) selects the next thread and its time under a
//! [`Plan`]. Packets are really rewritten: they leave with another TTL, valid checksums and the
//! address of the next hop. Time advances by the [`Costs`] of each step, so a [`Comparison`] of
//! plans is deterministic.

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
pub use function::{Forwarder, Function, Refusal};
pub use job::Job;
pub use options::Options;
pub use plan::Plan;
pub use ports::{Port, Routes};
pub use report::Report;
pub use router::{Frame, Router};
pub use tally::{Outcome, PathTally};
pub use traffic::{Arrival, Traffic};
