//! `FlowCache` against what people build by hand: a hash table, and a list in the order of use.
//!
//! The job is a meter's. Both directions of a conversation are one flow, which has counters of both. A
//! table has so many places and no more: when it is full, a flow leaves for each new one. A flow that
//! was silent for [`IDLE`] ends; tables look for such flows after each burst of packets, and may look
//! at twice as many as there were packets. All flows that have left are written down in a ledger,
//! which must have all packets in the end.
//!
//! ```text
//!     steady   rounds in full tables: flows come, flows end silently, nine of ten packets hit
//!     pauses   every packet is timed, while tables fill and when they are full
//!     flood    established connections, then new ones that nobody answers
//!     bytes    for each flow of a full table
//!     expiry   all packets stop: what it costs to end a flow, and how late it ends
//! ```

mod bytes;
mod expiry;
mod flood;
mod linked;
mod listed;
mod meter;
mod ours;
mod pauses;
mod steady;
mod table;
mod traffic;
mod trie;

use std::net::Ipv4Addr;
use std::time::Duration;

use flowtable::{Clock, DefaultHashBuilder, FiveTuple, Lru};
use hashbrown::DefaultHashBuilder as Foldhash;

use crate::args::Plan;
use crate::board::{Outcome, Report};
use crate::entrant::{ours, peer};
use linked::Linked;
use listed::Listed;
use ours::Ours;
use table::Contestant;
use traffic::Law;
use trie::Trie;

type Name = FiveTuple<Ipv4Addr>;

/// Silence that ends a flow.
const IDLE: Duration = Duration::from_secs(60);

/// The bytes of a name, for the boards.
const KEY: &str = "14";

/// Everybody, ours first.
type Contestants = Vec<Contestant>;

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nFlowCache");
    for &capacity in plan.sizes(&[1_000_000], &[50_000]) {
        for law in [Law::Uniform, Law::Zipf] {
            report.show(&steady::steady(&mut contestants(), law, capacity, plan.quick))?;
        }
        if plan.is_rounds_only() {
            continue;
        }
        for board in pauses::pauses(contestants(), capacity, plan.quick) {
            report.show(&board)?;
        }
        report.show(&flood::flood(&mut contestants(), capacity / 5, plan.quick))?;
        report.show(&bytes::bytes(&mut contestants(), capacity))?;
        report.show(&expiry::expiry(&mut contestants(), capacity, plan.quick))?;
    }
    Ok(())
}

/// Each makes all its tables with one seed, so that they do the same work for the same packets.
fn contestants() -> Contestants {
    let (ahash, foldhash) = (DefaultHashBuilder::new(), Foldhash::default());
    let [a, b, c, d, e] = std::array::from_fn(|_| ahash.clone());
    let [f, g] = std::array::from_fn(|_| foldhash.clone());
    vec![
        ours("flow_cache", "FlowCache", move |places| Ours::by_class(places, a.clone())),
        ours("flow_cache+lru", "FlowCache, Lru", move |places| {
            Ours::with_policy(places, Lru::new(), b.clone())
        }),
        ours("flow_cache+clock", "FlowCache, Clock", move |places| {
            Ours::with_policy(places, Clock::new(), c.clone())
        }),
        peer("hashlink + foldhash", move |places| Linked::new(places, f.clone())),
        peer("hashlink + ahash", move |places| Linked::new(places, d.clone())),
        peer("hashbrown + list by hand", move |places| Listed::new(places, g.clone())),
        peer("Unicache, no idle timeout", move |places| Trie::new(places, e.clone())),
    ]
}

/// Nanoseconds between packets, such that five packets come for each place of a table until a silent
/// flow is idle. One in ten begins a flow: these and as many senders as there are places for come to
/// more than there is room for, so flows leave for both reasons.
fn gap(capacity: usize) -> u64 {
    (IDLE.as_nanos() as usize / (5 * capacity)) as u64
}
