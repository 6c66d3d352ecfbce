//! A hierarchical timer wheel over slots, with O(1) operations and bounded steps.
//!
//! ```text
//!                        64 lists, and a word with a bit for each list that is not empty
//!     level 0   ┌─┬─┬─┬─┬─┬─┬─ … ─┐   one for each of the next 64 ticks
//!     level 1   ┌─┬─┬─┬─┬─┬─┬─ … ─┐   one for each 8 ticks of the next 512
//!     level 2   ┌─┬─┬─┬─┬─┬─┬─ … ─┐   one for each 64 ticks of the next 4096
//!         …
//! ```
//!
//! An entry is in the lowest level that covers its tick. 22 levels cover all of 64 bits, so no
//! period is too long; a jump of years over an empty wheel reads one word.
//!
//! The wheel stores the list of a slot and not its deadline. [`due`](Wheel::due) returns a slot
//! when its list begins: at the tick for which it was armed in level 0, and up to an eighth of the
//! period too early in higher levels. The caller computes the deadline, and [arms](Wheel::arm) the
//! slot again if that is later. So entries move down the levels; and a packet extends the timeout
//! of its flow by writing the time, without an access to the wheel. A new flow in a slot inherits
//! the armed timer of the former one, and is [armed](Wheel::armed) already, unless its deadline is
//! before the begin of that list. So during a flood, in which slots have hundreds of flows within a
//! timeout, the wheel is hardly used.
//!
//! A list is a stack of [chunks](super::chunk_lists), from which a group of slots is read at once.
//! Arming moves the slot, so there is one entry for each slot, however often it is armed.
//!
//! Invariants:
//! - a list that began before the wheel's tick is empty, except for the list of that tick;
//! - the word of a level has the bit of each list that is not empty; it may have others;
//! - an armed slot is in the list that `lists_of` has, once, and is due when that begins; or, if
//!   there was no memory for the list, among those that [wait](super::waiting).
//!
//! Cost: all operations are O(1), but for the removal of a slot that waits. Whether a slot is
//! armed takes 2 bytes. Each time it is due, an entry moves two levels down: at ticks of a second
//! once for a minute, twice for an hour; at ticks of 10 ms three times, and four times. While its
//! flow is active, it is due and armed again a little more often than once per period. 11 bytes
//! per slot, and 64 for each list in use.
//!
//! After Varghese and Lauck, *Hashed and hierarchical timing wheels* (1987), scheme 7. The
//! differences: they store deadlines and move entries down when a list begins. The levels overlap,
//! so that lists are short relative to the period, as in Linux since 2016; there an entry is due
//! late.

use super::chunk_lists::ChunkLists;
use super::waiting::Waiting;
use crate::invariant::{InvariantError, ensure};
use crate::memory::{AllocError, Allocator, Global};
use crate::raw::chunked_vec::{ChunkedVec, DEFAULT_BITS};

/// Lists of a level: bits of a word.
const LISTS: usize = 64;
/// A list covers 2^3 times as many ticks as one of the level below.
const BITS: u32 = 3;
/// Levels, so that the last one covers all ticks.
const LEVELS: usize = 22;

/// A timer wheel of slots.
#[derive(Clone, Debug)]
pub(crate) struct Wheel<A: Allocator + Clone = Global> {
    /// Lists that begin before this tick are empty.
    tick: u64,
    /// For each level, a bit for each list that may have slots.
    occupied: [u64; LEVELS],
    /// A bit for each level that may have slots.
    levels: u32,
    /// The first list that may have slots, if it has been searched.
    first: Option<Begin>,
    lists: ChunkLists<A>,
    /// The list in which each slot is, or [`NO_LIST`], or [`WAITING`].
    lists_of: ChunkedVec<u16, DEFAULT_BITS, A>,
    /// Armed slots for which there was no memory in lists.
    waiting: Waiting,
}

/// The begin of a list.
#[derive(Clone, Copy, Debug)]
struct Begin {
    tick: u64,
    level: u8,
    /// The index in the level.
    list: u8,
}

impl Begin {
    /// The list for a tick: that in the lowest level that covers it, of a wheel at the tick `now`.
    #[inline]
    fn of(due: u64, now: u64) -> Self {
        let due = due.max(now);
        // The lowest level whose 64 lists are as many ticks as there are until `due`: they cover
        // it, unless the list of the tick has begun before, so that the last one is too early.
        // Most are in the lowest one of all.
        let ticks = due - now;
        let is_low = ticks < LISTS as u64;
        let mut shift = if is_low { 0 } else { u32::from(SHIFTS[ticks.leading_zeros() as usize]) };
        if (due >> shift) - (now >> shift) >= LISTS as u64 {
            shift += BITS;
        }
        let list = due >> shift;
        Self { tick: list << shift, level: (shift / BITS) as u8, list: (list % LISTS as u64) as u8 }
    }

    /// The index among the lists of all levels.
    const fn list(self) -> usize {
        self.level as usize * LISTS + self.list as usize
    }
}

/// log2 of the ticks of a list in the lowest level with as many ticks as this number of leading
/// zeros leaves.
const SHIFTS: [u8; 65] = {
    let mut shifts = [0; 65];
    let mut zeros = 0;
    while zeros <= u64::BITS {
        let bits = (u64::BITS - zeros).saturating_sub(LISTS.ilog2());
        shifts[zeros as usize] = (bits.div_ceil(BITS) * BITS) as u8;
        zeros += 1;
    }
    shifts
};

/// The tick of an unarmed slot.
const NEVER: u64 = u64::MAX;

/// The list of an unarmed slot.
const NO_LIST: u16 = u16::MAX;

/// The list of an armed slot that is in none.
const WAITING: u16 = NO_LIST - 1;

const _: () = assert!(LEVELS * LISTS < WAITING as usize);

impl Wheel {
    /// Bytes for 1024 slots, which are allocated together, without two lists of chunks and without
    /// [entries](Self::entry_bytes).
    pub(crate) const GROWTH: usize = ChunkLists::GROWTH + <ChunkedVec<u16>>::GROWTH;

    /// An upper bound of the bytes that are allocated when slots are armed: for the entries of
    /// `slots` slots, in all lists.
    pub(crate) const fn entry_bytes(slots: usize) -> usize {
        ChunkLists::chunk_bytes(LEVELS * LISTS, slots)
    }
}

impl<A: Allocator + Clone> Wheel<A> {
    /// Creates a wheel for at most `limit` slots, at a tick, whose memory will be from `memory`,
    /// without allocating.
    pub(crate) fn new_in(tick: u64, limit: usize, memory: A) -> Self {
        Self {
            tick,
            occupied: [0; LEVELS],
            levels: 0,
            first: None,
            lists: ChunkLists::new_in(LEVELS * LISTS, limit, memory.clone()),
            lists_of: ChunkedVec::new_in(limit, memory),
            waiting: Waiting::EMPTY,
        }
    }

    /// Allocates memory for slots up to this one, so that [covering](Self::cover) it does not
    /// allocate.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. Some may be.
    pub(crate) fn try_reserve(&mut self, slot: u32) -> Result<(), AllocError> {
        self.lists.try_reserve(slot)?;
        self.lists_of.try_reserve(slot)
    }

    /// Moves a wheel without armed slots to another tick.
    pub(crate) fn skip_to(&mut self, tick: u64) {
        if self.next_tick().is_none() {
            self.tick = tick;
        }
    }

    /// Allocates the memory of a slot, but for its [entry](Self::entry_bytes).
    pub(crate) fn cover(&mut self, slot: u32) {
        self.lists.cover(slot);
        self.lists_of.cover(slot, NO_LIST);
    }

    /// Arms a slot, which is [covered](Self::cover): it is due at this tick or before, or at once
    /// if that has passed. It is not due at another tick any more.
    pub(crate) fn arm(&mut self, slot: u32, due: u64) {
        let own = &mut self.lists_of[slot];
        match *own {
            NO_LIST => {}
            WAITING => return self.arm_waiting(slot, due),
            list => self.lists.remove(list.into(), slot),
        }
        let begin = Begin::of(due, self.tick);
        if !self.lists.insert(begin.list(), slot) {
            *own = WAITING;
            return self.waiting.push(&mut self.lists.places, slot, due.max(self.tick));
        }
        *own = begin.list() as u16;
        self.occupied[usize::from(begin.level)] |= 1 << begin.list;
        self.levels |= 1 << begin.level;
        if self.first.is_some_and(|first| begin.tick < first.tick) {
            self.first = Some(begin);
        }
    }

    /// Arms a slot that waits.
    #[cold]
    fn arm_waiting(&mut self, slot: u32, due: u64) {
        if !self.waiting.is_first(slot) {
            // It is due before, in any case.
            return self.waiting.hasten(due);
        }
        self.disarm(slot);
        self.arm(slot, due);
    }

    /// Disarms a slot.
    pub(crate) fn disarm(&mut self, slot: u32) {
        match core::mem::replace(&mut self.lists_of[slot], NO_LIST) {
            NO_LIST => {}
            WAITING => self.waiting.remove(&mut self.lists.places, slot),
            list => self.lists.remove(list.into(), slot),
        }
    }

    /// Writes some slots of a list that has begun at `now`, of the earliest one, to `slots`.
    /// Returns their number.
    ///
    /// They are due until each of them is armed for later, or disarmed: in this order, as that is
    /// quickest.
    pub(crate) fn due(&mut self, now: u64, slots: &mut [u32]) -> usize {
        if self.waiting.next().is_some_and(|tick| tick <= now) {
            return self.waiting.first(&self.lists.places, now, slots);
        }
        while let Some(begin) = self.next_list() {
            if begin.tick > now {
                break;
            }
            // Never backwards: a list of the wheel's own tick begins with the tick, or before.
            self.tick = self.tick.max(begin.tick);
            let count = self.lists.first(begin.list(), slots);
            if count > 0 || slots.is_empty() {
                return count;
            }
            self.mark_empty(begin);
        }
        self.tick = self.tick.max(now);
        0
    }

    /// Moves to the tick `now`, if no slot is due at `now`. Returns whether it has moved.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64) -> bool {
        let begin = self.next_list();
        let is_due = |tick: Option<u64>| tick.is_some_and(|tick| tick <= now);
        if is_due(self.waiting.next()) || is_due(begin.map(|begin| begin.tick)) {
            return false;
        }
        self.tick = self.tick.max(now);
        true
    }

    /// Marks a list as empty.
    fn mark_empty(&mut self, begin: Begin) {
        self.first = None;
        let level = usize::from(begin.level);
        self.occupied[level] &= !(1 << begin.list);
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
    }

    /// Returns a tick before which [`due`](Self::due) returns nothing, or `None` if no slot is
    /// armed.
    pub(crate) fn next_tick(&mut self) -> Option<u64> {
        let waiting = self.waiting.next().map(|tick| tick.max(self.tick));
        let listed = self.next_list_tick();
        waiting.into_iter().chain(listed).min()
    }

    fn next_list_tick(&mut self) -> Option<u64> {
        while let Some(begin) = self.next_list() {
            if !self.lists.is_empty(begin.list()) {
                return Some(begin.tick);
            }
            self.mark_empty(begin);
        }
        None
    }

    /// Returns the first list that may have slots.
    #[inline]
    fn next_list(&mut self) -> Option<Begin> {
        if self.first.is_none() {
            self.first = self.find_first();
        }
        self.first
    }

    /// Finds the first list that may have slots.
    fn find_first(&self) -> Option<Begin> {
        let mut levels = self.levels;
        let mut first: Option<Begin> = None;
        while levels != 0 {
            let level = levels.trailing_zeros();
            levels &= levels - 1;
            let shift = level * BITS;
            let here = self.tick >> shift;
            let occupied = self.occupied[level as usize];
            let ahead = occupied.rotate_right(here as u32 % LISTS as u32).trailing_zeros();
            let list = here.saturating_add(u64::from(ahead));
            let tick = list << shift;
            if first.is_none_or(|earliest| tick < earliest.tick) {
                let list = (list % LISTS as u64) as u8;
                first = Some(Begin { tick, level: level as u8, list });
            }
        }
        first
    }

    /// Returns the tick at which a slot is due, or [`NEVER`]: that for which it was armed or
    /// before, unless that had passed.
    #[inline]
    pub(crate) fn armed(&self, slot: u32) -> u64 {
        match self.lists_of.get(slot) {
            None | Some(&NO_LIST) => NEVER,
            Some(&WAITING) => self.waiting.next().unwrap_or(0).max(self.tick),
            Some(list) => self.begin_of(u32::from(*list)),
        }
    }

    /// Returns the tick at which a list begins, if it has slots.
    #[inline]
    fn begin_of(&self, list: u32) -> u64 {
        let shift = list / LISTS as u32 * BITS;
        let here = self.tick >> shift;
        let ahead = u64::from(list).wrapping_sub(here) % LISTS as u64;
        (here.saturating_add(ahead) << shift).min(NEVER - 1)
    }

    /// Prefetches the memory that arming and disarming a slot access.
    #[inline]
    pub(crate) fn prefetch(&self, slot: u32) {
        self.lists_of.prefetch(slot);
        self.lists.places.prefetch(slot);
    }

    /// Checks that each armed slot has one entry, that the first list is the earliest, and that
    /// lists with slots are marked.
    pub(crate) fn validate(&self) -> Result<(), InvariantError> {
        let list_of = |slot| {
            let list = self.lists_of.get(slot).filter(|list| **list < WAITING);
            list.map(|list| usize::from(*list))
        };
        let is_waiting = |slot| self.lists_of.get(slot) == Some(&WAITING);
        let waiting = self.waiting.validate(&self.lists.places, is_waiting)?;
        let entries = self.lists.validate(list_of)? + waiting;
        let armed = self.lists_of.iter().filter(|list| **list != NO_LIST).count();
        ensure(entries == armed, || "an armed slot has no entry, or two")?;
        let first = |begin: Option<Begin>| begin.map(|begin| begin.tick);
        let is_first = self.first.is_none() || first(self.first) == first(self.find_first());
        ensure(is_first, || "another list begins earlier")?;
        for list in (0..LEVELS * LISTS).filter(|list| !self.lists.is_empty(*list)) {
            let (level, bit) = (list / LISTS, 1 << (list % LISTS));
            let is_marked = self.occupied[level] & bit != 0 && self.levels & 1 << level != 0;
            ensure(is_marked, || "a list with slots is marked as empty")?;
        }
        Ok(())
    }

    /// Returns the tick up to which slots were due.
    pub(crate) const fn tick(&self) -> u64 {
        self.tick
    }

    /// Disarms all slots, and releases their memory.
    pub(crate) fn clear(&mut self) {
        self.lists.clear();
        self.lists_of.clear();
        (self.occupied, self.levels, self.first) = ([0; LEVELS], 0, None);
        self.waiting = Waiting::EMPTY;
    }

    /// Returns the allocated bytes.
    pub(crate) fn allocation_size(&self) -> usize {
        self.lists.allocation_size() + self.lists_of.allocation_size()
    }

    /// Returns the bytes that the first slot allocates for all lists.
    pub(crate) fn first_growth(&self) -> usize {
        self.lists.first_growth()
    }

    /// Returns the bytes that are allocated, or may be when `slots` covered slots are armed.
    pub(crate) fn reserved(&self, slots: usize) -> usize {
        self.allocation_size() + Wheel::entry_bytes(slots) - self.lists.chunk_size()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// Periods of all magnitudes, from 0 to the whole range.
    fn periods() -> impl Strategy<Value = u64> {
        (0..64_u32, any::<u64>()).prop_map(|(bits, period)| period >> bits)
    }

    /// Disarms and returns a slot that is due.
    fn pop(wheel: &mut Wheel, now: u64) -> Option<u32> {
        let mut slots = [0];
        let count = wheel.due(now, &mut slots);
        slots[..count].iter().for_each(|slot| wheel.disarm(*slot));
        slots[..count].first().copied()
    }

    #[derive(Clone, Debug)]
    enum Step {
        Arm(u32, u64),
        /// Time advances, and at most this number of slots is popped.
        Advance(u64, usize),
    }

    fn steps() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..20_u32, periods()).prop_map(|(slot, period)| Step::Arm(slot, period)),
            (periods(), 0..20_usize).prop_map(|(period, budget)| Step::Advance(period, budget)),
        ]
    }

    /// The wheel, and the true deadlines.
    struct Checked {
        wheel: Wheel,
        due: BTreeMap<u32, u64>,
        now: u64,
    }

    impl Checked {
        /// Pops like the cache: a slot that is not due is armed again. Returns the number of due
        /// slots, and whether they were all.
        fn advance(&mut self, budget: usize) -> (usize, bool) {
            let mut ended = 0;
            for _ in 0..budget {
                let Some(slot) = pop(&mut self.wheel, self.now) else { return (ended, true) };
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
        #[cfg_attr(miri, ignore = "no unsafe code, and long")]
        fn all_due_slots_are_popped_and_none_is_lost(
            start in periods(),
            steps in prop::collection::vec(steps(), 1..200),
        ) {
            let wheel = Wheel::new_in(start, 20, Global);
            let mut checked = Checked { wheel, due: BTreeMap::new(), now: start };
            checked.wheel.cover(19);
            for step in steps {
                match step {
                    Step::Arm(slot, period) => {
                        // Deadlines move both ways, and a slot may be reused.
                        let due = checked.now.saturating_add(period).min(NEVER - 1);
                        checked.wheel.arm(slot, due);
                        checked.due.insert(slot, due);
                    }
                    Step::Advance(period, budget) => {
                        checked.now = checked.now.saturating_add(period);
                        let (_, is_done) = checked.advance(budget);
                        let left = checked.due.values().filter(|due| **due <= checked.now).count();
                        prop_assert!(!is_done || left == 0, "{left} are late");
                    }
                }
                for slot in 0..20 {
                    let due = checked.due.get(&slot).copied().unwrap_or(NEVER);
                    prop_assert!(checked.wheel.armed(slot) <= due.max(checked.wheel.tick));
                    prop_assert_eq!(checked.wheel.armed(slot) == NEVER, due == NEVER);
                }
                prop_assert_eq!(checked.wheel.validate(), Ok(()));
                let first = checked.due.values().min();
                let next = checked.wheel.next_tick();
                prop_assert_eq!(next.is_some(), first.is_some());
                prop_assert!(next <= first.map(|due| *due.max(&checked.wheel.tick)));
            }
            checked.now = u64::MAX;
            let armed = checked.due.len();
            prop_assert_eq!(checked.advance(usize::MAX), (armed, true));
        }
    }

    /// Deadlines of connection tracking at ticks of 10 ms: each flow of a slot is open for two
    /// hours, and closes for two minutes. The slot is armed for the earlier one each time.
    #[test]
    #[cfg_attr(miri, ignore = "no unsafe code, and long")]
    fn a_slot_has_one_entry_however_often_it_is_armed() {
        let mut wheel = Wheel::new_in(7, 1 << 20, Global);
        wheel.cover(99);
        let mut now = 7;
        for round in 0..20_000_u64 {
            let slot = (round * 37 % 100) as u32;
            wheel.arm(slot, now + 744_000);
            wheel.arm(slot, now + 12_000);
            now += round % 50;
            while let Some(slot) = pop(&mut wheel, now) {
                wheel.arm(slot, now + [6_000, 744_000][slot as usize % 2]);
            }
            assert_eq!(wheel.validate(), Ok(()));
        }
        let bytes = Wheel::new_in(7, 1 << 20, Global).first_growth() + Wheel::GROWTH + 64;
        assert!(wheel.allocation_size() <= bytes + Wheel::entry_bytes(100));
    }

    #[test]
    #[cfg_attr(miri, ignore = "no unsafe code, and long")]
    fn a_minute_is_popped_three_times_at_ticks_of_ten_milliseconds() {
        let mut wheel = Wheel::new_in(1_000_003, 1 << 20, Global);
        wheel.cover(0);
        let due = 1_000_003 + 6_000;
        wheel.arm(0, due);
        let mut pops = Vec::new();
        for now in 1_000_003..=due {
            while let Some(slot) = pop(&mut wheel, now) {
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
