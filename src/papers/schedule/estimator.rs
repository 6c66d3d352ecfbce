//! The polling interval of a network card.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::timestamp::nanos;

/// Fractional bits of the average number of packets.
const FRACTION: u32 = 16;
/// The weight of a poll is 2⁻³.
const GAIN: u32 = 3;

/// The error of an invalid configuration of [`QueueEstimator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EstimatorError {
    /// The batch is less than four packets, so there is no range between too few and too many.
    SmallBatch,
    /// The range is empty, or no average can be below or above it.
    Range,
    /// The longest sleep is zero.
    Sleep,
}

impl fmt::Display for EstimatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SmallBatch => "a batch must be at least four packets",
            Self::Range => "the range must begin at one or above, and end below the batch",
            Self::Sleep => "the longest sleep must be above zero",
        })
    }
}

impl Error for EstimatorError {}

/// Returns the longest sleep in which a card with this number of buffers loses no packet at this
/// rate. Maximal if the rate is zero.
///
/// # Example
///
/// ```
/// use flowtable::papers::schedule::longest_sleep;
///
/// assert_eq!(longest_sleep(64, 148_800).as_micros(), 430);
/// ```
#[must_use]
pub fn longest_sleep(buffers: u32, packets_per_second: u64) -> Duration {
    let nanos = (u64::from(buffers) * 1_000_000_000).checked_div(packets_per_second);
    Duration::from_nanos(nanos.unwrap_or(u64::MAX))
}

/// An estimator of the time that an input thread can sleep between polls, so that idle ports cost
/// nothing.
///
/// It maintains a moving average of the packets per poll, and steers it into a range: below the
/// range it doubles the sleep, above it halves the sleep. At a busy port the sleep becomes zero.
///
/// The paper gives no constants. Ours: a poll has a weight of 1/8, the range is a quarter to three
/// quarters of a batch, the shortest sleep is 1/64 of the longest, and below that it is zero. The
/// [longest](longest_sleep) is the time in which the card's buffers fill: sleeping loses no
/// packets.
///
/// Integer arithmetic, O(1), no allocation.
///
/// Paper: Qie et al., section 3.2.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::schedule::{QueueEstimator, longest_sleep};
///
/// let longest = longest_sleep(64, 148_800);
/// let mut port = QueueEstimator::new(16, longest)?;
/// // No packets: the sleep grows.
/// let sleeps: Vec<Duration> = (0..16).map(|_| port.polled(0)).collect();
/// assert!(sleeps.is_sorted() && sleeps[15] == longest);
/// // Full batches: the sleep soon becomes zero.
/// let polls = (0..).find(|_| port.polled(16).is_zero()).unwrap();
/// assert!(polls < 24);
/// # Ok::<(), flowtable::papers::schedule::EstimatorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueEstimator {
    batch: u32,
    low: u32,
    high: u32,
    /// The number of packets that a poll should read at least: the range begins there or above.
    least: u32,
    step: u64,
    longest: u64,
    /// The moving average of packets per poll, in units of 2⁻¹⁶.
    average: u64,
    sleep: u64,
}

impl QueueEstimator {
    /// Creates an estimator with the maximum number of packets per poll, and the longest sleep.
    ///
    /// # Errors
    ///
    /// If the batch is less than four packets, or the longest sleep is zero.
    pub fn new(batch: u32, longest: Duration) -> Result<Self, EstimatorError> {
        if batch < 4 {
            return Err(EstimatorError::SmallBatch);
        }
        if longest.is_zero() {
            return Err(EstimatorError::Sleep);
        }
        let longest = nanos(longest);
        let (low, high) = (batch / 4, batch - batch / 4);
        let step = (longest / 64).max(1);
        // The middle of the range: no sleep and no change before the first polls.
        let average = u64::from(batch) << FRACTION >> 1;
        Ok(Self { batch, low, high, least: 1, step, longest, average, sleep: 0 })
    }

    /// Sets the target range of packets per poll: the sleep grows below `low` and shrinks above
    /// `high`.
    ///
    /// # Errors
    ///
    /// If `low` is zero or above `high`, or `high` is not below the batch, so that no average is
    /// outside.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::papers::schedule::{EstimatorError, QueueEstimator};
    ///
    /// let us = Duration::from_micros;
    /// let mut port = QueueEstimator::new(16, us(400))?.with_range(2, 8)?;
    /// assert_eq!([0; 20].map(|packets| port.polled(packets)).last(), Some(&us(400)));
    /// assert!(port.sleep() == us(400) && port.average() < 1.0);
    /// assert_eq!(port.with_range(0, 8), Err(EstimatorError::Range));
    /// # Ok::<(), EstimatorError>(())
    /// ```
    pub const fn with_range(self, low: u32, high: u32) -> Result<Self, EstimatorError> {
        if low == 0 || low > high || high >= self.batch {
            return Err(EstimatorError::Range);
        }
        Ok(Self { low, high, ..self })
    }

    /// Sets the number of packets that a poll should read at least: the threshold `B_i` of the
    /// thread, at most one less than a batch. The range begins there, or above.
    ///
    /// Paper: Qie et al., section 4.2.
    pub(super) fn set_least(&mut self, packets: u32) {
        self.least = packets.min(self.batch - 1);
    }

    /// Records the number of packets of a poll, at most a batch. Returns the time to sleep before
    /// the next one.
    pub fn polled(&mut self, packets: u32) -> Duration {
        let packets = u64::from(packets.min(self.batch)) << FRACTION;
        // Each term rounds down, so that the average can reach zero.
        self.average = self.average - self.average.div_ceil(1 << GAIN) + (packets >> GAIN);
        let [low, high] = [self.low, self.high].map(|end| u64::from(end.max(self.least)));
        if self.average < low << FRACTION {
            self.sleep = self.sleep.saturating_mul(2).clamp(self.step, self.longest);
        } else if self.average > high << FRACTION {
            let half = self.sleep / 2;
            self.sleep = if half < self.step { 0 } else { half };
        }
        self.sleep()
    }

    /// Returns the time to sleep.
    #[must_use]
    pub const fn sleep(&self) -> Duration {
        Duration::from_nanos(self.sleep)
    }

    /// Returns the moving average of packets per poll.
    #[must_use]
    pub fn average(&self) -> f64 {
        self.average as f64 / f64::from(1 << FRACTION)
    }
}
