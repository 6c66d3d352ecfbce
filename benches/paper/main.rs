//! Five papers, measured again: `cargo bench --bench paper [-- --help]`.
//!
//! ```text
//!     trash_2006 ─┐                  ┌─▸ index.html           all of it, in one file
//!     demux_1992 ─┤                  ├─▸ PAPER/*.csv, *.svg   each table, each figure
//!     …           ├─▸ Report (each) ─┤
//!                 ┘                  └─▸ --markdown FILE      the same, for a repository
//! ```
//!
//! A paper has a module below, which fills its [`Report`](report::Report): tables, figures and
//! *findings*. A finding compares a published with a measured value, with a computed verdict, and
//! names the [cause](causes) of a difference. The run fails if a line of the
//! [inventory] of the papers has no finding.
//!
//! Depths, collisions, examined entries and simulated queues are deterministic and must agree.
//! Times depend on the machine: compare their ratios and their order.

mod args;
mod causes;
mod demux_1992;
mod ephemeral_2002;
mod explanations;
mod finding;
mod html;
mod inventory;
mod markdown;
mod page;
mod report;
mod rounds;
mod runs;
mod scheduling_2001;
mod source_hash_1995;
mod table;
mod trash_2006;

use std::env;
use std::error::Error;
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::ExitCode;

use args::Plan;
use causes::Explanation;
use explanations::EXPLANATIONS;
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
    let Some(plan) = plan else { return Ok(()) };
    match plan.explain.as_deref() {
        Some(name) => explain(name, plan.quick),
        None => reproduce(&plan),
    }
}

/// Prints a cause and runs its experiment.
fn explain(name: &str, quick: bool) -> Outcome {
    let found = EXPLANATIONS.iter().position(|explanation| explanation.name == name);
    let Some(at) = found else {
        let names: Vec<&str> = EXPLANATIONS.iter().map(|explanation| explanation.name).collect();
        return Err(format!("no cause {name}; there are: {}", names.join(", ")).into());
    };
    let Explanation { title, status, text, more, run, .. } = &EXPLANATIONS[at];
    println!("{}. {title} ({})\n\n{text} {more}", at + 1, status.name());
    for (title, table) in run(quick)? {
        println!("\n{title}\n");
        table.print();
    }
    Ok(())
}

fn reproduce(plan: &Plan) -> Outcome {
    let is_selected = |about: &About| plan.only.as_deref().is_none_or(|only| only == about.name);
    let papers = PAPERS.into_iter().filter(|(about, _)| is_selected(about));
    plan.markdown.as_deref().map_or(Ok(()), open)?;
    let report = |(about, run): (&'static About, Reproduce)| -> Result<Report, Box<dyn Error>> {
        let mut report = Report::new(about, &plan.out, plan.quick)?;
        run(&mut report, plan.quick)?;
        report.end(&plan.from)?;
        Ok(report)
    };
    let reports = papers.map(report).collect::<Result<Vec<_>, _>>()?;
    let page = Page::new(plan.command(), plan.quick, reports)?;
    let index = plan.out.join("index.html");
    let root = in_file(&index, markdown::from_file_to(&index, Path::new(".")))?;
    in_file(&index, fs::write(&index, html::page(&page, &root)))?;
    println!("\nAll of it is in {}.", index.display());
    if let Some(file) = &plan.markdown {
        let to = |dir: &Path| in_file(file, markdown::from_file_to(file, dir));
        let (dir, root) = (to(&plan.out)?, to(Path::new("."))?);
        in_file(file, fs::write(file, markdown::page(&page, &dir, &root)))?;
        for report in &page.reports {
            let details = plan.out.join(report.about.name).with_extension("md");
            let text = markdown::details(report, &page.causes);
            in_file(&details, fs::write(&details, text))?;
        }
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
