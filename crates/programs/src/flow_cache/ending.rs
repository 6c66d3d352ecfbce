//! Ends of flows: a preset of timeouts, with single ones replaced.

use core::time::Duration;

use flowtable::flow_cache::{Class, Protocol, TimeoutError, Timeouts};

/// Options about the end of flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    pub(crate) preset: Timeouts,
    pub(crate) idle: Option<Duration>,
    pub(crate) active: Option<Duration>,
    pub(crate) linger: Linger,
}

/// The time that a closed connection stays in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linger {
    /// The time of the preset.
    Preset,
    For(Duration),
    /// FIN and RST do not close connections.
    Off,
}

impl Default for Ending {
    /// Returns options under which nothing ends a flow.
    fn default() -> Self {
        Self { preset: Timeouts::OFF, idle: None, active: None, linger: Linger::Preset }
    }
}

impl Ending {
    /// Returns whether a SYN on the sockets of a closed connection begins another flow. Where
    /// nothing else ends a flow, it does not: one five-tuple stays one record.
    pub(crate) fn detects_reuse(&self) -> bool {
        match self.linger {
            Linger::Off => false,
            Linger::For(_) => true,
            Linger::Preset => self.idle.is_some() || self.ends_flows(),
        }
    }

    fn ends_flows(&self) -> bool {
        self.preset != Timeouts::OFF
    }

    /// Returns all timeouts.
    ///
    /// # Errors
    ///
    /// If a timeout is 0 or too long.
    pub(crate) fn timeouts(&self) -> Result<Timeouts, TimeoutError> {
        let mut timeouts = self.preset;
        for protocol in Protocol::ALL {
            for class in Class::ALL {
                let time = if class == Class::Closing { self.closing(protocol) } else { self.idle };
                if time.is_some() {
                    timeouts = timeouts.with_idle(protocol, class, time)?;
                }
            }
        }
        match self.active {
            Some(_) => timeouts.with_active(self.active),
            None => Ok(timeouts),
        }
    }

    /// Returns the idle timeout of closed connections, if it is not that of the preset.
    fn closing(&self, protocol: Protocol) -> Option<Duration> {
        match self.linger {
            Linger::For(time) => Some(time),
            Linger::Off => None,
            Linger::Preset if self.ends_flows() || self.idle.is_none() => None,
            Linger::Preset => Timeouts::METER.idle(protocol, Class::Closing),
        }
    }
}
