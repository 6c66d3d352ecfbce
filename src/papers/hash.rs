//! Classic hashes of routers, without a key: XOR folding, Fletcher's checksum and CRCs.
//!
//! They are hash functions of routers, for comparisons and for functions that several parties agree
//! on. For each of them there is a [`BuildHasher`](core::hash::BuildHasher), such as
//! `BuildHasherDefault<Crc32>`.
//!
//! | | bits | weakness | use |
//! |---|--:|---|---|
//! | [`XorFold8`], [`XorFold16`] | 8, 16 | correlated fields cancel out | few, random keys |
//! | [`Fletcher16`] | 16 | short keys of small integers | where it is computed anyway |
//! | [`Crc8Pair`] | 16 | keys that differ in one half only: 256 values | as in the paper |
//! | [`Crc16`] | 16 | correlated fields: it is linear | where 16 bits are enough |
//! | [`Crc32`] | 32 | correlated fields, less so | a function that several parties agree on |
//!
//! - **They are not keyed.** Anyone can compute any number of keys with equal hashes, which turn a
//!   chained table into a list. For keys from untrusted packets, use the default.
//! - **Only the low bits have entropy**: see the column *bits*. A table that uses the upper bits of
//!   a hash, as Swiss tables and [`TrashMap`](crate::TrashMap) do, needs another hash.
//! - **`write(&[u8])` is portable**, and so is [`hash_bytes`]. The partition of a key's
//!   bytes into writes does not affect the hash. The [`Hash`](core::hash::Hash) of integers writes
//!   them in native byte order, and the `Hash` of slices and arrays writes their length first: a
//!   key with equal hashes on all hosts must write its bytes itself.
//!
//! # XOR folding
//!
//! Folding is the XOR of all words of a key.
//!
//! ```text
//!     key         0a 01 │ 03 1c │ 0a 02 │ 07 05 │ 00 00 │ 00 09
//!     16 bits     0a01 ^ 031c ^ 0a02 ^ 0705 ^ 0000 ^ 0009  =  0413
//!     8 bits      04 ^ 13                                  =    17
//! ```
//!
//! Words are aligned to the end of the key, so a key of odd length is padded with a zero in front.
//!
//! A load and an XOR for each word: the cheapest function of all bytes. But it does not mix bits:
//! each bit of the key affects one bit of the hash. If two fields count up, such as a host and a
//! flow number, their low bits overlap, and different keys collide. Of 40,000 keys with addresses
//! in few subnets and small flow numbers, nine in ten collide; at random it would be one in four.
//! Eight bits address no more than 256 buckets of a table of any size.
//!
//! # Fletcher's checksum
//!
//! The checksum is the sum of the bytes, and the sum of the partial sums.
//!
//! ```text
//!     bytes          a     b       c         …
//!     first sum      a     a+b     a+b+c     …      modulo 255
//!     second sum     a    2a+b    3a+2b+c    …      modulo 255: bytes weighted by their position
//!     hash           │ second │ first │
//! ```
//!
//! Two additions for each byte, and a division at the end. It depends on the order of the bytes,
//! which a plain sum does not. But sums of few small integers are small: keys that differ in a few
//! counters have few hashes. Neither sum is ever 255, which leaves 65,025 hashes, and the bytes 0
//! and 255 are equivalent. Its range grows with the length of a key; flow keys are short.
//!
//! # Cyclic redundancy checks
//!
//! The hash is the remainder of a key as a polynomial.
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
//! sources: sources that use equal keys have equal indices, so a receiver has one entry and not one
//! for each source.
//!
//! Papers: Jain, *A comparison of hashing schemes for address lookup in computer networks* (1992);
//! Chandranmenon and Varghese, *Trading packet headers for packet processing* (1995), section
//! 3.4.

use core::hash::Hasher;

/// Returns the hash of these bytes.
///
/// # Example
///
/// ```
/// use flowtable::papers::hash::{self, Crc32};
///
/// assert_eq!(hash::hash_bytes::<Crc32>(b"123456789"), 0xcbf4_3926);
/// ```
#[inline]
#[must_use]
pub fn hash_bytes<H: Hasher + Default>(bytes: &[u8]) -> u64 {
    let mut hasher = H::default();
    hasher.write(bytes);
    hasher.finish()
}

const MODULUS: u32 = 255;
/// The number of bytes after which the sums are reduced, before they can overflow.
const BLOCK: usize = 4096;
const _: () = {
    let (most, count) = (MODULUS as u64, BLOCK as u64);
    // Both initial sums, the first one added `count` times, and `count` bytes of 255, the first of
    // which is added `count` times.
    assert!(most * (1 + count) + most * count * (count + 1) / 2 <= u32::MAX as u64);
};

/// The 16-bit Fletcher checksum.
///
/// # Example
///
/// ```
/// use flowtable::papers::hash::{Fletcher16, hash_bytes};
///
/// assert_eq!(hash_bytes::<Fletcher16>(b"abcde"), 0xc8f0);
/// assert_eq!(hash_bytes::<Fletcher16>(&[0, 7]), hash_bytes::<Fletcher16>(&[255, 7]));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Fletcher16 {
    /// Below 255, like `second`.
    first: u32,
    second: u32,
}

impl Hasher for Fletcher16 {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for block in bytes.chunks(BLOCK) {
            for &byte in block {
                self.first += u32::from(byte);
                self.second += self.first;
            }
            self.first %= MODULUS;
            self.second %= MODULUS;
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        (self.second << 8 | self.first).into()
    }
}

/// Folds a key to 8 bits.
///
/// Paper: Chandranmenon and Varghese, section 3.4.
///
/// # Example
///
/// ```
/// use flowtable::papers::hash::{XorFold8, hash_bytes};
///
/// assert_eq!(hash_bytes::<XorFold8>(&[0x12, 0x34, 0x56]), 0x12 ^ 0x34 ^ 0x56);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct XorFold8(u8);

impl Hasher for XorFold8 {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |fold, byte| fold ^ byte);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.into()
    }
}

/// Folds a key to 16 bits.
///
/// Paper: Chandranmenon and Varghese, section 3.4.
///
/// # Example
///
/// ```
/// use flowtable::papers::hash::{XorFold16, hash_bytes};
///
/// assert_eq!(hash_bytes::<XorFold16>(&[0x12, 0x34, 0x56, 0x78]), 0x1234 ^ 0x5678);
/// assert_eq!(hash_bytes::<XorFold16>(&[0x34, 0x56, 0x78]), 0x0034 ^ 0x5678);
/// // Fields that count up together cancel out.
/// let [one, two] = [1_u8, 2].map(|n| [10, 1, 0, n, 10, 2, 0, n, 0, 0, 0, 0]);
/// assert_eq!(hash_bytes::<XorFold16>(&one), hash_bytes::<XorFold16>(&two));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct XorFold16(u16);

impl Hasher for XorFold16 {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        // One more byte shifts all words by a byte, which swaps their bytes: so the partition of a
        // key into writes does not affect the hash.
        let words = bytes.chunks_exact(2);
        let last = words.remainder();
        let fold = words.fold(self.0, |fold, word| fold ^ u16::from_be_bytes([word[0], word[1]]));
        self.0 = last.iter().fold(fold, |fold, &byte| fold.rotate_left(8) ^ u16::from(byte));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.into()
    }
}

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

/// The number of bytes of the first half of a key, for [`Crc8Pair`].
const HALF: u8 = 6;

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
/// use flowtable::papers::hash::{Crc8Pair, hash_bytes};
///
/// // The check value of this CRC is 0xf4.
/// assert_eq!(hash_bytes::<Crc8Pair>(b"\0\0\0\0\0\x00123456789"), 0x00f4);
/// let hash = hash_bytes::<Crc8Pair>(b"sourcetarget");
/// assert_eq!(hash & 0xff00, hash_bytes::<Crc8Pair>(b"source"));
/// assert_eq!(hash & 0x00ff, hash_bytes::<Crc8Pair>(b"\0\0\0\0\0\0target"));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Crc8Pair {
    first: u8,
    second: u8,
    /// Bytes of the first half hashed so far.
    seen: u8,
}

impl Hasher for Crc8Pair {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let missing = usize::from(HALF - self.seen).min(bytes.len());
        let (to_first, to_second) = bytes.split_at(missing);
        self.first = crc8(self.first, to_first);
        self.second = crc8(self.second, to_second);
        self.seen += missing as u8;
    }

    #[inline]
    fn finish(&self) -> u64 {
        u16::from_be_bytes([self.first, self.second]).into()
    }
}

/// CRC-16/IBM-3740: polynomial 0x1021, most significant bit first, initialised with all ones.
///
/// # Example
///
/// ```
/// use flowtable::papers::hash::{Crc16, hash_bytes};
///
/// assert_eq!(hash_bytes::<Crc16>(b"123456789"), 0x29b1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Crc16(u16);

impl Default for Crc16 {
    #[inline]
    fn default() -> Self {
        Self(u16::MAX)
    }
}

impl Hasher for Crc16 {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |register, byte| {
            register << 8 ^ TABLE_16[usize::from((register >> 8) as u8 ^ byte)]
        });
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
/// use flowtable::papers::hash::{Crc32, hash_bytes};
///
/// assert_eq!(hash_bytes::<Crc32>(b"123456789"), 0xcbf4_3926);
/// // As the hasher of a table.
/// let hasher = BuildHasherDefault::<Crc32>::default();
/// let tuple = FourTuple { src: 1_u32, dst: 2, sport: 3, dport: 4 };
/// assert_ne!(hasher.hash_one(tuple), hasher.hash_one(tuple.reversed()));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Crc32(u32);

impl Default for Crc32 {
    #[inline]
    fn default() -> Self {
        Self(u32::MAX)
    }
}

impl Hasher for Crc32 {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |register, byte| {
            register >> 8 ^ TABLE_32[usize::from(register as u8 ^ byte)]
        });
    }

    #[inline]
    fn finish(&self) -> u64 {
        (!self.0).into()
    }
}
