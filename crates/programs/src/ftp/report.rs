//! The report: what became of each packet, and the ends of flows.

use core::fmt;

use flowtable::Timestamp;
use flowtable::flow_cache::ConfigError;

use super::firewall::{Admitted, Ended, Firewall, Refused};
use super::segment::Segment;
use super::session::Step;

/// An event of a session, with its time in seconds.
#[derive(Clone, Debug)]
pub enum Event {
    Packet(Segment<'static>, Result<Admitted, Refused>),
    Ended(Ended),
}

/// The events of a session, by time.
pub struct Report {
    pub events: Vec<(u64, Event)>,
}

impl Report {
    /// Passes the packets of a session through a firewall, until `end` in seconds.
    pub fn of(steps: &[Step], end: u64) -> Result<Self, ConfigError> {
        let (mut firewall, mut events) = (Firewall::new(1000)?, vec![]);
        let times = steps.iter().map(|step| (step.at, Some(step.segment)));
        for (at, segment) in times.chain([(end, None)]) {
            let now = Timestamp::from_secs(at);
            let ended = firewall.advance(now).into_iter();
            events.extend(ended.map(|ended| (at, Event::Ended(ended))));
            if let Some(segment) = segment {
                let packet = segment.packet();
                let read = Segment::read(&packet).expect("the packet is a segment");
                events.push((at, Event::Packet(segment, firewall.admit(&read, now))));
            }
        }
        Ok(Self { events })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>5}  {:32} {:30} firewall", "time", "packet", "flags, payload")?;
        self.events.iter().try_for_each(|(at, event)| match event {
            Event::Packet(segment, outcome) => {
                let payload = String::from_utf8_lossy(segment.payload);
                let text = match payload.trim_end() {
                    "" => segment.flags.to_string().replace('.', ""),
                    text => text.to_owned(),
                };
                write!(f, "{at:3} s  {:32} {text:30} ", segment.key.to_string())?;
                match outcome {
                    Ok(admitted) => writeln!(f, "{admitted}"),
                    Err(refused) => writeln!(f, "DROPPED: {refused}"),
                }
            }
            Event::Ended(Ended { key, children }) => {
                write!(f, "{at:3} s  {:63} ended", key.to_string())?;
                children.iter().try_for_each(|child| write!(f, ", and with it {child}"))?;
                writeln!(f)
            }
        })
    }
}

impl fmt::Display for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control(flow) => write!(f, "flow {}", flow.id()),
            Self::Announcement(flow, socket) => write!(f, "flow {} expects {socket}", flow.id()),
            Self::Data(flow, parent) => write!(f, "flow {}, data of {}", flow.id(), parent.id()),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotExpected => f.write_str("not expected"),
            Self::Full => f.write_str("no memory for a flow"),
            Self::Malformed(error) => error.fmt(f),
            Self::Foreign(socket) => write!(f, "{socket} may not be announced"),
            Self::Expect(error) => error.fmt(f),
        }
    }
}
