//! SplitMix64: numbers that are not to be told from random ones by those who do not know the seed.
//!
//! The state goes on by [`STEP`], and what is drawn is the state, [`mixed`]. It is fast, any seed is good, and it
//! keeps no secret: whoever sees a number can compute the state.
//!
//! Paper: Steele, Lea and Flood, *Fast splittable pseudorandom number generators* (2014).

/// By how much the state goes on: odd, so that it comes to all numbers.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What is drawn at a state: each bit depends on all. No two states have the same.
#[inline]
pub(crate) const fn mixed(state: u64) -> u64 {
    let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the seed 1234567, as published with the generator.
    #[test]
    fn numbers_are_those_of_others() {
        let numbers =
            (1..=3_u64).map(|draw| mixed(STEP.wrapping_mul(draw).wrapping_add(1_234_567)));
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert!(numbers.eq(published));
    }
}
