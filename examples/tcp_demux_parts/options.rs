//! The command line.

use std::path::PathBuf;

use lexopt::Parser;

use crate::program::count;

/// What `--help` prints.
pub(crate) const USAGE: &str = "\
Finds the PCBs of TCP segments in seven ways, and says what each takes.

Usage: tcp_demux [CAPTURE | -] [options]

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
    --help              print this
";

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Generated traffic if there is none.
    pub(crate) capture: Option<PathBuf>,
    /// Of generated traffic.
    pub(crate) connections: u32,
    pub(crate) help: bool,
}

impl Options {
    const CONNECTIONS: u32 = 2000;
    /// With more of them the lists take minutes.
    const MOST_CONNECTIONS: u32 = 20_000;

    /// Reads the arguments of this process.
    pub(crate) fn from_env() -> Result<Self, lexopt::Error> {
        Self::parse(Parser::from_env())
    }

    pub(crate) fn parse(mut parser: Parser) -> Result<Self, lexopt::Error> {
        use lexopt::Arg::{Long, Value};
        let (mut capture, mut connections, mut help) = (None, None, false);
        while let Some(argument) = parser.next()? {
            match argument {
                Long("connections") => {
                    let value = parser.value()?;
                    connections = Some(count("--connections", &value, Self::MOST_CONNECTIONS)?);
                }
                Long("help") => help = true,
                Value(file) if capture.is_none() => capture = Some(file.into()),
                _ => return Err(argument.unexpected()),
            }
        }
        if capture.is_some() && connections.is_some() {
            return Err("--connections is for generated traffic; a capture has those it has".into());
        }
        Ok(Self { capture, connections: connections.unwrap_or(Self::CONNECTIONS), help })
    }
}
