//! Timeouts by protocol and class.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::flow_cache::packet::properties::Protocol;
use crate::flow_cache::packet::state::{Class, SECOND};

/// Timeouts of flows: idle timeouts by protocol and class, and the active timeout.
///
/// With the feature `serde`, a table such as
/// `{"idle": {"Udp": {"unreplied": {"secs": 10, "nanos": 0}}}, "active": null}` is deserialized:
/// an absent timeout gets its value from [`CONNTRACK`](Self::CONNTRACK), and `null` is no timeout.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::flow_cache::{Class, Protocol, Timeouts};
///
/// let timeouts = Timeouts::CONNTRACK
///     .with_idle(Protocol::Udp, Class::Unreplied, Duration::from_secs(10))?
///     .with_active(Duration::from_secs(300))?;
/// assert_eq!(timeouts.idle(Protocol::Udp, Class::Unreplied), Some(Duration::from_secs(10)));
/// assert!(timeouts.with_active(Duration::ZERO).is_err());
/// assert_eq!(timeouts.with_active(None)?.active(), None);
/// # Ok::<(), flowtable::flow_cache::TimeoutError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "crate::flow_cache::serial::UncheckedTimeouts"),
    serde(into = "crate::flow_cache::serial::UncheckedTimeouts")
)]
pub struct Timeouts {
    /// Nanoseconds, by protocol and class; [`NEVER`] is no timeout.
    idle: [[u64; 4]; Protocol::COUNT],
    active: u64,
}

/// No timeout, and the time at which it passes.
pub(crate) const NEVER: u64 = u64::MAX;

impl Timeouts {
    /// The longest timeout: 292 years.
    pub const MAX: Duration = Duration::from_nanos(u64::MAX / 2);

    /// Timeouts of connection tracking and address translation, which must not lose open
    /// connections:
    ///
    /// | | closing | new | unreplied | established |
    /// |---|--:|--:|--:|--:|
    /// | TCP | 120 s | 60 s | 300 s | 7440 s |
    /// | UDP | 30 s | 30 s | 30 s | 120 s |
    /// | ICMP | 30 s | 30 s | 30 s | 60 s |
    /// | SCTP | 10 s | 30 s | 30 s | 7440 s |
    /// | GRE | 30 s | 30 s | 30 s | 180 s |
    /// | others | 60 s | 60 s | 60 s | 600 s |
    ///
    /// and no active timeout. The established ones are the least that RFC 5382 (TCP), RFC 4787
    /// (UDP) and RFC 5508 (ICMP) allow; the others are about the timeouts of Linux.
    pub const CONNTRACK: Self = Self {
        idle: by_protocol([
            [120 * SECOND, 60 * SECOND, 300 * SECOND, 7440 * SECOND],
            [30 * SECOND, 30 * SECOND, 30 * SECOND, 120 * SECOND],
            [30 * SECOND, 30 * SECOND, 30 * SECOND, 60 * SECOND],
            [60 * SECOND, 60 * SECOND, 60 * SECOND, 600 * SECOND],
            [10 * SECOND, 30 * SECOND, 30 * SECOND, 7440 * SECOND],
            [30 * SECOND, 30 * SECOND, 30 * SECOND, 180 * SECOND],
        ]),
        active: NEVER,
    };

    /// Timeouts of a flow meter: a flow ends after 60 idle seconds, or 64 if it is closing, and is
    /// reported every 300 seconds. The first and the last are the defaults of nfdump.
    ///
    /// A closed connection lingers for longer than TCP may wait before it sends its last segment
    /// again. By RFC 6298 that begins with a second and doubles, up to 60 seconds or more: the
    /// segment belongs to its flow, however often it is lost.
    pub const METER: Self = Self {
        idle: [[64 * SECOND, 60 * SECOND, 60 * SECOND, 60 * SECOND]; Protocol::COUNT],
        active: 300 * SECOND,
    };

    /// No timeouts: flows end by eviction and removal only.
    pub const OFF: Self = Self { idle: [[NEVER; 4]; Protocol::COUNT], active: NEVER };

    /// Returns the idle timeout of a protocol and class, or `None` if there is none.
    #[must_use]
    pub const fn idle(&self, protocol: Protocol, class: Class) -> Option<Duration> {
        period(self.idle_nanos(protocol, class))
    }

    /// Returns the active timeout, after which a live flow is reported, or `None` if there is none.
    #[must_use]
    pub const fn active(&self) -> Option<Duration> {
        period(self.active)
    }

    /// Sets the idle timeout of one protocol and class.
    ///
    /// # Errors
    ///
    /// If the timeout is zero, or longer than [`MAX`](Self::MAX).
    pub fn with_idle(
        mut self,
        protocol: Protocol,
        class: Class,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<Self, TimeoutError> {
        self.idle[protocol as usize][class as usize] = nanos(timeout.into())?;
        Ok(self)
    }

    /// Sets one idle timeout for all protocols and classes.
    ///
    /// # Errors
    ///
    /// As for [`with_idle`](Self::with_idle).
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::flow_cache::{Class, Protocol, Timeouts};
    ///
    /// let minute = Duration::from_secs(60);
    /// let timeouts = Timeouts::CONNTRACK.with_all_idle(minute)?;
    /// assert_eq!(timeouts.idle(Protocol::Tcp, Class::Established), Some(minute));
    /// # Ok::<(), flowtable::flow_cache::TimeoutError>(())
    /// ```
    pub fn with_all_idle(
        mut self,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<Self, TimeoutError> {
        self.idle = [[nanos(timeout.into())?; 4]; Protocol::COUNT];
        Ok(self)
    }

    /// Sets the active timeout.
    ///
    /// # Errors
    ///
    /// As for [`with_idle`](Self::with_idle).
    pub fn with_active(
        mut self,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<Self, TimeoutError> {
        self.active = nanos(timeout.into())?;
        Ok(self)
    }

    pub(crate) const fn idle_nanos(&self, protocol: Protocol, class: Class) -> u64 {
        self.idle[protocol as usize][class as usize]
    }

    /// Whether this class has a shorter timeout than another class, for any protocol.
    pub(crate) fn is_shortened_by(&self, class: Class) -> bool {
        self.idle.iter().any(|idle| idle.iter().any(|other| idle[class as usize] < *other))
    }

    /// The shortest timeout in nanoseconds.
    pub(crate) fn least_nanos(&self) -> u64 {
        self.active.min(self.least_idle_nanos())
    }

    /// The shortest idle timeout in nanoseconds.
    pub(crate) fn least_idle_nanos(&self) -> u64 {
        self.idle.iter().flatten().copied().min().unwrap_or(NEVER)
    }

    pub(crate) const fn active_nanos(&self) -> u64 {
        self.active
    }
}

/// Completes the rows of the first protocols: the rest get the row of [`Protocol::Other`].
const fn by_protocol(first: [[u64; 4]; 6]) -> [[u64; 4]; Protocol::COUNT] {
    let mut rows = [first[Protocol::Other as usize]; Protocol::COUNT];
    let mut row = 0;
    while row < first.len() {
        rows[row] = first[row];
        row += 1;
    }
    rows
}

/// The timeouts of connection tracking.
impl Default for Timeouts {
    fn default() -> Self {
        Self::CONNTRACK
    }
}

const fn period(nanos: u64) -> Option<Duration> {
    if nanos == NEVER { None } else { Some(Duration::from_nanos(nanos)) }
}

/// Returns the nanoseconds of a valid timeout.
pub(crate) fn nanos(timeout: Option<Duration>) -> Result<u64, TimeoutError> {
    match timeout {
        None => Ok(NEVER),
        Some(Duration::ZERO) => Err(TimeoutError::Zero),
        Some(timeout) if timeout > Timeouts::MAX => Err(TimeoutError::TooLong),
        Some(timeout) => Ok(timeout.as_nanos() as u64),
    }
}

/// Returns whether a number of nanoseconds is a valid timeout.
pub(crate) fn is_valid(period: u64) -> bool {
    nanos(Some(Duration::from_nanos(period))).is_ok()
}

/// An error of an invalid timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeoutError {
    /// Zero: a flow would end with its first packet.
    Zero,
    /// Longer than [`Timeouts::MAX`]: `None` is no timeout.
    TooLong,
}

impl fmt::Display for TimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => write!(f, "timeout of 0: a flow would end with its first packet"),
            Self::TooLong => write!(f, "timeout longer than {} s", Timeouts::MAX.as_secs()),
        }
    }
}

impl Error for TimeoutError {}
