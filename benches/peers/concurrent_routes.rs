//! `ConcurrentRoutes` against other ways of sharing a `RouteTable`: one thread looks up addresses
//! while another one replays updates.
//!
//! ```text
//!     reader    │ 32 lookups │ 32 lookups │ …             each timed, under one pin or lock
//!     writer    │ u ····· u ····· u ····· u ·····         at a fixed rate, each timed
//! ```
//!
//! There is one reader and one writer, as the machines have two CPUs. A writer that is slower than
//! the rate makes as many updates as it can; their number is in the remarks. The longest times
//! include interruptions by other work of the machine, which the rows without a writer show.

mod feed;
mod measure;
mod subjects;

use crate::args::Plan;
use crate::results::{Outcome, Report};

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nConcurrentRoutes");
    for &n in plan.sizes(&[usize::MAX], &[usize::MAX]) {
        measure::rounds(plan, report, n)?;
    }
    Ok(())
}
