//! Ends of flows: a preset of timeouts, with single ones replaced.

use core::time::Duration;

use flowtable::flow_cache::{Class, Protocol, TimeoutError, Timeouts};

const PROTOCOLS: [Protocol; 4] = [Protocol::Tcp, Protocol::Udp, Protocol::Icmp, Protocol::Other];

/// Options about the end of flows.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    pub preset: Timeouts,
    pub idle: Option<Duration>,
    pub active: Option<Duration>,
    pub linger: Linger,
}

/// The time that a closed connection stays in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linger {
    /// The time of the preset.
    Preset,
    For(Duration),
    /// FIN and RST do not end connections.
    Off,
}

impl Default for Ending {
    /// Returns options under which nothing ends a flow.
    fn default() -> Self {
        Self { preset: Timeouts::OFF, idle: None, active: None, linger: Linger::Preset }
    }
}

impl Ending {
    /// Returns whether FIN and RST end flows. Where nothing else ends a flow, they do not either:
    /// one five-tuple stays one record, and a SYN on reused sockets continues it.
    pub fn detects_close(&self) -> bool {
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
    pub fn timeouts(&self) -> Result<Timeouts, TimeoutError> {
        let lingering = match self.linger {
            Linger::For(time) => Some(time),
            Linger::Preset if self.ends_flows() => None,
            Linger::Preset | Linger::Off => Timeouts::METER.idle(Protocol::Tcp, Class::Closing),
        };
        let mut timeouts = self.preset;
        for protocol in PROTOCOLS {
            for class in Class::ALL {
                let time = if class == Class::Closing { lingering } else { self.idle };
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
}
