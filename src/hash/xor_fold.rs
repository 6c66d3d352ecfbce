//! XOR folding: the bytes of a key, laid over each other.
//!
//! ```text
//!     key         0a 01 │ 03 1c │ 0a 02 │ 07 05 │ 00 00 │ 00 09
//!     16 bits     0a01 ^ 031c ^ 0a02 ^ 0705 ^ 0000 ^ 0009  =  0413
//!     8 bits      04 ^ 13                                  =    17
//! ```
//!
//! Words are counted from the end of the key, so that a key of odd length has a zero in front.
//!
//! # Price
//!
//! A load and an XOR for each word: the cheapest function of all bytes that there is. What it costs is what it
//! does not do: it never carries from one bit into another. Where two fields count, such as a host and a number, their
//! low bits are laid over each other, and keys that differ meet. Of 40,000 names whose addresses are in few
//! subnets and whose numbers are small, nine in ten come to a place that another one has; at random it would be
//! one in four. Eight bits cannot tell more than 256 places apart, whatever the table has.
//!
//! To take where keys are few and random, and to compare with: see the [module above](super).

use core::hash::Hasher;

/// Folds a key to 8 bits.
///
/// # Example
///
/// ```
/// use flowtable::hash::XorFold8;
///
/// assert_eq!(XorFold8::of(&[0x12, 0x34, 0x56]), 0x12 ^ 0x34 ^ 0x56);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct XorFold8(u8);

impl XorFold8 {
    /// The hash of these bytes.
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
/// # Example
///
/// ```
/// use flowtable::hash::XorFold16;
///
/// assert_eq!(XorFold16::of(&[0x12, 0x34, 0x56, 0x78]), 0x1234 ^ 0x5678);
/// assert_eq!(XorFold16::of(&[0x34, 0x56, 0x78]), 0x0034 ^ 0x5678);
/// // Fields that count together cancel out.
/// let [one, two] = [1_u8, 2].map(|n| [10, 1, 0, n, 10, 2, 0, n, 0, 0, 0, 0]);
/// assert_eq!(XorFold16::of(&one), XorFold16::of(&two));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct XorFold16(u16);

impl XorFold16 {
    /// The hash of these bytes.
    #[inline]
    #[must_use]
    pub fn of(bytes: &[u8]) -> u16 {
        Self(0).with(bytes).0
    }

    /// A byte more shifts all words by a byte, which turns them around: so it does not matter where a key is cut.
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
