//! `RouteTable` against other tables for longest-prefix match, on a full table of the Internet.
//!
//! Every contestant is fed the same routes in the same shuffled order, and answers for the same
//! addresses. Two sit out what they are not made for: poptrie and the array cannot change a route
//! without moving the routes behind it, and are built at once.
//!
//! ```text
//!     builds      rounds; the bytes there are then, and at most on the way
//!     look-ups    rounds on what was just built          the first board
//!     churn       rounds of withdrawing and announcing
//!     worst       everything once more, each single update timed: see `worst`
//! ```

mod address;
mod build;
mod churn;
mod contestant;
mod dir;
mod family;
mod lookups;
pub(crate) mod real;
mod synthetic;
mod tables;
mod worst;

use std::net::{Ipv4Addr, Ipv6Addr};

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::args::Plan;
use crate::board::{Board, Column, Outcome, Report};
use contestant::{Contestant, Route};
use family::Family;

/// Columns of the second board, and what their figures are.
const CHANGES: [(&str, &str); 11] = [
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
];

/// Where the figures of each part begin in [`CHANGES`].
const BUILD: usize = 0;
const CHURN: usize = 2;
const BYTES: usize = 5;
const WORST: usize = 7;

/// Everybody, ours first.
type Contestants<A> = Vec<Contestant<A>>;

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nRouteTable");
    let text = real::read()?;
    for &n in plan.sizes(&[usize::MAX], &[usize::MAX]) {
        family::<Ipv4Addr>(plan, report, text.as_deref(), n)?;
        family::<Ipv6Addr>(plan, report, text.as_deref(), n)?;
    }
    Ok(())
}

/// Both boards of a family, for at most `n` routes.
fn family<A: Family>(plan: &Plan, report: &mut Report, text: Option<&str>, n: usize) -> Outcome {
    let (origin, mut prefixes) = match text {
        Some(text) => ("the real table", real::prefixes::<A>(text)?),
        None => ("a synthetic table", synthetic::prefixes::<A>()),
    };
    let mut rng = StdRng::seed_from_u64(1);
    prefixes.shuffle(&mut rng);
    prefixes.truncate(n);
    let routes: Vec<_> = prefixes.into_iter().map(|prefix| Route::new(prefix, &mut rng)).collect();

    let n = routes.len();
    let mut contestants = A::contestants();
    let title = format!("{n} IP{} routes of {origin}", A::NAME);
    let columns = CHANGES.map(|(bench, unit)| Column { bench, unit, n }).to_vec();
    let mut changes =
        Board::new(format!("{title}: updates, ns each; bytes for a route"), A::NAME, columns);
    changes.add_rows(&contestants);

    build::builds(&mut changes, &mut contestants, &routes, plan.quick);
    report.show(&lookups::lookups(&title, &mut contestants, &routes, plan.quick))?;
    churn::churn(&mut changes, &mut contestants, &routes, plan.quick);
    contestants.iter_mut().for_each(|one| one.clear());
    if !plan.is_rounds_only() {
        worst::worst(&mut changes, contestants, &routes, plan.quick);
    }
    report.show(&changes)
}
