//! Command line options.

use core::net::IpAddr;
use std::ffi::OsString;

use lexopt::Parser;

use crate::input::Input;
use crate::program;

/// An address to look up, or a source of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    Address(IpAddr),
    /// The addresses on standard input.
    Pipe,
}

/// Parsed command line options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// None for the built-in table.
    pub routes: Option<Input>,
    pub queries: Vec<Query>,
}

impl program::Options for Options {
    const USAGE: &'static str = "\
Looks addresses up in a table of routes: the longest prefix that matches.

Usage: route_lookup [ROUTES | -] [ADDRESS | -]... [OPTION]...

ROUTES is a text file with a prefix, an address or the word default in each
line, IPv4 or IPv6, and optionally a name after white space or a comma; # and ;
begin a comment:
    192.0.2.0/24    upstream 1
    2001:db8::/32   upstream 2
It may also be a file of a BGP router or route collector (MRT: TABLE_DUMP,
TABLE_DUMP_V2, and updates, BGP4MP): the names are the autonomous systems that
announce the prefixes. Files may be compressed by gzip, bzip2, zstd, xz or lz4.
Lines and records that are no routes are skipped and counted, the first three
are printed, and the exit code is 2 after all addresses were looked up.
Without ROUTES, a small table is used. - is standard input: ROUTES if addresses
follow it, or else addresses, one in each line. Addresses are also read from it
with ROUTES and no ADDRESS.

The output is one line for each address: the address, the prefix, its name; a -
if there is none. The shape of the tables, their memory and their speed are
printed on standard error.

Options:
";

    fn option(&mut self, _: &str, _: &mut Parser) -> Result<bool, lexopt::Error> {
        Ok(false)
    }

    /// Handles an argument: the first one is a file unless it is an address, all others are
    /// addresses.
    fn operand(&mut self, value: OsString) -> Result<bool, lexopt::Error> {
        let is_first = self.routes.is_none() && self.queries.is_empty();
        match value.to_str().and_then(|text| text.parse().ok()) {
            Some(address) => self.queries.push(Query::Address(address)),
            None if value == "-" => self.queries.push(Query::Pipe),
            None if is_first => self.routes = Some(value.into()),
            None => return Err(format!("{} is no address", value.to_string_lossy()).into()),
        }
        Ok(true)
    }

    fn finished(mut self) -> Result<Self, lexopt::Error> {
        match self.queries[..] {
            [] if self.routes.is_some() => self.queries.push(Query::Pipe),
            [Query::Pipe, _, ..] if self.routes.is_none() => {
                self.routes = Some(Input::Pipe);
                self.queries.remove(0);
            }
            _ => {}
        }
        let pipes = self.queries.iter().filter(|query| **query == Query::Pipe).count();
        if pipes + usize::from(self.routes == Some(Input::Pipe)) > 1 {
            return Err("standard input can be read only once".into());
        }
        Ok(self)
    }
}
