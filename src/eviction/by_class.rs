//! A clock for each rank.

use super::rings::Rings;
use super::{Eviction, Standing};

/// Ranks that are told apart.
const RANKS: usize = 4;

/// The highest rank: entries that are given up last.
const TOP: usize = RANKS - 1;

/// One of so many entries may be of the ranks between the lowest and the highest whatever the highest
/// needs: newcomers, who have had no time to rise.
const NEWCOMERS: usize = 8;

/// Gives up an entry of the lowest rank of which there are any; among these, as [`SecondChance`] does, the
/// next one that was not used since it was looked at last.
///
/// ```text
///     rank 0                            is empty
///     rank 1   hand ▸ a*  b  c          b leaves, and a, which was used, loses its mark
///     rank 2   hand ▸ d
///     rank 3   hand ▸ e  f*  g          e leaves instead if a to d were less than an eighth of all
/// ```
///
/// In a flow cache ranks are the [`Class`](crate::flow_cache::Class)es of flows: a flood of half-open connections
/// displaces its own flows and not the established ones, whatever came or was used last.
///
/// There is one exception, or a cache full of established flows would be closed to all others: each
/// new flow would be given up for the next one before it could rise. So while less than an eighth of
/// all entries are of ranks 1 and 2, and none is of rank 0, an entry of rank 3 is given up that was not
/// used since it was looked at last; if there is none among eight, one of the newcomers. A flood takes
/// nothing of established flows that fill less than seven eighths. (There is no such exception between
/// ranks 1 and 2: a full cache that is flooded with datagrams gives up half-open connections first.)
///
/// Ranks above 3 count as 3. A hit costs nothing; a victim takes 16 looks at most, and all is O(1). 8
/// bytes for each slot, and up to 20 when each rank has had most of the entries.
///
/// Paper: Corbató 1968 for the second chance, see [`SecondChance`]. The order by state is that of Linux,
/// whose connection tracking drops connections that are not assured early.
///
/// [`SecondChance`]: super::SecondChance
///
/// # Example
///
/// ```
/// use flowtable::eviction::{ByClass, Eviction, Standing};
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
    /// One for each rank.
    rings: Rings<RANKS>,
}

impl ByClass {
    /// A policy without entries.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::eviction::{ByClass, Eviction, Standing};
    ///
    /// assert_eq!(ByClass::new().victim(|_| Standing::default()), None);
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self { rings: Rings::new() }
    }

    fn counts(&self) -> Counts {
        core::array::from_fn(|rank| self.rings.count(rank))
    }
}

/// Entries of each rank.
pub(crate) type Counts = [usize; RANKS];

/// The rank that an entry leaves.
pub(crate) fn turn(counts: Counts) -> Option<usize> {
    counts.iter().position(|count| *count > 0)
}

/// Whether there are so few newcomers that one of the highest rank leaves for the next, if one was not used.
pub(crate) fn has_few_newcomers(counts: Counts) -> bool {
    let [lowest, first, second, top] = counts;
    let newcomers = first + second;
    lowest == 0 && newcomers * NEWCOMERS < newcomers + top
}

impl Default for ByClass {
    fn default() -> Self {
        Self::new()
    }
}

/// The ring of the entries with this rank.
const fn ring_of(rank: u8) -> usize {
    let rank = rank as usize;
    if rank < RANKS { rank } else { TOP }
}

impl Eviction for ByClass {
    fn enter(&mut self, slot: u32, rank: u8) {
        self.rings.enter(slot, ring_of(rank));
    }

    fn rerank(&mut self, slot: u32, rank: u8) {
        let ring = self.rings.ring_of(slot);
        if ring.is_some_and(|ring| ring != ring_of(rank)) {
            self.rings.enter(slot, ring_of(rank));
        }
    }

    fn leave(&mut self, slot: u32) {
        self.rings.leave(slot);
    }

    fn victim(&mut self, mut look: impl FnMut(u32) -> Standing) -> Option<u32> {
        let counts = self.counts();
        if has_few_newcomers(counts) {
            if let Some(slot) = self.rings.first_unused(TOP, &mut look) {
                return Some(slot);
            }
        }
        self.rings.second_chance(turn(counts)?, look)
    }

    fn upcoming(&self, slots: &mut [u32]) -> usize {
        let counts = self.counts();
        let rank = if has_few_newcomers(counts) { Some(TOP) } else { turn(counts) };
        rank.map_or(0, |rank| self.rings.upcoming(rank, slots))
    }

    fn allocation_size(&self) -> usize {
        self.rings.allocation_size()
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
    fn an_entry_is_of_its_new_rank() {
        let mut policy = ByClass::new();
        (0..3).for_each(|slot| policy.enter(slot, 1));
        policy.rerank(2, 0);
        policy.rerank(0, 2);
        policy.rerank(7, 0);
        assert_eq!([(); 4].map(|()| next(&mut policy)), [Some(2), Some(1), Some(0), None]);
    }

    #[test]
    fn newcomers_have_an_eighth() {
        let mut policy = ByClass::new();
        (0..70).for_each(|slot| policy.enter(slot, 3));
        (70..80).for_each(|slot| policy.enter(slot, 1));
        assert_eq!(next(&mut policy), Some(70), "10 of 80 are an eighth");
        assert_eq!(next(&mut policy), Some(0), "9 of 79 are less");
        let victim = policy.victim(|_| Standing { used: true, ..Standing::default() });
        assert_eq!(victim, Some(71), "all of the others are in use");
    }
}
