//! What McKenney and Dove calculated and measured, measured again.
//!
//! `cargo bench --bench demux_1993 [-- --quick] [--out DIR]` prints each of their figures with what the equations
//! say and what a simulation counts beside it, and leaves tables as CSV, and plots as SVG, in DIR
//! (`target/paper/demux_1993`). `--quick` runs everything on a small scale, to see that it runs.
//!
//! The measure is the number of PCBs that are examined. It comes from seeds, and must agree. Times are of this
//! machine: their ratios are what to compare.
//!
//! Paper: McKenney and Dove, *Efficient demultiplexing of incoming TCP packets*, 1992.

mod demux_1993 {
    pub(crate) mod balanced;
    pub(crate) mod connections;
    pub(crate) mod costs;
    #[allow(dead_code, reason = "another paper has logarithmic figures")]
    #[path = "../../common/figure.rs"]
    pub(crate) mod figure;
    pub(crate) mod measure;
    pub(crate) mod others;
    pub(crate) mod plots;
    #[path = "../common/report.rs"]
    pub(crate) mod report;
    pub(crate) mod setup;
    pub(crate) mod time;
    pub(crate) mod tpca;
}

use demux_1993::report::{Outcome, Report};
use demux_1993::{connections, costs, others, plots, time};

fn main() -> Outcome {
    let (report, quick) = Report::from_args("demux_1993")?;

    costs::numbers(&report)?;
    costs::by_response_time(&report, quick)?;
    costs::by_structure(&report, quick)?;
    plots::thinkers(&report, quick)?;
    plots::by_users(&report, quick)?;
    others::polling(&report, quick)?;
    others::trains(&report, quick)?;
    others::moving_to_front_or_more_chains(&report, quick)?;
    connections::set_up(&report, quick)?;
    time::lookups(&report, quick)?;
    report.end();
    Ok(())
}
