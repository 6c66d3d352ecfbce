//! Command line options.

use std::ffi::OsString;

use lexopt::Parser;

use crate::input::Input;
use crate::program;
use crate::values::number;

/// Parsed command line options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// None for generated traffic.
    pub capture: Option<Input>,
    /// Number of connections of generated traffic.
    connections: Option<u32>,
}

impl Options {
    const CONNECTIONS: u32 = 2000;
    /// With more connections the lists take minutes.
    const MAX_CONNECTIONS: u32 = 20_000;

    pub fn connections(&self) -> u32 {
        self.connections.unwrap_or(Self::CONNECTIONS)
    }
}

impl program::Options for Options {
    const USAGE: &'static str = "\
Compares seven ways of finding the PCBs of TCP segments.

Usage: tcp_demux [CAPTURE | -] [OPTION]...

CAPTURE is a pcap or pcapng file, perhaps compressed; - is standard input. At
most four million of its TCP segments are read. All hosts that receive
connections are treated as one: segments towards them are looked up, the others
are sent. Without CAPTURE, traffic is generated: tellers enter transactions and
think, as in the benchmark TPC/A.

The answer to a SYN creates a PCB; the end of both directions, or a RST, removes
it. Prints for each way: PCBs examined per segment, how often the first one was
right, and the time.

Options:
    --connections N     number of generated connections (2000), at most
                        20000
";

    fn option(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "connections" => {
                self.connections = Some(number(name, parser, 1..=Self::MAX_CONNECTIONS)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn operand(&mut self, value: OsString) -> Result<bool, lexopt::Error> {
        Ok(self.capture.replace(value.into()).is_none())
    }

    fn finished(self) -> Result<Self, lexopt::Error> {
        if self.capture.is_some() && self.connections.is_some() {
            return Err(
                "--connections is for generated traffic; a capture has its own connections".into(),
            );
        }
        Ok(self)
    }
}
