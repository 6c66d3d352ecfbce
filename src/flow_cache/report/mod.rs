//! Reports: what a caller reads of a cache.
//!
//! ```text
//!     in    the records of flows, and the counters of their accounts
//!
//!     out   events       flows that ended or are reported; why a packet has no flow
//!           metrics      counters and gauges
//!           scan         flows in pages, while packets are processed
//!           iteration    all flows: iterators, removal, comparison
//!           image        flows with their ages, for the next run of a program
//! ```

pub(crate) mod events;
pub(crate) mod image;
pub(crate) mod iteration;
pub(crate) mod metrics;
pub(crate) mod scan;
