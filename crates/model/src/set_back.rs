//! Which clock a structure with one lifetime follows, by the times that it is called with.

/// The state of the rule for times that are far from the latest one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SetBack {
    /// The last time that was late by more than a lifetime, and the latest time when it came.
    suspect: Option<(u64, u64)>,
    /// The latest time of the clock that was left, if it had gone on.
    left: Option<u64>,
}

impl SetBack {
    /// Returns the time that the latest one becomes first, with equal rests of all lives, if the
    /// caller has another clock from `time` on.
    pub(crate) fn follow(&mut self, time: u64, latest: u64, lifetime: u64) -> Option<u64> {
        let ahead = i128::from(time) - i128::from(latest);
        let (is_near, step) = near(ahead, lifetime);
        if is_near {
            self.pass(step);
            return None;
        }
        let suspect = self.suspect.take().filter(|(_, at)| *at == latest);
        if let Some(left) = self.left {
            let (is_near, step) = near(i128::from(time) - i128::from(left), lifetime);
            if is_near {
                self.left = Some(latest);
                self.pass(step);
                return Some(left);
            }
        }
        if ahead >= 0 {
            self.left = self.left.filter(|_| ahead <= 2 * i128::from(lifetime));
            self.pass(step);
            return None;
        }
        let Some(first) = suspect.map(|(first, _)| first).filter(|first| *first < time) else {
            self.suspect = Some((time, latest));
            return None;
        };
        let step = (time - first).min(2 * lifetime);
        self.left = Some(latest);
        self.pass(step);
        Some(time - step)
    }

    /// The clock that was left goes on.
    fn pass(&mut self, step: u64) {
        self.left = self.left.map(|left| left.wrapping_add(step));
    }
}

/// Whether a time so far ahead of a clock is of that clock, and the time that passes then: at most
/// two lifetimes.
fn near(ahead: i128, lifetime: u64) -> (bool, u64) {
    let lifetime = i128::from(lifetime);
    let is_near = (-lifetime..2 * lifetime).contains(&ahead);
    (is_near, ahead.clamp(0, 2 * lifetime) as u64)
}
