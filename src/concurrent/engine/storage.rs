//! Storages: a slot stores the words of an entry itself, or the id of an entry stored elsewhere.
//!
//! Plain data is stored as words. A value of up to eight bytes is one word, padded with zeros; a
//! larger one is several. Its bytes are all initialised, and copied without regard to their
//! meaning: `NoUninit` guarantees that there is no padding, no pointer and no interior mutability.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;

use bytemuck::{NoUninit, bytes_of};

use super::plan::Sizes;
use crate::concurrent::sync::{AtomicU32, AtomicU64, Ordering};
use crate::table::tags::Mask;

/// The storage of the slots of a table: as many atomics as key and value require.
pub(in crate::concurrent) trait Storage {
    /// The atomics of a slot.
    type Atom: Atom;
    /// The state of a shard that its lock protects.
    type State;

    /// Words of the header of a group: the tags of the slots, and in the last byte the overflow
    /// count.
    const HEADER: usize;
    /// Slots of a group.
    const SLOTS: usize;
    /// The sizes of segments.
    const SIZES: Sizes;
    /// Atomics of a key.
    const KEY: usize;
    /// Atomics of a value.
    const VALUE: usize;
    /// Whether the slot of a removed entry is reused while readers may have loaded its tag: if one
    /// atomic is all that they load after it, and it refers to a key that they compare. Such slots
    /// have [notes](super::segment::Slot::note).
    const REUSES: bool;

    /// Mixes a hash: see [`policy::mix`](crate::concurrent::policy::mix).
    fn mix(hash: u64) -> u64;

    /// Returns the code of a number of groups, of at most seven bits.
    fn code(groups: usize) -> usize;

    /// Returns the number of groups that has a code.
    fn groups(code: usize) -> usize;

    /// Returns the home of a mixed hash, given the code of the number of groups.
    fn home(mixed: u64, code: usize) -> usize;

    /// Returns the tag of a hash in a slot. It differs from zero, the tag of a free slot.
    fn tag(hash: u64, slot: usize) -> u8;

    /// Returns the slots that have the tag of a hash, and perhaps slots beyond the last slot of a
    /// group.
    fn matches(header: [u64; 2], hash: u64) -> Mask;
}

/// The bits of a hash that a copy of its entry requires.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::concurrent) enum Bits {
    /// All bits but the ones that select the shard, which are known.
    Known,
    All,
}

/// A storage with values of a type.
pub(in crate::concurrent) trait Entries: Storage {
    type Value: NoUninit;

    /// Assembles a value from its atomics.
    ///
    /// # Safety
    ///
    /// `load` returns the words of one value that was stored.
    unsafe fn value(load: impl Fn(usize) -> u64) -> Self::Value;
}

/// An atomic of a slot, for a word that fits.
pub(in crate::concurrent) trait Atom {
    fn new() -> Self;
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, word: u64, order: Ordering);
}

impl Atom for AtomicU64 {
    fn new() -> Self {
        Self::new(0)
    }

    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn store(&self, word: u64, order: Ordering) {
        self.store(word, order);
    }
}

impl Atom for AtomicU32 {
    fn new() -> Self {
        Self::new(0)
    }

    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order).into()
    }

    fn store(&self, word: u64, order: Ordering) {
        self.store(word as u32, order);
    }
}

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Returns the number of words of a type.
pub(in crate::concurrent) const fn words<T>() -> usize {
    size_of::<T>().div_ceil(WORD)
}

/// Returns a word of a value.
#[inline]
pub(in crate::concurrent) fn word<T: NoUninit>(value: &T, index: usize) -> u64 {
    let bytes = &bytes_of(value)[WORD * index..];
    let mut word = [0; WORD];
    match bytes.first_chunk::<WORD>() {
        Some(whole) => word = *whole,
        None => word[..bytes.len()].copy_from_slice(bytes),
    }
    u64::from_ne_bytes(word)
}

/// Assembles a value from its words.
///
/// # Safety
///
/// `load` returns the words of one value of this type, as [`word`] does.
#[inline]
pub(in crate::concurrent) unsafe fn assemble<T: NoUninit>(load: impl Fn(usize) -> u64) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    let first = value.as_mut_ptr().cast::<u8>();
    for index in 0..words::<T>() {
        let word = load(index).to_ne_bytes();
        let len = WORD.min(size_of::<T>() - WORD * index);
        // SAFETY: the offset is less than the size of the value.
        let bytes = unsafe { first.add(WORD * index) };
        // SAFETY: there are that many bytes in the value, and in the word.
        unsafe { bytes.copy_from_nonoverlapping(word.as_ptr(), len) };
    }
    // SAFETY: the bytes form a value of this type, by the contract.
    unsafe { value.assume_init() }
}

mod sealed {
    #[expect(unnameable_types, reason = "so that no other type implements it")]
    pub trait Sealed {}
}

/// Integers of at most eight bytes, the values of `fetch_add` of a pinned
/// [`ConcurrentTable`](crate::ConcurrentTable): `u8` to `u64`, `i8` to `i64`, `usize` and `isize`.
/// All words are values of them.
pub trait Integer: NoUninit + sealed::Sealed {}

impl<T: sealed::Sealed + NoUninit> Integer for T {}

impl sealed::Sealed for u8 {}
impl sealed::Sealed for u16 {}
impl sealed::Sealed for u32 {}
impl sealed::Sealed for u64 {}
impl sealed::Sealed for usize {}
impl sealed::Sealed for i8 {}
impl sealed::Sealed for i16 {}
impl sealed::Sealed for i32 {}
impl sealed::Sealed for i64 {}
impl sealed::Sealed for isize {}

/// Adds integers, wrapping around.
pub(in crate::concurrent) fn wrapping_add<T: Integer>(one: T, other: T) -> T {
    // As words: the carry out of a shorter integer is in the bytes that are not copied, or, if the
    // most significant byte is the first one, beyond the word.
    let sum = |index| word(&one, index).wrapping_add(word(&other, index));
    // SAFETY: all bytes of an integer are initialised, whatever they are.
    unsafe { assemble(sum) }
}

/// Returns whether two values have the same bytes.
pub(in crate::concurrent) fn is_same<T: NoUninit>(one: &T, other: &T) -> bool {
    bytes_of(one) == bytes_of(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: NoUninit + PartialEq + core::fmt::Debug>(value: T, expected: usize) {
        assert_eq!(words::<T>(), expected);
        // SAFETY: these are the words of a value.
        assert_eq!(unsafe { assemble::<T>(|index| word(&value, index)) }, value);
        assert!(is_same(&value, &value));
    }

    #[test]
    fn values_survive_as_words() {
        check((), 0);
        check(7_u8, 1);
        check(true, 1);
        check('x', 1);
        check(u64::MAX - 1, 1);
        check([1_u8, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13], 2);
        check(u128::MAX / 3, 2);
        check([u16::MAX, 0, 1], 1);
        check([3_u32; 5], 3);
        check(core::num::NonZero::new(9_u16).unwrap(), 1);
        assert!(!is_same(&1, &2));
    }

    #[test]
    fn integers_are_added_as_by_wrapping_add() {
        assert_eq!(wrapping_add(200_u8, 100), 44);
        assert_eq!(wrapping_add(u16::MAX, 2), 1);
        assert_eq!(wrapping_add(7_u32, 8), 15);
        assert_eq!(wrapping_add(u32::MAX, u32::MAX), u32::MAX - 1);
        assert_eq!(wrapping_add(u64::MAX, 1), 0);
        assert_eq!(wrapping_add(usize::MAX, 3), 2);
        assert_eq!(wrapping_add(5_i8, -7), -2);
        assert_eq!(wrapping_add(i16::MAX, 1), i16::MIN);
        assert_eq!(wrapping_add(-1_i32, 1), 0);
        assert_eq!(wrapping_add(i64::MIN, -1), i64::MAX);
        assert_eq!(wrapping_add(-5_isize, 2), -3);
    }
}
