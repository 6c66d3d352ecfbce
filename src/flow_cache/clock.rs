//! The time of the cache: it stands still or goes on, whatever the caller's does.

use crate::flow_cache::state::NEVER;
use crate::timestamp::Timestamp;

/// What the time of the cache is at the caller's origin: flows of a restart image are older than that.
const ORIGIN: u64 = 1 << 62;

/// More than this never passes at once: a year. One wrong time does not use up all time.
const JUMP: u64 = 366 * 24 * 3600 * 1_000_000_000;

/// Translates the caller's time to nanoseconds that never go back.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    now: u64,
    /// By how much the time of the cache is ahead of the caller's, or behind: one of them is 0.
    ahead: u64,
    behind: u64,
}

impl Clock {
    pub(super) const fn new() -> Self {
        Self { now: ORIGIN, ahead: ORIGIN, behind: 0 }
    }

    /// The caller says what time it is. What it is then.
    #[inline]
    pub(super) fn pass(&mut self, time: Timestamp) -> u64 {
        let now = time.as_nanos().saturating_sub(self.behind).saturating_add(self.ahead);
        if now > self.now {
            let passed = (now - self.now).min(JUMP);
            self.now = self.now.saturating_add(passed).min(NEVER - 1);
            if passed == JUMP {
                self.set(time);
            }
        }
        self.now
    }

    #[inline]
    pub(super) const fn now(&self) -> u64 {
        self.now
    }

    /// The caller's clock was set: it is still the same time.
    pub(super) fn set(&mut self, now: Timestamp) {
        self.ahead = self.now.saturating_sub(now.as_nanos());
        self.behind = now.as_nanos().saturating_sub(self.now);
    }

    /// What the caller calls a time.
    pub(super) fn caller(&self, time: u64) -> Timestamp {
        Timestamp::from_nanos(time.saturating_sub(self.ahead).saturating_add(self.behind))
    }
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
        assert_eq!(clock.pass(Timestamp::MAX), start + 1_000_000_000 + JUMP);
        clock.set(Timestamp::ZERO);
        assert_eq!(clock.pass(Timestamp::from_nanos(1)), start + 1_000_000_001 + JUMP);
        assert_eq!(clock.caller(0), Timestamp::ZERO);
    }
}
