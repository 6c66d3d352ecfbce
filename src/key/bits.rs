//! Bit strings: keys of a fixed width in bits.
//!
//! ```text
//!     bit    0         8         16        24
//!            ┌─────────┬─────────┬─────────┬─────────┐
//!     key    │ 1010…   │         │         │         │        10.0.0.1 as an Ipv4Addr: BITS = 32
//!            └─────────┴─────────┴─────────┴─────────┘
//!                 └──── window(5): the 64 bits from bit 5 on, zeros past the end ──────→
//! ```
//!
//! A trie reads a key a few bits at a time, most significant bit first. [`BitString`] has one
//! required method for this, [`window`](BitString::window): the others (a short slice, the first
//! bit in which two keys differ) are arithmetic on windows.
//!
//! Bit order *is* `Ord` order: a traversal of a trie from slot 0 upwards yields its keys sorted.
//!
//! Strings concatenate: `(A, B)` is the bits of `A`, then the bits of `B`, and tuples compare in
//! this order. [`FourTuple`](crate::FourTuple) and [`FiveTuple`](crate::FiveTuple) are such
//! concatenations, and so is [`Headed`]: a hash in front of a key, which makes the shape of a
//! level-compressed trie independent of the distribution of its keys.
//!
//! [`Address`] is the inverse, from bits to the key: prefixes of addresses are addresses, too.
//!
//! Cost: a window of an integer or an address is one or two shifts; of an array, one unaligned
//! load; of a concatenation, a window of one part, or of both.
//!
//! Paper: Olsson and Nilsson, *TRASH: a dynamic LC-trie and hash data structure*, sections 1
//! and 4.3.

use core::hash::{BuildHasher, Hash, Hasher};
use core::marker::PhantomData;
use core::net::{Ipv4Addr, Ipv6Addr};

/// A string of [`BITS`](Self::BITS) bits, the most significant first.
///
/// # Contract
///
/// For any `a` and `b`, `a.cmp(&b)` is the order of the two strings compared bit by bit, and so `a
/// == b` exactly if all bits are equal. Bits past the end are zero. With a type that violates the
/// contract, or panics, a trie may lose keys or panic, but there is no undefined behaviour.
///
/// # Example
///
/// ```
/// use flowtable::key::bits::BitString;
/// use std::net::Ipv4Addr;
///
/// let a = Ipv4Addr::new(10, 0, 0, 1);
/// let b = Ipv4Addr::new(10, 0, 0, 2);
/// assert_eq!(a.slice(0, 8), 10);
/// assert_eq!(a.slice(28, 4), 1);
/// assert_eq!(a.first_difference(&b, 0), Some(30));
/// ```
pub trait BitString: Copy + Ord {
    /// The width of the string in bits.
    const BITS: u32;

    /// The conversion to octets, if this is an IPv4 address.
    #[doc(hidden)]
    const OCTETS: Option<Octets<Self>> = None;

    /// Returns the 64 bits from bit `pos` on, left-aligned; bits past the end are zero.
    ///
    /// Any `pos` is allowed: from [`BITS`](Self::BITS) on the window is zero.
    fn window(&self, pos: u32) -> u64;

    /// Returns the `count` bits from bit `pos` on, as an integer. `count` is 1 to 64; for other
    /// counts the integer is unspecified.
    #[inline]
    fn slice(&self, pos: u32, count: u32) -> u64 {
        leading(self.window(pos), count)
    }

    /// Returns the first bit from `from` on in which the strings differ.
    #[inline]
    fn first_difference(&self, other: &Self, from: u32) -> Option<u32> {
        let mut pos = from;
        while pos < Self::BITS {
            let differing = self.window(pos) ^ other.window(pos);
            if differing != 0 {
                return Some(pos + differing.leading_zeros());
            }
            pos = pos.saturating_add(64);
        }
        None
    }
}

/// A bit string that can be constructed from its bits, such as an address.
///
/// # Contract
///
/// `A::from_windows(|pos| a.window(pos)) == a`.
///
/// # Example
///
/// ```
/// use flowtable::key::bits::Address;
/// use std::net::Ipv4Addr;
///
/// let address = Ipv4Addr::new(10, 1, 2, 3);
/// assert_eq!(address.truncated(8), Ipv4Addr::new(10, 0, 0, 0));
/// assert_eq!(address.truncated(32), address);
/// ```
pub trait Address: BitString {
    /// Constructs the string with these windows: the inverse of [`window`](BitString::window). Bits
    /// of a window past the end of the string are ignored.
    fn from_windows(window: impl Fn(u32) -> u64) -> Self;

    /// Returns the string with all bits from bit `len` on cleared.
    #[inline]
    #[must_use]
    fn truncated(&self, len: u32) -> Self {
        Self::from_windows(|pos| self.window(pos) & !rest(len.saturating_sub(pos)))
    }
}

/// Returns `address` with the set bits of `bits` set, whose first bit is placed at bit `at`.
pub(crate) fn with_bits<A: Address>(address: &A, at: u32, bits: u64) -> A {
    A::from_windows(|pos| {
        let bits = match at.checked_sub(pos) {
            Some(offset) => bits.checked_shr(offset),
            None => bits.checked_shl(pos - at),
        };
        address.window(pos) | bits.unwrap_or(0)
    })
}

/// Two sockets, the smaller one first, and whether they are in the other order: without a branch,
/// as either order is as frequent.
#[inline]
pub(crate) fn ordered<A: BitString>(one: (&A, u16), other: (&A, u16)) -> ([(A, u16); 2], bool) {
    let is_reverse = if A::BITS <= 48 {
        // The address and the port in one word.
        let word = |(address, port): (&A, u16)| address.window(0) | u64::from(port);
        word(one) > word(other)
    } else if A::BITS <= 128 {
        let bits = |a: &A| u128::from(a.window(0)) << 64 | u128::from(a.window(64));
        // One subtraction, whose result is zero if the addresses are equal.
        let (difference, is_less) = bits(other.0).overflowing_sub(bits(one.0));
        is_less | ((difference == 0) & (other.1 < one.1))
    } else {
        one > other
    };
    let (first, second) = if is_reverse { (other, one) } else { (one, other) };
    ([(*first.0, first.1), (*second.0, second.1)], is_reverse)
}

/// Hashes all bits in words of 128, and the rest in one of 64 if that is enough. `tail` is in the
/// last 16 bits of the last word, if there is room for it, or else by itself.
#[inline]
pub(crate) fn hash_words<B: BitString, S: Hasher>(bits: &B, tail: Option<u16>, state: &mut S) {
    let tail_bits = if tail.is_some() { u16::BITS } else { 0 };
    let mut has_room = false;
    for pos in (0..B::BITS).step_by(128) {
        let end = B::BITS - pos + tail_bits;
        has_room = end <= 128;
        let low = tail.filter(|_| has_room).unwrap_or(0);
        if end <= 64 {
            state.write_u64(bits.window(pos) | u64::from(low));
        } else {
            let words = [bits.window(pos), bits.window(pos + 64)].map(u128::from);
            state.write_u128(words[0] << 64 | words[1] | u128::from(low));
        }
    }
    if let Some(tail) = tail.filter(|_| !has_room) {
        state.write_u16(tail);
    }
}

/// A window with all bits set but the first `count`.
#[inline]
fn rest(count: u32) -> u64 {
    u64::MAX.checked_shr(count).unwrap_or(0)
}

/// Returns the window at `pos` of a left-aligned word.
#[inline]
fn shifted(word: u64, pos: u32) -> u64 {
    word.checked_shl(pos).unwrap_or(0)
}

/// Returns the first `count` bits of a window, as an integer.
#[inline]
fn leading(window: u64, count: u32) -> u64 {
    window.wrapping_shr(64_u32.wrapping_sub(count))
}

impl BitString for u8 {
    const BITS: u32 = 8;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        shifted(u64::from(*self) << 56, pos)
    }
}

impl Address for u8 {
    #[inline]
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        (window(0) >> 56) as Self
    }
}

impl BitString for u16 {
    const BITS: u32 = 16;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        shifted(u64::from(*self) << 48, pos)
    }
}

impl Address for u16 {
    #[inline]
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        (window(0) >> 48) as Self
    }
}

impl BitString for u32 {
    const BITS: u32 = 32;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        shifted(u64::from(*self) << 32, pos)
    }
}

impl Address for u32 {
    #[inline]
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        (window(0) >> 32) as Self
    }
}

impl BitString for u64 {
    const BITS: u32 = 64;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        shifted(*self, pos)
    }
}

impl Address for u64 {
    #[inline]
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        window(0)
    }
}

impl BitString for u128 {
    const BITS: u32 = 128;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        (self.checked_shl(pos).unwrap_or(0) >> 64) as u64
    }
}

impl Address for u128 {
    #[inline]
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        Self::from(window(0)) << 64 | Self::from(window(64))
    }

    #[inline]
    fn truncated(&self, len: u32) -> Self {
        self & !Self::MAX.checked_shr(len).unwrap_or(0)
    }
}

impl BitString for usize {
    const BITS: u32 = Self::BITS;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        shifted((*self as u64) << (64 - Self::BITS), pos)
    }
}

/// One bit: `false` is before `true`.
impl BitString for bool {
    const BITS: u32 = 1;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        shifted(u64::from(*self) << 63, pos)
    }
}

/// The sign bit is inverted: negative numbers come first.
impl BitString for i8 {
    const BITS: u32 = Self::BITS;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        ((*self ^ Self::MIN) as u8).window(pos)
    }
}

/// The sign bit is inverted: negative numbers come first.
impl BitString for i16 {
    const BITS: u32 = Self::BITS;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        ((*self ^ Self::MIN) as u16).window(pos)
    }
}

/// The sign bit is inverted: negative numbers come first.
impl BitString for i32 {
    const BITS: u32 = Self::BITS;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        ((*self ^ Self::MIN) as u32).window(pos)
    }
}

/// The sign bit is inverted: negative numbers come first.
impl BitString for i64 {
    const BITS: u32 = Self::BITS;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        ((*self ^ Self::MIN) as u64).window(pos)
    }
}

/// The sign bit is inverted: negative numbers come first.
impl BitString for i128 {
    const BITS: u32 = Self::BITS;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        ((*self ^ Self::MIN) as u128).window(pos)
    }
}

/// The sign bit is inverted: negative numbers come first.
impl BitString for isize {
    const BITS: u32 = Self::BITS;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        ((*self ^ Self::MIN) as usize).window(pos)
    }
}

/// The bytes in order, each most significant bit first. `N` is at most 2^29 - 1.
impl<const N: usize> BitString for [u8; N] {
    const BITS: u32 = {
        assert!(N < 1 << 29, "a bit string has fewer than 2^32 bits");
        8 * N as u32
    };

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        let first = (pos / 8) as usize;
        let odd = pos % 8;
        let byte = |i: usize| self.get(i).copied().unwrap_or(0);
        let word = match self.get(first..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => u64::from_be_bytes(core::array::from_fn(|i| byte(first + i))),
        };
        (word << odd) | (u64::from(byte(first + 8)) >> (8 - odd))
    }
}

impl<const N: usize> Address for [u8; N] {
    #[inline]
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        core::array::from_fn(|i| (window(8 * i as u32) >> 56) as u8)
    }
}

/// Evidence that a type is [`Ipv4Addr`], where words are little-endian: values exist for that type
/// only.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Octets<A>(PhantomData<A>);

impl Octets<Ipv4Addr> {
    const IPV4: Option<Self> =
        if cfg!(target_endian = "little") { Some(Self(PhantomData)) } else { None };
}

impl BitString for Ipv4Addr {
    const BITS: u32 = 32;
    const OCTETS: Option<Octets<Self>> = Octets::IPV4;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        self.to_bits().window(pos)
    }
}

impl Address for Ipv4Addr {
    #[inline]
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        Self::from_bits(u32::from_windows(window))
    }
}

impl BitString for Ipv6Addr {
    const BITS: u32 = 128;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        self.to_bits().window(pos)
    }
}

impl Address for Ipv6Addr {
    #[inline]
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        Self::from_bits(u128::from_windows(window))
    }

    #[inline]
    fn truncated(&self, len: u32) -> Self {
        Self::from_bits(self.to_bits().truncated(len))
    }
}

/// Concatenation: the bits of the first, then the bits of the second.
impl<A: BitString, B: BitString> BitString for (A, B) {
    const BITS: u32 = A::BITS + B::BITS;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        window_of_two(&self.0, &self.1, pos)
    }
}

impl<A: Address, B: Address> Address for (A, B) {
    #[inline]
    fn from_windows(window: impl Fn(u32) -> u64) -> Self {
        (A::from_windows(&window), B::from_windows(|pos| window(pos + A::BITS)))
    }
}

/// Returns the window at `pos` of the concatenation of two strings.
#[inline]
fn window_of_two<A: BitString, B: BitString>(first: &A, second: &B, pos: u32) -> u64 {
    match A::BITS.checked_sub(pos) {
        Some(64..) => first.window(pos),
        Some(width @ 1..) => first.window(pos) | (second.window(0) >> width),
        _ => second.window(pos - A::BITS),
    }
}

/// A key preceded by its hash: the extended key of TRASH.
///
/// The bits of the hash, the header, come first, so a trie over `Headed` keys branches on the hash
/// and is as shallow as a trie over random strings for any keys; the key itself follows and
/// distinguishes keys whose headers collide. With 32-bit headers, n keys have n²/2³³ colliding
/// pairs (1.2 at 100,000; 116 at a million), so the default is 64 bits.
///
/// A `u128` is aligned to 16 bytes on most targets: as a key, `[u8; 16]` has less padding.
///
/// # Example
///
/// ```
/// use flowtable::key::bits::{BitString, Headed};
/// use flowtable::DefaultHashBuilder;
///
/// let hasher = DefaultHashBuilder::with_seed(7);
/// let key = Headed::new(42_u128, &hasher);
/// assert_eq!(key.key, 42);
/// assert_eq!(key, Headed::new(42, &hasher));
/// assert_eq!(Headed::short(42_u128, &hasher).header, (key.header >> 32) as u32);
/// assert_eq!(Headed::<u128>::BITS, 64 + 128);
/// assert_eq!(Headed::<u128, u32>::BITS, 32 + 128); // the width of the paper
/// assert_eq!((size_of::<Headed<u128, u32>>(), size_of::<Headed<[u8; 16], u32>>()), (32, 20));
///
/// let by_card = Headed { header: 0x51cc_c178_u32, key: 42_u128 };
/// assert_eq!(by_card.slice(0, 16), 0x51cc);
/// ```
///
/// It is serialized with its header, which is valid only together with the hasher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Headed<K, H = u64> {
    /// The hash of the key, or another number that equal keys have in common, such as the hash of a
    /// network card.
    pub header: H,
    /// The key.
    pub key: K,
}

impl<K: Hash> Headed<K> {
    /// Creates a key with its 64-bit hash as header. A keyed hasher makes headers unpredictable.
    #[inline]
    pub fn new(key: K, hasher: &impl BuildHasher) -> Self {
        Self { header: hasher.hash_one(&key), key }
    }
}

impl<K: Hash> Headed<K, u32> {
    /// Creates a key with 32 bits of its hash as header, as in the paper.
    #[inline]
    pub fn short(key: K, hasher: &impl BuildHasher) -> Self {
        Self { header: (hasher.hash_one(&key) >> 32) as u32, key }
    }
}

impl<K: BitString, H: BitString> BitString for Headed<K, H> {
    const BITS: u32 = H::BITS + K::BITS;

    #[inline]
    fn window(&self, pos: u32) -> u64 {
        window_of_two(&self.header, &self.key, pos)
    }

    /// Most slices are within the header. The others are out of line, because they need more
    /// registers than a lookup has available.
    #[inline]
    fn slice(&self, pos: u32, count: u32) -> u64 {
        if u64::from(pos) + u64::from(count) <= u64::from(H::BITS) {
            self.header.slice(pos, count)
        } else {
            slice_past_header(self, pos, count)
        }
    }
}

#[cold]
#[inline(never)]
fn slice_past_header(bits: &impl BitString, pos: u32, count: u32) -> u64 {
    leading(bits.window(pos), count)
}
