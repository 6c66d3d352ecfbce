//! Chandranmenon and Varghese, *Trading packet headers for packet processing*, 1995.
//!
//! Collisions are deterministic and must agree. Instructions are counted by callgrind, if valgrind
//! is installed. Names of real flows come from the captures in the folder `FLOWTABLE_DATA`, if it
//! exists. Times depend on the machine: compare their ratios.

mod analysis;
mod captures;
mod collisions;
mod dml;
mod forwarding;
mod instructions;
mod packet_filter;
mod threaded_indices;

pub(crate) use instructions::counted_run;

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
        places of the data that all layers access.",
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
    analysis::figure_2(report)?;
    analysis::gain_of_an_index(report)?;
    collisions::of_sets(report, quick)?;
    collisions::of_captures(report)?;
    instructions::tables(report, quick)?;
    forwarding::forwarding(report, quick)?;
    packet_filter::packet_filter(report, quick)?;
    threaded_indices::threaded_indices(report, quick)?;
    dml::layers(report, quick)?;
    let why = "It sets mechanisms beside each other in words; the crate has it in the docs of \
        its module source_index.";
    report.record(Finding::not_measured("table 1", "properties of mechanisms", why));
    let why = "It draws the testbed: generators around a router. They are simulated.";
    report.record(Finding::not_measured("figure 3", "the experiment", why));
    report.record(Finding::no_data("figure 1", "what it shows"));
    report.record(Finding::no_data("tables 2 and 3", "what they show"));
    Ok(())
}
