//! What Chandranmenon and Varghese calculated, counted and measured for source hashing, measured again.
//!
//! `cargo bench --bench source_hash_1995 [-- --quick] [--out DIR]` prints each of their tables and figures with
//! ours beside it, and leaves tables as CSV, and plots as SVG, in DIR (`target/paper/source_hash_1995`).
//! `--quick` runs everything on a small scale, to see that it runs.
//!
//! Collisions come from seeds, and must agree. Instructions are counted by callgrind, if valgrind is there. The names
//! of real flows come from the captures in the folder `FLOWTABLE_DATA`, if there are any. Times are of this machine:
//! their ratios are what to compare.
//!
//! Paper: Chandranmenon and Varghese, *Trading packet headers for packet processing*, 1995.

mod source_hash_1995 {
    pub(crate) mod bpf;
    #[path = "../../../examples/capture/mod.rs"]
    pub(crate) mod capture;
    pub(crate) mod captures;
    pub(crate) mod collisions;
    pub(crate) mod count;
    pub(crate) mod dml;
    pub(crate) mod fids;
    #[allow(dead_code, reason = "another paper has logarithmic figures")]
    #[path = "../../common/figure.rs"]
    pub(crate) mod figure;
    pub(crate) mod filters;
    pub(crate) mod forwarding;
    pub(crate) mod indices;
    pub(crate) mod model;
    pub(crate) mod packet_filter;
    #[path = "../common/report.rs"]
    pub(crate) mod report;
    pub(crate) mod rounds;
    pub(crate) mod router;
    pub(crate) mod threads;
    pub(crate) mod traffic;
    pub(crate) mod transfers;

    /// Whatever is random is so by this.
    pub(crate) const SEED: u64 = 1995;
}

use source_hash_1995::report::{Outcome, Report};
use source_hash_1995::{collisions, count, dml, forwarding, model, packet_filter, threads};

fn main() -> Outcome {
    if let Some(outcome) = count::counted_run() {
        return outcome;
    }
    let (report, quick) = Report::from_args("source_hash_1995")?;

    model::figure_2(&report)?;
    model::beside_the_rest(&report)?;
    collisions::of_sets(&report, quick)?;
    collisions::of_captures(&report)?;
    count::tables(&report, quick)?;
    forwarding::forwarding(&report, quick)?;
    packet_filter::packet_filter(&report, quick)?;
    threads::threads(&report, quick)?;
    dml::layers(&report, quick)?;
    report.end();
    Ok(())
}
