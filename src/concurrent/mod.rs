//! Structures for many threads, whose readers never wait.
//!
//! ```text
//!     reader   ──pin───────look───look───look───┐repin──look───look───┐drop
//!     writer        lock, put in, take out, retire ─┐
//!     collector                                     └ · · · waits for who was there · · ▼ free
//! ```
//!
//! | you want | take | how |
//! |---|---|---|
//! | state by key | [`ConcurrentMap`] | a TRASH whose segments are copied when they grow; a lock for each of 64 shards of writers |
//! | the route of an address | [`ConcurrentRoutes`] | two route tables, one for the readers, one for the writer |
//!
//! A reader takes a *pin*, and looks at what there is: no lock, no store to memory that others read, no
//! second try. A writer never changes what a reader may be looking at, but puts something else in its place.
//! What is taken out is *retired*, and given back when all pins from before have ended: read-copy-update, as
//! the TRASH paper has it in the Linux kernel. Epochs (Fraser 2004), as `crossbeam-epoch` implements them, say
//! when that is. A pin costs a store and a fence: so take one for a burst of packets.
//!
//! *The collector is one for all of a process*: a pin of any structure that uses it, these or others, keeps
//! what all of them have retired meanwhile. It does not bound what it keeps; here a limit does: past it
//! writers help, and then get [`WouldExceed`] and what they came with.

mod error;
mod lock;
pub mod map;
pub mod routes;
mod sync;

pub use error::WouldExceed;
pub use map::{Broken, Compute, Computed, ConcurrentMap, Iter, Pinned};
pub use routes::{ConcurrentRoutes, PinnedRoutes, Publication};
