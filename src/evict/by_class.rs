//! A queue with a second chance for each rank.

use super::{Eviction, Standing, second_chance};
use crate::lists::Lists;

/// Ranks that are told apart.
const RANKS: usize = 4;

/// Gives up an entry of the lowest rank of which there are any; among these, as [`Clock`] does, the
/// one that came first, unless it was used since it was looked at last.
///
/// ```text
///     rank 0                            is empty
///     rank 1   front  a*  b  c          b leaves; a, which was used, goes to the back of its rank
///     rank 2   front  d
///     rank 3   front  e  f*  g
/// ```
///
/// In a flow cache ranks are the [`Class`](crate::Class)es of flows: a flood of half-open connections
/// displaces its own flows and not the established ones, whatever came or was used last.
///
/// Ranks above 3 count as 3. An entry whose rank changes goes to the back of the new one. A hit costs
/// nothing; a victim takes 8 looks at most, and all is O(1).
///
/// Paper: Corbató 1968 for the second chance, see [`Clock`]. The order by state is that of Linux,
/// whose connection tracking drops connections that are not assured early.
///
/// [`Clock`]: super::Clock
///
/// # Example
///
/// ```
/// use flowtable::{ByClass, Eviction, Standing};
///
/// let mut policy = ByClass::new();
/// policy.enter(0, 3);
/// policy.enter(1, 1);
/// policy.enter(2, 1);
/// policy.rerank(1, 2);
/// assert_eq!(policy.victim(|_| Standing::default()), Some(2));
/// ```
#[derive(Clone, Debug)]
pub struct ByClass {
    /// One list for each rank.
    queues: Lists,
}

impl ByClass {
    /// A policy without entries.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::{ByClass, Eviction, Standing};
    ///
    /// assert_eq!(ByClass::new().victim(|_| Standing::default()), None);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self { queues: Lists::new(RANKS) }
    }
}

impl Default for ByClass {
    fn default() -> Self {
        Self::new()
    }
}

/// The list of the entries with this rank.
const fn queue_of(rank: u8) -> usize {
    let rank = rank as usize;
    if rank < RANKS { rank } else { RANKS - 1 }
}

impl Eviction for ByClass {
    #[inline]
    fn enter(&mut self, slot: u32, rank: u8) {
        self.queues.push_back(queue_of(rank), slot);
    }

    #[inline]
    fn rerank(&mut self, slot: u32, rank: u8) {
        self.queues.move_to_back(queue_of(rank), slot);
    }

    #[inline]
    fn leave(&mut self, slot: u32) {
        self.queues.remove(slot);
    }

    fn victim(&mut self, look: impl FnMut(u32) -> Standing) -> Option<u32> {
        let lowest = (0..RANKS).find(|&rank| !self.queues.is_empty(rank))?;
        second_chance(&mut self.queues, lowest, look)
    }

    fn allocation_size(&self) -> usize {
        self.queues.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(policy: &mut ByClass) -> Option<u32> {
        let victim = policy.victim(|slot| Standing { used: slot == 9, ..Standing::default() });
        victim.inspect(|&slot| policy.leave(slot))
    }

    #[test]
    fn the_lowest_rank_leaves_first_also_when_all_of_it_is_used() {
        let mut policy = ByClass::new();
        for (slot, rank) in [(0, 3), (1, 2), (9, 0), (3, 1), (4, 200)] {
            policy.enter(slot, rank);
        }
        assert_eq!(
            [(); 6].map(|()| next(&mut policy)),
            [9, 3, 1, 0, 4, 99].map(|slot| (slot < 99).then_some(slot))
        );
    }

    #[test]
    fn an_entry_goes_to_the_back_of_its_new_rank() {
        let mut policy = ByClass::new();
        (0..3).for_each(|slot| policy.enter(slot, 1));
        policy.rerank(2, 0);
        policy.rerank(0, 1);
        policy.rerank(7, 0);
        assert_eq!([(); 4].map(|()| next(&mut policy)), [Some(2), Some(1), Some(0), None]);
    }
}
