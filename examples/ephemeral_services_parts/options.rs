//! The command line.

use lexopt::{Parser, ValueExt};

use super::network::Links;

/// What `--help` prints.
pub(crate) const USAGE: &str = "\
What routers with ephemeral state find out for the source of a multicast.

Usage: ephemeral_services [options]

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
    --help              print this
";

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) receivers: usize,
    pub(crate) links: Links,
    pub(crate) rounds: u32,
    pub(crate) seed: u64,
    pub(crate) help: bool,
}

impl Default for Options {
    fn default() -> Self {
        let links = Links { lost: 1, duplicated: 10 };
        Self { receivers: 100, links, rounds: 20, seed: 2002, help: false }
    }
}

impl Options {
    /// Reads the arguments of this process.
    pub(crate) fn from_env() -> Result<Self, lexopt::Error> {
        Self::parse(Parser::from_env())
    }

    pub(crate) fn parse(mut parser: Parser) -> Result<Self, lexopt::Error> {
        use lexopt::Arg::Long;
        let mut options = Self::default();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("receivers") => options.receivers = number(&mut parser, 1, 10_000)? as usize,
                Long("loss") => options.links.lost = number(&mut parser, 0, 1000)?,
                Long("duplication") => options.links.duplicated = number(&mut parser, 0, 1000)?,
                Long("rounds") => options.rounds = number(&mut parser, 1, 1000)?,
                Long("seed") => options.seed = parser.value()?.parse()?,
                Long("help") => options.help = true,
                _ => return Err(argument.unexpected()),
            }
        }
        Ok(options)
    }
}

/// The value of an option that is a number from `least` to `most`.
fn number(parser: &mut Parser, least: u32, most: u32) -> Result<u32, lexopt::Error> {
    let number = parser.value()?.parse()?;
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(format!("{number} is not from {least} to {most}").into())
}
