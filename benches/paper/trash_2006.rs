//! What the TRASH paper measured, measured again.
//!
//! `cargo bench --bench trash_2006 [-- --quick] [--out DIR]` prints each of its tables with the
//! paper's numbers beside ours, and leaves them as CSV, and its figures as SVG, in DIR
//! (`target/paper/trash_2006`). `--quick` runs everything on a small scale, to see that it runs.
//!
//! The paper's router forwarded packets at 300 000 a second, most of which was not spent on looking
//! up flows. Here nothing else happens, so times compare as ratios and shapes only. The shapes of
//! the tries are another matter: these are numbers, and they must agree.
//!
//! Paper: Olsson and Nilsson, *TRASH: a dynamic LC-trie and hash data structure*, 2007.

mod trash_2006 {
    pub(crate) mod cache;
    pub(crate) mod contest;
    pub(crate) mod day;
    #[path = "../../common/figure.rs"]
    pub(crate) mod figure;
    pub(crate) mod flow_cache;
    pub(crate) mod rdos;
    #[path = "../common/report.rs"]
    pub(crate) mod report;
    pub(crate) mod shapes;
    pub(crate) mod sweep;
    pub(crate) mod traffic;
}

use trash_2006::report::{Outcome, Report};
use trash_2006::{day, rdos, shapes, sweep};

fn main() -> Outcome {
    let (report, quick) = Report::from_args("trash_2006")?;

    shapes::depth_by_size(&report, quick)?;
    shapes::key_order(&report)?;
    shapes::doubling_steps(&report)?;
    rdos::denial_of_service(&report, quick)?;
    rdos::alive_flows(&report, quick)?;
    rdos::single_flow(&report, quick)?;
    sweep::cache_size(&report, quick)?;
    day::production(&report, quick)?;
    report.end();
    Ok(())
}
