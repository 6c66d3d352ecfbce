//! Configuration of a flow cache.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::packet::state::{Assurance, CloseRule, Renewal};
use super::time::timeouts::{self, TimeoutError, Timeouts};

/// Configuration of a [`FlowCache`](super::FlowCache): its limits, and the timeouts of its flows.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::flow_cache::{CloseRule, Config, ConfigError, Emergency, Timeouts};
///
/// let config = Config::new(1_000_000)?
///     .with_timeouts(Timeouts::METER)
///     .with_emergency(Emergency::new(900_000, 800_000, Duration::from_secs(5))?)?
///     .with_close_rule(CloseRule::FirstAck)
///     .with_max_bytes(512 << 20)?
///     .with_tick(Duration::from_millis(100))?;
/// assert_eq!((config.flows(), config.max_bytes()), (1_000_000, 512 << 20));
/// assert_eq!((config.timeouts(), config.tick()), (&Timeouts::METER, Duration::from_millis(100)));
/// assert!(config.emergency().is_some());
/// assert_eq!(Config::new(0).unwrap_err(), ConfigError::Flows(0));
/// # Ok::<(), ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "crate::flow_cache::serial::UncheckedConfig"),
    serde(into = "crate::flow_cache::serial::UncheckedConfig")
)]
pub struct Config {
    pub(crate) flows: usize,
    pub(crate) max_bytes: usize,
    pub(crate) timeouts: Timeouts,
    /// Nanoseconds.
    pub(crate) tick: u64,
    pub(crate) close_rule: CloseRule,
    pub(crate) assurance: Assurance,
    /// Whether a SYN on the sockets of a closing flow begins another flow.
    pub(crate) detects_reuse: bool,
    pub(crate) renewal: Renewal,
    pub(crate) emergency: Option<Emergency>,
}

impl Config {
    /// The greatest capacity of a cache, in flows.
    pub const MAX_FLOWS: usize = (1 << 30) - 1;

    /// The least memory limit, in bytes: an empty cache has its wheel.
    pub const MIN_BYTES: usize = 12 << 10;

    const LONGEST_TICK: Duration = Duration::from_secs(3600);

    /// Creates a configuration for at most `flows` flows, with the timeouts of
    /// [`Timeouts::CONNTRACK`] and ticks of 10 ms.
    ///
    /// # Errors
    ///
    /// If `flows` is zero or more than [`MAX_FLOWS`](Self::MAX_FLOWS).
    pub const fn new(flows: usize) -> Result<Self, ConfigError> {
        if flows == 0 || flows > Self::MAX_FLOWS {
            return Err(ConfigError::Flows(flows));
        }
        Ok(Self {
            flows,
            max_bytes: usize::MAX,
            timeouts: Timeouts::CONNTRACK,
            tick: 10_000_000,
            close_rule: CloseRule::BothSides,
            assurance: Assurance::DEFAULT,
            detects_reuse: true,
            renewal: Renewal::BothSides,
            emergency: None,
        })
    }

    /// Returns the maximum number of flows.
    #[must_use]
    pub const fn flows(&self) -> usize {
        self.flows
    }

    /// Returns the timeouts.
    #[must_use]
    pub const fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    /// Returns the memory limit in bytes; `usize::MAX` is no limit.
    #[must_use]
    pub const fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Returns which packets renew the idle timeout of a flow.
    #[must_use]
    pub const fn renewal(&self) -> Renewal {
        self.renewal
    }

    /// The time within which a flow with a packet has certainly not expired, in nanoseconds; 0 if
    /// packets of one side do not renew it.
    pub(crate) fn least_renewed(&self) -> u64 {
        match self.renewal {
            Renewal::BothSides => self.timeouts.least_idle_nanos(),
            Renewal::Initiator => 0,
        }
    }

    /// Returns the emergency thresholds, if there are any.
    #[must_use]
    pub const fn emergency(&self) -> Option<Emergency> {
        self.emergency
    }

    /// Returns the tick: the maximum delay of an end of a flow if `advance` is called often enough.
    #[must_use]
    pub const fn tick(&self) -> Duration {
        Duration::from_nanos(self.tick)
    }

    /// Sets a limit on allocated memory. Memory that keys and values own does not count. A new
    /// flow that would exceed the limit evicts a flow. The first flow needs some 180 KiB, as memory
    /// is allocated for 1024 flows at once, the worst case of the lists of the timer wheel
    /// included.
    ///
    /// # Errors
    ///
    /// If `bytes` is less than [`MIN_BYTES`](Self::MIN_BYTES). If the limit is too low for a single
    /// flow, each new flow is [refused](super::AdmissionError::Memory).
    pub const fn with_max_bytes(self, bytes: usize) -> Result<Self, ConfigError> {
        if bytes < Self::MIN_BYTES {
            return Err(ConfigError::Bytes(bytes));
        }
        Ok(Self { max_bytes: bytes, ..self })
    }

    /// Sets the timeouts.
    #[must_use]
    pub const fn with_timeouts(self, timeouts: Timeouts) -> Self {
        Self { timeouts, ..self }
    }

    /// Sets the tick. A flow is examined once for its end if its timeout is less than 64 ticks, and
    /// once more for each further factor of 64: where flows have a few packets only, a tick of a
    /// second saves work.
    ///
    /// # Errors
    ///
    /// If `tick` is zero, or longer than an hour.
    pub fn with_tick(self, tick: Duration) -> Result<Self, ConfigError> {
        match timeouts::nanos(Some(tick)) {
            Ok(nanos) if tick <= Self::LONGEST_TICK => Ok(Self { tick: nanos, ..self }),
            _ => Err(ConfigError::Tick(tick)),
        }
    }

    /// Sets the rule by which TCP connections count as closed.
    #[must_use]
    pub const fn with_close_rule(self, close_rule: CloseRule) -> Self {
        Self { close_rule, ..self }
    }

    /// Sets the rule that assures flows of other protocols than TCP.
    #[must_use]
    pub const fn with_assurance(self, assurance: Assurance) -> Self {
        Self { assurance, ..self }
    }

    /// Sets whether a SYN on the sockets of a closing flow begins another flow, as by default.
    /// Otherwise the flow continues, and is new again: one flow for each key.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Class, Config, Packet};
    /// use flowtable::{FlowCache, FourTuple, TcpFlags, Timestamp};
    ///
    /// let config = Config::new(100)?.with_socket_reuse(false);
    /// let mut cache: FlowCache<FourTuple<u32>, u64> = FlowCache::new(config);
    /// let key = FourTuple { src: 10, dst: 20, sport: 40_000, dport: 443 };
    /// let classes = [TcpFlags::SYN, TcpFlags::RST, TcpFlags::SYN].map(|flags| {
    ///     let seen = cache.observe(&key, Packet::tcp(flags), Timestamp::ZERO);
    ///     seen.map(|seen| seen.class)
    /// });
    /// assert_eq!(classes, [Ok(Class::New), Ok(Class::Closing), Ok(Class::New)]);
    /// assert_eq!(cache.metrics().created, 1);
    /// # Ok::<(), flowtable::flow_cache::ConfigError>(())
    /// ```
    #[must_use]
    pub const fn with_socket_reuse(self, detected: bool) -> Self {
        Self { detects_reuse: detected, ..self }
    }

    /// Sets which packets renew the idle timeout of a flow.
    #[must_use]
    pub const fn with_renewal(self, renewal: Renewal) -> Self {
        Self { renewal, ..self }
    }

    /// Sets the emergency thresholds. Without them, no flow is ended early.
    ///
    /// # Errors
    ///
    /// If the emergency would begin above the capacity of the cache.
    pub const fn with_emergency(self, emergency: Emergency) -> Result<Self, ConfigError> {
        if emergency.enter > self.flows {
            return Err(ConfigError::Emergency);
        }
        Ok(Self { emergency: Some(emergency), ..self })
    }
}

/// Emergency thresholds, as in connection tracking: idle flows are ended early in a crowded cache.
///
/// From `enter` flows on until there are fewer than `leave`, `advance` ends all flows that are idle
/// for `idle`, except established and pinned ones. So there is capacity for the next burst of new
/// flows, and no recent flow is evicted. A flow that was already idle when the emergency begins is
/// ended after another `idle` at the latest. The cost: each idle flow that is not established is
/// examined once per `idle`, with or without an emergency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "crate::flow_cache::serial::UncheckedEmergency"),
    serde(into = "crate::flow_cache::serial::UncheckedEmergency")
)]
pub struct Emergency {
    pub(crate) enter: usize,
    pub(crate) leave: usize,
    /// Nanoseconds.
    pub(crate) idle: u64,
}

impl Emergency {
    /// Creates thresholds: an emergency begins with `enter` flows, and ends with fewer than
    /// `leave`.
    ///
    /// # Errors
    ///
    /// If the emergency would end before it begins (`leave` is zero or above `enter`), or if `idle`
    /// is zero or too long.
    pub fn new(enter: usize, leave: usize, idle: Duration) -> Result<Self, ConfigError> {
        if leave == 0 || leave > enter {
            return Err(ConfigError::Emergency);
        }
        let idle = timeouts::nanos(Some(idle)).map_err(ConfigError::Timeout)?;
        Ok(Self { enter, leave, idle })
    }
}

/// An error of the methods that build a [`Config`] or an [`Emergency`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The number of flows is zero, or more than [`Config::MAX_FLOWS`].
    Flows(usize),
    /// The memory limit is less than [`Config::MIN_BYTES`].
    Bytes(usize),
    /// The tick is zero, or more than an hour.
    Tick(Duration),
    /// The emergency would end before it begins, or never begin.
    Emergency,
    /// The idle timeout of the emergency is invalid.
    Timeout(TimeoutError),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flows(flows) => {
                write!(f, "capacity of {flows} flows: must be 1 to {}", Config::MAX_FLOWS)
            }
            Self::Bytes(bytes) => {
                write!(f, "memory of {bytes} bytes: must be at least {}", Config::MIN_BYTES)
            }
            Self::Tick(tick) => write!(f, "tick of {tick:?}: must be more than 0, at most an hour"),
            Self::Emergency => write!(
                f,
                "thresholds of the emergency: must be 1 <= leave <= enter <= flows of the cache"
            ),
            Self::Timeout(error) => write!(f, "emergency: {error}"),
        }
    }
}

impl Error for ConfigError {}
