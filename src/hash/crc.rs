//! Cyclic redundancy checks as hashes: a key is a polynomial, its hash the remainder of a division.
//!
//! ```text
//!                        ┌ the byte that leaves picks a row of 256
//!     register  │ c9 │ 1a │ ◂── next byte of the key
//!                  └───── ^ row                                  once for each byte
//! ```
//!
//! Every bit of a key counts for several bits of the remainder. Keys that differ in one burst no longer than the
//! register never have the same one, and names of real flows mostly meet about as often as random ones.
//!
//! # Price
//!
//! A byte at a time, each waiting for the one before: three to six instructions for it, and 256 rows of one, two or four
//! bytes that should be in the first-level cache.
//!
//! A remainder is *linear*: when some bits of a key change, what changes in its hash depends on those bits only. Whoever
//! knows the polynomial, which is everybody, computes as many keys with one hash as he likes. And it shows where
//! fields of a key count the same thing: of 10,000 names whose hosts and numbers do, 13.6 % meet by [`Crc8Pair`], 16.5 %
//! by [`Crc16`], 9.3 % by the lower half of [`Crc32`], and 7.3 % at random.
//!
//! [`Crc32`] is what to take where many sources have to agree on a function, as
//! [`SourceIndex::of`](crate::hash::source_index::SourceIndex::of) does, and where names come from a trusted side. For packets of just
//! anybody see the [module above](super).

use core::hash::Hasher;

/// What a byte in the upper eight bits of the register leaves, most significant bit first. Narrower polynomials are
/// at the upper end of the 32 bits, too.
const fn remainder(byte: u8, polynomial: u32) -> u32 {
    let mut register = (byte as u32) << 24;
    let mut bit = 0;
    while bit < 8 {
        let divides = register >> 31 == 1;
        register <<= 1;
        if divides {
            register ^= polynomial;
        }
        bit += 1;
    }
    register
}

/// x^8 + x^2 + x + 1.
const TABLE_8: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (remainder(byte as u8, 0x07 << 24) >> 24) as u8;
        byte += 1;
    }
    table
};

/// x^16 + x^12 + x^5 + 1.
const TABLE_16: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (remainder(byte as u8, 0x1021 << 16) >> 16) as u16;
        byte += 1;
    }
    table
};

/// The polynomial of Ethernet. It is used least significant bit first, so all is turned around.
const TABLE_32: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = remainder((byte as u8).reverse_bits(), 0x04c1_1db7).reverse_bits();
        byte += 1;
    }
    table
};

#[inline]
fn crc8(register: u8, bytes: &[u8]) -> u8 {
    bytes.iter().fold(register, |register, byte| TABLE_8[usize::from(register ^ byte)])
}

/// Two CRCs of 8 bits: one of the first six bytes of a key, one of all others. The paper's conventional hash.
///
/// The one of the first six is the upper byte. Each is a CRC-8 as the SMBus has it: polynomial 0x07, most
/// significant bit first.
///
/// Made for names of twelve bytes. Names that are longer lean on the second byte, and of names up to six bytes the
/// second is always 0.
///
/// # Example
///
/// ```
/// use flowtable::hash::Crc8Pair;
///
/// // The check value of this CRC is 0xf4.
/// assert_eq!(Crc8Pair::of(b"\0\0\0\0\0\x00123456789"), 0x00f4);
/// let [first, second] = Crc8Pair::of(b"sourcetarget").to_be_bytes();
/// assert_eq!(u16::from(first) << 8, Crc8Pair::of(b"source"));
/// assert_eq!(u16::from(second), Crc8Pair::of(b"\0\0\0\0\0\0target"));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Crc8Pair {
    first: u8,
    second: u8,
    /// Bytes of the first half so far.
    seen: u8,
}

impl Crc8Pair {
    /// Bytes of the first half.
    const HALF: u8 = 6;

    /// The hash of these bytes.
    #[inline]
    #[must_use]
    pub fn of(bytes: &[u8]) -> u16 {
        Self::default().with(bytes).hash()
    }

    #[inline]
    fn with(self, bytes: &[u8]) -> Self {
        let missing = usize::from(Self::HALF - self.seen).min(bytes.len());
        let (to_first, to_second) = bytes.split_at(missing);
        Self {
            first: crc8(self.first, to_first),
            second: crc8(self.second, to_second),
            seen: self.seen + missing as u8,
        }
    }

    #[inline]
    fn hash(self) -> u16 {
        u16::from_be_bytes([self.first, self.second])
    }
}

impl Hasher for Crc8Pair {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        *self = self.with(bytes);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.hash().into()
    }
}

/// A CRC of 16 bits: CRC-16/IBM-3740, polynomial 0x1021, most significant bit first, from all ones.
///
/// # Example
///
/// ```
/// use flowtable::hash::Crc16;
///
/// assert_eq!(Crc16::of(b"123456789"), 0x29b1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Crc16(u16);

impl Crc16 {
    /// The hash of these bytes.
    #[inline]
    #[must_use]
    pub fn of(bytes: &[u8]) -> u16 {
        Self::default().with(bytes).0
    }

    #[inline]
    fn with(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |register, byte| {
            register << 8 ^ TABLE_16[usize::from((register >> 8) as u8 ^ byte)]
        }))
    }
}

impl Default for Crc16 {
    #[inline]
    fn default() -> Self {
        Self(u16::MAX)
    }
}

impl Hasher for Crc16 {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        *self = self.with(bytes);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.into()
    }
}

/// The CRC of 32 bits of Ethernet, gzip and PNG.
///
/// Whoever needs fewer bits takes the lower ones.
///
/// # Example
///
/// ```
/// use core::hash::{BuildHasher, BuildHasherDefault};
/// use flowtable::FourTuple;
/// use flowtable::hash::Crc32;
///
/// assert_eq!(Crc32::of(b"123456789"), 0xcbf4_3926);
/// // As the hash of a table.
/// let hasher = BuildHasherDefault::<Crc32>::default();
/// let tuple = FourTuple { src: 1_u32, dst: 2, sport: 3, dport: 4 };
/// assert_ne!(hasher.hash_one(tuple), hasher.hash_one(tuple.reversed()));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Crc32(u32);

impl Crc32 {
    /// The hash of these bytes.
    #[inline]
    #[must_use]
    pub fn of(bytes: &[u8]) -> u32 {
        Self::default().with(bytes).hash()
    }

    #[inline]
    fn with(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |register, byte| {
            register >> 8 ^ TABLE_32[usize::from(register as u8 ^ byte)]
        }))
    }

    #[inline]
    const fn hash(self) -> u32 {
        !self.0
    }
}

impl Default for Crc32 {
    #[inline]
    fn default() -> Self {
        Self(u32::MAX)
    }
}

impl Hasher for Crc32 {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        *self = self.with(bytes);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.hash().into()
    }
}
