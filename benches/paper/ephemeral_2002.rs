//! Calvert, Griffioen and Wen, *Lightweight network support for scalable end-to-end services*,
//! 2002.
//!
//! Counts of entries and words are deterministic and must agree. Latencies are modelled by the
//! memory of the paper, 0.1 µs per word. Times depend on the machine: compare their ratios.

mod figure_11;
mod instructions;
mod operations;

pub(crate) use instructions::explain_words;

use crate::finding::Finding;
use crate::report::{About, Outcome, Report};

pub(crate) const ABOUT: About = About {
    name: "ephemeral_2002",
    title: "Lightweight network support for scalable end-to-end services",
    authors: "Calvert, Griffioen and Wen",
    published: "SIGCOMM 2002",
    claims: "Routers offer small values that packets create and change by instructions, and that \
        vanish a fixed time later. As all live equally long, a ring of entries below a hash table \
        frees them as fast as they come, and an instruction takes a few µs on a network processor.",
    ours: "EphemeralStore is that ring, as a linked list in the order of expiry, below an index of \
        tags instead of chains, which are modelled; the module esp executes the instructions on \
        it. The words of memory that they touch follow from the sizes of its entries.",
    outcome: "Its rates follow from its latencies, and the lengths of chains from their equation. \
        The latencies do not follow from its words of memory.",
    modules: &["ephemeral", "papers::esp"],
    caution: "The network processor is gone: its latencies are modelled as 0.1 µs for each word \
        that is touched. Only the last pages of the paper were available.",
};

pub(crate) fn run(report: &mut Report, quick: bool) -> Outcome {
    figure_11::figure_11(report, quick)?;
    operations::table_1(report, quick)?;
    instructions::tables_2_and_3(report, quick)?;
    let why = "The pages with them were not available.";
    report.record(Finding::not_measured("figures 1 to 10", "what they show", why));
    Ok(())
}
