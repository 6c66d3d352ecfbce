//! Time is an argument: a moment, counted in nanoseconds from wherever the caller counts.
//!
//! The crate has no clock. Packets come with a time, captures have theirs inside, a kernel has its
//! own: all it takes is that one structure is given the times of one clock. Periods are
//! [`Duration`]s. All arithmetic saturates: the end of time is 584 years after the origin.

use core::ops::{Add, Sub};
use core::time::Duration;

/// A moment: nanoseconds since an origin of the caller's choice.
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
/// // As clocks of the kernel and captures have it.
/// assert_eq!(Timestamp::from_nanos(1_500), Timestamp::ZERO + Duration::from_nanos(1_500));
/// assert_eq!(Timestamp::from_micros(7).as_nanos(), 7_000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Timestamp(u64);

impl Timestamp {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// The end of time.
    pub const MAX: Self = Self(u64::MAX);

    /// So many nanoseconds after the origin.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// So many microseconds after the origin.
    #[inline]
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// So many milliseconds after the origin.
    #[inline]
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// So many seconds after the origin.
    #[inline]
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the origin.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time that has passed since `earlier`: none if that is not earlier.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// As many nanoseconds after the origin as the period has: what an `Instant` says has `elapsed`.
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

/// The nanoseconds of a period, as many as there can be.
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
