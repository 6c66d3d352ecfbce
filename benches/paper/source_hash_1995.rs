//! What Chandranmenon and Varghese calculated, counted and measured for source hashing, measured again.
//!
//! Collisions come from seeds, and must agree. Instructions are counted by callgrind, if valgrind is there. The names
//! of real flows come from the captures in the folder `FLOWTABLE_DATA`, if there are any. Times are of this machine:
//! their ratios are what to compare.
//!
//! Paper: Chandranmenon and Varghese, *Trading packet headers for packet processing*, 1995.

mod captures;
mod collisions;
mod count;
mod dml;
mod forwarding;
mod model;
mod packet_filter;
mod threads;

pub(crate) use count::counted_run;

use crate::finding::Finding;
use crate::report::{About, Outcome, Report};

pub(crate) const ABOUT: About = About {
    name: "source_hash_1995",
    title: "Trading packet headers for packet processing",
    authors: "Chandranmenon and Varghese",
    published: "SIGCOMM 1995",
    claims: "If the source of a flow puts a random number into its packets, receivers take that \
        as the place of the flow in a table, and need neither a hash nor a set-up. Two further \
        fields of a header make a packet cheap: the row of the next router's table, and the \
        places of the data that all layers want to touch.",
    ours: "SourceIndex and SourceHashCache, the module threaded for the rows, the module dml for \
        the places.",
    caution: "The host file that the paper took its addresses from is lost: names are generated \
        from seeds. Instructions are of this processor; the paper's had four bytes each, and \
        three operands.",
    places: &[
        "figure 1",
        "table 1",
        "figure 2",
        "tables 2 and 3",
        "figure 3",
        "table 4",
        "table 5",
        "figure 4",
        "figure 5",
        "text, cost of a hash",
        "text, threaded indices",
        "text, layers",
    ],
};

pub(crate) fn run(report: &mut Report, quick: bool) -> Outcome {
    model::figure_2(report)?;
    model::beside_the_rest(report)?;
    collisions::of_sets(report, quick)?;
    collisions::of_captures(report)?;
    count::tables(report, quick)?;
    forwarding::forwarding(report, quick)?;
    packet_filter::packet_filter(report, quick)?;
    threads::threads(report, quick)?;
    dml::layers(report, quick)?;
    let why = "It sets mechanisms beside each other in words; the crate has it in the docs of \
        its module source_index.";
    report.find(Finding::lost("table 1", "properties of mechanisms", why));
    let why = "It draws the testbed: generators around a router. They are simulated.";
    report.find(Finding::lost("figure 3", "the experiment", why));
    report.find(Finding::no_data("figure 1", "what it shows"));
    report.find(Finding::no_data("tables 2 and 3", "what they show"));
    Ok(())
}
