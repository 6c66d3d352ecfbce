//! XOR folding: the XOR of all words of a key.
//!
//! ```text
//!     key         0a 01 │ 03 1c │ 0a 02 │ 07 05 │ 00 00 │ 00 09
//!     16 bits     0a01 ^ 031c ^ 0a02 ^ 0705 ^ 0000 ^ 0009  =  0413
//!     8 bits      04 ^ 13                                  =    17
//! ```
//!
//! Words are aligned to the end of the key, so a key of odd length is padded with a zero in front.
//!
//! # Cost
//!
//! A load and an XOR for each word: the cheapest function of all bytes. But it does not mix bits:
//! each bit of the key affects one bit of the hash. If two fields count up, such as a host and a
//! flow number, their low bits overlap, and different keys collide. Of 40,000 keys with addresses
//! in few subnets and small flow numbers, nine in ten collide; at random it would
//! be one in four. Eight bits address no more than 256 buckets of a table of any size.
//!
//! Use it for few, random keys, and for comparisons: see the [parent module](super).

use core::hash::Hasher;

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
