//! The Toeplitz hash of receive-side scaling.

use crate::key::bits::BitString;

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
/// easily found. If it is used as an [index](super::SourceIndex::from_rss), that costs time only.
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
