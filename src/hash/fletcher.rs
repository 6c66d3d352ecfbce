//! Fletcher's checksum: a sum of the bytes, and a sum of the sums.
//!
//! ```text
//!     bytes          a     b       c         …
//!     first sum      a     a+b     a+b+c     …      modulo 255
//!     second sum     a    2a+b    3a+2b+c    …      modulo 255: each byte counts as often as bytes follow
//!     hash           │ second │ first │
//! ```
//!
//! # Price
//!
//! Two additions for each byte, and a division in the end. It tells the order of bytes, which a sum does not. But sums of
//! few small numbers are small numbers: keys that differ in a few bytes that count come to few places. Neither sum is ever
//! 255, which leaves 65,025 hashes, and bytes of 0 and 255 are the same to it. Its range grows with the length of a key;
//! the names of flows are short.
//!
//! To take where the checksum is there already, and to compare with: see the [module above](super).

use core::hash::Hasher;

const MODULUS: u32 = 255;
/// After so many bytes the sums are divided, long before they could overflow.
const BLOCK: usize = 4096;
const _: () = {
    let (most, count) = (MODULUS as u64, BLOCK as u64);
    // Both sums before the block, one of them `count` times, and bytes of 255 counted up to `count` times.
    assert!(most * (1 + count) + most * count * (count + 1) / 2 <= u32::MAX as u64);
};

/// Fletcher's checksum of 16 bits.
///
/// # Example
///
/// ```
/// use flowtable::hash::Fletcher16;
///
/// assert_eq!(Fletcher16::of(b"abcde"), 0xc8f0);
/// assert_eq!(Fletcher16::of(&[0, 7]), Fletcher16::of(&[255, 7]));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Fletcher16 {
    /// Below 255, as the other one.
    first: u32,
    second: u32,
}

impl Fletcher16 {
    /// The hash of these bytes.
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
