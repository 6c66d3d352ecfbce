//! Packets: from a key and its packet to the flow, and what the packet changes there.
//!
//! ```text
//!     in    key, Packet, Timestamp          one by one: observation      a burst: burst
//!             │
//!             ├─ lookup ──────▸ the flow ──▸ connection: its next state
//!             │                    ▲
//!             └─ admission ────────┘         room for a new flow, or a victim
//!
//!     out   Observed: the value, direction and class of the flow, and the flow removed for it
//! ```
//!
//! [`properties`] belong to one packet, a [`state`] to a flow. [`record`] is the layout of
//! a flow in memory.

pub(crate) mod admission;
pub(crate) mod burst;
pub(crate) mod connection;
pub(crate) mod lookup;
pub(crate) mod observation;
pub(crate) mod properties;
pub(crate) mod record;
pub(crate) mod result;
pub mod state;
