//! Threaded indices: the cost of a packet that carries its row, and of keeping the rows up to date.

use std::collections::HashSet;
use std::error::Error;
use std::time::Duration;

use flowtable::Timestamp;
use flowtable::cache::SourceHashCache;
use flowtable::hash::source_index::SourceIndex;
use flowtable::papers::threaded::{Advertisement, DistanceVector, Hop, Label, Labels, Table};
use model::papers::source_hash_1995::SEED;
use model::papers::source_hash_1995::network::router::Protocol;
use model::papers::source_hash_1995::network::{Event, Network, Setup};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use crate::finding::Finding;
use crate::report::{self, Outcome, Report, median, two};
use crate::rounds::{Subject, Times};

/// A destination is an IPv4 address.
type Address = u32;

struct Packet {
    destination: Address,
    label: Label,
    index: SourceIndex,
}

/// Measures forwarding, then the convergence of networks.
pub(crate) fn threaded_indices(report: &mut Report, quick: bool) -> Outcome {
    times(report, quick)?;
    choice(report)?;
    convergence(report, quick)
}

/// Figure 7: a router with two neighbours that advertise a destination, each with its index.
fn choice(report: &mut Report) -> Outcome {
    let (now, destination) = (Timestamp::ZERO, 'D');
    let [by_a, by_b] = [Label::new(3, 0), Label::new(4, 0)].map(Option::unwrap_or_default);
    let labels = Labels { capacity: 16, hold_down: Duration::ZERO, start: 1 };
    let mut router = DistanceVector::new(labels, 64)?;
    for (port, link, cost, label) in [(0, 3, 5, by_a), (1, 1, 6, by_b)] {
        router.link_up(port, link)?;
        router.on_advertisement(port, Advertisement { destination, cost, label }, now)?;
    }
    let cost = router.cost(&destination).unwrap_or(0);
    let hop = router.table().forward_to(&destination);
    let is_b = hop == Some(Hop::Forward { port: 1, label: by_b });
    let ours = format!("cost {cost}, {}", if is_b { "by B with its index" } else { "not by B" });
    let (what, paper) = ("costs 5 and 6 at neighbours 3 and 1 away", "cost 7, by B with its index");
    report.record(Finding::check("figure 7", what, paper, &*ours, "the same", ours == paper));
    Ok(())
}

/// Measures the lookup of distinct destinations in random order, by label, by index and by address.
fn times(report: &mut Report, quick: bool) -> Outcome {
    let mut cells = report::Table::new(&[
        "destinations",
        "threaded index, ns",
        "source hash, hit, ns",
        "hashbrown, ns",
        "full lookup, ns",
        "as fast as source hash",
        "as fast as hashbrown",
    ]);
    for destinations in [100, 1_000, 100_000] {
        let times = times_with(destinations, quick)?;
        let [threaded, source, hash, full] = [0, 1, 2, 3].map(|number| two(times.of(number)));
        let [to_source, to_hash] = [1, 2].map(|other| two(times.times_as_fast(0, other)));
        cells.row(&[&destinations, &threaded, &source, &hash, &full, &to_source, &to_hash]);
    }
    let title = "The hop of a packet: port, and the label to write into it";
    report.table("threaded_times", title, cells)
}

fn times_with(destinations: usize, quick: bool) -> Result<Times, Box<dyn Error>> {
    let mut rng = StdRng::seed_from_u64(SEED);
    let (capacity, hold_down) = (destinations as u32, Duration::ZERO);
    let mut table = Table::new(Labels { capacity, hold_down, start: rng.random() })?;
    let mut cache: SourceHashCache<Address, Hop> = SourceHashCache::new(destinations)?;
    let mut map = hashbrown::HashMap::new();
    let mut indices: Vec<u32> = (0..destinations as u32).collect();
    indices.shuffle(&mut rng);
    let mut names = HashSet::new();
    let mut packets = vec![];
    for index in indices {
        let destination = std::iter::repeat_with(|| rng.random()).find(|&name| names.insert(name));
        let destination = destination.unwrap_or_default();
        let next = Label::new(rng.random_range(0..Label::ROWS), rng.random()).unwrap_or_default();
        let hop = Hop::Forward { port: rng.random_range(0..16), label: next };
        let label = table.insert(destination, Some(hop), Timestamp::ZERO)?;
        // As many slots as destinations, without collisions: only hits are timed.
        let index = SourceIndex::new(index);
        let _ = cache.insert(index, destination, hop);
        map.insert(destination, hop);
        packets.push(Packet { destination, label, index });
    }
    packets.shuffle(&mut rng);
    let (table, packets) = (&table, &packets);
    let mut all: [Subject<'_>; 4] = [
        Box::new(|| sum(packets, |packet| table.forward(packet.label).ok())),
        Box::new(|| sum(packets, |packet| cache.get(packet.index, &packet.destination).copied())),
        Box::new(|| sum(packets, |packet| map.get(&packet.destination).copied())),
        Box::new(|| sum(packets, |packet| table.forward_to(&packet.destination))),
    ];
    Ok(Times::measure(&mut all, destinations, if quick { 3 } else { 25 * 100_000 / destinations }))
}

/// Sums ports and labels, so that no lookup is optimised out.
#[inline(always)]
fn sum(packets: &[Packet], mut hop: impl FnMut(&Packet) -> Option<Hop>) -> u64 {
    let numbers = packets.iter().map(|packet| match hop(packet) {
        Some(Hop::Forward { port, label }) => u64::from(port) + u64::from(u32::from(label)),
        Some(Hop::Deliver) => 1,
        None => unreachable!("all destinations have a route"),
    });
    numbers.fold(0, u64::wrapping_add)
}

/// Measures networks of 20 routers and 30 links: at the start, when a link goes down, when a router
/// restarts, and under random events.
fn convergence(report: &mut Report, quick: bool) -> Outcome {
    let mut cells = report::Table::new(&[
        "routing",
        "what happens",
        "messages",
        "without indices",
        "until silent",
        "packets",
        "delivered",
        "hops by label",
        "full lookups",
        "stale labels",
        "led astray without tags",
    ]);
    for protocol in [Protocol::DistanceVector, Protocol::LinkState] {
        for (what, scenario) in SCENARIOS {
            let runs = |threaded, tags| -> Vec<Network> {
                let seeds = 0..if quick { 3 } else { 31 };
                let setups =
                    seeds.map(|seed| Setup { threaded, tags, ..Setup::new(protocol, seed) });
                setups.map(scenario).collect()
            };
            let (with, without, tagless) = (runs(true, true), runs(false, true), runs(true, false));
            let middle = |runs: &[Network], count: fn(&Network) -> u64| {
                median(runs.iter().map(|run| count(run) as f64).collect())
            };
            let sum = |count: fn(&Network) -> u64| with.iter().map(count).sum::<u64>();
            assert_eq!(sum(|run| run.counts.wrong), 0, "a stale label led somewhere");
            if what == SCENARIOS[0].0 {
                judge_messages(report, protocol, sum(|run| run.counts.messages), &without);
            }
            cells.row(&[
                &format!("{protocol:?}"),
                &what,
                &middle(&with, |run| run.counts.messages),
                &middle(&without, |run| run.counts.messages),
                &middle(&with, |run| run.counts.convergence_time()),
                &sum(|run| run.counts.packets),
                &sum(|run| run.counts.delivered),
                &sum(|run| run.counts.by_label),
                &sum(|run| run.counts.lookups),
                &sum(|run| run.counts.stale),
                &tagless.iter().map(|run| run.counts.wrong).sum::<u64>(),
            ]);
        }
    }
    let title = "Networks of 20 routers: messages and time until silence (medians), packets (sums)";
    report.table("threaded_convergence", title, cells)
}

/// Indices are part of the messages that carry distances; link states need further ones.
fn judge_messages(report: &mut Report, protocol: Protocol, with: u64, without: &[Network]) {
    let without: u64 = without.iter().map(|run| run.counts.messages).sum();
    let ours = format!("{with}, and {without}");
    let (what, paper, rule, holds) = match protocol {
        Protocol::DistanceVector => (
            "messages of distance vectors that carry indices, and without, until networks are \
             silent",
            "a neighbour advertises its index of D",
            "as many",
            with == without,
        ),
        Protocol::LinkState => (
            "messages of link states with indices, and without, until networks are silent",
            "control packets listing its indices",
            "more",
            with > without,
        ),
    };
    let finding = Finding::check("section 4", what, paper, ours, rule, holds);
    // The number of messages follows from the model, so it is calculated.
    report.record(finding.calculated());
}

/// Builds a network and runs a scenario.
type Scenario = fn(Setup) -> Network;

const SCENARIOS: [(&str, Scenario); 4] = [
    ("they start", started),
    ("a link goes down", |setup| {
        let mut network = converged(setup);
        network.apply(Event::Down(0));
        network.settle();
        network
    }),
    ("a router restarts", |setup| {
        let mut network = converged(setup);
        network.apply(Event::Restart(0));
        network.settle();
        network
    }),
    ("2000 events", |setup| {
        let mut network = converged(setup);
        network.live(2_000);
        network
    }),
];

fn started(setup: Setup) -> Network {
    let mut network = Network::new(setup, 20, 11);
    network.settle();
    network
}

/// Returns a network after convergence, with counts reset.
fn converged(setup: Setup) -> Network {
    let mut network = started(setup);
    network.reset_counts();
    network
}
