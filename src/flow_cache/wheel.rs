//! A timer wheel over slots: what may be due now, in bounded steps, over all of time.
//!
//! ```text
//!                        64 lists, and a word that says which are not empty
//!     level 0   ┌─┬─┬─┬─┬─┬─┬─ … ─┐   one for each of the next 64 ticks
//!     level 1   ┌─┬─┬─┬─┬─┬─┬─ … ─┐   one for each 8 ticks of the next 512
//!     level 2   ┌─┬─┬─┬─┬─┬─┬─ … ─┐   one for each 64 ticks of the next 4096
//!         …
//! ```
//!
//! An entry lies in the lowest level that reaches its tick. 22 levels reach all of 64 bits, so no period is
//! too long; a jump of years over an empty wheel looks at one word.
//!
//! The wheel does not know when a slot is due. [`pop`](Wheel::pop) gives it when its list begins: at the
//! tick for which it was armed if that is in level 0, and up to an eighth of the period too early if it
//! is above. Whoever gets it knows when it really is due, and [arms](Wheel::arm) it again if that is
//! later. That is how entries come down the levels, and how a packet puts off its flow's end: it
//! writes the time and leaves the wheel alone. It is also how the next flow of a slot inherits what
//! the one before has left armed: arming for later than that does nothing. So a flood, in which slots have
//! hundreds of flows within a timeout, hardly turns the wheel.
//!
//! Invariants:
//! - nothing is in a list that began before the wheel's tick, but for the list of that tick;
//! - the word of a level has the bit of each list that is not empty; it may have others;
//! - an armed slot is popped at the tick of `armed` or before.
//!
//! Price: all is O(1). Arming touches 8 bytes if it is for later, else the links of three slots. An
//! entry is popped two levels further down each time: at ticks of a second once for a minute, twice for an
//! hour; at ticks of 10 ms three times, and four times. While its flow is busy, it is popped and armed again a little more often than once
//! in each period. 16 bytes for each slot.
//!
//! After Varghese and Lauck, *Hashed and hierarchical timing wheels* (1987), scheme 7. What differs:
//! they keep deadlines and move entries down when a list begins. Levels that overlap, so that
//! the lists of a period are short against it, are those of Linux since 2016; there an entry is popped late.

use crate::raw::chunked_vec::ChunkedVec;
use crate::raw::intrusive_list::IntrusiveLists;

/// IntrusiveLists in a level: bits of a word.
const LISTS: usize = 64;
/// The lists of a level are for 2^3 times as many ticks as those of the one below.
const BITS: u32 = 3;
/// As many as it takes for the last one to reach all ticks.
const LEVELS: usize = 22;

/// Slots by the tick at which to look at them.
#[derive(Clone, Debug)]
pub(crate) struct Wheel {
    /// IntrusiveLists that begin before this tick are empty.
    tick: u64,
    /// For each level, the lists that may have slots.
    taken: [u64; LEVELS],
    /// The levels that may.
    levels: u32,
    lists: IntrusiveLists,
    /// For each slot the tick for which it is armed, or [`NEVER`].
    armed: ChunkedVec<u64>,
}

/// What an unarmed slot is armed for.
const NEVER: u64 = u64::MAX;

impl Wheel {
    /// Bytes for 1024 slots, which are allocated together, but for two lists of chunks.
    pub(crate) const GROWTH: usize = IntrusiveLists::GROWTH + ChunkedVec::<u64>::GROWTH;

    /// A wheel without slots that stands at this tick.
    pub(crate) fn new(tick: u64) -> Self {
        let lists = IntrusiveLists::new(LEVELS * LISTS);
        Self { tick, taken: [0; LEVELS], levels: 0, lists, armed: ChunkedVec::new() }
    }

    /// Has a wheel that has nothing armed stand at another tick.
    pub(crate) fn skip_to(&mut self, tick: u64) {
        if self.next_tick().is_none() {
            self.tick = tick;
        }
    }

    /// Allocates what a slot will need, so that arming it does not.
    pub(crate) fn cover(&mut self, slot: u32) {
        self.lists.cover(slot);
        self.armed.cover(slot, NEVER);
    }

    /// Has the slot, which is [covered](Self::cover), popped at `due` or before, or at the next call if
    /// that is over.
    #[inline]
    pub(crate) fn arm(&mut self, slot: u32, due: u64) {
        if due < self.armed[slot] {
            self.move_to(slot, due);
        }
    }

    /// Forgets the slot.
    pub(crate) fn disarm(&mut self, slot: u32) {
        if self.armed(slot) != NEVER {
            self.lists.remove(slot);
            self.armed[slot] = NEVER;
        }
    }

    fn move_to(&mut self, slot: u32, due: u64) {
        self.armed[slot] = due;
        let (level, list) = self.place(due);
        self.taken[level] |= 1 << list;
        self.levels |= 1 << level;
        self.lists.push_back(level * LISTS + list, slot);
    }

    /// The lowest level whose lists reach a tick, and the list in it.
    fn place(&self, due: u64) -> (usize, usize) {
        let due = due.max(self.tick);
        let reaches = |level: &usize| {
            let shift = *level as u32 * BITS;
            (due >> shift) - (self.tick >> shift) < LISTS as u64
        };
        // It differs from the tick in its bits up to this one: no level that is more than two lower will do.
        let bits = u64::BITS - (due ^ self.tick).leading_zeros();
        let least = (bits.saturating_sub(1) / BITS).saturating_sub(2) as usize;
        let level = (least..LEVELS).find(reaches).unwrap_or(LEVELS - 1);
        (level, (due >> (level as u32 * BITS)) as usize % LISTS)
    }

    /// Takes out a slot of a list that has begun at `now`, the earliest list first.
    ///
    /// It is not armed any more. If it is armed for a tick that is over, it comes back at once.
    pub(crate) fn pop(&mut self, now: u64) -> Option<u32> {
        while let Some((begin, level, list)) = self.next_list() {
            if begin > now {
                break;
            }
            // Not backwards: a list of the wheel's own tick begins with the tick, or before.
            self.tick = self.tick.max(begin);
            if let Some(slot) = self.lists.front(level * LISTS + list) {
                self.lists.remove(slot);
                self.armed[slot] = NEVER;
                return Some(slot);
            }
            self.empty(level, list);
        }
        self.tick = self.tick.max(now);
        None
    }

    /// The slots that are popped next at `now`, as far as they are of one list. Fills `slots` from the front
    /// and returns how many they are.
    pub(crate) fn upcoming(&mut self, now: u64, slots: &mut [u32]) -> usize {
        while let Some((begin, level, list)) = self.next_list().filter(|(begin, ..)| *begin <= now)
        {
            let upcoming = slots.iter_mut().zip(self.lists.iter(level * LISTS + list));
            let count = upcoming.map(|(place, slot)| *place = slot).count();
            if count > 0 {
                return count;
            }
            self.tick = self.tick.max(begin);
            self.empty(level, list);
        }
        0
    }

    /// Takes note that a list has no slots.
    fn empty(&mut self, level: usize, list: usize) {
        self.taken[level] &= !(1 << list);
        if self.taken[level] == 0 {
            self.levels &= !(1 << level);
        }
    }

    /// A tick before which [`pop`](Self::pop) has nothing; `None` if it never has.
    pub(crate) fn next_tick(&mut self) -> Option<u64> {
        while let Some((begin, level, list)) = self.next_list() {
            if !self.lists.is_empty(level * LISTS + list) {
                return Some(begin);
            }
            self.empty(level, list);
        }
        None
    }

    /// When the first list begins that may have slots, and which it is.
    fn next_list(&self) -> Option<(u64, usize, usize)> {
        let mut levels = self.levels;
        let mut first: Option<(u64, usize, usize)> = None;
        while levels != 0 {
            let level = levels.trailing_zeros() as usize;
            levels &= levels - 1;
            let shift = level as u32 * BITS;
            let here = self.tick >> shift;
            let ahead = self.taken[level].rotate_right(here as u32 % LISTS as u32).trailing_zeros();
            let list = here.saturating_add(u64::from(ahead));
            let begin = list << shift;
            if first.is_none_or(|(earliest, ..)| begin < earliest) {
                first = Some((begin, level, list as usize % LISTS));
            }
        }
        first
    }

    /// The tick for which the slot is armed; the end of time if it is not.
    pub(crate) fn armed(&self, slot: u32) -> u64 {
        self.armed.get(slot).copied().unwrap_or(NEVER)
    }

    /// Forgets all slots, and gives back their memory.
    pub(crate) fn clear(&mut self) {
        self.lists.clear();
        self.armed.clear();
        (self.taken, self.levels) = ([0; LEVELS], 0);
    }

    /// Bytes allocated.
    pub(crate) fn allocation_size(&self) -> usize {
        self.lists.allocation_size() + self.armed.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// A period from nothing to all of time, as likely short as long.
    fn periods() -> impl Strategy<Value = u64> {
        (0..64_u32, any::<u64>()).prop_map(|(bits, period)| period >> bits)
    }

    #[derive(Clone, Debug)]
    enum Step {
        Arm(u32, u64),
        /// Time passes, and so many slots at most are popped.
        Pass(u64, usize),
    }

    fn steps() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..20_u32, periods()).prop_map(|(slot, period)| Step::Arm(slot, period)),
            (periods(), 0..20_usize).prop_map(|(period, budget)| Step::Pass(period, budget)),
        ]
    }

    /// The wheel, and the deadlines that it does not know.
    struct Judged {
        wheel: Wheel,
        due: BTreeMap<u32, u64>,
        now: u64,
    }

    impl Judged {
        /// Pops as its user does: what is not due yet is armed again. How many were due, and whether that
        /// was all.
        fn pass(&mut self, budget: usize) -> (usize, bool) {
            let mut ended = 0;
            for _ in 0..budget {
                let Some(slot) = self.wheel.pop(self.now) else { return (ended, true) };
                match self.due[&slot] {
                    due if due > self.now => self.wheel.arm(slot, due),
                    _ => {
                        self.due.remove(&slot);
                        ended += 1;
                    }
                }
            }
            (ended, false)
        }
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "there is no unsafe code in it, and it is long")]
        fn all_that_is_due_is_popped_and_nothing_is_lost(
            start in periods(),
            steps in prop::collection::vec(steps(), 1..200),
        ) {
            let mut judged = Judged { wheel: Wheel::new(start), due: BTreeMap::new(), now: start };
            judged.wheel.cover(19);
            for step in steps {
                match step {
                    Step::Arm(slot, period) => {
                        // Deadlines move both ways, and another flow may have the slot.
                        let due = judged.now.saturating_add(period).min(NEVER - 1);
                        judged.wheel.arm(slot, due);
                        judged.due.insert(slot, due);
                    }
                    Step::Pass(period, budget) => {
                        judged.now = judged.now.saturating_add(period);
                        let (_, is_done) = judged.pass(budget);
                        let left = judged.due.values().filter(|due| **due <= judged.now).count();
                        prop_assert!(!is_done || left == 0, "{left} are late");
                    }
                }
                for slot in 0..20 {
                    let due = judged.due.get(&slot).copied().unwrap_or(NEVER);
                    prop_assert!(judged.wheel.armed(slot) <= due);
                    prop_assert_eq!(judged.wheel.armed(slot) == NEVER, due == NEVER);
                }
                let first = judged.due.values().min();
                let next = judged.wheel.next_tick();
                prop_assert_eq!(next.is_some(), first.is_some());
                prop_assert!(next <= first.map(|due| *due.max(&judged.wheel.tick)));
            }
            judged.now = u64::MAX;
            let armed = judged.due.len();
            prop_assert_eq!(judged.pass(usize::MAX), (armed, true));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "there is no unsafe code in it, and it is long")]
    fn a_minute_is_popped_three_times_at_ticks_of_ten_milliseconds() {
        let mut wheel = Wheel::new(1_000_003);
        wheel.cover(0);
        let due = 1_000_003 + 6_000;
        wheel.arm(0, due);
        let mut pops = Vec::new();
        for now in 1_000_003..=due {
            while let Some(slot) = wheel.pop(now) {
                pops.push(now);
                if now < due {
                    wheel.arm(slot, due);
                }
            }
        }
        assert_eq!((pops.len(), pops.last()), (3, Some(&due)));
        assert_eq!(wheel.next_tick(), None);
    }
}
