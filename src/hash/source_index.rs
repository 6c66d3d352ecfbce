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
//! # Hostile sources
//!
//! A source that sends all flows with one index has them all in one slot: they evict each other and
//! any other flow there. With many indices it evicts other flows everywhere, one entry per packet.
//! Its effect on a table of fixed size is limited to that: the next packet of an evicted flow takes
//! the full lookup. Mixing a secret into the index does not help, as equal indices stay equal;
//! associativity ([`SourceHashCache`](crate::cache::SourceHashCache) with `WAYS` above 1) helps
//! somewhat. With hostile sources and an expensive full lookup, hash the key with a secret instead.
//!
//! Paper: Chandranmenon and Varghese, *Trading packet headers for packet processing* (1995),
//! section 3.

use crate::key::bits::BitString;

/// The index in the packets of a flow, chosen by its source: a hint where its state is.
///
/// It is from a flow label, the hash of a network card, a connection ID, or the key itself. Flows
/// may share an index, and their sources choose it: so a table that uses one compares keys, too.
/// Methods take O(1), or O(length) of the bytes that they hash.
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
}

impl From<u32> for SourceIndex {
    #[inline]
    fn from(index: u32) -> Self {
        Self(index)
    }
}

/// The Toeplitz hash of receive-side scaling.
///
/// Network cards compute it for received packets; this is an implementation in software, for
/// packets without it and for tests. [`Rss`](crate::hash::Rss) is a hasher for tables.
///
/// ```text
///     input  1 0 1 1 …           hash = K(0) ^ K(2) ^ K(3) ^ …
///     key    0110110101011010…   K(i): the 32 bits of the key from bit i on
/// ```
///
/// The input is a [`FourTuple`](crate::FourTuple) for TCP and UDP, and the concatenation of the two
/// addresses for other packets. With the [symmetric](Self::SYMMETRIC) key both directions of a flow
/// have equal hashes, and so the same queue.
///
/// The hash is linear, and the default keys of cards are public: inputs with equal hashes are
/// easily found. If it is used as an [index](SourceIndex::from_rss), that costs time only.
///
/// Cost: O(bits of the input).
///
/// Paper: Krawczyk 1995 for the hash. Its use by cards, the key and the test vectors are
/// Microsoft's, *Verifying the RSS hash calculation*; the symmetric key: Woo and Park 2012.
///
/// # Example
///
/// ```
/// use flowtable::FourTuple;
/// use flowtable::hash::source_index::Toeplitz;
/// use std::net::Ipv4Addr;
///
/// let packet = FourTuple {
///     src: Ipv4Addr::new(66, 9, 149, 187),
///     dst: Ipv4Addr::new(161, 142, 100, 80),
///     sport: 2794,
///     dport: 1766,
/// };
/// assert_eq!(Toeplitz::MICROSOFT.hash(&packet), 0x51cc_c178);
/// let [forward, reverse] = [packet, packet.reversed()].map(|key| Toeplitz::SYMMETRIC.hash(&key));
/// assert_eq!(forward, reverse);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Toeplitz {
    key: [u8; Self::KEY_LEN],
}

impl Toeplitz {
    /// The length of a key in bytes: two IPv6 addresses, two ports, and the 32 bits of the hash.
    pub const KEY_LEN: usize = 40;

    /// The key of the published test vectors, which is the default of many drivers.
    pub const MICROSOFT: Self = Self::new([
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ]);

    /// A key of 16 repeated bits, for which the hashes of both directions are equal.
    ///
    /// There are only 2^16 different hashes: the two halves of each are equal.
    pub const SYMMETRIC: Self = {
        let mut key = [0x6d; Self::KEY_LEN];
        let mut odd = 1;
        while odd < Self::KEY_LEN {
            key[odd] = 0x5a;
            odd += 2;
        }
        Self::new(key)
    };

    /// Creates a hash with this key.
    #[must_use]
    pub const fn new(key: [u8; Self::KEY_LEN]) -> Self {
        Self { key }
    }

    /// Returns the hash of a bit string. For more than 36 bytes the key is repeated. O(bytes).
    #[must_use]
    pub fn hash<K: BitString>(&self, input: &K) -> u32 {
        let words = (0..K::BITS).step_by(32);
        words.fold(0, |hash, pos| {
            let word = (input.window(pos) >> 32) as u32;
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(K::BITS - pos)).unwrap_or(0);
            hash ^ self.hash_word(word & mask, (pos / 8) as usize)
        })
    }

    /// Returns the contribution of a word to the hash, given its first byte in the input. It is
    /// computed by four bits at a time.
    #[inline]
    pub(crate) fn hash_word(&self, word: u32, first: usize) -> u32 {
        let key = match self.key.get(first..).and_then(|rest| rest.first_chunk()) {
            Some(key) => *key,
            None => core::array::from_fn(|byte| self.key[(first + byte) % Self::KEY_LEN]),
        };
        let key = u64::from_be_bytes(key);
        // For each value of four bits, the sum of the keys shifted by the places of its set bits.
        let mut sums = [0; 16];
        for bit in 0..4 {
            for lower in 0..1 << bit {
                sums[1 << bit | lower] = sums[lower] ^ key << (3 - bit);
            }
        }
        (0..8).fold(0, |hash, four| {
            let bits = word >> (28 - 4 * four) & 15;
            hash ^ (sums[bits as usize] << (4 * four) >> 32) as u32
        })
    }
}
