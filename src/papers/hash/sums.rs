//! Sums of the words of a key: XOR folding, and Fletcher's checksum.
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
//! ## Cost
//!
//! A load and an XOR for each word: the cheapest function of all bytes. But it does not mix bits:
//! each bit of the key affects one bit of the hash. If two fields count up, such as a host and a
//! flow number, their low bits overlap, and different keys collide. Of 40,000 keys with addresses
//! in few subnets and small flow numbers, nine in ten collide; at random it would
//! be one in four. Eight bits address no more than 256 buckets of a table of any size.
//!
//! Use it for few, random keys, and for comparisons: see the [parent module](super).
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
//! ## Cost
//!
//! Two additions for each byte, and a division at the end. It depends on the order of the bytes,
//! which a plain sum does not. But sums of few small integers are small: keys that differ in a few
//! counters have few hashes. Neither sum is ever 255, which leaves 65,025 hashes, and the bytes 0
//! and 255 are equivalent. Its range grows with the length of a key; flow keys are short.
//!
//! Use it where the checksum is available already, and for comparisons: see the
//! [parent module](super).

use core::hash::Hasher;

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
/// use flowtable::papers::hash::Fletcher16;
///
/// assert_eq!(Fletcher16::of(b"abcde"), 0xc8f0);
/// assert_eq!(Fletcher16::of(&[0, 7]), Fletcher16::of(&[255, 7]));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Fletcher16 {
    /// Below 255, like `second`.
    first: u32,
    second: u32,
}

impl Fletcher16 {
    /// Returns the hash of these bytes.
    #[inline]
    #[must_use]
    pub fn of(bytes: &[u8]) -> u16 {
        Self::default().with(bytes).hash()
    }

    #[inline]
    fn with(mut self, bytes: &[u8]) -> Self {
        for block in bytes.chunks(BLOCK) {
            for &byte in block {
                self.first += u32::from(byte);
                self.second += self.first;
            }
            self.first %= MODULUS;
            self.second %= MODULUS;
        }
        self
    }

    #[inline]
    const fn hash(self) -> u16 {
        (self.second << 8 | self.first) as u16
    }
}

impl Hasher for Fletcher16 {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        *self = self.with(bytes);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.hash().into()
    }
}

/// Folds a key to 8 bits.
///
/// Paper: Chandranmenon and Varghese, section 3.4.
///
/// # Example
///
/// ```
/// use flowtable::papers::hash::XorFold8;
///
/// assert_eq!(XorFold8::of(&[0x12, 0x34, 0x56]), 0x12 ^ 0x34 ^ 0x56);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct XorFold8(u8);

impl XorFold8 {
    /// Returns the hash of these bytes.
    #[inline]
    #[must_use]
    pub fn of(bytes: &[u8]) -> u8 {
        Self(0).with(bytes).0
    }

    #[inline]
    fn with(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |fold, byte| fold ^ byte))
    }
}

impl Hasher for XorFold8 {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        *self = self.with(bytes);
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
/// use flowtable::papers::hash::XorFold16;
///
/// assert_eq!(XorFold16::of(&[0x12, 0x34, 0x56, 0x78]), 0x1234 ^ 0x5678);
/// assert_eq!(XorFold16::of(&[0x34, 0x56, 0x78]), 0x0034 ^ 0x5678);
/// // Fields that count up together cancel out.
/// let [one, two] = [1_u8, 2].map(|n| [10, 1, 0, n, 10, 2, 0, n, 0, 0, 0, 0]);
/// assert_eq!(XorFold16::of(&one), XorFold16::of(&two));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct XorFold16(u16);

impl XorFold16 {
    /// Returns the hash of these bytes.
    #[inline]
    #[must_use]
    pub fn of(bytes: &[u8]) -> u16 {
        Self(0).with(bytes).0
    }

    /// One more byte shifts all words by a byte, which swaps their bytes: so the partition of a key
    /// into writes does not affect the hash.
    #[inline]
    fn with(self, bytes: &[u8]) -> Self {
        let words = bytes.chunks_exact(2);
        let last = words.remainder();
        let fold = words.fold(self.0, |fold, word| fold ^ u16::from_be_bytes([word[0], word[1]]));
        Self(last.iter().fold(fold, |fold, &byte| fold.rotate_left(8) ^ u16::from(byte)))
    }
}

impl Hasher for XorFold16 {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        *self = self.with(bytes);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.into()
    }
}
