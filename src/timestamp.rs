//! Timestamps: nanoseconds since an origin that the caller chooses.
//!
//! The crate does not read a clock: time is an argument. It may come from packets, from a capture
//! or from the kernel, as long as each structure receives the times of one clock. Periods are
//! [`Duration`]s. All arithmetic saturates: the greatest timestamp is 584 years after the origin.

use core::ops::{Add, Sub};
use core::time::Duration;

/// A point in time: nanoseconds since an origin that the caller chooses.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::Timestamp;
///
/// let start = Timestamp::from_secs(1_700_000_000);
/// let later = start + Duration::from_millis(20);
/// assert_eq!(later.since(start), Duration::from_millis(20));
/// assert_eq!(start.since(later), Duration::ZERO);
/// // The units of kernel clocks and captures.
/// assert_eq!(Timestamp::from_nanos(1_500), Timestamp::ZERO + Duration::from_nanos(1_500));
/// assert_eq!(Timestamp::from_micros(7).as_nanos(), 7_000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Timestamp(u64);

impl Timestamp {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// The greatest timestamp, at which arithmetic saturates.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a timestamp from nanoseconds since the origin.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Creates a timestamp from microseconds since the origin.
    #[inline]
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// Creates a timestamp from milliseconds since the origin.
    #[inline]
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Creates a timestamp from seconds since the origin.
    #[inline]
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Returns the nanoseconds since the origin.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time elapsed since `earlier`, or zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Converts the time since the origin, such as `Instant::elapsed`.
impl From<Duration> for Timestamp {
    #[inline]
    fn from(since_origin: Duration) -> Self {
        Self(nanos(since_origin))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    #[inline]
    fn add(self, period: Duration) -> Self {
        Self(self.0.saturating_add(nanos(period)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    #[inline]
    fn sub(self, period: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(period)))
    }
}

/// Returns the nanoseconds of a period, saturating at `u64::MAX`.
pub(crate) fn nanos(period: Duration) -> u64 {
    u64::try_from(period.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::from_secs(u64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MAX + Duration::MAX, Timestamp::MAX);
        assert_eq!(Timestamp::from_nanos(5) - Duration::from_secs(1), Timestamp::ZERO);
        assert_eq!(Timestamp::from(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_micros(2), Timestamp::from_nanos(2_000));
        assert_eq!(Timestamp::from_millis(2), Timestamp::ZERO + Duration::from_millis(2));
    }
}
