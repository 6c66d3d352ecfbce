//! What Calvert, Griffioen and Wen measured of ephemeral state, counted and measured again.
//!
//! `cargo bench --bench ephemeral_2002 [-- --quick] [--out DIR]` prints figure 11 and tables 1 to 3 with ours beside
//! them, and leaves tables as CSV, and plots as SVG, in DIR (`target/paper/ephemeral_2002`). `--quick` runs
//! everything on a small scale, to see that it runs.
//!
//! Entries and words come from seeds, and must agree. Latencies are modelled as the paper's memory has them, 0.1 µs for
//! a word. Times are of this machine: their ratios are what to compare.
//!
//! Paper: Calvert, Griffioen and Wen, *Lightweight network support for scalable end-to-end services*, 2002.

mod ephemeral_2002 {
    pub(crate) mod chains;
    #[allow(dead_code, reason = "another paper has logarithmic figures")]
    #[path = "../../common/figure.rs"]
    pub(crate) mod figure;
    pub(crate) mod figure_11;
    pub(crate) mod instructions;
    pub(crate) mod operations;
    pub(crate) mod paper;
    #[path = "../common/report.rs"]
    pub(crate) mod report;
    #[allow(dead_code, reason = "another paper has ratios")]
    #[path = "../source_hash_1995/rounds.rs"]
    pub(crate) mod rounds;
}

use ephemeral_2002::report::{Outcome, Report};
use ephemeral_2002::{figure_11, instructions, operations};

fn main() -> Outcome {
    let (report, quick) = Report::from_args("ephemeral_2002")?;
    figure_11::figure_11(&report, quick)?;
    operations::table_1(&report, quick)?;
    instructions::tables_2_and_3(&report, quick)?;
    report.end();
    Ok(())
}
