//! Command line options.

use std::ffi::OsString;

use lexopt::Parser;

use super::network::Links;
use crate::program;
use crate::values::number;

/// Parsed command line options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub receivers: usize,
    pub links: Links,
    pub rounds: u32,
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        let links = Links { lost: 1, duplicated: 10 };
        Self { receivers: 100, links, rounds: 20, seed: 2002 }
    }
}

impl program::Options for Options {
    const USAGE: &'static str = "\
Runs services for the source of a multicast with ephemeral state in routers.

Usage: ephemeral_services [OPTION]...

Generates a random tree of routers and receivers, whose links lose and duplicate
packets, and computes the depth of the tree, complaints about missing packets,
the number of receivers and their largest value. Prints true values, results,
and the fate of packets.

Options:
    --receivers N       number of receivers (100), at most 10000
    --loss N            links lose N packets per thousand (1)
    --duplication N     links duplicate N packets per thousand (10)
    --rounds N          rounds of each service (20), at most 1000
    --seed N            seed of the tree and of errors (2002)
";

    fn option(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "receivers" => self.receivers = number(name, parser, 1..=10_000)?,
            "loss" => self.links.lost = number(name, parser, 0..=1000)?,
            "duplication" => self.links.duplicated = number(name, parser, 0..=1000)?,
            "rounds" => self.rounds = number(name, parser, 1..=1000)?,
            "seed" => self.seed = number(name, parser, 0..=u64::MAX)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn operand(&mut self, _: OsString) -> Result<bool, lexopt::Error> {
        Ok(false)
    }
}
