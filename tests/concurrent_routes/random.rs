//! Random addresses and prefixes.

use flowtable::Prefix;
use flowtable::key::bits::Address;
use rand::Rng;
use rand::rngs::StdRng;

/// Draws an address of which most bits are zero, so that addresses have bits in common.
pub(crate) fn address<A: Address>(rng: &mut StdRng) -> A {
    let words: [u64; 8] = core::array::from_fn(|_| match rng.random_range(0..3) {
        0 => 0,
        1 => rng.random::<u64>() & rng.random::<u64>() & rng.random::<u64>() << 40,
        _ => rng.random_range(0..8) << rng.random_range(0..60) | rng.random_range(0..4) << 62,
    });
    A::from_windows(|pos| {
        let (word, shift) = ((pos / 64) as usize % 8, pos % 64);
        words[word] << shift | words[(word + 1) % 8].checked_shr(64 - shift).unwrap_or(0)
    })
}

/// Draws a prefix of such an address.
pub(crate) fn prefix<A: Address>(rng: &mut StdRng) -> Prefix<A> {
    let address = address(rng);
    // The default route costs as much as thousands of others.
    let longest = if rng.random_ratio(1, 8) { A::BITS.min(6) } else { A::BITS };
    Prefix::new(address, rng.random_range(0..=longest)).unwrap()
}
