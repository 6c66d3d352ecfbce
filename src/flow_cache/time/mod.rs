//! Time: when flows end that receive no packets.
//!
//! ```text
//!     in    the caller's Timestamp ──▸ clock ──▸ time of the cache, which never decreases
//!           a flow's last packet   ──▸ timeouts ──▸ its deadline ──▸ wheel
//!
//!     out   expiry: the flows whose deadline has passed, in steps of a budget, as events
//! ```

pub(crate) mod chunk_lists;
pub(crate) mod clock;
pub(crate) mod expiry;
pub(crate) mod timeouts;
pub(crate) mod waiting;
pub(crate) mod wheel;
