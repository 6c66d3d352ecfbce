//! Five papers, measured again: `cargo bench --bench paper [-- --help]`.
//!
//! ```text
//!     trash_2006 ─┐                  ┌─▸ index.html           all of it, in one file
//!     demux_1992 ─┤                  ├─▸ PAPER/*.csv, *.svg   each table, each figure
//!     …           ├─▸ Report (each) ─┤
//!                 ┘                  └─▸ --markdown FILE      the same page, for a repository
//! ```
//!
//! A paper has a module below, which fills its [`Report`](report::Report): tables, figures and
//! *findings*. A finding compares a published with a measured value, with a computed verdict. The
//! run fails if a table or figure of a paper has no finding.
//!
//! Depths, collisions, examined entries and simulated queues are deterministic and must agree.
//! Times depend on the machine: compare their ratios and their order.

mod args;
mod demux_1992;
mod ephemeral_2002;
mod finding;
mod html;
mod markdown;
mod page;
mod report;
mod rounds;
mod scheduling_2001;
mod source_hash_1995;
mod trash_2006;

use std::env;
use std::error::Error;
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::ExitCode;

use args::Plan;
use page::Page;
use report::{About, Outcome, Report, in_file};

/// Fills the report of a paper; on a small scale if the flag is set.
type Reproduce = fn(&mut Report, bool) -> Outcome;

/// All papers, with the names that `--only` accepts.
const PAPERS: [(&About, Reproduce); 5] = [
    (&demux_1992::ABOUT, demux_1992::run),
    (&source_hash_1995::ABOUT, source_hash_1995::run),
    (&scheduling_2001::ABOUT, scheduling_2001::run),
    (&ephemeral_2002::ABOUT, ephemeral_2002::run),
    (&trash_2006::ABOUT, trash_2006::run),
];

/// The root of the repository. Cargo runs a bench in the folder of its package.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome {
    in_file(Path::new(ROOT), env::set_current_dir(ROOT))?;
    if let Some(outcome) = source_hash_1995::counted_run() {
        return outcome;
    }
    let plan = Plan::parse(&PAPERS.map(|(about, _)| about.name))?;
    plan.map_or(Ok(()), |plan| reproduce(&plan))
}

fn reproduce(plan: &Plan) -> Outcome {
    let is_selected = |about: &About| plan.only.as_deref().is_none_or(|only| only == about.name);
    let papers = PAPERS.into_iter().filter(|(about, _)| is_selected(about));
    plan.markdown.as_deref().map_or(Ok(()), open)?;
    let report = |(about, run): (&'static About, Reproduce)| -> Result<Report, Box<dyn Error>> {
        let mut report = Report::new(about, &plan.out, plan.quick)?;
        run(&mut report, plan.quick)?;
        report.end()?;
        Ok(report)
    };
    let reports = papers.map(report).collect::<Result<Vec<_>, _>>()?;
    let page = Page::new(plan.command(), plan.quick, reports);
    let index = plan.out.join("index.html");
    in_file(&index, fs::write(&index, html::page(&page)))?;
    println!("\nAll of it is in {}.", index.display());
    if let Some(file) = &plan.markdown {
        let dir = in_file(file, markdown::from_file_to(file, &plan.out))?;
        in_file(file, fs::write(file, markdown::page(&page, &dir)))?;
        println!("In Markdown it is {}.", file.display());
    }
    Ok(())
}

/// Creates a file and its folder, unless they exist, so that errors appear before the measurements.
fn open(file: &Path) -> Outcome {
    let folder = file.parent().unwrap_or(Path::new(""));
    in_file(folder, fs::create_dir_all(folder))?;
    in_file(file, OpenOptions::new().append(true).create(true).open(file))?;
    Ok(())
}
