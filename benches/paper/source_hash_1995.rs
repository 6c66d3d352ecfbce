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

pub(crate) use collisions::explain_linear_crc;
pub(crate) use dml::explain_short_packets;
pub(crate) use instructions::{counted_run, explain_instructions};
pub(crate) use packet_filter::explain_filter_flows;

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
    outcome: "The order of the mechanisms and the collisions of generated names come out, those of \
        captured names do not. A cache gains more than printed, and one pass over the data pays \
        for long packets only.",
    modules: &["hash::source_index", "cache", "papers::threaded", "papers::dml"],
    caution: "The host file that the paper took its addresses from is lost: names are generated \
        from seeds. Instructions are of this processor; the paper's had four bytes each, and \
        three operands.",
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
    let why = "It sets seven mechanisms beside each other in words; the docs of the module \
        source_index set seven side by side by the same columns.";
    report.record(Finding::not_measured("table 1", "properties of mechanisms", why));
    let why = "It draws the testbed: generators around a router. They are simulated.";
    report.record(Finding::not_measured("figure 3", "the experiment", why));
    report.record(Finding::no_data("figures 1, 6 and 8", "what they show"));
    dml::kinds(report);
    let why = "It lists applications of source hashing. Here are forwarding and packet filters \
        (figure 4), calls (DuplicateFilter), connections (SourceHashCache) and bridges (an example \
        of HardwareAddress).";
    report.record(Finding::not_measured("table 3", "applications", why));
    Ok(())
}
