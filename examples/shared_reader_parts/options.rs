//! The command line.

use core::num::NonZero;
use core::time::Duration;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::thread::available_parallelism;

use lexopt::Parser;

use super::Plan;
use crate::program::{count, wrong};

/// What `--help` prints.
pub(crate) const USAGE: &str = "\
Looks flows up from many threads, while another puts them in and takes them out.

Usage: shared_reader [CAPTURE | -] [options]

CAPTURE is a pcap or pcapng file, compressed with gzip or not; - is standard
input. Its packets are dealt out over and over: four million of them at most.
Without CAPTURE, traffic is generated: Zipf's law over flows that come and go.

Workers look flows up in bursts and count packets in them. Packets without a
flow go to the control thread, which puts the flow in, and takes out those
that are silent. What is printed: look-ups per second of each worker, and how
long it took to write.

Options:
    --threads N         so many workers (one less than there are processors)
    --flows N           generate so many flows at a time (100000)
    --seconds SECONDS   run so long (2)
    --timeout SECONDS   a flow ends after so long without a packet (60), by
                        the packets' time
    --help              print this

SECONDS may have a fraction: 0.5.
";

/// What the command line asks for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Generated traffic if there is none.
    pub(crate) capture: Option<PathBuf>,
    /// Of generated traffic.
    pub(crate) flows: u32,
    pub(crate) plan: Plan,
    pub(crate) help: bool,
}

impl Options {
    const FLOWS: u32 = 100_000;
    const MOST_THREADS: u32 = 1024;
    const MOST_FLOWS: u32 = 100_000_000;
    const MOST_SECONDS: f64 = 1e6;

    /// Reads the arguments of this process.
    pub(crate) fn from_env() -> Result<Self, lexopt::Error> {
        Self::parse(Parser::from_env())
    }

    pub(crate) fn parse(mut parser: Parser) -> Result<Self, lexopt::Error> {
        use lexopt::Arg::{Long, Value};
        // One processor is the control thread's.
        let workers = available_parallelism().map_or(1, NonZero::get).saturating_sub(1).max(1);
        let (duration, timeout) = (Duration::from_secs(2), Duration::from_secs(60));
        let mut plan = Plan { workers, duration, timeout };
        let (mut capture, mut flows, mut help) = (None, None, false);
        while let Some(argument) = parser.next()? {
            match argument {
                Long("threads") => {
                    let threads = count("--threads", &parser.value()?, Self::MOST_THREADS)?;
                    plan.workers = threads as usize;
                }
                Long("flows") => {
                    flows = Some(count("--flows", &parser.value()?, Self::MOST_FLOWS)?);
                }
                Long("seconds") => plan.duration = seconds("--seconds", &parser.value()?)?,
                Long("timeout") => plan.timeout = seconds("--timeout", &parser.value()?)?,
                Long("help") => help = true,
                Value(file) if capture.is_none() => capture = Some(file.into()),
                _ => return Err(argument.unexpected()),
            }
        }
        if capture.is_some() && flows.is_some() {
            return Err("--flows is for generated traffic; a capture has those it has".into());
        }
        Ok(Self { capture, flows: flows.unwrap_or(Self::FLOWS), plan, help })
    }
}

fn seconds(option: &str, value: &OsStr) -> Result<Duration, lexopt::Error> {
    let text = value.to_string_lossy();
    let seconds: f64 = text.parse().map_err(|error| wrong(option, &text, &error))?;
    // Written so that what is not a number is wrong, too.
    if !(seconds > 0.0 && seconds <= Options::MOST_SECONDS) {
        let most = Options::MOST_SECONDS;
        return Err(wrong(option, &text, &format_args!("not above 0, or above {most}")));
    }
    Ok(Duration::from_secs_f64(seconds))
}
