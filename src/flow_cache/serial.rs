//! The serialized forms of parameters, from which their constructors make them, with their checks.
//!
//! ```text
//!     {"flows": 1000, "max_bytes": null, "tick": …, "close_rule": "BothSides", …, "timeouts": {
//!         "active": null, "idle": {"Tcp": {"closing": {"secs": 120, "nanos": 0}, …}, …}}}
//! ```
//!
//! Absent fields get their values from [`Config::new`]; absent timeouts of a protocol and class
//! get them from [`Timeouts::CONNTRACK`]. `null` is no timeout.

use alloc::collections::BTreeMap;
use core::time::Duration;

use super::config::{Config, ConfigError, Emergency};
use super::packet::properties::Protocol;
use super::packet::state::{Assurance, Class, CloseRule, Renewal};
use super::time::timeouts::{TimeoutError, Timeouts};

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Timeouts", default, deny_unknown_fields)]
pub(super) struct UncheckedTimeouts {
    /// A protocol or class may be absent, or without a timeout.
    idle: BTreeMap<Protocol, BTreeMap<Class, Option<Duration>>>,
    active: Option<Duration>,
}

impl Default for UncheckedTimeouts {
    fn default() -> Self {
        Self { idle: BTreeMap::new(), active: Timeouts::CONNTRACK.active() }
    }
}

impl From<Timeouts> for UncheckedTimeouts {
    fn from(timeouts: Timeouts) -> Self {
        let row = |protocol| Class::ALL.map(|class| (class, timeouts.idle(protocol, class))).into();
        let idle = Protocol::ALL.map(|protocol| (protocol, row(protocol))).into();
        Self { idle, active: timeouts.active() }
    }
}

impl TryFrom<UncheckedTimeouts> for Timeouts {
    type Error = TimeoutError;

    fn try_from(unchecked: UncheckedTimeouts) -> Result<Self, TimeoutError> {
        let mut timeouts = Self::CONNTRACK.with_active(unchecked.active)?;
        for (protocol, row) in unchecked.idle {
            for (class, idle) in row {
                timeouts = timeouts.with_idle(protocol, class, idle)?;
            }
        }
        Ok(timeouts)
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Assurance", deny_unknown_fields)]
pub(super) struct UncheckedAssurance {
    packets: u8,
    age: Duration,
}

impl From<Assurance> for UncheckedAssurance {
    fn from(assurance: Assurance) -> Self {
        Self { packets: assurance.packets, age: Duration::from_nanos(assurance.age) }
    }
}

impl From<UncheckedAssurance> for Assurance {
    fn from(UncheckedAssurance { packets, age }: UncheckedAssurance) -> Self {
        Self::new(packets, age)
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Emergency", deny_unknown_fields)]
pub(super) struct UncheckedEmergency {
    enter: usize,
    leave: usize,
    idle: Duration,
}

impl From<Emergency> for UncheckedEmergency {
    fn from(Emergency { enter, leave, idle }: Emergency) -> Self {
        Self { enter, leave, idle: Duration::from_nanos(idle) }
    }
}

impl TryFrom<UncheckedEmergency> for Emergency {
    type Error = ConfigError;

    fn try_from(unchecked: UncheckedEmergency) -> Result<Self, ConfigError> {
        Self::new(unchecked.enter, unchecked.leave, unchecked.idle)
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Config", deny_unknown_fields)]
pub(super) struct UncheckedConfig {
    flows: usize,
    #[serde(default)]
    max_bytes: Option<usize>,
    #[serde(default)]
    timeouts: Timeouts,
    #[serde(default = "default_tick")]
    tick: Duration,
    #[serde(default)]
    close_rule: CloseRule,
    #[serde(default)]
    assurance: Assurance,
    #[serde(default = "default_reuse")]
    socket_reuse: bool,
    #[serde(default)]
    renewal: Renewal,
    #[serde(default)]
    emergency: Option<Emergency>,
}

fn default_tick() -> Duration {
    Config::new(1).map_or(Duration::ZERO, |config| config.tick())
}

const fn default_reuse() -> bool {
    true
}

impl From<Config> for UncheckedConfig {
    fn from(config: Config) -> Self {
        Self {
            flows: config.flows,
            max_bytes: Some(config.max_bytes).filter(|bytes| *bytes != usize::MAX),
            timeouts: config.timeouts,
            tick: config.tick(),
            close_rule: config.close_rule,
            assurance: config.assurance,
            socket_reuse: config.detects_reuse,
            renewal: config.renewal,
            emergency: config.emergency,
        }
    }
}

impl TryFrom<UncheckedConfig> for Config {
    type Error = ConfigError;

    fn try_from(unchecked: UncheckedConfig) -> Result<Self, ConfigError> {
        let config = Self::new(unchecked.flows)?
            .with_max_bytes(unchecked.max_bytes.unwrap_or(usize::MAX))?
            .with_tick(unchecked.tick)?
            .with_timeouts(unchecked.timeouts)
            .with_close_rule(unchecked.close_rule)
            .with_assurance(unchecked.assurance)
            .with_socket_reuse(unchecked.socket_reuse)
            .with_renewal(unchecked.renewal);
        match unchecked.emergency {
            Some(emergency) => config.with_emergency(emergency),
            None => Ok(config),
        }
    }
}
