//! When to poll a network card again.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::timestamp::nanos;

/// Parts of a packet in which averages are kept.
const FRACTION: u32 = 16;

/// Why an estimator is not made, or not so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EstimatorError {
    /// Polls read so few packets that there is no range between too few and too many.
    SmallBatch,
    /// The range is empty, or an average cannot be below or above it.
    Range,
    /// The weight of a poll would be less than 2⁻¹⁶.
    Gain,
    /// A step of nothing, or longer than the longest sleep.
    Step,
}

impl fmt::Display for EstimatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SmallBatch => "a poll has to be able to read four packets",
            Self::Range => "a range begins at one at least, and ends below what a poll can read",
            Self::Gain => "a poll has to have a weight of 2^-16 at least",
            Self::Step => "a step has to be longer than nothing, and not than the longest sleep",
        })
    }
}

impl Error for EstimatorError {}

/// The longest sleep after which a card with so many buffers has lost nothing at this rate. The end of time if no
/// packets come.
///
/// # Example
///
/// ```
/// use flowtable::schedule::longest_sleep;
///
/// assert_eq!(longest_sleep(64, 148_800).as_micros(), 430);
/// ```
#[must_use]
pub fn longest_sleep(buffers: u32, packets_per_second: u64) -> Duration {
    let nanos = (u64::from(buffers) * 1_000_000_000).checked_div(packets_per_second);
    Duration::from_nanos(nanos.unwrap_or(u64::MAX))
}

/// Lets an input thread sleep for as long as few packets come, so that it does not poll an idle port.
///
/// It keeps a moving average of the packets that a poll reads, and keeps that in a range: below it, sleeps become twice
/// as long, and above it half as long. A port that is busy is not slept for at all.
///
/// The paper has no numbers. Ours: a poll weighs 1/8, the range is a quarter to three quarters of a batch, sleeps begin
/// with a 64th of the longest and below that they are none. The [longest](longest_sleep) is the time in which the
/// card's buffers fill: then nothing is lost by sleeping.
///
/// All in integers, O(1), no memory but its own.
///
/// Paper: Qie et al., the input queue estimator.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::schedule::{QueueEstimator, longest_sleep};
///
/// let longest = longest_sleep(64, 148_800);
/// let mut port = QueueEstimator::new(16, longest)?;
/// // Nothing comes: it sleeps for longer and longer.
/// let sleeps: Vec<Duration> = (0..16).map(|_| port.polled(0)).collect();
/// assert!(sleeps.is_sorted() && sleeps[15] == longest);
/// // Full batches: soon it does not sleep at all.
/// let polls = (0..).find(|_| port.polled(16).is_zero()).unwrap();
/// assert!(polls < 24);
/// # Ok::<(), flowtable::schedule::EstimatorError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueEstimator {
    batch: u32,
    gain_shift: u32,
    low: u32,
    high: u32,
    step: u64,
    longest: u64,
    /// Packets in 2⁻¹⁶.
    average: u64,
    sleep: u64,
}

impl QueueEstimator {
    /// For polls of so many packets at most, and sleeps of so long at most.
    ///
    /// # Errors
    ///
    /// If a batch is less than four packets, or the longest sleep is zero.
    pub fn new(batch: u32, longest: Duration) -> Result<Self, EstimatorError> {
        if batch < 4 {
            return Err(EstimatorError::SmallBatch);
        }
        if longest.is_zero() {
            return Err(EstimatorError::Step);
        }
        let longest = nanos(longest);
        let (low, high) = (batch / 4, batch - batch / 4);
        let step = (longest / 64).max(1);
        // In the middle of the range: it neither sleeps nor hurries before it knows.
        let average = u64::from(batch) << FRACTION >> 1;
        Ok(Self { batch, gain_shift: 3, low, high, step, longest, average, sleep: 0 })
    }

    /// With polls that weigh 2 to the power of minus this: 3 is 1/8.
    ///
    /// # Errors
    ///
    /// If it is above 16.
    pub const fn with_gain_shift(self, gain_shift: u32) -> Result<Self, EstimatorError> {
        if gain_shift > FRACTION {
            return Err(EstimatorError::Gain);
        }
        Ok(Self { gain_shift, ..self })
    }

    /// With another range in which polls are wanted: sleeps get longer below `low` and shorter above `high`.
    ///
    /// # Errors
    ///
    /// If `low` is zero or above `high`, or `high` is not below the batch: no average would be outside.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::schedule::{EstimatorError, QueueEstimator};
    ///
    /// let us = Duration::from_micros;
    /// // A poll weighs a half, 2 to 8 packets are wanted of each, and sleeps begin with 10 µs.
    /// let port = QueueEstimator::new(16, us(400))?;
    /// let mut port = port.with_gain_shift(1)?.with_range(2, 8)?.with_step(us(10))?;
    /// assert_eq!([0; 10].map(|packets| port.polled(packets)).last(), Some(&us(400)));
    /// assert!(port.sleep() == us(400) && port.average() < 0.1);
    /// assert_eq!(port.with_range(0, 8), Err(EstimatorError::Range));
    /// # Ok::<(), EstimatorError>(())
    /// ```
    pub const fn with_range(self, low: u32, high: u32) -> Result<Self, EstimatorError> {
        if low == 0 || low > high || high >= self.batch {
            return Err(EstimatorError::Range);
        }
        Ok(Self { low, high, ..self })
    }

    /// With another shortest sleep.
    ///
    /// # Errors
    ///
    /// If it is zero, or above the longest.
    pub fn with_step(self, step: Duration) -> Result<Self, EstimatorError> {
        let step = nanos(step);
        if step == 0 || step > self.longest {
            return Err(EstimatorError::Step);
        }
        Ok(Self { step, ..self })
    }

    /// A poll has read so many packets, as many as a batch at most. Returns how long to sleep before the next one.
    pub fn polled(&mut self, packets: u32) -> Duration {
        let packets = u64::from(packets.min(self.batch)) << FRACTION;
        // Each part rounds down, so that the average reaches zero.
        self.average = self.average - self.average.div_ceil(1 << self.gain_shift)
            + (packets >> self.gain_shift);
        if self.average < u64::from(self.low) << FRACTION {
            self.sleep = self.sleep.saturating_mul(2).clamp(self.step, self.longest);
        } else if self.average > u64::from(self.high) << FRACTION {
            let half = self.sleep / 2;
            self.sleep = if half < self.step { 0 } else { half };
        }
        self.sleep()
    }

    /// How long to sleep.
    #[must_use]
    pub const fn sleep(&self) -> Duration {
        Duration::from_nanos(self.sleep)
    }

    /// The moving average of the packets that a poll reads.
    #[must_use]
    pub fn average(&self) -> f64 {
        self.average as f64 / f64::from(1 << FRACTION)
    }
}
