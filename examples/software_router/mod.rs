//! A router on one processor: real packets, a schedule, and a clock that is the sum of what things cost.
//!
//! ```text
//!     Receiver ─► Read ─► Classifier ─► path of a function and a port ─────────► Write ─► Sender
//!     ring        thread  flow ► Way    ▒▒▒ ─► Forward: Workshop ─► ▒▒▒          thread   ring, link
//!     ▒▒▒▒        per port              input  thread per path      output       per port ▒▒▒▒
//!                                       queue                       queue
//! ```
//!
//! Which thread is next, and for how long, is what [`Scheduler`](flowtable::schedule::Scheduler) says under a [`Plan`].
//! Packets are forwarded in earnest: what leaves has another TTL, right checksums and the address of the next hop. Time
//! is what [`Costs`] say that a step takes, so a [`Contest`] of plans ends alike on all machines.

mod cards;
pub(crate) mod checksum;
mod classifier;
mod contest;
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

// The tests ask for more than the example.
#[allow(unused_imports)]
pub(crate) use contest::Agreement;
#[allow(unused_imports)]
pub(crate) use router::Frame;

pub(crate) use classifier::{Classifier, Way};
pub(crate) use contest::Contest;
pub(crate) use costs::Costs;
pub(crate) use datagram::Datagram;
pub(crate) use function::{Function, Refusal, Workshop};
pub(crate) use job::Job;
pub(crate) use options::Options;
pub(crate) use plan::Plan;
pub(crate) use ports::{Port, Routes};
pub(crate) use report::Report;
pub(crate) use router::Router;
pub(crate) use tally::{Outcome, PathTally};
pub(crate) use traffic::{Arrival, Traffic};
