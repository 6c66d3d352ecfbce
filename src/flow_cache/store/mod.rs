//! Storage: the slots of flows, their index, and the counts of flows.
//!
//! ```text
//!     in    a hash and a key ──▸ index ──▸ the id of a record
//!           a flow           ──▸ slots     the record, which never moves, and its aliases
//!           a slot           ──▸ accounting: timer, eviction policy, tenants, metrics
//!
//!     out   records by id, handle or slot; the bytes in use and to come: accounting
//! ```
//!
//! A [`Handle`] is a slot and the ID of its flow. IDs are never reused, so the handle of a flow
//! that has ended never finds a later flow.

pub(crate) mod accounting;
pub(crate) mod aliases;
pub(crate) mod index;
pub(crate) mod slots;
pub(crate) mod tenants;

/// A stable reference to a flow, of 16 bytes, without its key.
///
/// It does not keep the flow alive. After the end of the flow it finds nothing, and never another.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Packet};
/// use flowtable::{FlowCache, Timestamp};
///
/// let mut cache: FlowCache<u64, u32> = FlowCache::new(Config::new(1)?);
/// let first = cache.observe(&7, Packet::UDP, Timestamp::ZERO)?.handle();
/// let second = cache.observe(&8, Packet::UDP, Timestamp::ZERO)?.handle();
/// assert_eq!((first.id(), second.id()), (1, 2));
/// // The second flow reuses the slot of the first one, and is not found by its handle.
/// assert_eq!((cache.get(first), cache.get(second)), (None, Some(&0)));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle {
    pub(crate) id: u64,
    pub(crate) slot: u32,
}

impl Handle {
    /// Returns the ID of the flow, the `flowId` of IPFIX. IDs count from 1 in order of creation.
    #[must_use]
    pub const fn id(self) -> u64 {
        self.id
    }
}

/// A version of a cache, which each change increments: see
/// [`Cursor::changed_since`](crate::flow_cache::Cursor::changed_since).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Version(pub(crate) u64);
