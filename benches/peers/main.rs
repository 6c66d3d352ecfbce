//! Us against the best, on the same keys, in one run: `cargo bench --bench peers [-- --help]`.
//!
//! These machines are noisy, so a figure is only good beside the peer's of the same moment:
//!
//! ```text
//!     round 1   hit:  ours  peer a  peer b   miss:  ours  peer a  peer b   …
//!     round 2   hit:  peer a  peer b  ours   miss:  peer a  peer b  ours   …
//! ```
//!
//! All contestants are in one process and get the same keys in the same order; each has a loop
//! compiled for it; they take turns, and another one begins each round. What is printed is the median
//! of the rounds. A ratio is the median of the ratios within the rounds, and so may differ a little
//! from the ratio of two medians. It says how many times ours is better: above 1, ours is.
//!
//! The hash is part of the time for everybody who needs one. Contestants have to agree on the sum of
//! the values that they have found.
//!
//! A structure has a module below with its contestants and what they are asked to do. A further one
//! needs such a module, its line in [`STRUCTURES`], and its section of the [`page`].
//!
//! `docs/PEERS.md` is from `cargo bench --all-features --bench peers -- --json docs/peers/figures.jsonl --page
//! docs/PEERS.md`; with `--from` instead of `--json` it is drawn again.

mod args;
mod board;
mod bytes;
mod caches;
mod churn;
#[cfg(feature = "concurrent")]
mod concurrent;
#[cfg(feature = "concurrent")]
mod concurrent_routes;
mod contest;
mod contestant;
mod demux;
mod entrant;
mod ephemeral;
mod flows;
mod keys;
mod lc_trie;
mod limit;
mod maps;
mod memory;
mod page;
mod pauses;
mod prefetched;
mod routes;
mod sockets;
mod trash;

use std::env;
use std::process::ExitCode;

use args::Plan;
use board::{Outcome, Report};

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Measures a structure.
type Measure = fn(&Plan, &mut Report) -> Outcome;

/// What there is to measure, by the name that `--only` knows.
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
    // Cargo runs benches in the folder of their package; paths on the command line start at the root.
    env::set_current_dir(ROOT).map_err(|error| format!("{ROOT}: {error}"))?;
    let names: Vec<_> = STRUCTURES.iter().map(|&(name, _)| name).collect();
    match Plan::parse(&names)? {
        Some(plan) => run(&plan),
        None => Ok(()),
    }
}

/// Measures, unless there are figures already; then writes the page, if one is wanted.
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
