//! The checksum of the Internet: over bytes, and over bytes that are copied meanwhile.
//!
//! Words of 64 bits are read as the machine has them, since a one's complement sum does not care for the order of
//! bytes until its end (RFC 1071, section 2). A lane adds whole words, which overflow, and their upper halves, which
//! do not; the lower halves are what is missing. So a word costs two additions and a shift, and compilers do that
//! to several lanes at once.

use core::fmt;

use super::error::NoRoom;

/// Lanes that add at the same time, a word of 64 bits each.
const LANES: usize = 8;

/// Bytes that all lanes take at once.
const BLOCK: usize = 8 * LANES;

/// Fewer bytes than these are summed without lanes.
const SHORT: usize = 256;

/// Blocks after which lanes are emptied, for 2^32 half words may overflow; so few that tests get there.
const LONGEST: usize = 1 << 14;

/// A one's complement sum of 16-bit words in network byte order: the checksum of IP, TCP and UDP.
///
/// The sum over bytes that contain their checksum is all ones. Bytes without a checksum field, such as a pseudo
/// header, are added by [`plus`](Self::plus).
///
/// # Example
///
/// ```
/// use flowtable::dml::Checksum;
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

    /// The sum of `bytes`; an odd one at the end is the upper half of a word. O(bytes).
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        if bytes.len() < SHORT {
            return Self::folded(short(bytes));
        }
        let mut blocks = bytes.chunks_exact(BLOCK);
        let mut sum = short(blocks.remainder());
        while blocks.len() > 0 {
            let mut lanes = Lanes::default();
            for block in blocks.by_ref().take(LONGEST) {
                lanes.add(&load(block));
            }
            sum = add(sum, lanes.total());
        }
        Self::folded(sum)
    }

    /// Copies `from` to the beginning of `to`, and returns its sum: each byte is read once. O(bytes).
    ///
    /// # Errors
    ///
    /// If `to` is shorter than `from`. Nothing is copied then.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::dml::{Checksum, NoRoom};
    ///
    /// let mut buffer = [0; 8];
    /// let sum = Checksum::copying(b"seven b", &mut buffer)?;
    /// assert_eq!((&buffer, sum), (b"seven b\0", Checksum::of(b"seven b")));
    /// assert_eq!(Checksum::copying(b"nine byte", &mut buffer), Err(NoRoom { needed: 9, room: 8 }));
    /// # Ok::<(), NoRoom>(())
    /// ```
    pub fn copying(from: &[u8], to: &mut [u8]) -> Result<Self, NoRoom> {
        let room = to.len();
        let to = to.get_mut(..from.len()).ok_or(NoRoom { needed: from.len(), room })?;
        Ok(Self::of_copied(from, to))
    }

    /// Copies `from` to `to`, which is as long.
    pub(super) fn of_copied(from: &[u8], to: &mut [u8]) -> Self {
        if from.len() < SHORT {
            to.copy_from_slice(from);
            return Self::folded(short(from));
        }
        let (mut blocks, mut copies) = (from.chunks_exact(BLOCK), to.chunks_exact_mut(BLOCK));
        let mut sum = short(blocks.remainder());
        while blocks.len() > 0 {
            let mut lanes = Lanes::default();
            for (block, copy) in blocks.by_ref().zip(copies.by_ref()).take(LONGEST) {
                let words = load(block);
                store(&words, copy);
                lanes.add(&words);
            }
            sum = add(sum, lanes.total());
        }
        copies.into_remainder().copy_from_slice(blocks.remainder());
        Self::folded(sum)
    }

    /// The sum as a number. 0 is the sum of nothing but zeros.
    #[inline]
    #[must_use]
    pub const fn sum(self) -> u16 {
        self.0
    }

    /// What the checksum field must have, if the sum is that of the bytes with zeros there.
    #[inline]
    #[must_use]
    pub const fn field(self) -> [u8; 2] {
        (!self.0).to_be_bytes()
    }

    /// Whether bytes that contain their checksum are as they were: the sum is all ones.
    ///
    /// No bytes, and nothing but zeros, do not verify: there is no checksum in them.
    #[inline]
    #[must_use]
    pub const fn verifies(self) -> bool {
        self.0 == u16::MAX
    }

    /// The sum of both.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::dml::Checksum;
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

    /// The sum of the same bytes if so many others are in front of them: an odd number swaps halves of words.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::dml::Checksum;
    ///
    /// let (first, second) = (Checksum::of(b"odd"), Checksum::of(b"ity"));
    /// assert_eq!(first.plus(second.behind(3)), Checksum::of(b"oddity"));
    /// ```
    #[inline]
    #[must_use]
    pub const fn behind(self, bytes: usize) -> Self {
        if bytes % 2 == 0 { self } else { Self(self.0.swap_bytes()) }
    }

    /// The sum of a sum in the machine's byte order. Only 0 becomes 0.
    #[inline]
    const fn folded(sum: u64) -> Self {
        Self(u16::from_be_bytes(fold(sum).to_ne_bytes()))
    }

    /// The sum between two prefixes of a sum of checksums. Only equal ones become 0.
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

/// The number modulo 65,535, where none but 0 becomes 0: a number and itself turned by half of its bits add up to
/// both halves, and the carry, in the upper half.
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
    /// The upper halves of the same words.
    upper: [u64; LANES],
}

impl Lanes {
    #[inline(always)]
    fn add(&mut self, words: &[u64; LANES]) {
        for (lane, word) in words.iter().enumerate() {
            self.words[lane] = self.words[lane].wrapping_add(*word);
            self.upper[lane] += word >> 32;
        }
    }

    /// The sum of what was added.
    fn total(self) -> u64 {
        let words = self.words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
        let upper = self.upper.iter().sum::<u64>();
        add(words.wrapping_sub(upper << 32), upper)
    }
}

/// The one's complement sum of both: a carry comes in again at the lower end. Only zeros add up to 0.
#[inline(always)]
const fn add(sum: u64, word: u64) -> u64 {
    let (sum, carry) = sum.overflowing_add(word);
    sum + carry as u64
}

/// The sum of some bytes, without lanes, which would have to be added up.
#[inline(always)]
fn short(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let sum = (&mut words).fold(0, |sum, word| add(sum, word_of(word)));
    // Any even place within a word will do.
    let (four, rest) = first::<4>(words.remainder());
    let (two, rest) = first::<2>(rest);
    let ([one], _) = first::<1>(rest);
    let rest = u64::from(u32::from_ne_bytes(four))
        + u64::from(u16::from_ne_bytes(two))
        + u64::from(u16::from_ne_bytes([one, 0]));
    add(sum, rest)
}

/// So many bytes, or zeros if there are fewer, and the others.
#[inline(always)]
fn first<const N: usize>(bytes: &[u8]) -> ([u8; N], &[u8]) {
    bytes.split_first_chunk().map_or(([0; N], bytes), |(first, rest)| (*first, rest))
}

/// The first eight bytes, which are there.
#[inline(always)]
fn word_of(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |word| u64::from_ne_bytes(*word))
}

/// The words of a block.
#[inline(always)]
fn load(block: &[u8]) -> [u64; LANES] {
    core::array::from_fn(|lane| word_of(&block[8 * lane..]))
}

/// The words to a block.
#[inline(always)]
fn store(words: &[u64; LANES], block: &mut [u8]) {
    for (word, bytes) in words.iter().zip(block.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&word.to_ne_bytes());
    }
}
