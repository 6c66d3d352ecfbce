//! A synthetic route table, for runs without the real one.
//!
//! The cost of lookups depends on where prefixes are. In a real table some blocks contain far more
//! of them than others; prefixes are nested, and adjacent. This table is made like that:
//!
//! ```text
//!     blocks      each in a random block of the next shorter length           Family::BLOCKS
//!     prefixes    from short to long; often adjacent to the last one; otherwise nested in as many
//!                 others as drawn from DEPTHS: in a prefix that is not nested,
//!                 or in a block, some of which are drawn far more often      Family::SKEW
//! ```
//!
//! The peers need as many bytes for it as for the real one within a tenth, except ts_bart, which
//! needs more for IPv6.

use flowtable::Prefix;
use hashbrown::HashSet;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rand_distr::Distribution;
use rand_distr::weighted::WeightedIndex;

use super::address::address_within;
use super::family::Family;

/// The probability that a prefix is adjacent to the last one.
const ADJACENT: f64 = 0.65;

/// The number of attempts to draw a new prefix.
const ATTEMPTS: usize = 50;

/// The least difference between the lengths of a prefix and its block.
const MIN_BITS: u32 = 4;

/// The distribution of nesting depths.
const DEPTHS: [f64; 4] = [0.46, 0.37, 0.13, 0.04];

/// First bits, followed by zeros, and their number.
type Bits = (u128, u32);

pub(crate) fn prefixes<A: Family>() -> Vec<Prefix<A>> {
    let mut rng = StdRng::seed_from_u64(5);
    let blocks = blocks::<A>(&mut rng);
    let depths = WeightedIndex::new(DEPTHS).expect("a positive weight");
    let (mut taken, mut alone) = (HashSet::new(), Vec::new());
    for &(len, count) in A::LENGTHS {
        let (goal, shorter) = (taken.len() + count, alone.len());
        let mut last = None;
        while taken.len() < goal {
            let is_new = |taken: &HashSet<Bits>, bits, depth| {
                !taken.contains(&bits) && covering::<A>(taken, bits) == depth
            };
            // A row of adjacent prefixes ends at a present one, and where the depth changes.
            let next = last.filter(|_| rng.random_bool(ADJACENT));
            let next = next.map(|(bits, depth)| (adjacent(bits), depth));
            last = next.filter(|&(bits, depth)| is_new(&taken, bits, depth)).or_else(|| {
                let depth = if shorter > 0 { depths.sample(&mut rng) } else { 0 };
                let mut draw = || match depth {
                    0 => extend::<A>(block::<A>(&blocks, len, &mut rng), len, &mut rng),
                    _ => extend::<A>(alone[rng.random_range(0..shorter)], len, &mut rng),
                };
                let draws = (0..ATTEMPTS).map(|_| draw());
                let mut draws = draws.filter(|&bits| is_new(&taken, bits, depth));
                draws.next().map(|bits| (bits, depth))
            });
            taken.extend(last.map(|(bits, _)| bits));
            alone.extend(last.filter(|&(_, depth)| depth == 0).map(|(bits, _)| bits));
        }
    }
    let prefix = |(first, len)| Prefix::new(A::from_left(first), len);
    let mut prefixes: Vec<_> =
        taken.into_iter().map(|bits| prefix(bits).expect("a length of the family")).collect();
    // The order of the set differs between runs.
    prefixes.sort_unstable();
    prefixes
}

/// Counts the shorter prefixes in the set that cover this one.
fn covering<A: Family>(taken: &HashSet<Bits>, bits: Bits) -> usize {
    let shorter = A::LENGTHS.iter().map(|&(len, _)| len).take_while(|&len| len < bits.1);
    shorter.map(|len| usize::from(taken.contains(&first(bits, len)))).sum()
}

/// Draws the blocks of each length.
fn blocks<A: Family>(rng: &mut StdRng) -> Vec<Vec<Bits>> {
    let mut blocks = Vec::new();
    let mut above = vec![A::ROUTED];
    for &(len, count) in A::BLOCKS {
        let block = |_| extend::<A>(above[rng.random_range(0..above.len())], len, rng);
        above = (0..count).map(block).collect();
        blocks.push(above.clone());
    }
    blocks
}

/// Draws a block for a prefix of `len` bits, of the longest blocks that contain several such
/// prefixes. Each length prefers other blocks, since short prefixes would cover the long ones
/// otherwise.
fn block<A: Family>(blocks: &[Vec<Bits>], len: u32, rng: &mut StdRng) -> Bits {
    let Some(size) = A::BLOCKS.iter().rposition(|block| block.0 + MIN_BITS <= len) else {
        return A::ROUTED;
    };
    let (blocks, count) = (&blocks[size], blocks[size].len());
    let rank = rng.random::<f64>().powi(A::SKEW) * count as f64;
    blocks[(rank as usize + len as usize * count / 7) % count]
}

/// Draws `len` bits that begin with these.
fn extend<A: Family>(bits: Bits, len: u32, rng: &mut StdRng) -> Bits {
    first((address_within::<A>(bits, rng).left(), A::BITS), len)
}

/// Returns the first `len` bits.
fn first((bits, _): Bits, len: u32) -> Bits {
    (bits & u128::MAX.checked_shl(128 - len).unwrap_or(0), len)
}

/// Returns the next prefix of the length.
fn adjacent((first, len): Bits) -> Bits {
    (first.wrapping_add(1 << (128 - len)), len)
}
