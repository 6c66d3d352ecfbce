//! Storage: the slots of flows, their index, and the counts of flows.
//!
//! ```text
//!     in    a hash and a key ──▸ index ──▸ the id of a record
//!           a flow           ──▸ slots     the record, which never moves, and its aliases
//!           a slot           ──▸ accounting: timer, eviction policy, tenants, metrics
//!
//!     out   records by id, handle or slot; the bytes in use and to come: limit
//! ```

pub(crate) mod accounting;
pub(crate) mod aliases;
pub(crate) mod handle;
pub(crate) mod index;
pub(crate) mod limit;
pub(crate) mod slots;
pub(crate) mod tenants;
