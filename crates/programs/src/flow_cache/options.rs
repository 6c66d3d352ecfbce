//! Command line options.

use core::net::IpAddr;
use core::time::Duration;
use std::ffi::{OsStr, OsString};

use capture::Tunnels;
use flowtable::flow_cache::{Config, Timeouts};
use lexopt::Parser;

use super::destination::{Destination, Rotation};
use super::ending::{Ending, Linger};
use super::ipfix::Message;
use super::memory::{Demand, Limit};
use super::messages::MessageOptions;
use super::text::Columns;
use super::usage;
use crate::input::Input;
use crate::program;
use crate::values::{number, seconds, text, wrong};

/// The destination of IPFIX messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ipfix {
    To(Destination),
    /// `HOST:PORT`.
    Collector(String),
}

impl Ipfix {
    /// Parses a destination: a name with a colon is a collector, unless a slash shows that it is a
    /// file.
    ///
    /// # Errors
    ///
    /// If the port of a collector is missing or invalid.
    fn parse(name: &OsStr) -> Result<Self, String> {
        let text = name.to_str().filter(|text| !text.contains('/'));
        let Some(text) = text else { return Ok(Self::To(Destination::from(name))) };
        let unbracketed = text.trim_start_matches('[').trim_end_matches(']');
        let is_address = text == "localhost" || unbracketed.parse::<IpAddr>().is_ok();
        let is_port = |end: &str| end.parse::<u16>().is_ok_and(|port| port > 0);
        match text.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && is_port(port) && !is_address => {
                Ok(Self::Collector(text.to_owned()))
            }
            None if text.is_empty() => Err("--ipfix needs a file, or HOST:PORT".to_owned()),
            None if !is_address => Ok(Self::To(Destination::from(name))),
            _ => {
                let hint = "a collector is HOST:PORT, and a file name with a colon has a slash";
                Err(format!("--ipfix {text}: no port: {hint}"))
            }
        }
    }
}

/// Parsed command line options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Empty for generated traffic.
    pub(crate) captures: Vec<Input>,
    /// The names of network interfaces.
    pub(crate) interfaces: Vec<String>,
    /// The expression of a filter.
    pub(crate) filter: Option<String>,
    pub(crate) csv: Option<Destination>,
    pub(crate) json: Option<Destination>,
    pub(crate) ipfix: Vec<Ipfix>,
    pub(crate) messages: MessageOptions,
    pub(crate) columns: Columns,
    pub(crate) rotation: Rotation,
    /// Whether output files that exist are emptied.
    pub(crate) overwrites: bool,
    /// The IP header that gives a packet its key.
    pub(crate) tunnels: Tunnels,
    /// Whether equal five-tuples of different VLANs are different flows.
    pub(crate) by_vlan: bool,
    /// Whether errors of ICMP count in the flows that they quote.
    pub(crate) joins_errors: bool,
    pub(crate) top: usize,
    pub(crate) live: bool,
    pub(crate) capacity: usize,
    /// Whether the capacity is not the default.
    pub(crate) is_capacity_given: bool,
    /// Bytes that the program may use.
    pub(crate) max_memory: Option<Limit>,
    pub(crate) ending: Ending,
    /// Meters with a thread each.
    pub(crate) workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            captures: Vec::new(),
            interfaces: Vec::new(),
            filter: None,
            csv: None,
            json: None,
            ipfix: Vec::new(),
            messages: MessageOptions::default(),
            columns: Columns::default(),
            rotation: Rotation::default(),
            overwrites: false,
            tunnels: Tunnels::Outer,
            by_vlan: false,
            joins_errors: false,
            top: 10,
            live: false,
            capacity: 1_000_000,
            is_capacity_given: false,
            max_memory: None,
            ending: Ending::default(),
            workers: 1,
        }
    }
}

impl Options {
    /// The maximum number of largest records, all of which are in memory.
    const MAX_TOP: usize = 1_000_000;

    /// The queues of a card that an indirection table of 128 entries can fill.
    const MAX_WORKERS: usize = 128;

    /// Returns the number of results that go to standard output, without the report.
    pub(crate) fn standard_outputs(&self) -> usize {
        self.destinations().filter(|to| **to == Destination::StandardOutput).count()
    }

    /// Returns the number of outputs.
    pub(crate) fn outputs(&self) -> usize {
        usize::from(self.csv.is_some()) + usize::from(self.json.is_some()) + self.ipfix.len()
    }

    /// Iterates over all outputs but collectors.
    fn destinations(&self) -> impl Iterator<Item = &Destination> {
        let files = self.ipfix.iter().filter_map(|ipfix| match ipfix {
            Ipfix::To(destination) => Some(destination),
            Ipfix::Collector(_) => None,
        });
        self.csv.iter().chain(&self.json).chain(files)
    }

    /// Returns a message about an interface whose packets would count twice, if there is one.
    fn repeated_interface(&self) -> Option<String> {
        let names = &self.interfaces;
        if names.len() > 1 && names.iter().any(|name| name == "any") {
            return Some("--interface any has the packets of all interfaces: give it alone".into());
        }
        let mut numbered = names.iter().enumerate();
        let (_, name) = numbered.find(|(at, name)| names[..*at].contains(name))?;
        Some(format!("--interface {name} is given twice: its packets would count twice"))
    }

    /// Returns a message about an option without the output that it is for, if there is one.
    fn unused(&self) -> Option<String> {
        let has_text = self.csv.is_some() || self.json.is_some();
        let has_ipfix = !self.ipfix.is_empty();
        let has_file = self.destinations().any(|to| *to != Destination::StandardOutput);
        let (files, records) = ("a FILE of --csv, --json or --ipfix", "--csv, --json or --ipfix");
        let (text, messages) = ("--csv or --json", "--ipfix");
        let options = [
            ("rotate-time", self.rotation.period_s.is_some(), has_file, files),
            ("rotate-size", self.rotation.size.is_some(), has_file, files),
            ("overwrite", self.overwrites, has_file, files),
            ("mac", self.columns.mac, has_text || has_ipfix, records),
            ("community-id", self.columns.community_id, has_text, text),
            ("biflow", self.messages.content.has_both, has_ipfix, messages),
            ("domain", self.messages.domain.is_some(), has_ipfix, messages),
            ("message-size", self.messages.size.is_some(), has_ipfix, messages),
        ];
        let (name, .., output) =
            options.into_iter().find(|(_, is_given, has_output, _)| *is_given && !has_output)?;
        Some(format!("--{name} has no effect without {output}"))
    }

    /// Returns the names of the captures.
    pub(crate) fn input_name(&self) -> String {
        match &self.interfaces[..] {
            [] => {}
            [interface] => return format!("interface {interface}"),
            interfaces => return format!("interfaces {}", interfaces.join(", ")),
        }
        match &self.captures[..] {
            [] => "generated traffic (no capture was named)".to_owned(),
            [capture] => capture.to_string(),
            [first, _] => format!("{first} and 1 other capture"),
            [first, others @ ..] => format!("{first} and {} other captures", others.len()),
        }
    }

    /// Returns the configurations of the caches: the flows and the memory are divided among them.
    pub(crate) fn configs(&self) -> Result<Vec<Config>, lexopt::Error> {
        let (whole, workers) = (self.config()?, self.workers);
        let part = |worker: usize| {
            let flows = whole.flows() / workers + usize::from(worker < whole.flows() % workers);
            let part = config("capacity", flows, &flows.to_string())?;
            let part = part.with_timeouts(*whole.timeouts());
            let part = part.with_socket_reuse(self.ending.detects_reuse());
            if whole.max_bytes() == usize::MAX {
                return Ok(part);
            }
            part.with_max_bytes(whole.max_bytes() / workers)
                .map_err(|error| format!("--workers {workers}: each has {error}").into())
        };
        (0..workers).map(part).collect()
    }

    /// Returns the configuration of one cache for all flows.
    fn config(&self) -> Result<Config, lexopt::Error> {
        let timeouts = self.ending.timeouts().map_err(|error| format!("timeouts: {error}"))?;
        let config = config("capacity", self.capacity, &self.capacity.to_string())?;
        let config = config.with_timeouts(timeouts);
        let config = config.with_socket_reuse(self.ending.detects_reuse());
        Ok(self.demand().limited(config)?)
    }

    /// Returns the memory that the run asks for.
    pub(crate) fn demand(&self) -> Demand {
        Demand {
            captures: self.captures.len(),
            is_compressed: self.captures.iter().any(Input::may_be_compressed),
            workers: self.workers,
            max_memory: self.max_memory.clone(),
            has_macs: self.columns.mac,
            is_capacity_given: self.is_capacity_given,
        }
    }
}

impl program::Options for Options {
    const USAGE: &'static str = usage::USAGE;
    const EXIT_CODES: &'static str = usage::EXIT_CODES;
    const REPEATABLE: &'static [&'static str] = &["interface", "ipfix"];

    fn option(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "csv" => self.csv = Some(destination(name, parser)?),
            "json" => self.json = Some(destination(name, parser)?),
            "ipfix" => self.ipfix.push(Ipfix::parse(&parser.value()?)?),
            "biflow" => self.messages.content.has_both = true,
            "domain" => self.messages.domain = Some(number(name, parser, 0..=u32::MAX)?),
            "message-size" => {
                let size = number(name, parser, Message::MIN_LIMIT..=Message::MAX_LIMIT)?;
                self.messages.size = Some(size);
            }
            "inside" => self.tunnels = tunnels(name, parser)?,
            "vlan" => {
                self.by_vlan = true;
                self.columns.vlan = true;
                self.messages.content.has_vlan = true;
            }
            "mac" => {
                self.columns.mac = true;
                self.messages.content.has_mac = true;
            }
            "join-errors" => self.joins_errors = true,
            "community-id" => self.columns.community_id = true,
            "overwrite" => self.overwrites = true,
            "rotate-time" => {
                self.rotation.period_s = Some(number(name, parser, 1..=366 * 86_400)?);
            }
            "rotate-size" => {
                let text = text(parser)?;
                let size = bytes(name, &text)? as u64;
                if size == 0 {
                    return Err(wrong(name, &text, &"must be above 0"));
                }
                self.rotation.size = Some(size);
            }
            "interface" => self.interfaces.push(interface(parser)?),
            "filter" => self.filter = Some(text(parser)?),
            "top" => self.top = number(name, parser, 0..=Self::MAX_TOP)?,
            "live" => self.live = true,
            "workers" => self.workers = number(name, parser, 1..=Self::MAX_WORKERS)?,
            "capacity" | "threshold" if self.is_capacity_given => {
                return Err("--capacity and --threshold are one option: give one of them".into());
            }
            "capacity" | "threshold" => {
                self.capacity = number(name, parser, 1..=Config::MAX_FLOWS)?;
                self.is_capacity_given = true;
            }
            "max-memory" => {
                let text = text(parser)?;
                self.max_memory = Some(Limit { bytes: bytes(name, &text)?, text });
            }
            "timeouts" => self.ending.preset = preset(name, parser)?,
            "idle" => self.ending.idle = Some(timeout(name, &text(parser)?)?),
            "active" => self.ending.active = Some(timeout(name, &text(parser)?)?),
            "linger" => self.ending.linger = linger(name, &text(parser)?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn operand(&mut self, value: OsString) -> Result<bool, lexopt::Error> {
        if value.is_empty() {
            return Err("the name of a capture is empty".into());
        }
        self.captures.push(value.into());
        Ok(true)
    }

    fn finished(self) -> Result<Self, lexopt::Error> {
        if self.captures.len() > 1 && self.captures.contains(&Input::Pipe) {
            return Err("standard input cannot be merged with other captures".into());
        }
        if !self.interfaces.is_empty() && !self.captures.is_empty() {
            return Err("an interface cannot be merged with captures".into());
        }
        if let Some(repeated) = self.repeated_interface() {
            return Err(repeated.into());
        }
        if self.workers > 1 && self.live {
            return Err("--live shows one cache: it cannot be used with --workers".into());
        }
        if self.workers > 1 && self.joins_errors {
            let why = "--join-errors searches one cache: it cannot be used with --workers";
            return Err(why.into());
        }
        if self.overwrites && self.rotation.is_on() {
            return Err("--overwrite cannot be used with rotation, which appends".into());
        }
        if let Some(unused) = self.unused() {
            return Err(unused.into());
        }
        if self.workers > self.capacity {
            let (workers, capacity) = (self.workers, self.capacity);
            return Err(format!("--workers {workers}: more than the capacity, {capacity}").into());
        }
        match self.standard_outputs() {
            0 | 1 => Ok(self),
            _ => Err("only one of the results can go to standard output".into()),
        }
    }
}

fn destination(name: &str, parser: &mut Parser) -> Result<Destination, lexopt::Error> {
    let file = parser.value()?;
    match file.is_empty() {
        true => Err(format!("--{name} needs the name of a file").into()),
        false => Ok(file.as_os_str().into()),
    }
}

fn interface(parser: &mut Parser) -> Result<String, lexopt::Error> {
    match text(parser)? {
        name if name.is_empty() => Err("--interface needs the name of an interface".into()),
        name => Ok(name),
    }
}

fn config(name: &str, capacity: usize, text: &str) -> Result<Config, lexopt::Error> {
    Config::new(capacity).map_err(|error| wrong(name, text, &error))
}

/// Parses a number of bytes, perhaps with one of the letters K, M, G.
fn bytes(name: &str, text: &str) -> Result<usize, lexopt::Error> {
    let units = [("K", 10), ("M", 20), ("G", 30)];
    let unit = units.iter().find_map(|(unit, power)| Some((text.strip_suffix(unit)?, *power)));
    let (digits, power) = unit.unwrap_or((text, 0));
    let not_bytes = |_| wrong(name, text, &"not a number of bytes, such as 512M");
    let number: usize = digits.parse().map_err(not_bytes)?;
    number.checked_mul(1 << power).ok_or_else(|| wrong(name, text, &"too many bytes"))
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

fn tunnels(name: &str, parser: &mut Parser) -> Result<Tunnels, lexopt::Error> {
    let text = text(parser)?;
    match text.as_str() {
        "one" => Ok(Tunnels::One),
        "all" => Ok(Tunnels::All),
        _ => Err(wrong(name, &text, &"not one or all")),
    }
}

fn linger(name: &str, text: &str) -> Result<Linger, lexopt::Error> {
    match text {
        "off" => Ok(Linger::Off),
        _ if text.parse().is_ok_and(|seconds: f64| seconds > 0.0) => {
            timeout(name, text).map(Linger::For)
        }
        _ => Err(wrong(name, text, &"--linger needs a number of seconds above 0, or off")),
    }
}

fn timeout(name: &str, text: &str) -> Result<Duration, lexopt::Error> {
    let time = seconds(name, text)?;
    Timeouts::OFF.with_active(time).map_err(|error| wrong(name, text, &error))?;
    Ok(time)
}
