//! The batching throttle: how much switching is allowed, and what follows.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::timestamp::nanos;

/// Parts in a whole.
const MILLION: u64 = 1_000_000;

/// The time for switching that is allowed, as a part of the time for processing: T of the paper. In parts per million.
///
/// # Example
///
/// ```
/// use flowtable::schedule::Overhead;
///
/// let ten = Overhead::from_percent(10).unwrap();
/// assert_eq!(ten, Overhead::from_ppm(100_000).unwrap());
/// assert!((ten.efficiency() - 1.0 / 1.1).abs() < 1e-12);
/// assert_eq!(Overhead::from_ppm(0), None); // no switching, no turns
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Overhead(u32);

impl Overhead {
    /// `None` if it is zero.
    #[must_use]
    pub const fn from_ppm(ppm: u32) -> Option<Self> {
        if ppm == 0 { None } else { Some(Self(ppm)) }
    }

    /// `None` if it is zero, or above 429,496 %.
    #[must_use]
    pub const fn from_percent(percent: u32) -> Option<Self> {
        match percent.checked_mul(10_000) {
            Some(ppm) => Self::from_ppm(ppm),
            None => None,
        }
    }

    /// Parts per million.
    #[must_use]
    pub const fn ppm(self) -> u32 {
        self.0
    }

    /// The part of the busy time that goes to processing: the efficiency index `E = 1 / (1 + T)`.
    #[must_use]
    pub fn efficiency(self) -> f64 {
        MILLION as f64 / (MILLION + u64::from(self.0)) as f64
    }

    /// The processing that makes up for so much switching, in nanoseconds, rounded up.
    const fn pays_for(self, switch: u64) -> u128 {
        (switch as u128 * MILLION as u128).div_ceil(self.0 as u128)
    }
}

/// Why there is no such throttle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThrottleError {
    /// A switch costs nothing, so there is nothing to spare.
    NoSwitch,
    /// The timeslice is too short to make up for a switch: formula 1.
    ShortSlice {
        /// The shortest that would do.
        needed: Duration,
    },
}

impl fmt::Display for ThrottleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSwitch => f.write_str("a switch that costs nothing needs no throttle"),
            Self::ShortSlice { needed } => {
                write!(f, "a timeslice below {needed:?} does not make up for a switch")
            }
        }
    }
}

impl Error for ThrottleError {}

/// The batching throttle: nobody has a turn before enough work waits for him to make up for the switch.
///
/// With a switch of `Csw`, an overhead of `T` and packets that cost `Cpp`, a thread has to wait for
/// `B = ceil(Csw / (T * Cpp))` packets, unless its timeout comes before; then it runs until its timeslice `G` is used
/// or nothing is left. `G >= Csw / T` (the paper's formula 1), or there is no such throttle.
///
/// With the ceiling, `B` packets may take longer than `G` by one packet: a slice is asked after each packet.
///
/// A threshold is capped at half of the places of the thread's queues, or all of them where no other thread waits at
/// their other ends, so that a small queue costs efficiency and not packets: see
/// [`ThreadConfig::with_buffers`](super::ThreadConfig::with_buffers).
/// [Strict](Self::with_strict_thresholds) ones are not: a thread with fewer places than its threshold then only runs by
/// its timeout, and never without one.
///
/// The same arithmetic says how large a batch of look-ups has to be: 40 ns for a batch, 25 ns for a
/// look-up, 10 %: 16.
///
/// Paper: Qie et al., the batching throttle.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::schedule::{Overhead, Throttle, ThrottleError};
///
/// let us = Duration::from_micros;
/// let ten = Overhead::from_percent(10).unwrap();
/// let throttle = Throttle::new(us(3), ten, us(30))?;
/// assert_eq!([1, 3, 10].map(|cost| throttle.threshold(us(cost), 128)), [30, 10, 3]);
/// assert_eq!(throttle.threshold(us(1), 16), 16); // never more than there is room for
///
/// let error = Throttle::new(us(3), ten, us(29)).unwrap_err();
/// assert_eq!(error, ThrottleError::ShortSlice { needed: us(30) });
/// # Ok::<(), ThrottleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    switch: u64,
    overhead: Overhead,
    slice: u64,
    is_strict: bool,
}

impl Throttle {
    /// Of the cost of a switch, the overhead that is allowed, and the timeslice.
    ///
    /// # Errors
    ///
    /// If a switch costs nothing, or the slice is shorter than `switch / overhead`.
    pub fn new(
        switch: Duration,
        overhead: Overhead,
        slice: Duration,
    ) -> Result<Self, ThrottleError> {
        let (switch, slice) = (nanos(switch), nanos(slice));
        if switch == 0 {
            return Err(ThrottleError::NoSwitch);
        }
        let needed = overhead.pays_for(switch);
        if u128::from(slice) < needed {
            let needed = Duration::from_nanos(u64::try_from(needed).unwrap_or(u64::MAX));
            return Err(ThrottleError::ShortSlice { needed });
        }
        Ok(Self { switch, overhead, slice, is_strict: false })
    }

    /// With thresholds as the formula has them, also where a queue is too small for them.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::schedule::{Overhead, Throttle, ThrottleError};
    ///
    /// let us = Duration::from_micros;
    /// let throttle = Throttle::new(us(3), Overhead::from_percent(10).unwrap(), us(30))?;
    /// assert_eq!(throttle.threshold(us(1), 16), 16);
    /// let strict = throttle.with_strict_thresholds();
    /// assert_eq!((strict.threshold(us(1), 16), strict.switch()), (30, us(3)));
    /// # Ok::<(), ThrottleError>(())
    /// ```
    #[must_use]
    pub const fn with_strict_thresholds(self) -> Self {
        Self { is_strict: true, ..self }
    }

    /// With thresholds that no queue is too small for.
    pub(super) const fn with_capped_thresholds(self) -> Self {
        Self { is_strict: false, ..self }
    }

    /// With the shortest timeslice that makes up for a switch.
    pub(super) fn with_shortest_slice(self) -> Self {
        // It is not longer than the slice that the throttle has.
        let slice = self.overhead.pays_for(self.switch) as u64;
        Self { slice, ..self }
    }

    /// The cost of a switch.
    #[must_use]
    pub const fn switch(&self) -> Duration {
        Duration::from_nanos(self.switch)
    }

    /// The overhead that is allowed.
    #[must_use]
    pub const fn overhead(&self) -> Overhead {
        self.overhead
    }

    /// The timeslice.
    #[must_use]
    pub const fn slice(&self) -> Duration {
        Duration::from_nanos(self.slice)
    }

    /// How many packets a thread has to wait for if each costs so much and it may wait for so many. At least one.
    #[must_use]
    pub fn threshold(&self, cost: Duration, buffers: u32) -> u32 {
        let threshold = threshold(self.switch, self.overhead, nanos(cost));
        let threshold = if self.is_strict { threshold } else { threshold.min(buffers) };
        threshold.max(1)
    }
}

/// `ceil(switch / (overhead * cost))`, as far as there are numbers.
fn threshold(switch: u64, overhead: Overhead, cost: u64) -> u32 {
    let packets = u128::from(switch) * u128::from(MILLION);
    let packets = packets.div_ceil(u128::from(overhead.0) * u128::from(cost.max(1)));
    u32::try_from(packets).unwrap_or(u32::MAX)
}
