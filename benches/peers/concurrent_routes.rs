//! `ConcurrentRoutes` against other ways of sharing a `RouteTable`: one thread looks up addresses
//! while another one replays updates.
//!
//! ```text
//!     reader    │ 32 lookups │ 32 lookups │ …             each timed, under one pin or lock
//!     writer    │ u zzzzz u zzzzz u zzzzz u zzzzz         at a fixed rate, each timed
//! ```
//!
//! There is one reader and one writer, as the machines have two CPUs. The writer sleeps between two
//! updates. One that is slower than the rate makes as many updates as it can; their number is in
//! the remarks. The longest times include interruptions by other work of the machine, which the
//! rows without a writer show.
//!
//! What sharing costs is the difference of two rows: `ConcurrentRoutes` against the same without a
//! writer, for the updates; and that one against a `RouteTable`, for the structure. The latter has
//! a row beside the same updates of another table, too: the writer takes the caches and memory that
//! both CPUs share.

mod feed;
mod measure;
mod subjects;

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::args::Plan;
use crate::results::{Outcome, Report};

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nConcurrentRoutes");
    for &n in plan.sizes(&[usize::MAX], &[usize::MAX]) {
        measure::rounds::<Ipv4Addr>(plan, report, n)?;
        measure::rounds::<Ipv6Addr>(plan, report, n)?;
    }
    Ok(())
}
