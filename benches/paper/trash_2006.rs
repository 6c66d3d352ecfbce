//! Olsson and Nilsson, *TRASH: a dynamic LC-trie and hash data structure*, 2006.
//!
//! The router of the paper forwarded 300 000 packets per second and spent most of the time outside
//! of flow lookups. Here there is no other work, so only ratios and shapes of times compare. The
//! shapes of the tries are deterministic and must agree.

mod cache;
mod cache_size;
mod flow_cache;
mod forwarder;
mod gc_goal;
mod production;
mod rdos;
mod shapes;
mod speeds;
#[cfg(feature = "concurrent")]
mod two_processors;

pub(crate) use rdos::explain_three_packets;
pub(crate) use shapes::{explain_least_depth, explain_max_depth, explain_uneven_leaves};
pub(crate) use speeds::explain_speeds;

use crate::finding::Finding;
use crate::report::{About, Outcome, Report};

pub(crate) const ABOUT: About = About {
    name: "trash_2006",
    title: "TRASH: a dynamic LC-trie and hash data structure",
    authors: "Olsson and Nilsson",
    published: "2006",
    claims: "A level-compressed trie over keys that begin with their own hash is a flow cache \
        that grows by itself, stays about 1.3 nodes deep, and forwards as fast as the chained \
        hash table of Linux. It collects garbage passively, or actively when a flow ends.",
    ours: "Unicache is that cache, with the tuning of 2006. Beside it run the chained table of \
        the time, hashbrown, and FlowCache, which keeps the idea and leaves the trie.",
    outcome: "The tries are as shallow as printed, within 2 % where as many flows are in them. The \
        speeds do not come out: here the trie is several times slower than a chained table.",
    modules: &["trie", "eviction", "key"],
    caution: "Depths and hit rates come from seeds. The paper's router spent most of its time \
        elsewhere, so that its caches are within a few per cent of each other; here nothing else \
        is done for a packet, and they are not. With the destination first the depth depends on \
        the two networks that the flows are in: adjacent ones, as in the paper.",
};

pub(crate) fn run(report: &mut Report, quick: bool) -> Outcome {
    shapes::figure_1(report);
    shapes::depth_by_size(report, quick)?;
    shapes::key_order(report)?;
    shapes::doubling_steps(report)?;
    rdos::denial_of_service(report, quick)?;
    rdos::single_flow(report, quick)?;
    #[cfg(feature = "concurrent")]
    two_processors::run(report, quick)?;
    #[cfg(not(feature = "concurrent"))]
    without_two_processors(report);
    gc_goal::gc_goal(report, quick)?;
    cache_size::cache_size(report, quick)?;
    cache_size::random_flows(report, quick)?;
    production::production(report, quick)?;
    let why = "They draw how a trie is compressed: nothing is measured.";
    report.record(Finding::not_measured("figures 2 and 3", "what they show", why));
    let why = "They count the cycles of functions of a kernel of 2006.";
    report.record(Finding::not_measured("profiles", "cycles by function", why));
    let why =
        "The kernel counted how often its budget for packets ran out; here is no such budget.";
    report.record(Finding::not_measured(
        "section 4, results",
        "tsqueeze, the column of time squeezes",
        why,
    ));
    Ok(())
}

/// Records that the shared cache of `two_processors` is not compiled.
#[cfg(not(feature = "concurrent"))]
fn without_two_processors(report: &mut Report) {
    const PLACE: &str = "section 4, results, two processors";
    let why = "It needs --all-features.";
    let what = "TRASH 160, hits only: two processors beside one";
    report.record(Finding::not_measured(PLACE, what, why));
}
