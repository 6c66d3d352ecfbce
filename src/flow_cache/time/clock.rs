//! The monotonic clock of a cache, derived from the timestamps of its caller.

use super::timeouts::NEVER;
use crate::timestamp::Timestamp;

/// The cache's time at the caller's origin: flows of a restored image are older than that.
const ORIGIN: u64 = 1 << 62;

/// The longest step, a year: one wrong timestamp does not use up the range.
const JUMP: u64 = 366 * 24 * 3600 * 1_000_000_000;

/// Shorter steps, of 208 days, need no check but the one for [`LATE`].
const QUICK: u64 = 1 << 54;

/// From this time of the cache on, 146 years after the origin, and from this offset on, each step
/// is checked against the end of the range. Times from it on are negative as signed numbers, so one
/// comparison finds them and earlier times.
const LATE: u64 = 1 << 63;

/// Converts the caller's timestamps to nanoseconds that never decrease.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    now: u64,
    /// The cache's time less the caller's, modulo 2^64: `ahead` less `behind`.
    shift: u64,
    /// The offset of the cache's time to the caller's: one of `ahead` and `behind` is 0.
    ahead: u64,
    behind: u64,
    /// Shorter steps need no check: [`QUICK`], or 0 when the clock is late.
    quick: u64,
    /// A flow with a packet within this time has not expired, and a time within it of a packet is
    /// no jump: the shortest timeout, or 0 when the clock is late.
    fresh: u64,
    /// The shortest timeout, at most [`QUICK`].
    least: u64,
}

impl Clock {
    /// The clock of a cache whose shortest idle timeout is `least` nanoseconds. With 0, each flow
    /// is examined for its own.
    pub(crate) const fn new(least: u64) -> Self {
        let least = if least < QUICK { least } else { QUICK };
        let (now, shift, ahead) = (ORIGIN, ORIGIN, ORIGIN);
        Self { now, shift, ahead, behind: 0, quick: QUICK, fresh: least, least }
    }

    /// Accounts for a flow with a timeout of its own.
    pub(crate) fn add_timeout(&mut self, nanos: u64) {
        self.least = self.least.min(nanos);
        self.fresh = self.fresh.min(nanos);
    }

    /// Advances to the caller's `time` and returns the time of the cache.
    #[inline]
    pub(crate) fn advance(&mut self, time: Timestamp) -> u64 {
        let next = self.next(time);
        self.step(next)
    }

    /// Returns the time of the cache at the caller's `time`, which is not before the present one.
    /// It may be too far ahead, and then is none at which a flow [is fresh](Self::is_fresh): before
    /// others, [`step`](Self::step).
    #[inline]
    pub(crate) fn next(&mut self, time: Timestamp) -> u64 {
        let next = time.as_nanos().wrapping_add(self.shift);
        if (next as i64) < self.now as i64 {
            return self.advance_far(time);
        }
        next
    }

    /// Advances to a time from [`next`](Self::next), or by the longest step. Returns the time of
    /// the cache.
    #[inline]
    pub(crate) fn step(&mut self, next: u64) -> u64 {
        if next.wrapping_sub(self.now) >= self.quick {
            return self.advance_far(Timestamp::from_nanos(next.wrapping_sub(self.shift)));
        }
        self.now = next;
        next
    }

    /// Advances to a time from [`next`](Self::next) at which a flow [is fresh](Self::is_fresh).
    #[inline]
    pub(crate) fn set_now(&mut self, next: u64) {
        self.now = next;
    }

    /// Whether a flow has certainly not expired, given the times of its last packet and of now.
    #[inline]
    pub(crate) const fn is_fresh(&self, last_seen: u64, now: u64) -> bool {
        now.wrapping_sub(last_seen) < self.fresh
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
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// Follows a change of the caller's clock: `now` is the present time of the cache.
    pub(crate) fn set(&mut self, now: Timestamp) {
        self.ahead = self.now.saturating_sub(now.as_nanos());
        self.behind = now.as_nanos().saturating_sub(self.now);
        self.shift = self.ahead.wrapping_sub(self.behind);
        self.update_late();
    }

    fn update_late(&mut self) {
        let is_late = self.now >= LATE || self.behind >= LATE;
        (self.quick, self.fresh) = if is_late { (0, 0) } else { (QUICK, self.least) };
    }

    /// The latest time of the caller.
    #[inline]
    const fn latest(&self) -> u64 {
        self.now.wrapping_sub(self.shift)
    }

    /// Converts a time of the cache to the caller's.
    pub(crate) fn caller(&self, time: u64) -> Timestamp {
        Timestamp::from_nanos(time.saturating_sub(self.ahead).saturating_add(self.behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_decreases_and_the_clock_can_be_set() {
        let mut clock = Clock::new(1);
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
            let mut clock = Clock::new(1);
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
