//! When a structure with one lifetime takes late times for a clock that was set back.

/// The last time that was late by more than a lifetime, and the latest time when it came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SetBack(Option<(u64, u64)>);

impl SetBack {
    /// Returns whether the clock of the caller was set back to this time.
    pub(crate) fn is_confirmed(&mut self, time: u64, latest: u64, lifetime: u64) -> bool {
        if latest.saturating_sub(time) <= lifetime {
            return false;
        }
        let expected = self.0.take().filter(|(_, at)| *at == latest).map(|(first, _)| first);
        let is_confirmed = expected.is_some_and(|first| (first..=first + lifetime).contains(&time));
        if !is_confirmed {
            self.0 = Some((time, latest));
        }
        is_confirmed
    }
}
