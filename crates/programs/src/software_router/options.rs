//! The command line.

use std::ffi::OsString;

use lexopt::Parser;

use crate::input::Input;
use crate::program;
use crate::values::number;

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Generated traffic if there is none.
    pub capture: Option<Input>,
    /// Percent of the capacity.
    pub load: u32,
    pub measure: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { capture: None, load: 150, measure: false }
    }
}

impl Options {
    const MAX_LOAD: u32 = 1000;
}

impl program::Options for Options {
    const USAGE: &'static str = "\
Forwards the packets of a capture, under several schedules.

Usage: software_router [CAPTURE | -] [OPTION]...

CAPTURE is a pcap or pcapng file, compressed with gzip or not; - is standard
input. 131072 of its IP packets are taken at most. Without CAPTURE, traffic is
generated. Packets arrive in the order and at the distances that they have
there, in as much time as the load says. A packet costs what it does in the
paper, so what is printed is the same on every machine.

Printed are, for each schedule: the efficiency index (the part of the busy
time that went to packets), packets forwarded, dropped and left, and how long
queues got, for each of the router's functions; then packets forwarded at
rising loads, with and unclassified a schedule.

Options:
    --load PERCENT      offer so much of what a router could forward that
                        never switches (150), from 1 to 1000
    --measure           measure what packets cost on this machine, and take
                        that
";

    fn option(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "load" => self.load = number(name, parser, 1..=Self::MAX_LOAD)?,
            "measure" => self.measure = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn operand(&mut self, value: OsString) -> Result<bool, lexopt::Error> {
        Ok(self.capture.replace(value.into()).is_none())
    }
}
