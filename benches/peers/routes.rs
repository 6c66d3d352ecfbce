//! `RouteTable` against other tables for longest-prefix match, on a full table of the Internet.
//!
//! All subjects get the same routes in the same random order, and look up the same addresses.
//! poptrie and the array are built at once and take no updates, which would move other routes.
//!
//! Users compile for any x86-64 by default, and so does this. Compiled for the CPU itself, peers
//! count bits by single instructions, too, as `RouteTable` does in either case. A second build
//! shows that; the page has it as keys of their own if its figures are appended to the others:
//!
//! ```text
//! RUSTFLAGS="-C target-cpu=native" cargo bench --bench peers --target-dir target/native -- \
//!     --only routes --json native.jsonl
//! tail -n +2 native.jsonl >>docs/peers/figures.jsonl
//! cargo bench --bench peers -- --from docs/peers/figures.jsonl --page docs/PEERS.md
//! ```
//!
//! The DIR-24-8 array stands for `rte_fib` of DPDK, which is not measured here. On another machine,
//! of the class of Cascade Lake with 2.5 GHz, with the same table, `rte_fib` took 30 ns for single
//! lookups inside the routes and 12 ns in bursts of 32, where prefix-trie took 104 ns; 527 bytes a
//! prefix as configured, and 2.7 us for an announcement. These figures must not be compared with
//! those of this bench directly.
//!
//! ```text
//!     builds      rounds of building; live and peak bytes
//!     lookups     rounds on the tables just built        the first table of results
//!     churn       rounds of withdrawals and announcements
//!     worst       all updates again, each timed: see `worst`
//! ```

pub(crate) mod address;
mod build;
mod churn;
mod dir;
pub(crate) mod family;
mod lookups;
pub(crate) mod real;
mod subject;
pub(crate) mod synthetic;
mod tables;
mod worst;

use std::net::{Ipv4Addr, Ipv6Addr};

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::args::Plan;
use crate::results::{Column, Outcome, Report, Results};
use family::IS_NATIVE;
use subject::{Route, RouteSubject};
use tables::Compared;

/// Columns and units of the second table of results.
const CHANGES: [(&str, &str); 12] = [
    ("build", "ns"),
    ("build, ms", "ms"),
    ("withdraw", "ns"),
    ("announce", "ns"),
    ("inside, churned", "ns"),
    ("bytes", "bytes"),
    ("peak bytes", "bytes"),
    ("worst build, us", "us"),
    ("worst replay, us", "us"),
    ("worst default, us", "us"),
    ("worst /1../12, us", "us"),
    ("worst withdrawal of all, us", "us"),
];

/// The first column of each part in [`CHANGES`].
const BUILD: usize = 0;
const CHURN: usize = 2;
const BYTES: usize = 5;
const WORST: usize = 7;

/// All subjects, ours first.
type Subjects<A> = Vec<RouteSubject<A>>;

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nRouteTable");
    let text = real::read()?;
    for &n in plan.sizes(&[50, 1000, 4096, usize::MAX], &[usize::MAX]) {
        family::<Ipv4Addr>(plan, report, text.as_deref(), n)?;
        family::<Ipv6Addr>(plan, report, text.as_deref(), n)?;
    }
    Ok(())
}

/// Measures the tables of a family with at most `n` routes: lookups, and updates of all routes.
fn family<A: Compared>(plan: &Plan, report: &mut Report, text: Option<&str>, n: usize) -> Outcome {
    let (origin, mut prefixes) = match text {
        Some(text) => ("the real table", real::prefixes::<A>(text)?),
        None => ("a synthetic table", synthetic::prefixes::<A>()),
    };
    let mut rng = StdRng::seed_from_u64(1);
    prefixes.shuffle(&mut rng);
    let has_updates = prefixes.len() <= n || plan.is_rounds_only();
    prefixes.truncate(n);
    let routes: Vec<_> = prefixes.into_iter().map(|prefix| Route::new(prefix, &mut rng)).collect();

    let n = routes.len();
    let mut subjects = A::subjects();
    let build = if IS_NATIVE { ", compiled for this CPU" } else { "" };
    let title = format!("{n} IP{} routes of {origin}{build}", A::NAME);
    let columns = CHANGES.map(|(bench, unit)| Column { bench, unit, n }).to_vec();
    let mut changes =
        Results::new(format!("{title}: updates, ns each; bytes per route"), A::KEY, columns);
    changes.add_rows(&subjects);

    build::builds(&mut changes, &mut subjects, &routes, plan.quick);
    report.show(&lookups::lookups(&title, &mut subjects, &routes, plan.quick))?;
    if !has_updates {
        return Ok(());
    }
    churn::churn(&mut changes, &mut subjects, &routes, plan.quick);
    subjects.iter_mut().for_each(|subject| subject.benchmark.clear());
    if !plan.is_rounds_only() {
        worst::worst(&mut changes, subjects, &routes, plan.quick);
    }
    report.show(&changes)
}
