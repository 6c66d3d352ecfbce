//! The command line.

use std::path::PathBuf;

use lexopt::Parser;

use crate::program::count;

/// What `--help` prints.
pub(crate) const USAGE: &str = "\
Forwards the packets of a capture, under several schedules.

Usage: software_router [CAPTURE | -] [options]

CAPTURE is a pcap or pcapng file, compressed with gzip or not; - is standard
input. 131072 of its IP packets are taken at most. Without CAPTURE, traffic is
generated. Packets arrive in the order and at the distances that they have
there, in as much time as the load says. A packet costs what it does in the
paper, so what is printed is the same on every machine.

Printed are, for each schedule: the efficiency index (the part of the busy
time that went to packets), packets forwarded, dropped and left, and how long
queues got, for each of the router's functions; then packets forwarded at
rising loads, with and without a schedule.

Options:
    --load PERCENT      offer so much of what a router could forward that
                        never switches (150), from 1 to 1000
    --measure           measure what packets cost on this machine, and take
                        that
    --help              print this
";

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Generated traffic if there is none.
    pub(crate) capture: Option<PathBuf>,
    /// Percent of the capacity.
    pub(crate) load: u32,
    pub(crate) measure: bool,
    pub(crate) help: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { capture: None, load: 150, measure: false, help: false }
    }
}

impl Options {
    const MOST_LOAD: u32 = 1000;

    /// Reads the arguments of this process.
    pub(crate) fn from_env() -> Result<Self, lexopt::Error> {
        Self::parse(Parser::from_env())
    }

    pub(crate) fn parse(mut parser: Parser) -> Result<Self, lexopt::Error> {
        use lexopt::Arg::{Long, Value};
        let mut options = Self::default();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("load") => {
                    options.load = count("--load", &parser.value()?, Self::MOST_LOAD)?;
                }
                Long("measure") => options.measure = true,
                Long("help") => options.help = true,
                Value(file) if options.capture.is_none() => options.capture = Some(file.into()),
                _ => return Err(argument.unexpected()),
            }
        }
        Ok(options)
    }
}
