//! Indices of source hashing: their assignment, identifiers of flows, and the paper's equations.
//!
//! [`hash::source_index`](crate::hash::source_index) describes the mechanism, and
//! [`SourceHashCache`](crate::SourceHashCache) is the table. The paper assigns indices in three
//! ways:
//!
//! | | the index of a new flow | two sources of one key have | use |
//! |---|---|---|---|
//! | [`RandomIndices`] | the next of a list made at boot | two indices, two entries | dynamic |
//! | [`Crc32`] of the key | an agreed function of the key | one index | several sources per key |
//! | [`HardwareAddress`] | burnt into the hardware | one index | static keys only |
//!
//! [`Crc32`]: crate::papers::hash::Crc32
//!
//! A flow key must not be reused while a receiver has state of its previous flow, not even after a
//! crash in which the source has lost its keys: for that, [`FlowIds`] generates identifiers with an
//! incarnation.
//!
//! # Comparison of mechanisms
//!
//! Seven mechanisms by the columns of table 1 of the paper (cost, delay, memory, and when to use
//! it), in today's terms:
//!
//! | | lookup | delay before data | memory of a router | when | today |
//! |---|---|---|---|---|---|
//! | datagrams | a longest match | none | each prefix | always possible | IP |
//! | hashing | a hash, a comparison | none | active flows, twice | any exact key | connections |
//! | associative memory | one access | none | each prefix, in hardware | small tables | switches |
//! | virtual circuits | one access | a round trip | each circuit | long flows | ATM, RSVP-TE |
//! | source routes | no access | none | none: in packets | sources know paths | segment routing |
//! | source hashing | an access, a comparison | none | active flows, twice | any flow | RSS |
//! | [threaded indices] | one access | none | each destination | routing by table | MPLS, LDP |
//!
//! In source hashing the first packet takes the full lookup. Threaded indices are set up by
//! routing, and tags detect stale state.
//!
//! [threaded indices]: crate::papers::threaded
//!
//! [`analysis`] has the paper's equations: the expected number of collisions, and the gain of an
//! indexed lookup from the second packet on.
//!
//! Paper: Chandranmenon and Varghese, *Trading packet headers for packet processing* (1995),
//! section 3.

pub mod analysis;
mod assign;

pub use assign::{FlowId, FlowIds, HardwareAddress, RandomIndices};
