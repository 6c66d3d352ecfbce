//! The command line.

use std::ffi::OsString;

use lexopt::Parser;

use super::network::Links;
use crate::program;
use crate::values::{number, parsed, text};

/// What the command line asks for.
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
Finds out with ephemeral state in routers what the source of a multicast asks.

Usage: ephemeral_services [OPTION]...

Makes a random tree of routers and receivers, whose links lose and duplicate
packets, and asks: how deep is the tree, who misses a packet, how many
receivers are there, what is their largest value? Prints what is true, what
was found, and what became of the packets.

Options:
    --receivers N       so many receivers (100), of 10000 at most
    --loss N            links lose N packets of a thousand (1)
    --duplication N     links duplicate N packets of a thousand (10)
    --rounds N          ask so often (20), 1000 times at most
    --seed N            another tree, other accidents (2002)
";

    fn option(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "receivers" => self.receivers = number(name, parser, 1..=10_000)?,
            "loss" => self.links.lost = number(name, parser, 0..=1000)?,
            "duplication" => self.links.duplicated = number(name, parser, 0..=1000)?,
            "rounds" => self.rounds = number(name, parser, 1..=1000)?,
            "seed" => self.seed = parsed(name, &text(parser)?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn operand(&mut self, _: OsString) -> Result<bool, lexopt::Error> {
        Ok(false)
    }
}
