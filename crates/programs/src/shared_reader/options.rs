//! The command line.

use core::num::NonZero;
use core::time::Duration;
use std::ffi::OsString;
use std::thread::available_parallelism;

use lexopt::Parser;

use super::Plan;
use crate::input::Input;
use crate::program;
use crate::values::{number, seconds, text, wrong};

/// What the command line asks for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Generated traffic if there is none.
    pub capture: Option<Input>,
    /// Of generated traffic.
    flows: Option<u32>,
    pub plan: Plan,
}

impl Options {
    const FLOWS: u32 = 100_000;
    const MAX_FLOWS: u32 = 100_000_000;
    const MAX_THREADS: usize = 1024;
    const LONGEST: Duration = Duration::from_secs(1_000_000);

    pub fn flows(&self) -> u32 {
        self.flows.unwrap_or(Self::FLOWS)
    }
}

impl Default for Options {
    fn default() -> Self {
        // One processor is the control thread's.
        let workers = available_parallelism().map_or(1, NonZero::get).saturating_sub(1).max(1);
        let (duration, timeout) = (Duration::from_secs(2), Duration::from_secs(60));
        Self { capture: None, flows: None, plan: Plan { workers, duration, timeout } }
    }
}

impl program::Options for Options {
    const USAGE: &'static str = "\
Looks flows up from many threads, while another puts them in and takes them out.

Usage: shared_reader [CAPTURE | -] [OPTION]...

CAPTURE is a pcap or pcapng file, compressed with gzip or not; - is standard
input. Its packets are dealt out over and over: four million of them at most.
Without CAPTURE, traffic is generated: Zipf's law over flows that come and go.

Workers look flows up in bursts and count packets in them. Packets without a
flow go to the control thread, which puts the flow in, and takes out those
that are silent. What is printed: lookups per second of each worker, and how
long it took to write.

SECONDS may have a fraction: 0.5.

Options:
    --threads N         so many workers (one less than there are processors)
    --flows N           generate so many flows at a time (100000)
    --seconds SECONDS   run so long (2)
    --timeout SECONDS   a flow ends after so long without a packet (60), by
                        the packets' time
";

    fn option(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "threads" => self.plan.workers = number(name, parser, 1..=Self::MAX_THREADS)?,
            "flows" => self.flows = Some(number(name, parser, 1..=Self::MAX_FLOWS)?),
            "seconds" => self.plan.duration = time(name, parser)?,
            "timeout" => self.plan.timeout = time(name, parser)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn operand(&mut self, value: OsString) -> Result<bool, lexopt::Error> {
        Ok(self.capture.replace(value.into()).is_none())
    }

    fn finished(self) -> Result<Self, lexopt::Error> {
        if self.capture.is_some() && self.flows.is_some() {
            return Err("--flows is for generated traffic; a capture has those it has".into());
        }
        Ok(self)
    }
}

fn time(name: &str, parser: &mut Parser) -> Result<Duration, lexopt::Error> {
    let text = text(parser)?;
    let time = seconds(name, &text)?;
    if time.is_zero() || time > Options::LONGEST {
        let most = Options::LONGEST.as_secs();
        return Err(wrong(name, &text, &format_args!("not above 0 and up to {most}")));
    }
    Ok(time)
}
