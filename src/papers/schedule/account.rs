//! The time of processing and switching.

use core::time::Duration;

/// The accounting of a scheduler: time spent since its creation.
///
/// Paper: Qie et al., section 4.1: the efficiency index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Account {
    /// The time that threads spent on packets.
    pub processing: Duration,
    /// The time of switches, one for each turn.
    pub switching: Duration,
    /// The number of finished turns.
    pub turns: u64,
}

impl Account {
    /// Returns the efficiency index: the fraction of the busy time that was processing. `None`
    /// before the first turn.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::Timestamp;
    /// use flowtable::papers::schedule::share::{Order, ProportionalShare};
    /// use flowtable::papers::schedule::{Budget, Occupancy, Policy, Scheduler, ThreadConfig};
    ///
    /// let (us, now) = (Duration::from_micros, Timestamp::ZERO);
    /// let shares = ProportionalShare::new(1, 100, Order::Wf2qPlus)?;
    /// let mut scheduler = Scheduler::new(shares, us(3), Policy::Budget(Budget::packets(16)))?;
    /// let thread = scheduler.add(ThreadConfig::new(50, us(9)))?;
    /// assert_eq!(scheduler.account().efficiency(), None);
    /// scheduler.set_occupancy(thread, Occupancy::queued(1), now)?;
    /// let turn = scheduler.next(now).unwrap();
    /// scheduler.finish(turn, us(9), Occupancy::queued(0), now + us(12))?;
    /// assert_eq!(scheduler.account().efficiency(), Some(9.0 / 12.0));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn efficiency(&self) -> Option<f64> {
        let busy = self.processing.saturating_add(self.switching);
        (!busy.is_zero()).then(|| self.processing.as_nanos() as f64 / busy.as_nanos() as f64)
    }
}
