//! A ring with a hand.

use super::rings::Rings;
use super::{Eviction, Standing};

/// Gives up the next entry behind its hand that was not used since the hand came by last. Ranks do not
/// count.
///
/// ```text
///     hand ▸ a*  b  c*  d*          * used
///            │   └ leaves; who comes next takes its place
///            └ loses its mark
/// ```
///
/// It is nearly as good as [`Lru`](super::Lru), and a hit costs it nothing: the mark is the cache's.
/// If 8 entries in a row were used, that of them which was used longest ago leaves, so a victim is
/// found in O(1), also when all entries are in use. Entering and leaving are O(1).
///
/// Paper: Corbató, *A Paging Experiment with the Multics System*, 1968. What differs: the bound of 8.
///
/// # Example
///
/// ```
/// use flowtable::eviction::{SecondChance, Eviction, Standing};
///
/// let mut clock = SecondChance::new();
/// [0, 1, 2].into_iter().for_each(|slot| clock.enter(slot, 0));
/// let look = |slot| Standing { used: slot == 0, ..Standing::default() };
/// assert_eq!(clock.victim(look), Some(1));
/// ```
#[derive(Clone, Debug)]
pub struct SecondChance {
    ring: Rings<1>,
}

impl SecondChance {
    /// A policy without entries.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::{SecondChance, Eviction, Standing};
    ///
    /// assert_eq!(SecondChance::new().victim(|_| Standing::default()), None);
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self { ring: Rings::new() }
    }
}

impl Default for SecondChance {
    fn default() -> Self {
        Self::new()
    }
}

impl Eviction for SecondChance {
    #[inline]
    fn enter(&mut self, slot: u32, _rank: u8) {
        self.ring.enter(slot, 0);
    }

    #[inline]
    fn leave(&mut self, slot: u32) {
        self.ring.leave(slot);
    }

    fn victim(&mut self, look: impl FnMut(u32) -> Standing) -> Option<u32> {
        self.ring.second_chance(0, look)
    }

    fn upcoming(&self, slots: &mut [u32]) -> usize {
        self.ring.upcoming(0, slots)
    }

    fn allocation_size(&self) -> usize {
        self.ring.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::timestamp::Timestamp;

    fn clock(len: u32) -> SecondChance {
        let mut clock = SecondChance::new();
        (0..len).for_each(|slot| clock.enter(slot, slot as u8));
        clock
    }

    /// The victim where the slots in `used` were used, and which slots were looked at for it.
    fn victim(clock: &mut SecondChance, used: &[u32]) -> (Option<u32>, Vec<u32>) {
        let (mut used, mut looked) = (used.to_vec(), Vec::new());
        let victim = clock.victim(|slot| {
            looked.push(slot);
            let mark = used.iter().position(|&other| other == slot);
            let last_use = Timestamp::from_secs(u64::from(slot % 5 + 1));
            Standing { used: mark.map(|mark| used.swap_remove(mark)).is_some(), last_use }
        });
        (victim, looked)
    }

    #[test]
    fn used_entries_get_a_second_chance() {
        let mut clock = clock(4);
        assert_eq!(victim(&mut clock, &[0, 2]), (Some(1), [0, 1].into()));
        clock.leave(1);
        assert_eq!(victim(&mut clock, &[2]), (Some(3), [2, 3].into()));
        clock.leave(3);
        assert_eq!(victim(&mut clock, &[]), (Some(0), [0].into()));
    }

    #[test]
    fn of_eight_used_ones_the_one_silent_longest_leaves() {
        let (victim, looked) = victim(&mut clock(20), &(0..20).collect::<Vec<u32>>());
        assert_eq!((victim, looked.len()), (Some(0), 8), "0 and 5 were used at the same time");
    }

    #[test]
    fn in_a_short_queue_marks_are_gone_by_the_second_time() {
        assert_eq!(victim(&mut clock(3), &[0, 1, 2]), (Some(0), [0, 1, 2, 0].into()));
        assert_eq!(victim(&mut clock(1), &[0]), (Some(0), [0, 0].into()));
        assert_eq!(victim(&mut clock(0), &[]), (None, [].into()));
    }
}
