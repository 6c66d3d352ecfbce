//! Fletcher's checksum: the sum of the bytes, and the sum of the partial sums.
//!
//! ```text
//!     bytes          a     b       c         …
//!     first sum      a     a+b     a+b+c     …      modulo 255
//!     second sum     a    2a+b    3a+2b+c    …      modulo 255: bytes weighted by their position
//!     hash           │ second │ first │
//! ```
//!
//! # Cost
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
