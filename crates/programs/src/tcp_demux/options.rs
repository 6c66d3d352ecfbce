//! The command line.

use std::ffi::OsString;

use lexopt::Parser;

use crate::input::Input;
use crate::program;
use crate::values::number;

/// What the command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Generated traffic if there is none.
    pub capture: Option<Input>,
    /// Of generated traffic.
    connections: Option<u32>,
}

impl Options {
    const CONNECTIONS: u32 = 2000;
    /// With more of them the lists take minutes.
    const MAX_CONNECTIONS: u32 = 20_000;

    pub fn connections(&self) -> u32 {
        self.connections.unwrap_or(Self::CONNECTIONS)
    }
}

impl program::Options for Options {
    const USAGE: &'static str = "\
Finds the PCBs of TCP segments in seven ways, and says what each takes.

Usage: tcp_demux [CAPTURE | -] [OPTION]...

CAPTURE is a pcap or pcapng file, compressed with gzip or not; - is standard
input. Four million of its TCP segments are taken at most. All hosts that are
asked for connections are taken as one: segments towards them are looked up,
the others are sent. Without CAPTURE, traffic is generated: tellers who enter
transactions and think, as in the benchmark TPC/A.

The answer to a SYN makes a PCB; the end of both directions, or a RST, takes
it away. What is printed for each way: PCBs examined for a segment, how often
the first one was right, and the time.

Options:
    --connections N     generate traffic of so many connections (2000),
                        of 20000 at most
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
            return Err("--connections is for generated traffic; a capture has those it has".into());
        }
        Ok(self)
    }
}
