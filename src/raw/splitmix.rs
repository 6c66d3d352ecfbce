//! SplitMix64: a fast pseudorandom generator.
//!
//! A step adds [`GOLDEN_GAMMA`] to the state; the output is the state after [`mix`]. Any seed is
//! good. The generator is not cryptographic: one output reveals the state.
//!
//! Paper: Steele, Lea and Flood, *Fast splittable pseudorandom number generators* (2014).

/// The increment of the state: odd, so that the state takes all 2^64 values.
pub(crate) const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output for a state: a bijection in which each output bit depends on all bits of the state.
#[inline]
pub(crate) const fn mix(state: u64) -> u64 {
    let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs for the seed 1234567, as published with the generator.
    #[test]
    fn outputs_match_the_published_ones() {
        let state = |draw| GOLDEN_GAMMA.wrapping_mul(draw).wrapping_add(1_234_567);
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert!((1..=3).map(|draw| mix(state(draw))).eq(published));
    }
}
