//! A router on one simulated CPU: real packets, a schedule, and a clock that adds up costs.
//!
//! ```text
//!     card     ─► Read ─► Classifier ─► path of a function and a port ───────► Write ─► Sender
//!     ring        thread  flow ► PathId ▒▒▒ ─► Forward: Forwarder ─► ▒▒▒       thread   ring, link
//!     ▒▒▒▒        per port              input  thread per path      output     per port ▒▒▒▒
//!                                       queue                       queue
//! ```
//!
//! The threads, queues and links are a
//! [`Pipeline`](flowtable::papers::schedule::pipeline::Pipeline), which selects the next thread and
//! its time under a [`Plan`]. Packets are really rewritten: they leave with another TTL, valid
//! checksums and the address of the next hop. Time advances by the [`Costs`] of each step, so a
//! [`Comparison`] of plans is deterministic.

mod cards;
pub mod checksum;
mod classifier;
mod comparison;
mod costs;
mod datagram;
mod device;
mod forwarder;
mod function;
mod job;
mod options;
mod plan;
mod ports;
mod report;
mod rewrite;
mod router;
mod tally;
mod traffic;

pub use classifier::{Classifier, PathId};
pub use comparison::{Agreement, Comparison};
pub use costs::Costs;
pub use datagram::Datagram;
pub use device::Frame;
pub use forwarder::Forwarder;
pub use function::{Function, Refusal};
pub use job::Job;
pub use options::Options;
pub use plan::Plan;
pub use ports::{Port, Routes};
pub use report::Report;
pub use router::Router;
pub use tally::{Outcome, PathTally};
pub use traffic::{Arrival, Traffic};
