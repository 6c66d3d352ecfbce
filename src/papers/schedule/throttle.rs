//! The batching throttle: thresholds that bound the overhead of switching.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::timestamp::nanos;

/// Parts per million in a whole.
const MILLION: u64 = 1_000_000;

/// The allowed ratio of switching to processing time, in parts per million: T of the paper.
///
/// Paper: Qie et al., section 4.2.
///
/// # Example
///
/// ```
/// use flowtable::papers::schedule::Overhead;
///
/// let ten = Overhead::from_ppm(100_000).unwrap(); // 10 %
/// assert!((ten.efficiency() - 1.0 / 1.1).abs() < 1e-12);
/// assert_eq!(Overhead::from_ppm(0), None); // no switching, no turns
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Overhead(u32);

impl Overhead {
    /// Creates an overhead in parts per million. `None` if it is zero.
    #[must_use]
    pub const fn from_ppm(ppm: u32) -> Option<Self> {
        if ppm == 0 { None } else { Some(Self(ppm)) }
    }

    /// Returns the overhead in parts per million.
    #[must_use]
    pub const fn ppm(self) -> u32 {
        self.0
    }

    /// Returns the efficiency index `E = 1 / (1 + T)`: the fraction of the busy time that is
    /// processing.
    #[must_use]
    pub fn efficiency(self) -> f64 {
        MILLION as f64 / (MILLION + u64::from(self.0)) as f64
    }

    /// Returns the processing time that allows this switching time, in nanoseconds, rounded up.
    const fn processing_for(self, switch: u64) -> u128 {
        (switch as u128 * MILLION as u128).div_ceil(self.0 as u128)
    }
}

/// The error of [`Throttle::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThrottleError {
    /// The cost of a switch is zero.
    NoSwitch,
    /// The timeslice is too short to amortise a switch: formula 1.
    ShortSlice {
        /// The shortest sufficient timeslice.
        needed: Duration,
    },
}

impl fmt::Display for ThrottleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSwitch => f.write_str("a throttle needs a switching cost above zero"),
            Self::ShortSlice { needed } => {
                write!(f, "a timeslice below {needed:?} does not amortise a switch")
            }
        }
    }
}

impl Error for ThrottleError {}

/// The batching throttle: a thread gets no turn before enough work waits to amortise the switch.
///
/// With a switch of `Csw`, an overhead of `T` and a cost per packet of `Cpp`, a thread must wait
/// for `B = ceil(Csw / (T * Cpp))` packets, unless its timeout expires before; then it runs until
/// its timeslice `G` is used or no work is left. `G >= Csw / T` is required (the paper's formula
/// 1).
///
/// Due to the ceiling, `B` packets may exceed `G` by one packet: the timeslice is checked after
/// each packet.
///
/// A threshold is capped at half of the slots of the thread's queues, or all of them where no other
/// thread waits at their other ends, so that a small queue costs efficiency and not packets: see
/// [`ThreadConfig::buffers`](super::ThreadConfig::buffers).
/// [Strict](Self::with_strict_thresholds) thresholds are not capped: a thread with fewer slots than
/// its threshold then runs only by its timeout, and never without one.
///
/// The formula also gives the size of a batch of lookups: 40 ns per batch, 25 ns per lookup, 10 %:
/// 16.
///
/// Paper: Qie et al., section 4.2 and equation 1.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::papers::schedule::{Overhead, Throttle, ThrottleError};
///
/// let us = Duration::from_micros;
/// let ten = Overhead::from_ppm(100_000).unwrap();
/// let throttle = Throttle::new(us(3), ten, us(30))?;
/// assert_eq!([1, 3, 10].map(|cost| throttle.threshold(us(cost), 128)), [30, 10, 3]);
/// assert_eq!(throttle.threshold(us(1), 16), 16); // at most the buffers
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
    /// Creates a throttle with the cost of a switch, the allowed overhead, and the timeslice.
    ///
    /// # Errors
    ///
    /// If the cost of a switch is zero, or the timeslice is shorter than `switch / overhead`.
    pub fn new(
        switch: Duration,
        overhead: Overhead,
        slice: Duration,
    ) -> Result<Self, ThrottleError> {
        let (switch, slice) = (nanos(switch), nanos(slice));
        if switch == 0 {
            return Err(ThrottleError::NoSwitch);
        }
        let needed = overhead.processing_for(switch);
        if u128::from(slice) < needed {
            let needed = Duration::from_nanos(u64::try_from(needed).unwrap_or(u64::MAX));
            return Err(ThrottleError::ShortSlice { needed });
        }
        Ok(Self { switch, overhead, slice, is_strict: false })
    }

    /// Disables the cap of thresholds: they follow the formula, even where a queue is too small.
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::papers::schedule::{Overhead, Throttle, ThrottleError};
    ///
    /// let us = Duration::from_micros;
    /// let throttle = Throttle::new(us(3), Overhead::from_ppm(100_000).unwrap(), us(30))?;
    /// assert_eq!(throttle.threshold(us(1), 16), 16);
    /// let strict = throttle.with_strict_thresholds();
    /// assert_eq!(strict.threshold(us(1), 16), 30);
    /// # Ok::<(), ThrottleError>(())
    /// ```
    #[must_use]
    pub const fn with_strict_thresholds(self) -> Self {
        Self { is_strict: true, ..self }
    }

    /// Enables the cap of thresholds.
    pub(super) const fn with_capped_thresholds(self) -> Self {
        Self { is_strict: false, ..self }
    }

    /// Sets the shortest timeslice that amortises a switch.
    pub(super) fn with_shortest_slice(self) -> Self {
        // At most the present timeslice, so it fits.
        let slice = self.overhead.processing_for(self.switch) as u64;
        Self { slice, ..self }
    }

    /// Returns the allowed overhead.
    #[must_use]
    pub const fn overhead(&self) -> Overhead {
        self.overhead
    }

    /// Returns the timeslice.
    #[must_use]
    pub const fn slice(&self) -> Duration {
        Duration::from_nanos(self.slice)
    }

    /// Returns the number of packets that a thread must wait for, given the cost per packet and the
    /// number of packets that it may wait for. At least one.
    #[must_use]
    pub fn threshold(&self, cost: Duration, buffers: u32) -> u32 {
        let threshold = threshold(self.switch, self.overhead, nanos(cost));
        let threshold = if self.is_strict { threshold } else { threshold.min(buffers) };
        threshold.max(1)
    }
}

/// Returns `ceil(switch / (overhead * cost))`, saturated.
fn threshold(switch: u64, overhead: Overhead, cost: u64) -> u32 {
    let packets = u128::from(switch) * u128::from(MILLION);
    let packets = packets.div_ceil(u128::from(overhead.0) * u128::from(cost.max(1)));
    u32::try_from(packets).unwrap_or(u32::MAX)
}
