//! `FlowCache` against hand-written meters: a hash table, and a list in the order of use.
//!
//! Both directions of a conversation are one flow with counters for each. A table has a fixed
//! capacity: when it is full, each new flow evicts another one. A flow that was silent for [`IDLE`]
//! expires; tables check flows for expiry after each batch of packets, at most twice as many as
//! there were packets. All flows that were evicted or have expired are added up, and their packets
//! must be all packets in the end.
//!
//! ```text
//!     steady   rounds in full tables: flows begin and fall silent, nine of ten packets hit, or all
//!     pauses   every packet is timed, while tables fill and when they are full
//!     flood    established connections, then new ones without replies
//!     bytes    per flow of a full table
//!     cores    two workers with a cache each, beside one worker
//!     expiry   all packets stop: the cost of expiring a flow, and how late it expires
//! ```

mod bytes;
mod cores;
mod expiry;
mod flood;
mod linked;
mod listed;
mod meter;
mod ours;
mod pauses;
mod steady;
mod subject;
mod traffic;
mod trie;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use flowtable::eviction::{Lru, SecondChance};
use flowtable::{DefaultHashBuilder, FiveTuple};
use hashbrown::DefaultHashBuilder as Foldhash;

use crate::args::Plan;
use crate::results::{Outcome, Report};
use crate::subject::{ours, peer};
use linked::Linked;
use listed::Listed;
use meter::MeterName;
use ours::Ours;
use subject::{MeterSubject, meter};
use traffic::Popularity;
use trie::Trie;

type Name = FiveTuple<Ipv4Addr>;

/// The idle timeout.
const IDLE: Duration = Duration::from_secs(60);

type NameV6 = FiveTuple<Ipv6Addr>;

/// The bytes of a name, for the results.
const KEY: &str = Name::BYTES;

/// Sizes of which only the rounds are run.
const SMALL: &[usize] = &[16 << 10, 128 << 10];

/// All subjects, ours first.
type Subjects = Vec<MeterSubject>;

pub(crate) fn run(plan: &Plan, report: &mut Report) -> Outcome {
    println!("\nFlowCache");
    // What fits into each level of the CPU's caches.
    for &capacity in if plan.is_rounds_only() { &[] } else { SMALL } {
        for (mut subjects, key) in [(subjects(), KEY), (subjects_v6(), NameV6::BYTES)] {
            let uniform = (Popularity::Uniform, key);
            report.show(&steady::steady(&mut subjects, uniform, capacity, plan.quick))?;
        }
    }
    for &capacity in plan.sizes(&[1_000_000], &[50_000]) {
        for popularity in [Popularity::Uniform, Popularity::Zipf] {
            let all = (popularity, KEY);
            report.show(&steady::steady(&mut subjects(), all, capacity, plan.quick))?;
        }
        let uniform = (Popularity::Uniform, NameV6::BYTES);
        report.show(&steady::steady(&mut subjects_v6(), uniform, capacity, plan.quick))?;
        if plan.is_rounds_only() {
            continue;
        }
        for results in pauses::pauses(subjects(), capacity, plan.quick) {
            report.show(&results)?;
        }
        report.show(&flood::flood(&mut subjects(), capacity / 5, plan.quick))?;
        report.show(&bytes::bytes(&mut subjects(), capacity))?;
        report.show(&cores::cores(capacity, plan.quick))?;
        report.show(&expiry::expiry(&mut subjects(), capacity, plan.quick))?;
    }
    Ok(())
}

/// Returns the subjects. All tables of a subject have one seed, so that they do identical work for
/// identical packets.
fn subjects() -> Subjects {
    let (our_hash, foldhash) = (DefaultHashBuilder::new(), Foldhash::default());
    let [a, b, c, d, e] = std::array::from_fn(|_| our_hash.clone());
    let [f, g] = std::array::from_fn(|_| foldhash.clone());
    vec![
        ours(
            "flow_cache",
            "FlowCache",
            meter(move |capacity| Ours::<Name, _>::by_class(capacity, a.clone())),
        ),
        ours(
            "flow_cache+lru",
            "FlowCache, Lru",
            meter(move |capacity| Ours::<Name, _>::with_policy(capacity, Lru::new(), b.clone())),
        ),
        ours(
            "flow_cache+clock",
            "FlowCache, SecondChance",
            meter(move |capacity| {
                Ours::<Name, _>::with_policy(capacity, SecondChance::new(), c.clone())
            }),
        ),
        peer(
            "hashlink + foldhash",
            meter(move |capacity| Linked::<Name, _>::new(capacity, f.clone())),
        ),
        peer(
            "hashlink + our hash",
            meter(move |capacity| Linked::<Name, _>::new(capacity, d.clone())),
        ),
        peer("hashbrown + list by hand", meter(move |capacity| Listed::new(capacity, g.clone()))),
        peer("Unicache, no idle timeout", meter(move |capacity| Trie::new(capacity, e.clone()))),
    ]
}

/// Returns the subjects with names of IPv6, which are those of IPv4 with longer addresses.
fn subjects_v6() -> Subjects {
    let (our_hash, foldhash) = (DefaultHashBuilder::new(), Foldhash::default());
    let other = our_hash.clone();
    let by_class = move |capacity| Ours::<NameV6, _>::by_class(capacity, our_hash.clone());
    let linked = move |capacity| Linked::<NameV6, _>::new(capacity, foldhash.clone());
    let with_our_hash = move |capacity| Linked::<NameV6, _>::new(capacity, other.clone());
    vec![
        ours("flow_cache", "FlowCache", meter(by_class)),
        peer("hashlink + foldhash", meter(linked)),
        peer("hashlink + our hash", meter(with_our_hash)),
    ]
}

/// Returns the nanoseconds between packets such that within the idle timeout five packets arrive
/// per slot of a table. One in ten starts a flow; together with the senders these exceed the
/// capacity, so flows both expire and are evicted.
fn gap(capacity: usize) -> u64 {
    (IDLE.as_nanos() as usize / (5 * capacity)) as u64
}
