//! The monotonic clock of a cache, derived from the timestamps of its caller.

use crate::flow_cache::timeouts::NEVER;
use crate::timestamp::Timestamp;

/// The cache's time at the caller's origin: flows of a restored image are older than that.
const ORIGIN: u64 = 1 << 62;

/// The longest step, a year: one wrong timestamp does not use up the range.
const JUMP: u64 = 366 * 24 * 3600 * 1_000_000_000;

/// Shorter steps, of 208 days, need no check but that of [`LATE`].
const QUICK: u64 = 1 << 54;

/// From this time on, 146 years after the origin, the end of the range is checked, and from this
/// time of the caller on that of its range.
const LATE: u64 = 1 << 63;

/// Converts the caller's timestamps to nanoseconds that never decrease.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    now: u64,
    /// The cache's time less the caller's, modulo 2^64: `ahead` less `behind`.
    shift: u64,
    /// The offset of the cache's time to the caller's: one of `ahead` and `behind` is 0.
    ahead: u64,
    behind: u64,
    /// The earliest time at which this one or the caller's is [`LATE`]; 0 from then on, as later
    /// times may wrap around.
    late: u64,
}

impl Clock {
    pub(super) const fn new() -> Self {
        Self { now: ORIGIN, shift: ORIGIN, ahead: ORIGIN, behind: 0, late: LATE }
    }

    /// Advances to the caller's `time` and returns the time of the cache.
    #[inline(always)]
    pub(super) fn advance(&mut self, time: Timestamp) -> u64 {
        let next = time.as_nanos().wrapping_add(self.shift);
        // To an earlier time, this is a long step.
        if next >= self.late || next.wrapping_sub(self.now) >= QUICK {
            return self.advance_far(time);
        }
        self.now = next;
        next
    }

    /// Does nothing if the time is not later. Advances by the longest step at most, to a time that
    /// counts as the caller's then, or close to the end of the range.
    #[cold]
    #[inline(never)]
    fn advance_far(&mut self, time: Timestamp) -> u64 {
        // The time of the caller may be close to the end of its range, but it does not wrap around.
        if time.as_nanos() <= self.latest() {
            return self.now;
        }
        let passed = time.as_nanos() - self.latest();
        let next = self.now.saturating_add(passed.min(JUMP)).min(NEVER - 1);
        let is_whole = next - self.now == passed && passed < JUMP;
        self.now = next;
        if is_whole {
            self.update_late();
        } else {
            self.set(time);
        }
        self.now
    }

    #[inline]
    pub(super) const fn now(&self) -> u64 {
        self.now
    }

    /// Follows a change of the caller's clock: `now` is the present time of the cache.
    pub(super) fn set(&mut self, now: Timestamp) {
        self.ahead = self.now.saturating_sub(now.as_nanos());
        self.behind = now.as_nanos().saturating_sub(self.now);
        self.shift = self.ahead.wrapping_sub(self.behind);
        self.update_late();
    }

    fn update_late(&mut self) {
        self.late = if self.now < LATE { LATE.saturating_sub(self.behind) } else { 0 };
    }

    /// The latest time of the caller.
    #[inline(always)]
    const fn latest(&self) -> u64 {
        self.now.wrapping_sub(self.shift)
    }

    /// Converts a time of the cache to the caller's.
    pub(super) fn caller(&self, time: u64) -> Timestamp {
        Timestamp::from_nanos(time.saturating_sub(self.ahead).saturating_add(self.behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_decreases_and_the_clock_can_be_set() {
        let mut clock = Clock::new();
        let start = clock.advance(Timestamp::from_secs(100));
        assert_eq!(clock.advance(Timestamp::from_secs(50)), start);
        assert_eq!(clock.caller(start), Timestamp::from_secs(100));
        clock.set(Timestamp::from_secs(7));
        assert_eq!((clock.now(), clock.caller(start)), (start, Timestamp::from_secs(7)));
        assert_eq!(clock.advance(Timestamp::from_secs(8)), start + 1_000_000_000);
        assert_eq!(clock.advance(Timestamp::MAX), start + 1_000_000_000 + JUMP);
        clock.set(Timestamp::ZERO);
        assert_eq!(clock.advance(Timestamp::from_nanos(1)), start + 1_000_000_001 + JUMP);
        assert_eq!(clock.caller(0), Timestamp::ZERO);
        clock.set(Timestamp::MAX);
        let end = clock.now();
        assert_eq!(clock.advance(Timestamp::ZERO), end);
        assert_eq!(clock.caller(end), Timestamp::MAX);
    }
    #[test]
    #[cfg_attr(miri, ignore = "only computes")]
    fn time_does_not_wrap_around() {
        for step in [JUMP - 1, QUICK - 1] {
            let mut clock = Clock::new();
            let mut before = clock.now();
            // More steps than the range has.
            for _ in 0..2 * u64::MAX.div_ceil(step) {
                clock.set(Timestamp::ZERO);
                for time in [5, 5 + step] {
                    let now = clock.advance(Timestamp::from_nanos(time));
                    assert!(before <= now && now < NEVER, "{before} {now}");
                    assert_eq!(now, clock.now());
                    before = now;
                }
            }
            assert_eq!(before, NEVER - 1);
        }
    }
}
