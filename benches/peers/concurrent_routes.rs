//! `ConcurrentRoutes` against other ways of sharing a `RouteTable`: one thread looks up, another one
//! replays updates.
//!
//! ```text
//!     reader    │ 32 look-ups │ 32 look-ups │ …           each timed; a pin, or a lock, for each 32
//!     writer    │ u ····· u ····· u ····· u ·····         so many a second, each timed
//! ```
//!
//! Readers and writers are one each, since the machines that this runs on have two processors. Whoever
//! cannot keep up with the updates makes as many as it can; how many is in the remarks. The worst times
//! are of the machine as well: the row of a table that nobody changes shows what that adds.

mod contestants;
mod feed;
mod measure;

use crate::args::Plan;
use crate::board::{Outcome, Report};

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nConcurrentRoutes");
    for &n in plan.sizes(&[usize::MAX], &[usize::MAX]) {
        measure::rounds(plan, report, n)?;
    }
    Ok(())
}
