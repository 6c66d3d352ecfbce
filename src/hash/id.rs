//! A hasher for keys that are random already.

use core::hash::{BuildHasher, Hasher};

/// A [`BuildHasher`] for keys that are random already: up to eight bytes of the key are its hash.
///
/// Connection IDs of QUIC that this host has drawn, transaction IDs of its own requests and handles
/// that it has given out are as good as a hash, so a lookup computes none. The last eight bytes of
/// a byte string count, since load balancers write routing information to the first ones (RFC 9000,
/// section 5.1); shorter keys count as a whole, and the words of longer keys are combined by
/// exclusive or.
///
/// **Safe** where this host, or a host that it trusts, draws each key from a source that others
/// cannot predict, with at least 32 random bits among the last eight bytes. Peers that echo such a
/// key cannot choose its hash, and lookups of absent keys harm nothing.
///
/// **Not safe** for keys that others choose (addresses, ports, the connection IDs of a peer), or
/// that count up: sequential numbers have equal upper bits, and the tables of this crate use the
/// upper bits. [`TrashMap`](crate::TrashMap) takes its own keyed hash once it detects such keys;
/// the other structures only become slow.
///
/// # Example
///
/// ```
/// use flowtable::TrashMap;
/// use flowtable::hash::IdHasher;
///
/// let mut connections: TrashMap<[u8; 8], &str, IdHasher> = TrashMap::default();
/// let id = 0x8f1c_32aa_90be_1d57_u64.to_be_bytes();
/// connections.insert(id, "connection 1");
/// assert_eq!(connections.get(&id), Some(&"connection 1"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdHasher;

impl BuildHasher for IdHasher {
    type Hasher = IdBytes;

    #[inline]
    fn build_hasher(&self) -> IdBytes {
        IdBytes::default()
    }
}

/// The [`Hasher`] of [`IdHasher`].
///
/// # Example
///
/// ```
/// use core::hash::{BuildHasher, Hasher};
/// use flowtable::hash::IdHasher;
///
/// let mut hasher = IdHasher.build_hasher();
/// hasher.write_u64(0x8f1c_32aa_90be_1d57);
/// assert_eq!(hasher.finish(), 0x8f1c_32aa_90be_1d57);
/// ```
#[derive(Clone, Debug, Default)]
pub struct IdBytes(u64);

impl Hasher for IdBytes {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= match bytes.last_chunk() {
            Some(last) => u64::from_le_bytes(*last),
            None => spread(bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))),
        };
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        self.0 ^= spread(word.into());
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 ^= word;
    }

    #[inline]
    fn write_u128(&mut self, word: u128) {
        self.0 ^= word as u64 ^ (word >> 64) as u64;
    }

    /// A word of a key on CPUs of 64 bits, and the length of a slice or array, which is small: it
    /// changes bits of the hash that are random.
    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.0 ^= word as u64;
    }
}

/// Repeats the bits of a short key in the upper half, where tables have their tags.
#[inline]
const fn spread(word: u64) -> u64 {
    word ^ word.rotate_left(32)
}
