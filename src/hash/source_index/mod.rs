//! The index that a packet brings along: look-ups that need no hash.
//!
//! ```text
//!     source                      packet                             every receiver on the way
//!     a random number    ──▸  │ index │ flow's name │ data │  ──▸    index mod 2^k: the place to look at
//!     for each flow                                                  name:           is it the flow?
//! ```
//!
//! Whoever sends the packets of a flow puts a number into each, the same in all of them. Bridges, routers, filters
//! and hosts take its low bits as the place where the state of the flow is. None of them computes anything,
//! and places are spread as evenly as the numbers are, however alike the names. The whole name is compared
//! there: an index that is wrong, hostile or [absent](SourceIndex::ABSENT) costs time, and never gives
//! another flow's state. [`SourceHashCache`](crate::cache::SourceHashCache) is the table for it.
//!
//! Nobody sends such a field by itself, but packets bring its like today:
//!
//! | from | | bits |
//! |---|---|--:|
//! | [`from_rss`](SourceIndex::from_rss) | what the network card has computed to choose a queue: see [`Toeplitz`] | 32 |
//! | [`from_flow_label`](SourceIndex::from_flow_label) | the flow label of IPv6 | 20 |
//! | [`from_connection_id`](SourceIndex::from_connection_id) | the connection ID of QUIC, which the receiver has chosen itself | 32 |
//! | [`new`](SourceIndex::new) | a field of one's own | 32 |
//!
//! A table with more places than the index has bits leaves some of them empty.
//!
//! # How a source comes by indices
//!
//! | | at the start of a flow | who uses the same name for a flow | |
//! |---|---|---|---|
//! | [`RandomIndices`] | takes the next of a list that was made at boot | has another index: an entry for each | for all that is dynamic |
//! | [`SourceIndex::of`] | computes a function that everybody has agreed on | has the same index | where several sources send to one name |
//! | [`HardwareAddress`] | nothing: it was burnt in | has the same index | for static names only |
//!
//! A flow's name must not come again while somebody remembers the last flow that had it, also when its source
//! has crashed and forgotten the names that it gave: [`FlowIds`] gives names with three parts for that.
//!
//! # Why the source should be honest, and what if it is not
//!
//! A source that sends all flows with one index has them all in one place: they displace each other, and whoever
//! else is there. With many indices it displaces others everywhere, one entry with each packet. That is the most it can
//! do in a table of fixed places: the next packet of a displaced flow takes the long way. To mix a secret into the index does not help, as equal indices stay equal; to compare with
//! several entries in the place ([`SourceHashCache`](crate::cache::SourceHashCache) with `WAYS` above 1) does,
//! some. Where sources are hostile and the long way is very long, hash the name with a secret instead.
//!
//! [`analysis`] has the paper's equations: how many names meet in a place, and what a look-up that is short from the
//! second packet on is good for.
//!
//! # The mechanisms beside each other
//!
//! The paper's Table 1, in the words of this crate, with what became of each:
//!
//! | | set-up before data | a look-up costs | state is where it should be if | today |
//! |---|---|---|---|---|
//! | names only (datagrams) | none | a longest match, or a hash | always | IP |
//! | virtual circuits | a round trip | one access | every hop has set up, and takes down | ATM, MPLS with RSVP-TE |
//! | source hashing | none: the first packet takes the long way | one access and a comparison | always: it is a cache | RSS, flow labels, connection IDs |
//! | [threaded indices](crate::threaded) | none: routing brings them | one access | routing has converged; tags catch what is stale | MPLS with LDP |
//!
//! Paper: Chandranmenon and Varghese, *Trading packet headers for packet processing* (1995), section 3.

use crate::hash::Crc32;

pub mod analysis;
mod assign;
mod flow_id;
mod toeplitz;

pub use assign::{HardwareAddress, RandomIndices};
pub use flow_id::{FlowId, FlowIds};
pub use toeplitz::Toeplitz;

/// The index that the source of a flow has put into its packets. See the [module](self).
///
/// # Example
///
/// ```
/// use flowtable::hash::source_index::SourceIndex;
///
/// assert_eq!(SourceIndex::from_flow_label(0xabcde), SourceIndex::new(0xabcde));
/// assert_eq!(SourceIndex::from_connection_id(&[]), SourceIndex::ABSENT);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(transparent)]
pub struct SourceIndex(u32);

impl SourceIndex {
    /// What a packet without an index has. All such flows are in one place.
    pub const ABSENT: Self = Self(0);

    /// An index. A table of 2^k places takes the low k bits.
    #[inline]
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Its bits.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// From a flow label of IPv6: its 20 bits, as they are. A label of zero says that there is none.
    ///
    /// Sources should choose labels at random (RFC 6437, section 3); not all do.
    #[inline]
    #[must_use]
    pub const fn from_flow_label(label: u32) -> Self {
        Self(label & 0xf_ffff)
    }

    /// From the hash that a network card has computed for receive-side scaling.
    ///
    /// It is mixed: the low bits of the hash have chosen the queue, so packets of one queue have few of
    /// their values, and most places of a table would stay empty. A [symmetric key](Toeplitz::SYMMETRIC) has 2^16 hashes in
    /// all, so packets of one of 8 queues come to 2^13 places at most.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::hash::source_index::SourceIndex;
    ///
    /// // Two packets of the queue that has the hashes that end in 0b101.
    /// let [one, other] = [0x323e_8fc5, 0xd718_262d].map(SourceIndex::from_rss);
    /// assert_ne!(one.get() % 256, other.get() % 256);
    /// ```
    #[inline]
    #[must_use]
    pub const fn from_rss(hash: u32) -> Self {
        // The upper half of a product depends on all bits, and comes to the lower end. Nothing is lost.
        Self(hash.wrapping_mul(0x9e37_79b1).rotate_left(16))
    }

    /// From a connection ID of QUIC: its last four bytes; what there is, if they are fewer.
    ///
    /// An endpoint chooses the IDs that packets to it have, at random or so that they look it (RFC 9000,
    /// section 5.1). Load balancers have their say in the first bytes.
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
            None => Self::from_few(id),
        }
    }

    const fn from_few(bytes: &[u8]) -> Self {
        match bytes {
            [rest @ .., last] => Self(Self::from_few(rest).0 << 8 | *last as u32),
            [] => Self::ABSENT,
        }
    }

    /// The index that everybody computes from a name: its CRC-32, as that is the same everywhere.
    ///
    /// What it is good for: sources that use the same name for a flow, such as an address that all of them send to,
    /// agree on the index, so a receiver has one entry and not one for each source. It protects from
    /// nobody: names with equal indices are found easily.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::hash::source_index::SourceIndex;
    ///
    /// assert_eq!(SourceIndex::of(b"123456789").get(), 0xcbf4_3926);
    /// ```
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        Self(Crc32::of(name))
    }
}

impl From<u32> for SourceIndex {
    #[inline]
    fn from(index: u32) -> Self {
        Self(index)
    }
}
