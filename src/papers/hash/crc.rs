//! Cyclic redundancy checks as hashes: the remainder of a key as a polynomial.
//!
//! ```text
//!                        ┌ the byte shifted out selects one of 256 rows
//!     register  │ c9 │ 1a │ ◂── next byte of the key
//!                  └───── ^ row                                  once for each byte
//! ```
//!
//! Each bit of a key affects several bits of the remainder. Keys that differ in one burst not
//! longer than the register have different remainders, and keys of real flows mostly collide about
//! as often as random ones.
//!
//! # Cost
//!
//! One byte at a time, each dependent on the previous one: three to six instructions per byte, and
//! a table of 256 rows of one, two or four bytes that should be in the L1 cache.
//!
//! A remainder is *linear*: the difference of two hashes depends only on the difference of the
//! keys. Since polynomials are public, anyone can compute any number of keys with equal hashes.
//! Linearity also matters with correlated fields: of 10,000 keys whose host and flow numbers count
//! up together, 13.6 % collide by [`Crc8Pair`], 16.5 % by [`Crc16`], 9.3 % by the lower half of
//! [`Crc32`], and 7.3 % at random.
//!
//! [`Crc32`] is for functions that many sources have to agree on, and for keys from trusted
//! sources: sources that use equal keys have equal indices, `SourceIndex::new(Crc32::of(key))`, so
//! a receiver has one entry and not one for each source. For untrusted packets see the
//! [parent module](super).

use core::hash::Hasher;

/// Returns the remainder of a byte in the upper eight bits of the register, most significant bit
/// first. Narrower polynomials are left-aligned in the 32 bits, too.
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

/// The polynomial of Ethernet, which is used least significant bit first: all bits are reversed.
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

/// Two 8-bit CRCs: one of the first six bytes of a key, one of the others. The conventional hash of
/// the paper.
///
/// The CRC of the first six bytes is the upper byte. Each is the CRC-8 of the SMBus: polynomial
/// 0x07, most significant bit first.
///
/// It is designed for keys of twelve bytes. Longer keys depend mostly on the second CRC, which is
/// always 0 for keys of up to six bytes.
///
/// Paper: Chandranmenon and Varghese, section 3.4.
///
/// # Example
///
/// ```
/// use flowtable::papers::hash::Crc8Pair;
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
    /// Bytes of the first half hashed so far.
    seen: u8,
}

impl Crc8Pair {
    /// Bytes of the first half.
    const HALF: u8 = 6;

    /// Returns the hash of these bytes.
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

/// CRC-16/IBM-3740: polynomial 0x1021, most significant bit first, initialised with all ones.
///
/// # Example
///
/// ```
/// use flowtable::papers::hash::Crc16;
///
/// assert_eq!(Crc16::of(b"123456789"), 0x29b1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Crc16(u16);

impl Crc16 {
    /// Returns the hash of these bytes.
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

/// The CRC-32 of Ethernet, gzip and PNG.
///
/// For fewer bits, use the lower ones.
///
/// # Example
///
/// ```
/// use core::hash::{BuildHasher, BuildHasherDefault};
/// use flowtable::FourTuple;
/// use flowtable::papers::hash::Crc32;
///
/// assert_eq!(Crc32::of(b"123456789"), 0xcbf4_3926);
/// // As the hasher of a table.
/// let hasher = BuildHasherDefault::<Crc32>::default();
/// let tuple = FourTuple { src: 1_u32, dst: 2, sport: 3, dport: 4 };
/// assert_ne!(hasher.hash_one(tuple), hasher.hash_one(tuple.reversed()));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Crc32(u32);

impl Crc32 {
    /// Returns the hash of these bytes.
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
