//! Command line options.

use core::num::NonZero;
use core::time::Duration;
use std::ffi::OsString;
use std::thread::available_parallelism;

use lexopt::Parser;

use super::Plan;
use crate::input::Input;
use crate::program;
use crate::values::{number, seconds, text, wrong};

/// Parsed command line options.
#[derive(Clone, Debug)]
pub struct Options {
    /// None for generated traffic.
    pub capture: Option<Input>,
    /// Number of flows of generated traffic.
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
        // One CPU is for the control thread.
        let workers = available_parallelism().map_or(1, NonZero::get).saturating_sub(1).max(1);
        let (duration, timeout) = (Duration::from_secs(2), Duration::from_secs(60));
        Self { capture: None, flows: None, plan: Plan { workers, duration, timeout } }
    }
}

impl program::Options for Options {
    const USAGE: &'static str = "\
Looks flows up from many threads, while another inserts and removes them.

Usage: shared_reader [CAPTURE | -] [OPTION]...

CAPTURE is a pcap or pcapng file, perhaps compressed; - is standard input. Its
packets are repeated: four million of them at most. Without CAPTURE, traffic is
generated: Zipf's distribution over changing flows.

Workers look flows up in bursts and count packets in them. Packets without a
flow go to the control thread, which inserts the flow, and removes those that
are silent. Prints lookups per second of each worker, and the latencies of
writes.

SECONDS may have a fraction: 0.5.

Options:
    --threads N         number of workers (one less than there are CPUs), at
                        most 1024
    --flows N           number of generated flows at a time (100000), at most
                        100000000
    --seconds SECONDS   duration of the run (2), at most 1000000
    --timeout SECONDS   a flow ends after this time without a packet (60), by
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
            return Err("--flows is for generated traffic; a capture has its own flows".into());
        }
        Ok(self)
    }
}

fn time(name: &str, parser: &mut Parser) -> Result<Duration, lexopt::Error> {
    let text = text(parser)?;
    let time = seconds(name, &text)?;
    if time > Options::LONGEST {
        let most = Options::LONGEST.as_secs();
        return Err(wrong(name, &text, &format_args!("more than {most} seconds")));
    }
    Ok(time)
}
