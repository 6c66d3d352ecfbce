//! What McKenney and Dove calculated and measured, measured again.
//!
//! The measure is the number of PCBs that are examined. It comes from seeds, and must agree. Times are of this
//! machine: their ratios are what to compare.
//!
//! Paper: McKenney and Dove, *Efficient demultiplexing of incoming TCP packets*, 1992.

mod connections;
mod costs;
mod others;
mod plots;
mod time;

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
        closed form. Simulated users of TPC/A talk to all structures; whatever is examined is \
        counted.",
    caution: "The paper calculates most of its numbers. They are compared with what is counted in \
        the simulation, not with the equations again, except where it says so.",
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
    plots::thinkers(report, quick)?;
    plots::by_users(report, quick)?;
    others::polling(report, quick)?;
    others::trains(report, quick)?;
    others::moving_to_front_or_more_chains(report, quick)?;
    connections::set_up(report, quick)?;
    time::lookups(report, quick)?;
    report.find(Finding::no_data("figures 1 to 3", "what they show"));
    report.find(Finding::no_data("figures 5 to 8", "what they show"));
    Ok(())
}
