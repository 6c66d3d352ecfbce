//! `Serialize` and `Deserialize` of parameters, with the checks of their constructors.
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

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

use super::config::{Config, Emergency};
use super::packet::properties::Protocol;
use super::packet::state::{Assurance, Class, CloseRule};
use super::time::timeouts::{TimeoutError, Timeouts};

/// The idle timeouts of a protocol. A class may be absent, or without a timeout.
#[derive(Default, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Idle {
    #[serde(serialize_with = "flat", deserialize_with = "present")]
    closing: Option<Option<Duration>>,
    #[serde(serialize_with = "flat", deserialize_with = "present")]
    new: Option<Option<Duration>>,
    #[serde(serialize_with = "flat", deserialize_with = "present")]
    unreplied: Option<Option<Duration>>,
    #[serde(serialize_with = "flat", deserialize_with = "present")]
    established: Option<Option<Duration>>,
}

/// Serializes a timeout as [`present`] deserializes it. No class is absent.
fn flat<S: Serializer>(timeout: &Option<Option<Duration>>, to: S) -> Result<S::Ok, S::Error> {
    timeout.flatten().serialize(to)
}

/// Deserializes a timeout that is not absent: `null` is none.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<Duration>>, D::Error> {
    Option::deserialize(from).map(Some)
}

impl Idle {
    fn of(timeouts: &Timeouts, protocol: Protocol) -> Self {
        let [closing, new, unreplied, established] =
            Class::ALL.map(|class| Some(timeouts.idle(protocol, class)));
        Self { closing, new, unreplied, established }
    }

    fn set(self, timeouts: Timeouts, protocol: Protocol) -> Result<Timeouts, TimeoutError> {
        let rows = [self.closing, self.new, self.unreplied, self.established];
        let mut classes = Class::ALL.into_iter().zip(rows);
        classes.try_fold(timeouts, |all, (class, idle)| match idle {
            Some(idle) => all.with_idle(protocol, class, idle),
            None => Ok(all),
        })
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Timeouts", default, deny_unknown_fields)]
struct UncheckedTimeouts {
    idle: BTreeMap<Protocol, Idle>,
    active: Option<Duration>,
}

impl Default for UncheckedTimeouts {
    fn default() -> Self {
        Self { idle: BTreeMap::new(), active: Timeouts::CONNTRACK.active() }
    }
}

impl Serialize for Timeouts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let idle = Protocol::ALL.into_iter().map(|protocol| (protocol, Idle::of(self, protocol)));
        let unchecked = UncheckedTimeouts { idle: idle.collect(), active: self.active() };
        unchecked.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Timeouts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let UncheckedTimeouts { idle, active } = UncheckedTimeouts::deserialize(deserializer)?;
        let timeouts = Self::CONNTRACK.with_active(active).map_err(D::Error::custom)?;
        let mut rows = idle.into_iter();
        rows.try_fold(timeouts, |timeouts, (protocol, idle)| idle.set(timeouts, protocol))
            .map_err(D::Error::custom)
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Assurance", deny_unknown_fields)]
struct UncheckedAssurance {
    packets: u8,
    age: Duration,
}

impl Serialize for Assurance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        UncheckedAssurance { packets: self.packets(), age: self.age() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Assurance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let UncheckedAssurance { packets, age } = UncheckedAssurance::deserialize(deserializer)?;
        Ok(Self::new(packets, age))
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Emergency", deny_unknown_fields)]
struct UncheckedEmergency {
    enter: usize,
    leave: usize,
    idle: Duration,
}

impl Serialize for Emergency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { enter, leave, idle } = *self;
        UncheckedEmergency { enter, leave, idle: Duration::from_nanos(idle) }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Emergency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let UncheckedEmergency { enter, leave, idle } =
            UncheckedEmergency::deserialize(deserializer)?;
        Self::new(enter, leave, idle).map_err(D::Error::custom)
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Config", deny_unknown_fields)]
struct UncheckedConfig {
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
    emergency: Option<Emergency>,
}

fn default_tick() -> Duration {
    Config::new(1).map_or(Duration::ZERO, |config| config.tick())
}

const fn default_reuse() -> bool {
    true
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let unchecked = UncheckedConfig {
            flows: self.flows(),
            max_bytes: Some(self.max_bytes()).filter(|bytes| *bytes != usize::MAX),
            timeouts: *self.timeouts(),
            tick: self.tick(),
            close_rule: self.close_rule(),
            assurance: self.assurance(),
            socket_reuse: self.socket_reuse(),
            emergency: self.emergency(),
        };
        unchecked.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let it = UncheckedConfig::deserialize(deserializer)?;
        let config = || {
            let config = Self::new(it.flows)?
                .with_max_bytes(it.max_bytes.unwrap_or(usize::MAX))?
                .with_tick(it.tick)?
                .with_timeouts(it.timeouts)
                .with_close_rule(it.close_rule)
                .with_assurance(it.assurance)
                .with_socket_reuse(it.socket_reuse);
            it.emergency.map_or(Ok(config.clone()), |emergency| config.with_emergency(emergency))
        };
        config().map_err(D::Error::custom)
    }
}
