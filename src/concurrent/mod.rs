//! Structures for many threads, with wait-free readers.
//!
//! ```text
//!     reader   ──pin───────get────get────get────┐repin──get────get────┐drop
//!     writer        lock, insert, remove, retire ─┐
//!     collector                                   └ · · · waits for earlier pins · · ▼ free
//! ```
//!
//! | purpose | structure | method |
//! |---|---|---|
//! | state by key | [`ConcurrentMap`] | a TRASH whose segments are copied when they grow; 64 shards, each with a lock for its writers |
//! | the route of an address | [`ConcurrentRoutes`] | two route tables, one for the readers, one for the writer |
//!
//! A reader holds a *pin* while it reads: no lock, no store to shared memory, no retry. A writer
//! never changes memory that a reader may access; it publishes a replacement. Removed entries are
//! *retired*, and freed when all earlier pins have ended: read-copy-update, which the TRASH paper
//! uses in the Linux kernel. Epochs (Fraser 2004), as `crossbeam-epoch` implements them, determine
//! that time. A pin costs a store and a fence, so hold one for a burst of packets.
//!
//! *The collector is shared by the whole process*: a pin of any structure that uses it, of this
//! crate or another, delays the reclamation of garbage of all of them. The collector does not bound
//! garbage; these structures do: above a limit, writers help the collector, and then return
//! [`WouldExceed`] with what they were to insert.

mod error;
mod lock;
pub mod map;
pub mod routes;
mod sync;

pub use error::WouldExceed;
pub use map::{Compute, Computed, ConcurrentMap, Iter, Pinned};
pub use routes::{ConcurrentRoutes, PinnedRoutes, Publication};
