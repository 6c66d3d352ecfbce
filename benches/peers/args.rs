//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lexopt::prelude::*;

const HELP: &str = "\
Our structures against their best peers, in one process.

cargo bench --bench peers -- [OPTIONS] [ENTRIES…]

  ENTRIES           only the timed rounds, with so many entries
  --only STRUCTURE  only that structure
  --quick           everything on a small scale, in a minute or two; without `cargo bench` it is always so
  --churn PAIRS     removals and insertions of the long churn [2000000; 200000 with --quick]
  --json FILE       a line of JSON for each figure: structure, bench, key, n, threads, unit, ours,
                    peer, peer_name, ratio (above 1: ours is better)
  --page FILE       writes a page of Markdown about the figures of --json, with plots in the directory
                    `peers` beside it
  --from FILE       measures nothing: the page is about the figures of this file
  --help            this
";

/// What was asked for.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) quick: bool,
    pub(crate) only: Option<String>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) page: Option<PathBuf>,
    pub(crate) from: Option<PathBuf>,
    churn: Option<usize>,
    sizes: Vec<usize>,
}

impl Plan {
    /// The plan of the command line; none if it was only asked for help.
    pub(crate) fn parse(structures: &[&str]) -> Result<Option<Self>, Box<dyn std::error::Error>> {
        let mut plan = Self::default();
        let mut words = lexopt::Parser::from_env();
        let mut is_bench = false;
        while let Some(word) = words.next()? {
            match word {
                Long("quick") => plan.quick = true,
                Long("only") => plan.only = Some(words.value()?.string()?),
                Long("json") => plan.json = Some(words.value()?.into()),
                Long("page") => plan.page = Some(words.value()?.into()),
                Long("from") => plan.from = Some(words.value()?.into()),
                Long("churn") => plan.churn = Some(words.value()?.parse_with(number)?),
                // `cargo bench` says it to every bench, and `cargo test` does not.
                Long("bench") => is_bench = true,
                Long("help") | Short('h') => {
                    print!("{HELP}\nSTRUCTURE is one of: {}\n", structures.join(", "));
                    return Ok(None);
                }
                Value(entries) => plan.sizes.push(OsString::parse_with(&entries, number)?),
                _ => return Err(word.unexpected().into()),
            }
        }
        if let Some(only) = plan.only.as_deref().filter(|only| !structures.contains(only)) {
            return Err(format!("no structure {only}; there are: {}", structures.join(", ")).into());
        }
        plan.quick |= !is_bench;
        if plan.from.is_some() && (plan.json.is_some() || plan.only.is_some()) {
            return Err("--from measures nothing, so it goes with neither --json nor --only".into());
        }
        if plan.from.is_some() && plan.page.is_none() {
            return Err("--from has figures for a --page".into());
        }
        if plan.page.is_some() && plan.figures().is_none() {
            return Err(
                "--page is about figures: --json FILE measures some, --from FILE has some".into()
            );
        }
        Ok(Some(plan))
    }

    /// The file of the figures that a page is about.
    pub(crate) fn figures(&self) -> Option<&Path> {
        self.from.as_deref().or(self.json.as_deref())
    }

    /// Numbers of entries of the timed rounds, where the structure's own are `full` and `quick`.
    pub(crate) fn sizes<'a>(&'a self, full: &'a [usize], quick: &'a [usize]) -> &'a [usize] {
        match (&self.sizes[..], self.quick) {
            ([], true) => quick,
            ([], false) => full,
            (sizes, _) => sizes,
        }
    }

    /// Whether only the timed rounds are wanted.
    pub(crate) fn is_rounds_only(&self) -> bool {
        !self.sizes.is_empty()
    }

    /// Pairs of a removal and an insertion in the long churn.
    pub(crate) fn churn(&self) -> usize {
        self.churn.unwrap_or(if self.quick { 200_000 } else { 2_000_000 })
    }
}

/// A count of something: digits, with or without `_` between them.
fn number(word: &str) -> Result<usize, String> {
    match word.replace('_', "").parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(format!("{word} is not a count")),
    }
}
