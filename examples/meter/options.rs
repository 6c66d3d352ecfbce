//! The command line.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::ffi::OsStr;
use std::path::PathBuf;

use flowtable::{Config, Timeouts};
use lexopt::Parser;

use super::ending::{Ending, Linger};
use super::files::Destination;

/// What `--help` prints.
pub(crate) const USAGE: &str = "\
Meters the flows of a packet capture with a flow cache.

Usage: flow_cache [CAPTURE | -] [options]

CAPTURE is a pcap or pcapng file, compressed with gzip or not; - is standard
input:
    tcpdump -w - | flow_cache - --timeouts meter --live
Without CAPTURE, traffic is generated.

A flow is both directions of a conversation, with the counts of each. It ends
when a timeout says so, when its TCP connection is over, or when the cache is
full; what is left ends with the capture. All time is that of the packets.

What is written, to a FILE or, as -, to standard output:
    --csv FILE         one row for each direction of a record
    --json FILE        one line for each record: both directions, and why
    --ipfix FILE       messages of IPFIX, RFC 7011: each direction is a record
    --ipfix HOST:PORT  the same by UDP to a collector, such as nfcapd

What is shown:
    --top N            list the N largest records (10)
    --live             on a terminal, a table of the cache while packets come
    --help             print this

When flows end:
    --timeouts off|meter|conntrack   what the following change (off)
        off        nothing ends a flow: there is one record of each
        meter      60 s of silence, 5 s if closed; a report every 300 s
        conntrack  silence by protocol and state, as in connection tracking
    --idle SECONDS     after so long without a packet
    --active SECONDS   report what is new every so often, and go on
    --linger SECONDS   so long after the last packet of a closed connection
    --linger off       FIN and RST do not close connections
    --capacity N       hold N flows at most (1000000). Above, closed ones go
                       first, then half-open, unanswered, established ones.

SECONDS may have a fraction: 0.5.
";

/// Where the packets come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    File(PathBuf),
    Pipe,
    Generated,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Pipe => write!(f, "standard input"),
            Self::Generated => write!(f, "generated traffic (no capture was named)"),
        }
    }
}

/// Where messages of IPFIX go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ipfix {
    To(Destination),
    /// `HOST:PORT`.
    Collector(String),
}

impl From<&OsStr> for Ipfix {
    /// A number behind the last colon is a port, unless slashes show that this is a file.
    fn from(name: &OsStr) -> Self {
        let is_port = |end: &str| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit());
        let has_port = |text: &str| text.rsplit_once(':').is_some_and(|(_, end)| is_port(end));
        match name.to_str() {
            Some(text) if has_port(text) && !text.contains('/') => Self::Collector(text.to_owned()),
            _ => Self::To(Destination::from(name)),
        }
    }
}

/// What the command line asks for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) input: Input,
    pub(crate) csv: Option<Destination>,
    pub(crate) json: Option<Destination>,
    pub(crate) ipfix: Option<Ipfix>,
    pub(crate) top: usize,
    pub(crate) live: bool,
    pub(crate) capacity: usize,
    pub(crate) ending: Ending,
    pub(crate) help: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            input: Input::Generated,
            csv: None,
            json: None,
            ipfix: None,
            top: 10,
            live: false,
            capacity: 1_000_000,
            ending: Ending::default(),
            help: false,
        }
    }
}

impl Options {
    /// Reads the arguments of this process.
    pub(crate) fn from_env() -> Result<Self, OptionsError> {
        use lexopt::Arg::{Long, Value};
        let mut options = Self::default();
        let mut parser = Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long(name) => {
                    let name = name.to_owned();
                    options.set(&name, &mut parser)?;
                }
                Value(file) if options.input == Input::Generated => {
                    let is_pipe = file == "-";
                    options.input = if is_pipe { Input::Pipe } else { Input::File(file.into()) };
                }
                _ => return Err(argument.unexpected().into()),
            }
        }
        if options.standard_outputs() > 1 {
            return Err(OptionsError::SharedOutput);
        }
        Ok(options)
    }

    /// Sets the option of this name to its value, which comes next.
    fn set(&mut self, name: &str, parser: &mut Parser) -> Result<(), OptionsError> {
        match name {
            "csv" => self.csv = Some(parser.value()?.as_os_str().into()),
            "json" => self.json = Some(parser.value()?.as_os_str().into()),
            "ipfix" => self.ipfix = Some(parser.value()?.as_os_str().into()),
            "top" => self.top = count("--top", &parser.value()?)?,
            "live" => self.live = true,
            "capacity" => self.capacity = capacity(&parser.value()?)?,
            "timeouts" => self.ending.preset = preset(&parser.value()?)?,
            "idle" => self.ending.idle = Some(timeout("--idle", &parser.value()?)?),
            "active" => self.ending.active = Some(timeout("--active", &parser.value()?)?),
            "linger" => self.ending.linger = linger(&parser.value()?)?,
            "help" => self.help = true,
            _ => return Err(lexopt::Arg::Long(name).unexpected().into()),
        }
        Ok(())
    }

    /// How many results are to be printed. The report is no result.
    pub(crate) fn standard_outputs(&self) -> usize {
        let ipfix = match &self.ipfix {
            Some(Ipfix::To(destination)) => Some(destination),
            Some(Ipfix::Collector(_)) | None => None,
        };
        let outputs = [self.csv.as_ref(), self.json.as_ref(), ipfix];
        outputs.into_iter().filter(|to| *to == Some(&Destination::StandardOutput)).count()
    }

    /// The cache to meter with.
    pub(crate) fn config(&self) -> Result<Config, OptionsError> {
        let timeouts = self.ending.timeouts();
        let timeouts = timeouts.map_err(|error| wrong("timeouts", "", error))?;
        let config = Config::new(self.capacity);
        Ok(config.map_err(|error| wrong("--capacity", "", error))?.with_timeouts(timeouts))
    }
}

fn count(option: &'static str, value: &OsStr) -> Result<usize, OptionsError> {
    let text = value.to_string_lossy();
    usize::from_str(&text).map_err(|error| wrong(option, &text, error))
}

fn capacity(value: &OsStr) -> Result<usize, OptionsError> {
    const OPTION: &str = "--capacity";
    let flows = count(OPTION, value)?;
    Config::new(flows).map_err(|error| wrong(OPTION, &value.to_string_lossy(), error))?;
    Ok(flows)
}

fn timeout(option: &'static str, value: &OsStr) -> Result<Duration, OptionsError> {
    let text = value.to_string_lossy();
    let seconds = f64::from_str(&text).map_err(|error| wrong(option, &text, error))?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|error| wrong(option, &text, error))?;
    Timeouts::OFF.with_active(time).map_err(|error| wrong(option, &text, error))?;
    Ok(time)
}

fn preset(value: &OsStr) -> Result<Timeouts, OptionsError> {
    match value.to_str() {
        Some("off") => Ok(Timeouts::OFF),
        Some("meter") => Ok(Timeouts::METER),
        Some("conntrack") => Ok(Timeouts::CONNTRACK),
        _ => Err(wrong("--timeouts", &value.to_string_lossy(), "not off, meter or conntrack")),
    }
}

fn linger(value: &OsStr) -> Result<Linger, OptionsError> {
    if value == "off" {
        return Ok(Linger::Off);
    }
    timeout("--linger", value).map(Linger::For)
}

fn wrong(option: &'static str, value: &str, why: impl fmt::Display) -> OptionsError {
    OptionsError::Value { option, value: value.to_owned(), why: why.to_string() }
}

/// What is wrong with the command line.
#[derive(Debug)]
pub(crate) enum OptionsError {
    Unexpected(lexopt::Error),
    Value {
        option: &'static str,
        value: String,
        why: String,
    },
    /// Two results would be mixed.
    SharedOutput,
}

impl From<lexopt::Error> for OptionsError {
    fn from(error: lexopt::Error) -> Self {
        Self::Unexpected(error)
    }
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected(error) => write!(f, "{error}"),
            Self::Value { option, value, why } => write!(f, "{option} {value}: {why}"),
            Self::SharedOutput => write!(f, "only one of the results can go to standard output"),
        }
    }
}

impl core::error::Error for OptionsError {}
