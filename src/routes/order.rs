//! The order in which routes are collected: by the first bits of their prefixes. Neighbours share
//! nodes, which are in the caches then.
//!
//! Words of these bits and an index are sorted by radix, in four passes of some ten instructions; a
//! comparison sort of a million routes has twenty levels.

use alloc::vec::Vec;

/// Bits that one pass sorts by: it writes to as many pages in turns as there are digits.
const DIGIT: u32 = 8;

/// Returns the indices of at most 2^32 keys in the order of their first 32 bits; those of equal
/// bits remain in order.
pub(super) fn order(keys: impl Iterator<Item = u64>) -> Vec<u32> {
    let mut words: Vec<u64> =
        keys.zip(0_u64..).map(|(key, index)| key & !u64::from(u32::MAX) | index).collect();
    let mut sorted = alloc::vec![0; words.len()];
    for shift in (32..u64::BITS).step_by(DIGIT as usize) {
        let digit = |word: u64| (word >> shift) as usize % (1 << DIGIT);
        let mut ends = [0; 1 << DIGIT];
        words.iter().for_each(|word| ends[digit(*word)] += 1);
        let mut next = 0;
        for end in &mut ends {
            next += core::mem::replace(end, next);
        }
        for &word in &words {
            let next = &mut ends[digit(word)];
            sorted[*next] = word;
            *next += 1;
        }
        core::mem::swap(&mut words, &mut sorted);
    }
    words.into_iter().map(|word| word as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_order_and_equal_ones_remain() {
        let keys = (0..1000_u64).map(|nth| nth.wrapping_mul(0x9E37_79B9_7F4A_7C15) & 0xFF01 << 48);
        let keys: Vec<u64> = keys.collect();
        let mut expected: Vec<u32> = (0..1000).collect();
        expected.sort_by_key(|index| keys[*index as usize]);
        assert_eq!(order(keys.iter().copied()), expected);
        assert_eq!(order([].into_iter()), []);
    }
}
