//! McKenney and Dove, *Efficient demultiplexing of incoming TCP packets*, 1992.
//!
//! The metric is the number of PCBs examined. It is deterministic and must agree. Times depend on
//! the machine: compare their ratios.

mod connections;
mod costs;
mod evidence;
mod figures;
mod lookup_time;
mod variants;

pub(crate) use evidence::{explain_own_packet, explain_users_wait};

use crate::finding::Finding;
use crate::report::{About, Outcome, Report};

pub(crate) const ABOUT: About = About {
    name: "demux_1992",
    title: "Efficient demultiplexing of incoming TCP packets",
    authors: "McKenney and Dove",
    published: "Computing Systems 5(2), 1992",
    claims: "With the traffic of transactions, a list of connections with one remembered entry \
        examines half of all entries for a packet. Hash chains with a remembered entry each \
        examine a small part of that, and more chains are cheaper than cleverer ones.",
    ours: "The module demux has every structure that the paper compares, and its equations in \
        closed form. Simulated users of TPC/A drive all structures; the PCBs examined are \
        counted.",
    outcome: "All costs that the paper calculates come out when they are counted, within 1 %, \
        except where users wait for their answers for 1 s or more: there by up to 4 %.",
    modules: &["demux"],
    caution: "The paper calculates most of its numbers. They are compared with what is counted in \
        the simulation, not with the equations again, except where stated.",
};

/// The reason for the figures without numbers.
const DRAWINGS: &str = "They draw lists, chains and curves without numbers. An example of the \
    module demux has the states of the lists and chains, and what each lookup examines.";

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
    let why = "It is the throughput of a host of 1992, most of whose work is elsewhere.";
    report.record(Finding::not_measured("section 1", "throughput of a server", why));
    for place in ["figures 1 to 3", "figures 5 to 8"] {
        report.record(Finding::not_measured(place, "what they show", DRAWINGS));
    }
    Ok(())
}
