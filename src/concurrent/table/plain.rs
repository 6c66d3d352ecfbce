//! Plain data as words.
//!
//! A value of up to eight bytes is one word, padded with zeros; a larger one is several. Its bytes
//! are all initialised, and copied without regard to their meaning: `NoUninit` guarantees that
//! there is no padding, no pointer and no interior mutability.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;

use bytemuck::{NoUninit, bytes_of};

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Returns the number of words of a type.
pub(super) const fn words<T>() -> usize {
    size_of::<T>().div_ceil(WORD)
}

/// Returns a word of a value.
#[inline(always)]
pub(super) fn word<T: NoUninit>(value: &T, index: usize) -> u64 {
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
#[inline(always)]
pub(super) unsafe fn assemble<T: NoUninit>(load: impl Fn(usize) -> u64) -> T {
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
    // SAFETY: all bytes are those of a value of this type, by the contract.
    unsafe { value.assume_init() }
}

/// Returns whether two values have the same bytes.
pub(super) fn is_same<T: NoUninit>(one: &T, other: &T) -> bool {
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
}
