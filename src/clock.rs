//! A clock for state with one lifetime, which one wrong time does not stop.
//!
//! ```text
//!     times of the caller    10  11  12  900 │ 13  14  15             900: one wrong time
//!     time of the structure  10  11  12   32 │ 32  33  34             a lifetime is 10
//!                                       ▲      ▲   ▲
//!                   a bounded step: all expires    a later time confirms that the clock
//!                                              │   was set back: time goes on from there
//!                                              └── counts as the latest time
//! ```
//!
//! - A step is at most two lifetimes: all state has expired then, whatever comes after it.
//! - A time that is late by a lifetime or less counts as the latest one: packets out of order.
//! - A time that is late by more is suspect, and counts as the latest one, too. If the next time is
//!   later than the suspect one, and still late, the clock of the caller was set back. Equal times
//!   do not confirm each other: two calls for one packet have the same time.
//! - The clock that was left by a set-back goes on in the background, until a longer silence. A
//!   time that meets it, in a capture with two clocks, is a return to that clock, and no step.
//! - The time of the structure has an end, after 292 years or after as much by wrong times: there
//!   the structure [restarts](Clock::restart) the clock, so no time wraps around.

use core::num::NonZeroU64;

/// The longest lifetime in ticks: 146 years of nanoseconds.
pub(crate) const MAX_LIFETIME: u64 = END / 2 - 1;

/// From this time of the clock on, it is to be restarted. A step and a lifetime later are still in
/// the range of 64 bits.
const END: u64 = 1 << 63;

/// Time in ticks that never decreases between restarts, by the times of a caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Begins at 1: 0 is not the time of any expiry.
    now: u64,
    /// The time of the clock less the time of the caller, modulo 2^64.
    offset: u64,
    lifetime: u64,
    /// A time of the caller that is late by more than a lifetime, and the time of the clock when it
    /// came.
    suspect: Option<(u64, u64)>,
    /// The offset to the clock of the caller that the last set-back has left.
    left: Option<u64>,
}

impl Clock {
    /// Creates a clock for state with this lifetime in ticks, up to [`MAX_LIFETIME`].
    pub(crate) const fn new(lifetime: u64) -> Self {
        Self { now: 1, offset: 1, lifetime, suspect: None, left: None }
    }

    /// Returns the time of the clock.
    #[inline]
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// Returns the lifetime of the state.
    pub(crate) const fn lifetime(&self) -> u64 {
        self.lifetime
    }

    /// Returns when state expires that is written now.
    #[inline]
    pub(crate) const fn expiry(&self) -> NonZeroU64 {
        // The time is at least 1.
        match NonZeroU64::new(self.now + self.lifetime) {
            Some(time) => time,
            None => NonZeroU64::MIN,
        }
    }

    /// Returns the ticks from the time of the clock to a time of the caller; 0 if that is earlier.
    #[inline]
    pub(crate) const fn elapsed(&self, time: u64) -> u64 {
        time.saturating_sub(self.latest())
    }

    /// Returns the latest time of the caller.
    #[inline]
    const fn latest(&self) -> u64 {
        self.now.wrapping_sub(self.offset)
    }

    /// Returns the ticks by which the clock is to [advance](Self::advance) for a time of the
    /// caller, and follows a change of the caller's clock.
    #[inline]
    pub(crate) fn follow(&mut self, time: u64) -> u64 {
        match time.checked_sub(self.latest()) {
            Some(elapsed) if elapsed < 2 * self.lifetime => elapsed,
            _ => self.follow_far(time),
        }
    }

    #[cold]
    #[inline(never)]
    fn follow_far(&mut self, time: u64) -> u64 {
        let (latest, most) = (self.latest(), 2 * self.lifetime);
        if time < latest && latest - time <= self.lifetime {
            return 0;
        }
        let suspect = self.suspect.take();
        if let Some(step) = self.return_to_left(time) {
            return step;
        }
        if time >= latest {
            if time - latest > most {
                // Less time passes for the clock that was left than for its caller.
                self.left = None;
            }
            return self.set_after((time - latest).min(most), time);
        }
        match suspect {
            Some((suspect, now)) if now == self.now && time > suspect => {
                self.left = Some(self.offset);
                self.set_after((time - suspect).min(most), time)
            }
            _ => {
                self.suspect = Some((time, self.now));
                0
            }
        }
    }

    /// Returns to the clock that was left if `time` is near its time, and returns the step.
    fn return_to_left(&mut self, time: u64) -> Option<u64> {
        let left = self.left?;
        let latest = self.now.wrapping_sub(left);
        let step = match time.checked_sub(latest) {
            Some(step) if step < 2 * self.lifetime => step,
            None if latest - time <= self.lifetime => 0,
            _ => return None,
        };
        self.left = Some(self.offset);
        self.offset = left;
        Some(step)
    }

    /// Sets the caller's time to `time` at `step` from now, and returns the step.
    const fn set_after(&mut self, step: u64, time: u64) -> u64 {
        self.offset = self.now.wrapping_add(step).wrapping_sub(time);
        step
    }

    /// Advances, after [`follow`](Self::follow). Returns whether the clock is at its end: then it
    /// is to be [restarted](Self::restart) before it is used again.
    #[inline]
    pub(crate) fn advance(&mut self, elapsed: u64) -> bool {
        self.now += elapsed;
        self.now >= END
    }

    /// Restarts at 1, at the same time of the caller. Returns by how much the time has decreased.
    pub(crate) const fn restart(&mut self) -> u64 {
        let before = self.now - 1;
        self.now = 1;
        self.offset = self.offset.wrapping_sub(before);
        self.suspect = None;
        if let Some(left) = self.left {
            self.left = Some(left.wrapping_sub(before));
        }
        before
    }

    /// Follows a change of the caller's clock: `time` is the present time.
    pub(crate) const fn set(&mut self, time: u64) {
        self.set_after(0, time);
        self.suspect = None;
        self.left = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(clock: &mut Clock, time: u64) -> u64 {
        let elapsed = clock.follow(time);
        assert!(!clock.advance(elapsed));
        clock.now() - 1
    }

    #[test]
    fn one_wrong_time_does_not_stop_the_clock() {
        let mut clock = Clock::new(10);
        let times = [10, 11, 12, 900, 13, 14, 15].map(|time| at(&mut clock, time));
        assert_eq!(times, [10, 11, 12, 32, 32, 33, 34]);
        // One early time has no effect, though two calls have it, nor have several that are out of
        // order by a lifetime.
        assert_eq!(
            [3, 3, 16, 2, 2, 17, 8, 8, 18].map(|time| at(&mut clock, time)),
            [34, 34, 35, 35, 35, 36, 36, 36, 37]
        );
        clock.set(7);
        assert_eq!([7, 8].map(|time| at(&mut clock, time)), [37, 38]);
        assert_eq!((clock.elapsed(18), clock.elapsed(1)), (10, 0));
    }

    #[test]
    fn a_wrong_time_is_left_however_rare_the_times_are() {
        let mut clock = Clock::new(10);
        // Each time expires all state before it, as without the wrong time.
        assert_eq!([5, 900].map(|time| at(&mut clock, time)), [5, 25]);
        assert_eq!([72, 144, 216, 221].map(|time| at(&mut clock, time)), [25, 45, 65, 70]);
        // The wrong clock is not met again by steps that are cut.
        let mut clock = Clock::new(10);
        _ = [5, 900, 40, 75].map(|time| at(&mut clock, time));
        let mut before = clock.now();
        for time in (110..5000).step_by(35) {
            _ = at(&mut clock, time);
            assert_eq!(clock.now() - before, 20, "{time}");
            before = clock.now();
        }
    }

    #[test]
    fn two_clocks_in_turns_are_followed() {
        let mut clock = Clock::new(10);
        assert_eq!([500, 501].map(|time| at(&mut clock, time)), [20, 21]);
        assert_eq!([100, 101, 102].map(|time| at(&mut clock, time)), [21, 22, 23]);
        assert_eq!([503, 504].map(|time| at(&mut clock, time)), [23, 24]);
        assert_eq!([103, 104, 498, 510].map(|time| at(&mut clock, time)), [24, 25, 25, 30]);
        // A third clock is a jump.
        assert_eq!([900, 901].map(|time| at(&mut clock, time)), [50, 51]);
    }

    #[test]
    fn time_does_not_decrease_at_the_ends_of_its_range() {
        let lifetime = MAX_LIFETIME;
        let mut clock = Clock::new(lifetime);
        let (mut before, mut restarts) = (1, 0);
        for time in [0, u64::MAX, 0, 0, 5, u64::MAX, 1, 1, lifetime, u64::MAX - 1] {
            let step = clock.follow(time);
            assert!(step <= 2 * lifetime && clock.elapsed(time) == step);
            let is_at_end = clock.advance(step);
            before += step;
            assert_eq!((clock.now(), clock.elapsed(time)), (before, 0));
            assert!(clock.expiry().get() == before + lifetime && is_at_end == (before >> 63 == 1));
            if is_at_end {
                assert_eq!((clock.restart(), clock.now(), clock.elapsed(time)), (before - 1, 1, 0));
                (before, restarts) = (1, restarts + 1);
            }
        }
        // At 5, and at a lifetime: each time after a step of two lifetimes.
        assert_eq!(restarts, 2);
    }
}
