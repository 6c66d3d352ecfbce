//! Command line options.

use core::time::Duration;
use std::ffi::{OsStr, OsString};

use flowtable::flow_cache::{Config, Timeouts};
use lexopt::Parser;

use super::ending::{Ending, Linger};
use super::files::Destination;
use crate::input::Input;
use crate::program;
use crate::values::{number, parsed, seconds, text, wrong};

/// The destination of IPFIX messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ipfix {
    To(Destination),
    /// `HOST:PORT`.
    Collector(String),
}

impl From<&OsStr> for Ipfix {
    /// A number after the last colon is a port, unless a slash shows that the name is a file.
    fn from(name: &OsStr) -> Self {
        let is_port = |end: &str| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit());
        let has_port = |text: &str| text.rsplit_once(':').is_some_and(|(_, end)| is_port(end));
        match name.to_str() {
            Some(text) if has_port(text) && !text.contains('/') => Self::Collector(text.to_owned()),
            _ => Self::To(Destination::from(name)),
        }
    }
}

/// Parsed command line options.
#[derive(Clone, Debug)]
pub struct Options {
    /// None for generated traffic.
    pub capture: Option<Input>,
    pub csv: Option<Destination>,
    pub json: Option<Destination>,
    pub ipfix: Option<Ipfix>,
    pub top: usize,
    pub live: bool,
    pub capacity: usize,
    pub ending: Ending,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            capture: None,
            csv: None,
            json: None,
            ipfix: None,
            top: 10,
            live: false,
            capacity: 1_000_000,
            ending: Ending::default(),
        }
    }
}

impl Options {
    /// Returns the number of results that go to standard output, without the report.
    pub fn standard_outputs(&self) -> usize {
        let ipfix = match &self.ipfix {
            Some(Ipfix::To(destination)) => Some(destination),
            Some(Ipfix::Collector(_)) | None => None,
        };
        let outputs = [self.csv.as_ref(), self.json.as_ref(), ipfix];
        outputs.into_iter().filter(|to| *to == Some(&Destination::StandardOutput)).count()
    }

    /// Returns the configuration of the cache.
    pub fn config(&self) -> Result<Config, lexopt::Error> {
        let timeouts = self.ending.timeouts().map_err(|error| format!("timeouts: {error}"))?;
        Ok(config(self.capacity, &self.capacity.to_string())?.with_timeouts(timeouts))
    }
}

impl program::Options for Options {
    const USAGE: &'static str = "\
Meters the flows of a packet capture with a flow cache.

Usage: flow_cache [CAPTURE | -] [OPTION]...

CAPTURE is a pcap or pcapng file, compressed with gzip or not; - is standard
input:
    tcpdump -U -w - | flow_cache - --timeouts meter --live
Without CAPTURE, traffic is generated.

A flow is both directions of a conversation, with the counts of each. It ends
when a timeout expires, when its TCP connection closes, or when the cache is
full; other flows end with the capture. All time is that of the packets.

Outputs, to a FILE or, as -, to standard output:
    --csv FILE          one row for each direction of a record
    --json FILE         one line for each record: both directions, end reason
    --ipfix FILE        IPFIX messages, RFC 7011: a record for each direction
    --ipfix HOST:PORT   IPFIX by UDP to a collector, such as nfcapd

End of flows, where SECONDS may have a fraction, such as 0.5:
    --timeouts off|meter|conntrack   preset of timeouts (off)
        off         nothing ends a flow: one record for each
        meter       60 s idle, 5 s if closed; a report every 300 s
        conntrack   by protocol and state, as in connection tracking
    --idle SECONDS      end flows after this time without a packet
    --active SECONDS    report active flows at this interval
    --linger SECONDS    keep closed connections for this time
    --linger off        FIN and RST do not close connections
    --capacity N        hold N flows at most (1000000). Beyond, closed ones are
                        evicted first, then half-open, unanswered, established

Display:
    --top N             list the N largest records (10)
    --live              on a terminal, show a table of the cache
";

    fn option(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "csv" => self.csv = Some(parser.value()?.as_os_str().into()),
            "json" => self.json = Some(parser.value()?.as_os_str().into()),
            "ipfix" => self.ipfix = Some(parser.value()?.as_os_str().into()),
            "top" => self.top = number(name, parser, 0..=usize::MAX)?,
            "live" => self.live = true,
            "capacity" => self.capacity = capacity(name, parser)?,
            "timeouts" => self.ending.preset = preset(name, parser)?,
            "idle" => self.ending.idle = Some(timeout(name, &text(parser)?)?),
            "active" => self.ending.active = Some(timeout(name, &text(parser)?)?),
            "linger" => self.ending.linger = linger(name, &text(parser)?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn operand(&mut self, value: OsString) -> Result<bool, lexopt::Error> {
        Ok(self.capture.replace(value.into()).is_none())
    }

    fn finished(self) -> Result<Self, lexopt::Error> {
        match self.standard_outputs() {
            0 | 1 => Ok(self),
            _ => Err("only one of the results can go to standard output".into()),
        }
    }
}

fn config(capacity: usize, text: &str) -> Result<Config, lexopt::Error> {
    Config::new(capacity).map_err(|error| wrong("capacity", text, &error))
}

fn capacity(name: &str, parser: &mut Parser) -> Result<usize, lexopt::Error> {
    let text = text(parser)?;
    let flows = parsed(name, &text)?;
    config(flows, &text).map(|_| flows)
}

fn preset(name: &str, parser: &mut Parser) -> Result<Timeouts, lexopt::Error> {
    let text = text(parser)?;
    match text.as_str() {
        "off" => Ok(Timeouts::OFF),
        "meter" => Ok(Timeouts::METER),
        "conntrack" => Ok(Timeouts::CONNTRACK),
        _ => Err(wrong(name, &text, &"not off, meter or conntrack")),
    }
}

fn linger(name: &str, text: &str) -> Result<Linger, lexopt::Error> {
    match text {
        "off" => Ok(Linger::Off),
        _ => timeout(name, text).map(Linger::For),
    }
}

fn timeout(name: &str, text: &str) -> Result<Duration, lexopt::Error> {
    let time = seconds(name, text)?;
    Timeouts::OFF.with_active(time).map_err(|error| wrong(name, text, &error))?;
    Ok(time)
}
