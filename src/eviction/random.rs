//! Any one.

use super::{Eviction, Standing};
use crate::raw::chunked_vec::ChunkedVec;
use crate::raw::splitmix::{STEP, mixed};

/// The position of a slot that is not in the line.
const NONE: u32 = u32::MAX;

/// Gives up any entry, each one as likely as the others. Neither use nor ranks count.
///
/// ```text
///     line        position   0   1   2   3
///                     slot   4   0   5   2          of four slots any position is drawn
///     0 leaves        slot   4   2   5              the last one takes its place
/// ```
///
/// It is the yardstick for the others, and nobody who does not know the seed can bring it about that
/// a certain entry leaves. A hit costs nothing, a victim a random number and no looks; entering and
/// leaving are O(1).
///
/// The generator is SplitMix64: Steele, Lea and Flood, *Fast Splittable Pseudorandom Number
/// Generators*, 2014. It is not cryptographic: enough victims give its seed away.
///
/// # Example
///
/// ```
/// use flowtable::eviction::{Eviction, Random, Standing};
///
/// let mut policy = Random::with_seed(1);
/// (0..100).for_each(|slot| policy.enter(slot, 0));
/// let victim = policy.victim(|_| Standing::default()).unwrap();
/// policy.leave(victim);
/// assert!((0..1000).all(|_| policy.victim(|_| Standing::default()) != Some(victim)));
/// ```
#[derive(Clone, Debug)]
pub struct Random {
    /// By position in the line, and by slot. As long as the greatest slot asks, so there is
    /// a position for each slot.
    places: ChunkedVec<Place>,
    /// Slots in the line: the positions `0..len` are taken.
    len: u32,
    state: u64,
}

/// Two arrays in one: for positions, and for slots.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Which slot stands at this position.
    slot: u32,
    /// At which position this slot stands, or [`NONE`].
    position: u32,
}

impl Random {
    /// A policy without entries, which draws by this seed: victims are the same in each run.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::{Eviction, Random, Standing};
    ///
    /// assert_eq!(Random::with_seed(1).victim(|_| Standing::default()), None);
    /// ```
    #[must_use]
    pub const fn with_seed(seed: u64) -> Self {
        Self { places: ChunkedVec::new(), len: 0, state: seed }
    }

    /// The next number of SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mixed(self.state)
    }

    fn position(&self, slot: u32) -> Option<u32> {
        let position = self.places.get(slot)?.position;
        (position != NONE).then_some(position)
    }
}

impl Eviction for Random {
    fn enter(&mut self, slot: u32, _rank: u8) {
        assert!(slot < 1 << 31, "slot {slot}: must be less than 2^31");
        self.places.cover(slot, Place { slot: NONE, position: NONE });
        if self.position(slot).is_none() {
            self.places[self.len].slot = slot;
            self.places[slot].position = self.len;
            self.len += 1;
        }
    }

    fn leave(&mut self, slot: u32) {
        let Some(position) = self.position(slot) else { return };
        self.len -= 1;
        let last = self.places[self.len].slot;
        self.places[position].slot = last;
        self.places[last].position = position;
        // After the line above: it may be the last one itself.
        self.places[slot].position = NONE;
    }

    fn victim(&mut self, _look: impl FnMut(u32) -> Standing) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        // The upper half of the product is below `len`, each value as often as the others but for
        // one in 2^32.
        let position = (u128::from(self.next()) * u128::from(self.len)) >> 64;
        Some(self.places[position as u32].slot)
    }

    fn allocation_size(&self) -> usize {
        self.places.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = Random::with_seed(1_234_567);
        let numbers = [(); 3].map(|()| random.next());
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(numbers, published);
    }

    #[test]
    #[cfg_attr(miri, ignore = "there is no unsafe code in it, and it is long")]
    fn each_entry_is_as_likely_as_the_others() {
        let mut random = Random::with_seed(1);
        (0..1500).filter(|slot| slot % 3 > 0).for_each(|slot| random.enter(slot, 0));
        (500..1500).for_each(|slot| random.leave(slot));
        let mut drawn = vec![0; 500];
        for _ in 0..333 * 1000 {
            let victim = random.victim(|_| unreachable!("it needs no looks"));
            drawn[victim.unwrap() as usize] += 1;
        }
        for (slot, drawn) in drawn.into_iter().enumerate() {
            // Seven standard deviations of a thousand.
            let expected = if slot % 3 > 0 { 780..1220 } else { 0..1 };
            assert!(expected.contains(&drawn), "{slot} was drawn {drawn} times");
        }
    }

    #[test]
    fn a_slot_is_in_the_line_once() {
        let mut random = Random::with_seed(2);
        [3, 3].into_iter().for_each(|slot| random.enter(slot, 0));
        [7, 3, 3].into_iter().for_each(|slot| random.leave(slot));
        assert_eq!(random.victim(|_| Standing::default()), None);
    }
}
