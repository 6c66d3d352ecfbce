//! The command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lexopt::prelude::*;

const HELP: &str = "\
Our structures against their best peers, in one process.

cargo bench --bench peers -- [OPTIONS] [ENTRIES…]

  ENTRIES           only the timed rounds, with this number of entries
  --only STRUCTURE  only this structure
  --quick           everything at a small scale, in minutes; the default without `cargo bench`
  --churn PAIRS     removals and insertions of the long churn [2000000; 200000 with --quick]
  --json FILE       write a line of JSON per figure: structure, bench, key, n, threads, unit, ours,
                    peer, peer_name, ratio (above 1: ours is better)
  --page FILE       write a page of Markdown from the figures of --json, with plots in the directory
                    `peers` next to it
  --from FILE       measure nothing; write the page from the figures in this file
  --help            print this help
";

/// The options of a run.
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
    /// Parses the command line. Returns `None` after `--help`.
    pub(crate) fn parse(structures: &[&str]) -> Result<Option<Self>, Box<dyn std::error::Error>> {
        let mut plan = Self::default();
        let mut args = lexopt::Parser::from_env();
        let mut is_bench = false;
        while let Some(arg) = args.next()? {
            match arg {
                Long("quick") => plan.quick = true,
                Long("only") => plan.only = Some(args.value()?.string()?),
                Long("json") => plan.json = Some(args.value()?.into()),
                Long("page") => plan.page = Some(args.value()?.into()),
                Long("from") => plan.from = Some(args.value()?.into()),
                Long("churn") => plan.churn = Some(args.value()?.parse_with(count)?),
                // `cargo bench` passes it to every bench, `cargo test` does not.
                Long("bench") => is_bench = true,
                Long("help") | Short('h') => {
                    print!("{HELP}\nSTRUCTURE is one of: {}\n", structures.join(", "));
                    return Ok(None);
                }
                Value(entries) => plan.sizes.push(OsString::parse_with(&entries, count)?),
                _ => return Err(arg.unexpected().into()),
            }
        }
        plan.quick |= !is_bench;
        plan.check(structures)?;
        Ok(Some(plan))
    }

    /// Refuses combinations of options that make no sense.
    fn check(&self, structures: &[&str]) -> Result<(), String> {
        if let Some(only) = self.only.as_deref().filter(|only| !structures.contains(only)) {
            return Err(format!("no structure {only}; there are: {}", structures.join(", ")));
        }
        if self.from.is_some() && (self.json.is_some() || self.only.is_some()) {
            return Err("--from measures nothing; do not combine it with --json or --only".into());
        }
        if self.from.is_some() && self.page.is_none() {
            return Err("--from needs --page".into());
        }
        if self.page.is_some() && self.figures().is_none() {
            return Err("--page needs figures: --json FILE measures, --from FILE reads".into());
        }
        Ok(())
    }

    /// The file of the figures that the page shows.
    pub(crate) fn figures(&self) -> Option<&Path> {
        self.from.as_deref().or(self.json.as_deref())
    }

    /// Numbers of entries of the timed rounds; `full` and `quick` are the structure's defaults.
    pub(crate) fn sizes<'a>(&'a self, full: &'a [usize], quick: &'a [usize]) -> &'a [usize] {
        match (&self.sizes[..], self.quick) {
            ([], true) => quick,
            ([], false) => full,
            (sizes, _) => sizes,
        }
    }

    /// Whether to run only the timed rounds.
    pub(crate) fn is_rounds_only(&self) -> bool {
        !self.sizes.is_empty()
    }

    /// Pairs of a removal and an insertion in the long churn.
    pub(crate) fn churn(&self) -> usize {
        self.churn.unwrap_or(if self.quick { 200_000 } else { 2_000_000 })
    }
}

/// Parses a positive count, with or without `_` between the digits.
fn count(text: &str) -> Result<usize, String> {
    match text.replace('_', "").parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(format!("{text} is not a count")),
    }
}
