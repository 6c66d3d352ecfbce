//! Command line options: those of all programs.

use std::ffi::OsString;

use lexopt::Parser;

use crate::program;

/// Parsed command line options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options;

impl program::Options for Options {
    const USAGE: &'static str = "\
Admits the data connections that FTP control connections announce.

Usage: ftp [OPTION]...

Builds the packets of an FTP session, passes them through a firewall, and prints
for each what became of it.

Options:
";

    fn option(&mut self, _: &str, _: &mut Parser) -> Result<bool, lexopt::Error> {
        Ok(false)
    }

    fn operand(&mut self, _: OsString) -> Result<bool, lexopt::Error> {
        Ok(false)
    }
}
