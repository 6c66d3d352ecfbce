//! The Internet checksum, of bytes and of bytes as they are copied.
//!
//! Words of 64 bits are read in native byte order, since a one's complement sum is independent of
//! it until the end (RFC 1071, section 2). A lane adds whole words, which overflow, and their upper
//! halves, which do not; the sum of the lower halves follows by subtraction. So a word costs two
//! additions and a shift, and compilers vectorise the lanes.

use core::error::Error;
use core::fmt;

/// The number of lanes, which add one word of 64 bits each in parallel.
const LANES: usize = 8;

/// Bytes that all lanes add in one step.
const BLOCK: usize = 8 * LANES;

/// Bytes below which the sum is computed without lanes.
const SHORT: usize = 256;

/// Blocks after which lanes are added up. 2^32 half words may overflow; this limit is lower, so
/// that tests reach it.
const MAX_BLOCKS: usize = 1 << 14;

/// A one's complement sum of 16-bit words in network byte order: the checksum of IP, TCP and UDP.
///
/// The sum of bytes that contain their checksum is all ones. The sum of other bytes, such as a
/// pseudo header, is added by [`plus`](Self::plus).
///
/// Paper: Chandranmenon and Varghese, section 5.1, for the sum in the pass that copies.
///
/// # Example
///
/// ```
/// use flowtable::papers::dml::Checksum;
///
/// // The example of RFC 1071, section 3.
/// let mut packet = *b"\x00\x01\xf2\x03\xf4\xf5\xf6\xf7\0\0";
/// let sum = Checksum::of(&packet);
/// assert_eq!(sum.sum(), 0xddf2);
///
/// packet[8..].copy_from_slice(&sum.field());
/// assert!(Checksum::of(&packet).verifies());
/// packet[3] ^= 1;
/// assert!(!Checksum::of(&packet).verifies());
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Checksum(u16);

impl Checksum {
    /// The sum of no bytes.
    pub(super) const ZERO: Self = Self(0);

    /// Returns the sum of `bytes`; an odd last byte is the upper half of a word. O(bytes).
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        if bytes.len() < SHORT {
            return Self::folded(short(bytes));
        }
        let mut blocks = bytes.chunks_exact(BLOCK);
        let mut sum = short(blocks.remainder());
        while blocks.len() > 0 {
            let mut lanes = Lanes::default();
            for block in blocks.by_ref().take(MAX_BLOCKS) {
                lanes.add(&load(block));
            }
            sum = add(sum, lanes.total());
        }
        Self::folded(sum)
    }

    /// Copies `from` to the start of `to`, and returns its sum. Each byte is read once. O(bytes).
    ///
    /// # Errors
    ///
    /// If `to` is shorter than `from`. Nothing is copied then.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::papers::dml::{BufferTooSmall, Checksum};
    ///
    /// let mut buffer = [0; 8];
    /// let sum = Checksum::copying(b"seven b", &mut buffer)?;
    /// assert_eq!((&buffer, sum), (b"seven b\0", Checksum::of(b"seven b")));
    /// let error = Checksum::copying(b"nine byte", &mut buffer).unwrap_err();
    /// assert_eq!(error, BufferTooSmall { needed: 9, capacity: 8 });
    /// # Ok::<(), BufferTooSmall>(())
    /// ```
    pub fn copying(from: &[u8], to: &mut [u8]) -> Result<Self, BufferTooSmall> {
        let (needed, capacity) = (from.len(), to.len());
        let to = to.get_mut(..needed).ok_or(BufferTooSmall { needed, capacity })?;
        Ok(Self::of_copied(from, to))
    }

    /// Copies `from` to `to`, a slice of equal length, and returns its sum.
    pub(super) fn of_copied(from: &[u8], to: &mut [u8]) -> Self {
        if from.len() < SHORT {
            to.copy_from_slice(from);
            return Self::folded(short(from));
        }
        let (mut blocks, mut copies) = (from.chunks_exact(BLOCK), to.chunks_exact_mut(BLOCK));
        let mut sum = short(blocks.remainder());
        while blocks.len() > 0 {
            let mut lanes = Lanes::default();
            for (block, copy) in blocks.by_ref().zip(copies.by_ref()).take(MAX_BLOCKS) {
                let words = load(block);
                store(&words, copy);
                lanes.add(&words);
            }
            sum = add(sum, lanes.total());
        }
        copies.into_remainder().copy_from_slice(blocks.remainder());
        Self::folded(sum)
    }

    /// Returns the sum as a number. It is 0 only if all bytes are zero.
    #[inline]
    #[must_use]
    pub const fn sum(self) -> u16 {
        self.0
    }

    /// Returns the value of the checksum field, if this is the sum with zeros in the field.
    #[inline]
    #[must_use]
    pub const fn field(self) -> [u8; 2] {
        (!self.0).to_be_bytes()
    }

    /// Returns whether bytes that contain their checksum are intact: whether the sum is all ones.
    ///
    /// The sum of no bytes, or of zeros only, does not verify: these contain no checksum.
    #[inline]
    #[must_use]
    pub const fn verifies(self) -> bool {
        self.0 == u16::MAX
    }

    /// Returns the sum of both byte sequences.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::papers::dml::Checksum;
    ///
    /// let (pseudo_header, segment) = (b"\x0a\0\0\x01\x0a\0\0\x02\0\x11\0\x0b", b"a datagram!");
    /// let sum = Checksum::of(segment).plus(Checksum::of(pseudo_header));
    /// assert_eq!(sum, Checksum::of(&[&pseudo_header[..], segment].concat()));
    /// ```
    #[inline]
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        let (sum, carry) = self.0.overflowing_add(other.0);
        Self(sum + carry as u16)
    }

    /// Returns the sum of these bytes at an offset in a packet: an odd one swaps the halves of
    /// words.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::papers::dml::Checksum;
    ///
    /// let (first, second) = (Checksum::of(b"odd"), Checksum::of(b"ity"));
    /// assert_eq!(first.plus(second.at_offset(3)), Checksum::of(b"oddity"));
    /// ```
    #[inline]
    #[must_use]
    pub const fn at_offset(self, offset: usize) -> Self {
        if offset % 2 == 0 { self } else { Self(self.0.swap_bytes()) }
    }

    /// Folds a sum in native byte order. Only 0 becomes 0.
    #[inline]
    const fn folded(sum: u64) -> Self {
        Self(u16::from_be_bytes(fold(sum).to_ne_bytes()))
    }

    /// The sum between two prefix sums. Only equal ones give 0.
    #[inline]
    pub(super) const fn between(before: u32, after: u32) -> Self {
        Self(fold((after - before) as u64))
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checksum({:#06x})", self.0)
    }
}

/// The sum modulo 65,535, where only 0 becomes 0.
///
/// A number plus itself rotated by half of its bits has the sum of both halves, with the carry, in
/// its upper half.
#[inline]
const fn fold(sum: u64) -> u16 {
    let half = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    (half.wrapping_add(half.rotate_left(16)) >> 16) as u16
}

/// Sums of words of 64 bits.
#[derive(Default)]
struct Lanes {
    /// All words, modulo 2^64.
    words: [u64; LANES],
    /// The upper halves of all words.
    upper: [u64; LANES],
}

impl Lanes {
    #[inline]
    fn add(&mut self, words: &[u64; LANES]) {
        for (lane, word) in words.iter().enumerate() {
            self.words[lane] = self.words[lane].wrapping_add(*word);
            self.upper[lane] += word >> 32;
        }
    }

    /// The sum of all words added.
    fn total(self) -> u64 {
        let words = self.words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
        let upper = self.upper.iter().sum::<u64>();
        add(words.wrapping_sub(upper << 32), upper)
    }
}

/// The one's complement sum of both, with an end-around carry. Only zeros add up to 0.
#[inline]
const fn add(sum: u64, word: u64) -> u64 {
    let (sum, carry) = sum.overflowing_add(word);
    sum + carry as u64
}

/// The sum of bytes without lanes, for few bytes.
#[inline]
fn short(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let sum = (&mut words).fold(0, |sum, word| add(sum, word_of(word)));
    // These may be added at any even offset within a word.
    let (four, rest) = first::<4>(words.remainder());
    let (two, rest) = first::<2>(rest);
    let ([one], _) = first::<1>(rest);
    let rest = u64::from(u32::from_ne_bytes(four))
        + u64::from(u16::from_ne_bytes(two))
        + u64::from(u16::from_ne_bytes([one, 0]));
    add(sum, rest)
}

/// The first `N` bytes, or zeros if there are fewer, and the rest.
#[inline]
fn first<const N: usize>(bytes: &[u8]) -> ([u8; N], &[u8]) {
    bytes.split_first_chunk().map_or(([0; N], bytes), |(first, rest)| (*first, rest))
}

/// The first eight bytes, which exist.
#[inline]
fn word_of(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |word| u64::from_ne_bytes(*word))
}

/// Loads the words of a block.
#[inline]
fn load(block: &[u8]) -> [u64; LANES] {
    core::array::from_fn(|lane| word_of(&block[8 * lane..]))
}

/// Stores the words of a block.
#[inline]
fn store(words: &[u64; LANES], block: &mut [u8]) {
    for (word, bytes) in words.iter().zip(block.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&word.to_ne_bytes());
    }
}

/// The error of writing to a buffer that is too small. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferTooSmall {
    /// The number of bytes to write.
    pub needed: usize,
    /// The length of the buffer.
    pub capacity: usize,
}

impl fmt::Display for BufferTooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes do not fit into {}", self.needed, self.capacity)
    }
}

impl Error for BufferTooSmall {}
