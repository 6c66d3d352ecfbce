//! A table with the lengths of a real one, for who has none.
//!
//! What look-ups feel of a real table is where its prefixes are: in some blocks far more than in
//! others, below each other, and side by side. So are these:
//!
//! ```text
//!     blocks      each in a random block of the size before           Family::BLOCKS
//!     prefixes    from short to long; often the neighbour of the last one; else with so many
//!                 others around it as DEPTHS draws: in one that has none,
//!                 or in a block, of which some are drawn far more     Family::SKEW
//! ```
//!
//! The peers need as many bytes for it as for the real one, give or take a tenth, but for ts_bart,
//! which needs more for IPv6.

use flowtable::Prefix;
use hashbrown::HashSet;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rand_distr::Distribution;
use rand_distr::weighted::WeightedIndex;

use super::address::below;
use super::family::Family;

/// How often a prefix is the neighbour of the one before.
const BESIDE: f64 = 0.65;

/// How often a place for one is looked for.
const TRIES: usize = 50;

/// By how many bits a prefix is longer than its block, at least.
const ROOM: u32 = 4;

/// How often there are so many others around another one.
const DEPTHS: [f64; 4] = [0.46, 0.37, 0.13, 0.04];

/// First bits, the rest of which is zero, and how many.
type Bits = (u128, u32);

pub(crate) fn prefixes<A: Family>() -> Vec<Prefix<A>> {
    let mut rng = StdRng::seed_from_u64(5);
    let blocks = blocks::<A>(&mut rng);
    let depths = WeightedIndex::new(DEPTHS).expect("some weigh something");
    let (mut taken, mut alone) = (HashSet::new(), Vec::new());
    for &(len, count) in A::LENGTHS {
        let (goal, shorter) = (taken.len() + count, alone.len());
        let mut last = None;
        while taken.len() < goal {
            let is_new = |taken: &HashSet<Bits>, bits, depth| {
                !taken.contains(&bits) && covering::<A>(taken, bits) == depth
            };
            // What is there already ends a row, as does what is below others than the row is.
            let next = last.filter(|_| rng.random_bool(BESIDE));
            let next = next.map(|(bits, depth)| (beside(bits), depth));
            last = next.filter(|&(bits, depth)| is_new(&taken, bits, depth)).or_else(|| {
                let depth = if shorter > 0 { depths.sample(&mut rng) } else { 0 };
                let mut draw = || match depth {
                    0 => some::<A>(block::<A>(&blocks, len, &mut rng), len, &mut rng),
                    _ => some::<A>(alone[rng.random_range(0..shorter)], len, &mut rng),
                };
                let draws = (0..TRIES).map(|_| draw());
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
    // The set has an order of its own in each run.
    prefixes.sort_unstable();
    prefixes
}

/// Shorter prefixes that are there and cover this one.
fn covering<A: Family>(taken: &HashSet<Bits>, bits: Bits) -> usize {
    let shorter = A::LENGTHS.iter().map(|&(len, _)| len).take_while(|&len| len < bits.1);
    shorter.map(|len| usize::from(taken.contains(&first(bits, len)))).sum()
}

/// Blocks, of each size.
fn blocks<A: Family>(rng: &mut StdRng) -> Vec<Vec<Bits>> {
    let mut blocks = Vec::new();
    let mut above = vec![A::ROUTED];
    for &(len, count) in A::BLOCKS {
        let block = |_| some::<A>(above[rng.random_range(0..above.len())], len, rng);
        above = (0..count).map(block).collect();
        blocks.push(above.clone());
    }
    blocks
}

/// A block for a prefix of `len` bits: of the smallest that have room for some. Each length has
/// favourites of its own, or the short ones would cover those of the long ones.
fn block<A: Family>(blocks: &[Vec<Bits>], len: u32, rng: &mut StdRng) -> Bits {
    let Some(size) = A::BLOCKS.iter().rposition(|block| block.0 + ROOM <= len) else {
        return A::ROUTED;
    };
    let (blocks, count) = (&blocks[size], blocks[size].len());
    let rank = rng.random::<f64>().powi(A::SKEW) * count as f64;
    blocks[(rank as usize + len as usize * count / 7) % count]
}

/// Any `len` bits that begin with these.
fn some<A: Family>(bits: Bits, len: u32, rng: &mut StdRng) -> Bits {
    first((below::<A>(bits, rng).left(), A::BITS), len)
}

/// The first `len` of these.
fn first((bits, _): Bits, len: u32) -> Bits {
    (bits & u128::MAX.checked_shl(128 - len).unwrap_or(0), len)
}

/// The prefix behind.
fn beside((first, len): Bits) -> Bits {
    (first.wrapping_add(1 << (128 - len)), len)
}
