//! What Qie, Bavier, Peterson and Karlin measured and simulated for a software router's schedule, calculated and
//! simulated again.
//!
//! `cargo bench --bench scheduling_2001 [-- --quick] [--out DIR]` prints each of their tables and figures with
//! ours beside it, and leaves tables as CSV, and plots as SVG, in DIR (`target/paper/scheduling_2001`).
//! `--quick` runs everything on a small scale, to see that it runs.
//!
//! Their testbed is gone: what it measured is calculated from its costs, or simulated with the crate's scheduler, queues
//! and estimator. Their simulation is repeated. All of that is in integers, or from seeds, and comes out the same
//! everywhere; the last table is of this machine.
//!
//! Paper: Qie, Bavier, Peterson and Karlin, *Scheduling computations on a software-based router*, SIGMETRICS 2001.

mod scheduling_2001 {
    pub(crate) mod costs;
    #[path = "../../common/figure.rs"]
    pub(crate) mod figure;
    pub(crate) mod granularity;
    pub(crate) mod model;
    #[path = "../../../tests/schedule_parts/paper.rs"]
    pub(crate) mod paper;
    pub(crate) mod phases;
    pub(crate) mod polling;
    #[path = "../common/report.rs"]
    pub(crate) mod report;
    pub(crate) mod simulation;
    #[path = "../../../tests/schedule_parts/table.rs"]
    pub(crate) mod table;

    /// Whatever is random is so by this.
    pub(crate) const SEED: u64 = 2001;
}

use scheduling_2001::report::{Outcome, Report};
use scheduling_2001::{costs, granularity, model, phases, polling, simulation};

fn main() -> Outcome {
    let (report, quick) = Report::from_args("scheduling_2001")?;

    model::costs(&report)?;
    model::rates(&report)?;
    model::overload(&report)?;
    polling::shares(&report, quick)?;
    polling::idle_ports(&report, quick)?;
    granularity::figures(&report, quick)?;
    simulation::figures(&report)?;
    simulation::text(&report)?;
    phases::phases(&report, quick)?;
    costs::costs(&report, quick)?;
    report.end();
    Ok(())
}
