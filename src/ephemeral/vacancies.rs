//! Vacant slots that new bindings may take.
//!
//! A binding expires a lifetime after its creation, so one that is put into the slot of an older
//! one expires later than its neighbours. If that is a little later only, they wait for it when
//! they expire, and nothing else changes: so only slots of recent sequence numbers are reused.
//!
//! ```text
//!     ring   │ vacant slots wait │ since the second mark │ since the first mark │
//!            │ for their expiry  │ list 1                │ list 0               │
//! ```
//!
//! A period is a sixteenth of a lifetime. The marks are the sequence numbers at the beginnings of
//! the last two periods; vacant slots since then are in two lists, by their links. So a slot is
//! reused for a sixteenth of a lifetime after it was appended at least, and for three sixteenths at
//! most: a period begins with the first creation or removal in it, up to two periods after the one
//! before, or else both lists are empty.
//!
//! A slot is not reused in the tick in which its binding was created. Slots of the present tick are
//! appended to a list, and others are put in front of it, so those that can be reused come first.

/// The low halves of the sequence numbers of the first and the last slot of a list. Each slot but
/// the last has the next one as link.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) first: u32,
    pub(super) last: u32,
}

/// The vacant slots that new bindings may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vacancies {
    /// Sequence numbers at the beginnings of the last two periods, the last one first.
    marks: [u64; 2],
    /// The vacant slots since each of them.
    lists: [Option<List>; 2],
    /// The tick at which the next period begins.
    next_period: u64,
    /// The largest sequence number of a slot that was reused.
    last_reused: u64,
}

impl Vacancies {
    pub(super) const NONE: Self =
        Self { marks: [0; 2], lists: [None; 2], next_period: 0, last_reused: 0 };

    /// Periods after which no slot is reused.
    const PERIODS: i64 = 3;

    /// The ticks of a period.
    #[inline]
    const fn period(lifetime: u32) -> u64 {
        lifetime as u64 / 16
    }

    /// Returns whether a period begins now.
    #[inline(always)]
    pub(super) const fn is_period_over(&self, now: u64) -> bool {
        now >= self.next_period
    }

    /// Begins a period if it is time: `next` is the next sequence number.
    #[inline]
    pub(super) fn advance(&mut self, now: u64, lifetime: u32, next: u64) {
        if self.is_period_over(now) {
            self.begin_period(now, Self::period(lifetime), next);
        }
    }

    fn begin_period(&mut self, now: u64, period: u64, next: u64) {
        let is_late = now - self.next_period >= period;
        self.marks = if is_late { [next; 2] } else { [next, self.marks[0]] };
        self.lists = [None, if is_late { None } else { self.lists[0] }];
        self.next_period = now.saturating_add(period);
    }

    /// Returns by how many ticks a live entry may expire earlier than an older one.
    #[inline]
    pub(super) fn disorder(&self, oldest: u64, lifetime: u32) -> i64 {
        match self.is_in_order(oldest) {
            true => 0,
            false => Self::PERIODS * Self::period(lifetime) as i64,
        }
    }

    /// Returns for how many ticks an expired entry may wait for older ones.
    pub(super) fn longest_wait(lifetime: u32) -> i64 {
        2 * Self::PERIODS * Self::period(lifetime) as i64
    }

    /// Returns whether the live entries are in the order of their expiry.
    #[inline]
    pub(super) fn is_in_order(&self, oldest: u64) -> bool {
        self.last_reused < oldest
    }

    /// Returns whether the vacant slot of a sequence number is in no list any more.
    pub(super) fn is_given_up(&self, sequence: u64) -> bool {
        sequence < self.marks[1]
    }

    /// Adds a vacant slot to its list, unless it is too old, given whether its binding was created
    /// in this tick. `set_link` sets the link of a slot.
    pub(super) fn add(
        &mut self,
        sequence: u64,
        is_of_this_tick: bool,
        set_link: impl FnOnce(u32, u32),
    ) {
        let Some(list) = self.marks.iter().position(|mark| sequence >= *mark) else { return };
        let (slot, list) = (sequence as u32, &mut self.lists[list]);
        *list = Some(match *list {
            None => List { first: slot, last: slot },
            Some(List { first, last }) if is_of_this_tick => {
                set_link(last, slot);
                List { first, last: slot }
            }
            Some(List { first, last }) => {
                set_link(slot, first);
                List { first: slot, last }
            }
        });
    }

    /// Takes a vacant slot out of a list, and returns the low half of its sequence number.
    /// `link_of` returns the link of a vacant slot, unless that must not be taken now.
    #[inline]
    pub(super) fn take(&mut self, link_of: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        for list in &mut self.lists {
            let Some(List { first, last }) = *list else { continue };
            if let Some(link) = link_of(first) {
                *list = (first != last).then_some(List { first: link, last });
                return Some(first);
            }
        }
        None
    }

    /// Records that a slot is reused.
    pub(super) fn record_reuse(&mut self, sequence: u64) {
        self.last_reused = self.last_reused.max(sequence);
    }

    /// The lists that have slots.
    pub(super) fn lists(&self) -> impl Iterator<Item = List> {
        self.lists.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused_for_one_to_three_periods() {
        let lifetime = 160;
        let (mut vacancies, mut links) = (Vacancies::NONE, [0; 80]);
        let mut add = |vacancies: &mut Vacancies, sequence, is_of_this_tick| {
            vacancies.add(sequence, is_of_this_tick, |slot, link| links[slot as usize] = link);
        };
        vacancies.advance(1000, lifetime, 50);
        add(&mut vacancies, 49, false);
        assert_eq!(vacancies.lists().count(), 0);
        add(&mut vacancies, 50, false);
        add(&mut vacancies, 51, false);
        vacancies.advance(1009, lifetime, 60);
        add(&mut vacancies, 55, true);
        vacancies.advance(1019, lifetime, 70);
        add(&mut vacancies, 71, true);
        add(&mut vacancies, 56, false);
        let mut taken = || vacancies.take(|slot| Some(links[slot as usize]));
        assert_eq!([(); 4].map(|()| taken()), [71, 56, 51, 50].map(Some));
        vacancies.advance(1028, lifetime, 80);
        assert!(!vacancies.is_given_up(50));
        vacancies.advance(1029, lifetime, 80);
        assert!(vacancies.is_given_up(69) && !vacancies.is_given_up(70));
        vacancies.advance(1049, lifetime, 90);
        assert!(vacancies.is_given_up(89) && vacancies.lists().next().is_none());
        vacancies.record_reuse(80);
        assert_eq!((vacancies.disorder(80, lifetime), vacancies.disorder(81, lifetime)), (30, 0));
    }
}
