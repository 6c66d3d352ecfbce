//! What a cache is made with.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use super::state::{self, CloseRule, TimeoutError, Timeouts};

/// The limits of a [`FlowCache`](super::FlowCache), and the lives of its flows.
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
/// assert_eq!((config.close_rule(), config.emergency().is_some()), (CloseRule::FirstAck, true));
/// assert_eq!(Config::new(0).unwrap_err(), ConfigError::Flows(0));
/// # Ok::<(), ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub(super) flows: usize,
    pub(super) max_bytes: usize,
    pub(super) timeouts: Timeouts,
    /// Nanoseconds.
    pub(super) tick: u64,
    pub(super) close_rule: CloseRule,
    pub(super) emergency: Option<Emergency>,
}

impl Config {
    /// The most flows that there may be.
    pub const MAX_FLOWS: usize = (1 << 30) - 1;

    /// The least limit of memory: a cache without flows has its wheel.
    pub const MIN_BYTES: usize = 12 << 10;

    const LONGEST_TICK: Duration = Duration::from_secs(3600);

    /// At most so many flows, with the timeouts of [`Timeouts::CONNTRACK`] and ticks of 10 ms.
    ///
    /// # Errors
    ///
    /// If there may be none, or more than [`MAX_FLOWS`](Self::MAX_FLOWS).
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
            emergency: None,
        })
    }

    /// The most flows that there may be in this cache.
    #[must_use]
    pub const fn flows(&self) -> usize {
        self.flows
    }

    /// The timeouts.
    #[must_use]
    pub const fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    /// The most bytes that it may allocate; `usize::MAX` is no limit.
    #[must_use]
    pub const fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// When TCP connections count as closed.
    #[must_use]
    pub const fn close_rule(&self) -> CloseRule {
        self.close_rule
    }

    /// What is done when the cache gets crowded, if anything.
    #[must_use]
    pub const fn emergency(&self) -> Option<Emergency> {
        self.emergency
    }

    /// How late the end of a flow may be reported if `advance` is called often enough.
    #[must_use]
    pub const fn tick(&self) -> Duration {
        Duration::from_nanos(self.tick)
    }

    /// At most so many bytes of memory, besides what keys and values own: a new flow that would need
    /// more has another evicted.
    ///
    /// # Errors
    ///
    /// If that is less than [`MIN_BYTES`](Self::MIN_BYTES). Where it does not suffice for a single flow,
    /// each is [refused](super::Refused::Memory).
    pub const fn with_max_bytes(self, bytes: usize) -> Result<Self, ConfigError> {
        if bytes < Self::MIN_BYTES {
            return Err(ConfigError::Bytes(bytes));
        }
        Ok(Self { max_bytes: bytes, ..self })
    }

    /// Other timeouts.
    #[must_use]
    pub const fn with_timeouts(self, timeouts: Timeouts) -> Self {
        Self { timeouts, ..self }
    }

    /// Another tick. A flow is looked at once for its end if its timeout is less than 64 ticks, and once more
    /// for each time that it is 64 times as long: where flows live for a few packets only, a tick of a
    /// second is worth it.
    ///
    /// # Errors
    ///
    /// If it is 0, or longer than an hour.
    pub fn with_tick(self, tick: Duration) -> Result<Self, ConfigError> {
        match state::nanos(Some(tick)) {
            Ok(nanos) if tick <= Self::LONGEST_TICK => Ok(Self { tick: nanos, ..self }),
            _ => Err(ConfigError::Tick(tick)),
        }
    }

    /// Another rule for when TCP connections count as closed.
    #[must_use]
    pub const fn with_close_rule(self, close_rule: CloseRule) -> Self {
        Self { close_rule, ..self }
    }

    /// What is done when the cache gets crowded. Without, nothing until it is full.
    ///
    /// # Errors
    ///
    /// If it would begin with more flows than there may be.
    pub const fn with_emergency(self, emergency: Emergency) -> Result<Self, ConfigError> {
        if emergency.enter > self.flows {
            return Err(ConfigError::Emergency);
        }
        Ok(Self { emergency: Some(emergency), ..self })
    }
}

/// What is done when a cache gets crowded: flows that have been silent for a while leave early.
///
/// From `enter` flows on until there are fewer than `leave`, `advance` ends all flows that have been
/// silent for `idle`, but not established or pinned ones. So there is room when the next burst of new flows
/// comes, and none is evicted that has just come. A flow that has been silent for longer when it begins
/// is noticed after another `idle` at the latest. In return each silent flow that is not established is
/// looked at every `idle`, emergency or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emergency {
    pub(super) enter: usize,
    pub(super) leave: usize,
    /// Nanoseconds.
    pub(super) idle: u64,
}

impl Emergency {
    /// Begins with `enter` flows, and ends with fewer than `leave`.
    ///
    /// # Errors
    ///
    /// If it would end before it begins (`leave` above `enter`, or 0), or if the timeout is 0 or too
    /// long.
    pub fn new(enter: usize, leave: usize, idle: Duration) -> Result<Self, ConfigError> {
        if leave == 0 || leave > enter {
            return Err(ConfigError::Emergency);
        }
        let idle = state::nanos(Some(idle)).map_err(ConfigError::Timeout)?;
        Ok(Self { enter, leave, idle })
    }
}

/// Why a [`Config`] was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// So many flows: none, or more than [`Config::MAX_FLOWS`].
    Flows(usize),
    /// So many bytes: less than [`Config::MIN_BYTES`].
    Bytes(usize),
    /// A tick of 0, or of more than an hour.
    Tick(Duration),
    /// An emergency that would end before it begins, or never begin.
    Emergency,
    /// A timeout of the emergency.
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

impl Error for ConfigError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Timeout(error) => Some(error),
            _ => None,
        }
    }
}
