//! A [`BuildHasher`] that computes the hash of a network card.

use core::hash::{BuildHasher, Hasher};

use super::source_index::Toeplitz;
use crate::raw::splitmix::mix;

/// The hash of a network card, for tables that are given it instead of hashing keys.
///
/// A card computes the [`Toeplitz`] hash of each packet that it receives. A map with this hasher
/// takes that hash in a [`Prehashed`](crate::Prehashed) key, and computes the same from a key when
/// an entry has to move:
///
/// ```text
///     packet ──▸ card: Toeplitz, 32 bits ──▸ Rss::table_hash ──▸ get(Prehashed { hash, key })
///     key ──▸ the bytes that it hashes ──▸ Rss: Toeplitz, 32 bits ──▸ 64 bits, the same
/// ```
///
/// # Input
///
/// The input of the hash is the bytes of all writes of a key, one after the other; integers are
/// written with the most significant byte first. Of 16 and of 40 bytes the last four are left out:
///
/// | key | bytes that it writes | input: the bytes that a card hashes |
/// |---|--:|---|
/// | IPv4: `FourTuple`, `FiveTuple`, `FlowKey` | 16 | 4 source, 4 destination, 2 source port, 2 destination port |
/// | IPv6: `FourTuple`, `FiveTuple`, `FlowKey` | 40 | 16 source, 16 destination, 2 source port, 2 destination port |
/// | others | n | n |
///
/// So protocol and version are not part of it: see [the words of keys](crate::key::flow). Ports
/// that are 0 do not change the hash. Cards take the addresses only where a packet has no ports, as
/// fragments have none, and the key should have ports of 0 for those.
///
/// Beyond 40 bytes the key of the hash is repeated, as in [`Toeplitz::hash`].
///
/// # Hostile packets
///
/// Anyone can send packets with equal hashes: the function is linear, and the default key is
/// public. A [`TrashMap`](crate::TrashMap) that is flooded hashes keys by itself from then on.
///
/// Cost: O(bytes); 420 instructions for an IPv4 key, where the default hash takes 30. Lookups with
/// given hashes do not compute it; growth does, for the entries of the segment that is split.
///
/// # Example
///
/// ```
/// use flowtable::hash::{Rss, source_index::Toeplitz};
/// use flowtable::{FiveTuple, Prehashed, TrashMap};
/// use std::net::Ipv4Addr;
///
/// let (src, dst) = (Ipv4Addr::new(66, 9, 149, 187), Ipv4Addr::new(161, 142, 100, 80));
/// let key = FiveTuple { src, dst, sport: 2794, dport: 1766, protocol: 6 };
/// let from_card = Rss::table_hash(0x51cc_c178); // in the descriptor of the packet
///
/// let mut flows = TrashMap::with_hasher(Rss::new(Toeplitz::MICROSOFT));
/// flows.entry_ref(Prehashed { hash: from_card, key: &key }).or_insert("a flow");
/// assert_eq!(flows.get(&key), Some(&"a flow")); // hashed in software
/// assert_eq!(flows.get(Prehashed { hash: from_card, key: &key }), Some(&"a flow"));
/// ```
#[doc(alias("receive side scaling", "toeplitz"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rss(Toeplitz);

impl Rss {
    /// Creates a hasher with the key of a card.
    ///
    /// # Example
    ///
    /// ```
    /// use core::hash::BuildHasher;
    /// use flowtable::hash::{Rss, source_index::Toeplitz};
    /// use flowtable::FourTuple;
    ///
    /// let packet = FourTuple { src: 0x4209_95bb_u32, dst: 0xa18e_6450, sport: 2794, dport: 1766 };
    /// let rss = Rss::new(Toeplitz::SYMMETRIC);
    /// assert_eq!(rss.hash_one(packet), rss.hash_one(packet.reversed()));
    /// ```
    #[must_use]
    pub const fn new(toeplitz: Toeplitz) -> Self {
        Self(toeplitz)
    }

    /// Returns the hash of a [`Prehashed`](crate::Prehashed) key, given the hash of a card.
    ///
    /// The 64 bits are mixed, as all packets of a queue have equal low bits in the hash of the
    /// card. Different hashes stay different.
    #[inline]
    #[must_use]
    pub const fn table_hash(card: u32) -> u64 {
        mix(card as u64)
    }
}

/// The hasher with the key of the published test vectors, [`Toeplitz::MICROSOFT`].
impl Default for Rss {
    fn default() -> Self {
        Self::new(Toeplitz::MICROSOFT)
    }
}

impl BuildHasher for Rss {
    type Hasher = RssHasher;

    #[inline]
    fn build_hasher(&self) -> RssHasher {
        RssHasher { toeplitz: self.0, hash: 0, len: 0, last: 0 }
    }
}

/// The state of a hash by [`Rss`].
///
/// ```text
///     input   │ 4 bytes │ 4 bytes │ 1 to 4 bytes │
///               hash                 last           in the hash, depending on the next field
/// ```
#[derive(Clone, Debug)]
pub struct RssHasher {
    toeplitz: Toeplitz,
    /// The hash of all words but the last one.
    hash: u32,
    /// Bytes of the input.
    len: usize,
    /// The last word, which may not be complete; zero beyond the end.
    last: u32,
}

impl RssHasher {
    /// Returns the hash with the last word.
    #[inline]
    fn hash_with_last(&self) -> u32 {
        if self.last == 0 {
            return self.hash;
        }
        let first = self.len.saturating_sub(1) / 4 * 4;
        self.hash ^ self.toeplitz.hash_word(self.last, first)
    }

    #[inline]
    fn push_word(&mut self, word: u32) {
        if self.len % 4 > 0 {
            return self.write(&word.to_be_bytes());
        }
        self.hash = self.hash_with_last();
        self.last = word;
        self.len += 4;
    }

    fn push_byte(&mut self, byte: u8) {
        let at = self.len % 4;
        if at == 0 {
            self.hash = self.hash_with_last();
            self.last = 0;
        }
        self.last |= u32::from(byte) << (24 - 8 * at);
        self.len += 1;
    }
}

impl Hasher for RssHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.push_byte(byte));
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        self.write(&[byte]);
    }

    #[inline]
    fn write_u16(&mut self, number: u16) {
        self.write(&number.to_be_bytes());
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.push_word(number);
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.push_word((number >> 32) as u32);
        self.push_word(number as u32);
    }

    #[inline]
    fn write_u128(&mut self, number: u128) {
        self.write_u64((number >> 64) as u64);
        self.write_u64(number as u64);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write(&number.to_be_bytes());
    }

    #[inline]
    fn finish(&self) -> u64 {
        let card = if matches!(self.len, 16 | 40) { self.hash } else { self.hash_with_last() };
        Rss::table_hash(card)
    }
}
