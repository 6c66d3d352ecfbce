//! The time of the cache: it stands still or goes on, whatever the caller's does.

use crate::timestamp::Timestamp;

/// What the time of the cache is at the caller's origin: flows of a restart image are older than that.
const ORIGIN: i128 = 1 << 62;

/// Translates the caller's time to nanoseconds that never go back.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    now: u64,
    /// By how much the time of the cache is ahead of the caller's.
    ahead: i128,
}

impl Clock {
    pub(super) const fn new() -> Self {
        Self { now: ORIGIN as u64, ahead: ORIGIN }
    }

    /// The caller says what time it is. What it is then.
    #[inline]
    pub(super) fn pass(&mut self, now: Timestamp) -> u64 {
        self.now = self.now.max(clamp(i128::from(now.as_nanos()) + self.ahead));
        self.now
    }

    #[inline]
    pub(super) const fn now(&self) -> u64 {
        self.now
    }

    /// The caller's clock was set: it is still the same time.
    pub(super) fn set(&mut self, now: Timestamp) {
        self.ahead = i128::from(self.now) - i128::from(now.as_nanos());
    }

    /// What the caller calls a time.
    pub(super) fn caller(&self, time: u64) -> Timestamp {
        Timestamp::from_nanos(clamp(i128::from(time) - self.ahead))
    }
}

#[inline]
fn clamp(nanos: i128) -> u64 {
    nanos.clamp(0, i128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back_and_may_be_set() {
        let mut clock = Clock::new();
        let start = clock.pass(Timestamp::from_secs(100));
        assert_eq!(clock.pass(Timestamp::from_secs(50)), start);
        assert_eq!(clock.caller(start), Timestamp::from_secs(100));
        clock.set(Timestamp::from_secs(7));
        assert_eq!((clock.now(), clock.caller(start)), (start, Timestamp::from_secs(7)));
        assert_eq!(clock.pass(Timestamp::from_secs(8)), start + 1_000_000_000);
        assert_eq!(clock.pass(Timestamp::MAX), u64::MAX);
        assert_eq!(clock.caller(0), Timestamp::ZERO);
    }
}
