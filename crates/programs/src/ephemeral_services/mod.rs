//! Services for a multicast, composed of instructions that routers execute, over a simulated tree.
//!
//! ```text
//!     Tree ─► Network: routers with ephemeral state ─► Services ─► Report
//!             and links that lose and duplicate        one exchange: a query goes down to all
//!                                                      receivers, their answers travel up
//! ```
//!
//! All randomness comes from one seed.

pub mod network;
pub mod options;
pub mod report;
pub mod services;
pub mod tree;
