//! Source hashing: an index in the packet, chosen by the sender, replaces the hash of a lookup.
//!
//! ```text
//!     source                      packet                         each receiver on the path
//!     a random index     ──▸  │ index │ flow key │ data │  ──▸   index mod 2^k selects a slot,
//!     for each flow                                              the key is compared there
//! ```
//!
//! The sender of a flow writes an index into each packet of the flow. Bridges, routers, filters and
//! hosts use its low bits as the slot of the flow's state. They compute no hash, and slots are as
//! evenly occupied as the indices are random, even for similar keys. The whole key is compared in
//! the slot: an index that is wrong, hostile or [absent](SourceIndex::ABSENT) costs time, but never
//! returns the state of another flow. [`SourceHashCache`](crate::cache::SourceHashCache) is a table
//! for such indices.
//!
//! No protocol has such a field, but today's packets contain similar ones:
//!
//! | constructor | field | bits |
//! |---|---|--:|
//! | [`SourceIndex::from_rss`] | the hash of a network card: see [`Toeplitz`] | 32 |
//! | [`SourceIndex::from_flow_label`] | the flow label of IPv6 | 20 |
//! | [`SourceIndex::from_connection_id`] | the connection ID of QUIC, chosen by the receiver | 32 |
//! | [`SourceIndex::new`] | a field of the user's protocol | 32 |
//!
//! In a table with more slots than the index has values, some slots stay empty.
//!
//! # Choice of indices
//!
//! | | the index of a new flow | two sources of one key have | use |
//! |---|---|---|---|
//! | [`RandomIndices`] | the next of a list made at boot | two indices, two entries | dynamic |
//! | [`SourceIndex::of`] | an agreed function of the key | one index | several sources per key |
//! | [`HardwareAddress`] | burnt into the hardware | one index | static keys only |
//!
//! A flow key must not be reused while a receiver has state of its previous flow, not even after a
//! crash in which the source has lost its keys: for that, [`FlowIds`] generates identifiers with an
//! incarnation.
//!
//! # Hostile sources
//!
//! A source that sends all flows with one index has them all in one slot: they evict each other and
//! any other flow there. With many indices it evicts other flows everywhere, one entry per packet.
//! Its effect on a table of fixed size is limited to that: the next packet of an evicted flow takes
//! the full lookup. Mixing a secret into the index does not help, as equal indices stay equal;
//! associativity ([`SourceHashCache`](crate::cache::SourceHashCache) with `WAYS` above 1) helps
//! somewhat. With hostile sources and an expensive full lookup, hash the key with a secret instead.
//!
//! [`analysis`] has the paper's equations: the expected number of collisions, and the gain of an
//! indexed lookup from the second packet on.
//!
//! # Comparison of mechanisms
//!
//! Four of the seven rows of table 1 of the paper in today's terms, with current examples:
//!
//! | | set-up | cost of a lookup | condition | today |
//! |---|---|---|---|---|
//! | datagrams | none | a longest match, or a hash | none | IP |
//! | virtual circuits | a round trip | one access | all hops set up, tear down | ATM, RSVP-TE |
//! | source hashing | none | one access, one comparison | none: it is a cache | RSS, flow labels |
//! | [threaded indices] | none | one access | routing has converged | MPLS with LDP |
//!
//! In source hashing the first packet takes the full lookup. Threaded indices are set up by
//! routing, and tags detect stale state.
//!
//! [threaded indices]: crate::threaded
//!
//! Paper: Chandranmenon and Varghese, *Trading packet headers for packet processing* (1995),
//! section 3.

use crate::hash::Crc32;

pub mod analysis;
mod assign;
mod flow_id;
mod toeplitz;

pub use assign::{HardwareAddress, RandomIndices};
pub use flow_id::{FlowId, FlowIds};
pub use toeplitz::Toeplitz;

/// The index in the packets of a flow, chosen by its source: a hint where its state is.
///
/// It is from a flow label, the hash of a network card, a connection ID, or the key itself. Flows
/// may share an index, and their sources choose it: so a table that uses one compares keys, too.
/// Methods take O(1), or O(length) of what they hash.
///
/// # Example
///
/// ```
/// use flowtable::hash::source_index::SourceIndex;
///
/// assert_eq!(SourceIndex::from_flow_label(0xabcde), SourceIndex::new(0xabcde));
/// assert_eq!(SourceIndex::from_connection_id(&[]), SourceIndex::ABSENT);
/// ```
#[doc(alias("ecmp", "flow label", "load balancing"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(transparent)]
pub struct SourceIndex(u32);

impl SourceIndex {
    /// The index of packets without one. All such flows share a slot.
    pub const ABSENT: Self = Self(0);

    /// Creates an index. A table of 2^k slots uses the low k bits.
    #[inline]
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Returns the bits of the index.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Creates an index from an IPv6 flow label: its 20 bits. A label of zero means that there is
    /// none.
    ///
    /// Sources should choose labels at random (RFC 6437, section 3); not all do.
    #[inline]
    #[must_use]
    pub const fn from_flow_label(label: u32) -> Self {
        Self(label & 0xf_ffff)
    }

    /// Creates an index from the receive-side scaling hash of a network card.
    ///
    /// The hash is mixed: its low bits have selected the queue, so packets of one queue have few of
    /// their values, and most slots of a table would stay empty. A
    /// [symmetric key](Toeplitz::SYMMETRIC) has only 2^16 hashes, so packets of one of 8 queues use
    /// at most 2^13 slots.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::hash::source_index::SourceIndex;
    ///
    /// // Two packets of the queue of all hashes that end in 0b101.
    /// let [one, other] = [0x323e_8fc5, 0xd718_262d].map(SourceIndex::from_rss);
    /// assert_ne!(one.get() % 256, other.get() % 256);
    /// ```
    #[inline]
    #[must_use]
    pub const fn from_rss(hash: u32) -> Self {
        // The upper half of the product depends on all bits, and is rotated to the low end. The
        // mapping is a bijection.
        Self(hash.wrapping_mul(0x9e37_79b1).rotate_left(16))
    }

    /// Creates an index from a QUIC connection ID: its last four bytes, or all if there are fewer.
    ///
    /// An endpoint chooses the IDs of packets to it, which are random or appear so (RFC 9000,
    /// section 5.1). Load balancers encode routing information in the first bytes.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::hash::source_index::SourceIndex;
    ///
    /// let id = [0x40, 7, 7, 7, 0xde, 0xad, 0xbe, 0xef];
    /// assert_eq!(SourceIndex::from_connection_id(&id).get(), 0xdead_beef);
    /// ```
    #[inline]
    #[must_use]
    pub const fn from_connection_id(id: &[u8]) -> Self {
        match id.last_chunk() {
            Some(last) => Self(u32::from_be_bytes(*last)),
            None => Self::from_short(id),
        }
    }

    const fn from_short(bytes: &[u8]) -> Self {
        match bytes {
            [rest @ .., last] => Self(Self::from_short(rest).0 << 8 | *last as u32),
            [] => Self::ABSENT,
        }
    }

    /// Computes the index of a key by an agreed function, its CRC-32.
    ///
    /// Sources that use equal keys, such as an address to which all of them send, compute equal
    /// indices, so a receiver has one entry and not one for each source. It does not resist
    /// attacks: keys with equal indices are found easily.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::hash::source_index::SourceIndex;
    ///
    /// assert_eq!(SourceIndex::of(b"123456789").get(), 0xcbf4_3926);
    /// ```
    #[must_use]
    pub fn of(key: &[u8]) -> Self {
        Self(Crc32::of(key))
    }
}

impl From<u32> for SourceIndex {
    #[inline]
    fn from(index: u32) -> Self {
        Self(index)
    }
}
