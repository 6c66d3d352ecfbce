//! Our structures against their best peers, with the same keys in one process:
//! `cargo bench --bench peers [-- --help]`.
//!
//! Virtual machines are noisy, so a figure is compared only with the peer's of the same round:
//!
//! ```text
//!     round 1   hit:  ours  peer a  peer b   miss:  ours  peer a  peer b   …
//!     round 2   hit:  peer a  peer b  ours   miss:  peer a  peer b  ours   …
//! ```
//!
//! All subjects run in one process on the same keys in the same order, each with loops compiled for
//! it; each round starts with another subject. The median of the rounds is printed. A ratio is the
//! median of the ratios within the rounds, so it may differ from the ratio of two medians. It is
//! peer / ours: above 1, ours is better.
//!
//! Hashing is part of the time where a structure hashes. The sums of the values found must be
//! equal.
//!
//! Each structure has a module here with its subjects and benchmarks. To add one, add the module,
//! its line in [`STRUCTURES`], and its section in `page/sections.json`.
//!
//! `docs/PEERS.md` is written by `cargo bench --all-features --bench peers -- --json
//! docs/peers/figures.jsonl --page docs/PEERS.md`; `--from` instead of `--json` writes it again
//! without measuring.

mod args;
mod caches;
#[cfg(feature = "concurrent")]
mod concurrent;
#[cfg(feature = "concurrent")]
mod concurrent_routes;
mod demux;
mod ephemeral;
mod flows;
mod keys;
mod lc_trie;
mod maps;
mod memory;
mod page;
mod results;
mod routes;
mod sockets;
mod subject;
mod trash;

use std::env;
use std::process::ExitCode;

use args::Plan;
use results::{Outcome, Report};

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Measures a structure.
type Measure = fn(&Plan, &mut Report) -> Outcome;

/// The structures, by their names for `--only`.
const STRUCTURES: &[(&str, Measure)] = &[
    ("trash", trash::run),
    ("lc_trie", lc_trie::run),
    ("routes", routes::run),
    ("flows", flows::run),
    ("demux", demux::run),
    ("sockets", sockets::run),
    ("caches", caches::run),
    ("ephemeral", ephemeral::run),
    #[cfg(feature = "concurrent")]
    ("concurrent", concurrent::run),
    #[cfg(feature = "concurrent")]
    ("concurrent_routes", concurrent_routes::run),
];

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Outcome {
    // Cargo runs benches in their package's folder; paths are relative to the root here.
    env::set_current_dir(ROOT).map_err(|error| format!("{ROOT}: {error}"))?;
    let names: Vec<_> = STRUCTURES.iter().map(|&(name, _)| name).collect();
    match Plan::parse(&names)? {
        Some(plan) => run(&plan),
        None => Ok(()),
    }
}

/// Measures, unless `--from` names a file of figures; then writes the page.
fn run(plan: &Plan) -> Outcome {
    if plan.from.is_none() {
        measure(plan)?;
    }
    match (&plan.page, plan.figures()) {
        (Some(page), Some(figures)) => page::write(page, figures),
        _ => Ok(()),
    }
}

fn measure(plan: &Plan) -> Outcome {
    let mut report = Report::new(plan.json.as_deref(), plan.quick)?;
    for &(name, run) in STRUCTURES {
        if plan.only.as_deref().is_none_or(|only| only == name) {
            run(plan, &mut report)?;
        }
    }
    Ok(())
}
