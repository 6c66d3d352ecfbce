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

use core::array;

/// What is reused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vacancies {
    /// Sequence numbers at the beginnings of the last two periods, the last one first.
    marks: [u64; 2],
    /// The low halves of the sequence numbers of the first vacant slots of the two lists. Each has
    /// the next one as link, the last one its own.
    lists: [Option<u32>; 2],
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

    /// Adds a vacant slot to its list. Returns its link, or `None` if it is too old.
    pub(super) fn add(&mut self, sequence: u64) -> Option<u32> {
        let list = self.marks.iter().position(|mark| sequence >= *mark)?;
        let link = self.lists[list].unwrap_or(sequence as u32);
        self.lists[list] = Some(sequence as u32);
        Some(link)
    }

    /// Takes a vacant slot out of a list, and returns the low half of its sequence number.
    /// `link_of` returns the link of a vacant slot, unless that must not be taken now.
    #[inline]
    pub(super) fn take(&mut self, link_of: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        for list in &mut self.lists {
            let Some(first) = *list else { continue };
            if let Some(link) = link_of(first) {
                *list = (link != first).then_some(link);
                return Some(first);
            }
        }
        None
    }

    /// Records that a slot is reused.
    pub(super) fn record_reuse(&mut self, sequence: u64) {
        self.last_reused = self.last_reused.max(sequence);
    }

    /// Iterates over the first vacant slots of the lists, for tests.
    pub(super) fn lists(&self) -> array::IntoIter<Option<u32>, 2> {
        self.lists.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused_for_one_to_three_periods() {
        let lifetime = 160;
        let mut vacancies = Vacancies::NONE;
        vacancies.advance(1000, lifetime, 50);
        assert_eq!(vacancies.add(49), None);
        // Each slot is the last one of its list.
        assert_eq!((vacancies.add(50), vacancies.add(51)), (Some(50), Some(50)));
        vacancies.advance(1009, lifetime, 60);
        assert_eq!(vacancies.add(55), Some(51));
        vacancies.advance(1019, lifetime, 70);
        assert_eq!((vacancies.add(71), vacancies.add(56)), (Some(71), Some(55)));
        let mut taken = || vacancies.take(|first| Some(if first == 71 { 71 } else { first - 1 }));
        assert_eq!((taken(), taken(), taken()), (Some(71), Some(56), Some(55)));
        vacancies.advance(1028, lifetime, 80);
        assert!(!vacancies.is_given_up(50));
        vacancies.advance(1029, lifetime, 80);
        assert!(vacancies.is_given_up(69) && !vacancies.is_given_up(70));
        vacancies.advance(1049, lifetime, 90);
        assert!(vacancies.is_given_up(89) && vacancies.lists().all(|list| list.is_none()));
        vacancies.record_reuse(80);
        assert_eq!((vacancies.disorder(80, lifetime), vacancies.disorder(81, lifetime)), (30, 0));
    }
}
