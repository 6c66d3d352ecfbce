//! Command line options.

use std::ffi::OsString;

use lexopt::Parser;

use crate::input::Input;
use crate::program;
use crate::values::number;

/// Parsed command line options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// None for generated traffic.
    pub capture: Option<Input>,
    /// Offered load in percent of the capacity.
    pub load: u32,
    pub measure: bool,
    /// Whether each path of each schedule is listed.
    pub paths: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { capture: None, load: 150, measure: false, paths: false }
    }
}

impl Options {
    const MAX_LOAD: u32 = 1000;
}

impl program::Options for Options {
    const USAGE: &'static str = "\
Forwards the packets of a capture, under several schedules.

Usage: software_router [CAPTURE | -] [OPTION]...

CAPTURE is a pcap or pcapng file, perhaps compressed; - is standard input. At
most 131072 of its IP packets are read. Without CAPTURE, traffic is generated.
Packets arrive in the order of the capture, with its relative times scaled to
the load. A packet costs as much as in the paper, so the output is equal on
every computer.

Printed are, for each schedule, the packets sent by each of the router's
functions, and the efficiency index (the part of the busy time that is spent on
packets); then packets sent at rising loads, with and without a schedule.

Options:
    --load PERCENT      offered load in percent of the capacity without
                        switches (150), from 1 to 1000
    --measure           measure the costs of packets on this computer, and
                        use them
    --paths             also print packets dropped and left, and the longest
                        queues, for each function under each schedule
";

    fn option(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "load" => self.load = number(name, parser, 1..=Self::MAX_LOAD)?,
            "measure" => self.measure = true,
            "paths" => self.paths = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn operand(&mut self, value: OsString) -> Result<bool, lexopt::Error> {
        Ok(self.capture.replace(value.into()).is_none())
    }
}
