//! McKenney and Dove, *Efficient demultiplexing of incoming TCP packets*, 1992.
//!
//! The metric is the number of PCBs examined. It is deterministic and must agree. Times depend on
//! the machine: compare their ratios.

mod connections;
mod costs;
mod figures;
mod lookup_time;
mod variants;

use crate::finding::Finding;
use crate::report::{About, Outcome, Report};

pub(crate) const ABOUT: About = About {
    name: "demux_1992",
    title: "Efficient demultiplexing of incoming TCP packets",
    authors: "McKenney and Dove",
    published: "SIGCOMM 1992",
    claims: "With the traffic of transactions, a list of connections with one remembered entry \
        examines half of all entries for a packet. Hash chains with a remembered entry each \
        examine a small part of that, and more chains are cheaper than cleverer ones.",
    ours: "The module demux has every structure that the paper compares, and its equations in \
        closed form. Simulated users of TPC/A drive all structures; the PCBs examined are \
        counted.",
    caution: "The paper calculates most of its numbers. They are compared with what is counted in \
        the simulation, not with the equations again, except where stated.",
    places: &[
        "section 3.1",
        "section 3.2",
        "section 3.4",
        "section 3.5",
        "section 3.6",
        "figures 1 to 3",
        "figure 4",
        "figures 5 to 8",
        "figure 9",
        "text, packet trains",
        "text, connection set-up",
    ],
};

pub(crate) fn run(report: &mut Report, quick: bool) -> Outcome {
    costs::numbers(report)?;
    costs::by_response_time(report, quick)?;
    costs::by_structure(report, quick)?;
    figures::thinkers(report, quick)?;
    figures::by_users(report, quick)?;
    variants::polling(report, quick)?;
    variants::trains(report, quick)?;
    variants::moving_to_front_or_more_chains(report, quick)?;
    connections::set_up(report, quick)?;
    lookup_time::lookup_times(report, quick)?;
    report.record(Finding::no_data("figures 1 to 3", "what they show"));
    report.record(Finding::no_data("figures 5 to 8", "what they show"));
    Ok(())
}
