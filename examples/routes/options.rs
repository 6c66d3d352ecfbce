//! The command line.

use core::net::IpAddr;
use std::path::PathBuf;

use lexopt::Parser;

/// What `--help` prints.
pub(crate) const USAGE: &str = "\
Looks addresses up in a table of routes: the longest prefix that matches.

Usage: route_lookup [ROUTES] [ADDRESS | -]... [options]

ROUTES is a text file, compressed with gzip or not, with a prefix in each line, IPv4 or IPv6,
and optionally a name behind white space; a # begins a comment:
    192.0.2.0/24    upstream 1
    2001:db8::/32   upstream 2
Without ROUTES, a small table is used. - is standard input, with an address in each line; it is
read, too, if there are ROUTES and no ADDRESS.

The answer is one line for each address: the address, the prefix, its name; a - if there is none.
What the table looks like, its memory and its speed are told on standard error.

Options:
    --quiet     tell nothing but answers and errors
    --help      print this
";

/// What is to be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Address(IpAddr),
    /// Those on standard input.
    Pipe,
}

/// What the command line asks for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) routes: Option<PathBuf>,
    pub(crate) asked: Vec<Asked>,
    pub(crate) quiet: bool,
    pub(crate) help: bool,
}

impl Options {
    /// Reads the arguments of this process.
    pub(crate) fn from_env() -> Result<Self, lexopt::Error> {
        Self::parse(Parser::from_env())
    }

    /// The first argument is a file unless it is an address, all others are addresses.
    pub(crate) fn parse(mut parser: Parser) -> Result<Self, lexopt::Error> {
        use lexopt::Arg::{Long, Value};
        let (mut routes, mut asked) = (None, vec![]);
        let (mut quiet, mut help) = (false, false);
        while let Some(argument) = parser.next()? {
            match argument {
                Long("quiet") => quiet = true,
                Long("help") => help = true,
                Value(value) if value == "-" => asked.push(Asked::Pipe),
                Value(value) => match value.to_str().and_then(|text| text.parse().ok()) {
                    Some(address) => asked.push(Asked::Address(address)),
                    None if routes.is_none() && asked.is_empty() => routes = Some(value.into()),
                    None => return Err(format!("{} is no address", value.to_string_lossy()).into()),
                },
                _ => return Err(argument.unexpected()),
            }
        }
        if routes.is_some() && asked.is_empty() {
            asked.push(Asked::Pipe);
        }
        Ok(Self { routes, asked, quiet, help })
    }
}
