//! Figure 5: six hours of a production router, simulated.
//!
//! Flows arrive as a Poisson process. Their sizes follow Zipf's law: the flow of rank r has a size
//! proportional to r^-1.05, so one flow in x^(1/1.05) has more than x packets. Gaps between the
//! packets of a flow are exponential. The router of the paper forwarded 120 000 packets per second;
//! here each minute has fewer packets, which pass through a cache of the size in the paper.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bench_common::figure::{Figure, Line, Panel, Scale};
use flowtable::DefaultHashBuilder;
use flowtable::eviction::{Passive, PassiveGc};
use flowtable::trie::TrieShape;
use model::papers::trash_2006::traffic::{Flow, Packet, trash};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::cache::Trash;
use super::flow_cache::Flows;
use super::forwarder::{Forwarder, Subject};
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

const EXPONENT: f64 = 1.05;
/// The largest flow, in packets.
const LARGEST: f64 = 100_000.0;
/// Mean gap between the packets of a flow, in minutes.
const GAP: f64 = 0.1;

/// A flow in progress: the time of its next packet, in microminutes, and the packets left.
///
/// Ordered by time, then by arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    time: u64,
    arrival: u64,
    flow: Flow,
    packets: u32,
}

const MINUTE: f64 = 1e6;

/// An infinite stream of packets with their times.
struct Arrivals {
    pending: BinaryHeap<Reverse<Pending>>,
    flows_per_minute: f64,
    arrivals: u64,
    next_arrival: f64,
    rng: StdRng,
}

impl Arrivals {
    fn new(flows_per_minute: f64) -> Self {
        let rng = StdRng::seed_from_u64(2006);
        let pending = BinaryHeap::new();
        Self { pending, flows_per_minute, arrivals: 0, next_arrival: 0.0, rng }
    }

    /// Draws an exponential time with this mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.rng.random::<f64>()).ln()
    }

    fn arrive(&mut self) {
        let flow = Flow {
            src: self.rng.random::<u32>().into(),
            dst: self.rng.random::<u32>().into(),
            sport: self.rng.random(),
            dport: self.rng.random(),
            protocol: 6,
        };
        let size = (1.0 - self.rng.random::<f64>()).powf(-EXPONENT);
        let packets = size.min(LARGEST) as u32;
        let time = (self.next_arrival * MINUTE) as u64;
        self.pending.push(Reverse(Pending { time, arrival: self.arrivals, flow, packets }));
        self.arrivals += 1;
        self.next_arrival += self.exponential(1.0 / self.flows_per_minute);
    }

    /// Returns the packets before `minute` that have not been returned yet.
    fn until(&mut self, minute: f64) -> Vec<Packet> {
        let mut packets = Vec::new();
        loop {
            while self.next_arrival < minute && self.is_next(self.next_arrival) {
                self.arrive();
            }
            match self.pending.peek() {
                Some(Reverse(next)) if (next.time as f64) < minute * MINUTE => {
                    packets.extend(self.send());
                }
                _ => return packets,
            }
        }
    }

    /// Returns whether no packet is pending before `minute`.
    fn is_next(&self, minute: f64) -> bool {
        self.pending.peek().is_none_or(|Reverse(next)| minute * MINUTE <= next.time as f64)
    }

    fn send(&mut self) -> Option<Packet> {
        let Reverse(mut next) = self.pending.pop()?;
        let (flow, last) = (next.flow, next.packets == 1);
        if !last {
            next.packets -= 1;
            next.time += (self.exponential(GAP) * MINUTE) as u64;
            self.pending.push(Reverse(next));
        }
        Some(Packet { flow, last })
    }
}

/// Measurements of one minute.
struct Minute {
    packets: usize,
    hits: usize,
    shape: TrieShape,
    /// Hits of `FlowCache`.
    flow_cache_hits: usize,
}

/// Simulates six hours, with one sample per minute.
pub(crate) fn production(report: &mut Report, quick: bool) -> Outcome {
    let (minutes, flows_per_minute, gc) = match quick {
        true => (60, 2_000.0, PassiveGc::new(10_000, 100)?),
        false => (360, 10_000.0, PassiveGc::TRASH_2006),
    };
    let hasher = DefaultHashBuilder::with_seed(2006);
    let mut flow_cache = Forwarder::new(Flows::new(gc, Passive::new(gc), hasher.clone()));
    let mut cache = Forwarder::new(Trash::new(gc, move |flow| trash(flow, &hasher)));
    let mut arrivals = Arrivals::new(flows_per_minute);
    let samples: Vec<Minute> = (1..=minutes)
        .map(|minute| {
            let packets = arrivals.until(f64::from(minute));
            let hits = cache.forward(&packets);
            let shape = cache.state().shape.expect("it is a trie");
            let flow_cache_hits = flow_cache.forward(&packets);
            Minute { packets: packets.len(), hits, shape, flow_cache_hits }
        })
        .collect();
    let title = "Production traffic, minute by minute (figure 5)";
    report.quiet_table("figure_5", title, by_minute(&samples))?;
    summary(report, &samples, gc)?;
    report.figure("figure_5", &figure(&samples))
}

fn by_minute(samples: &[Minute]) -> Table {
    let header = [
        "minute",
        "packets",
        "hit rate %",
        "leaves",
        "root bits",
        "average depth",
        "max depth",
        "FlowCache: hit rate %",
    ];
    let mut table = Table::new(&header);
    let percent = |hits, sample: &Minute| two(percent(hits, sample.packets));
    for (minute, sample) in (1..).zip(samples) {
        table.row(&[
            &minute,
            &sample.packets,
            &percent(sample.hits, sample),
            &sample.shape.leaves,
            &sample.shape.root_bits,
            &format!("{:.3}", sample.shape.average_depth()),
            &sample.shape.max_depth(),
            &percent(sample.flow_cache_hits, sample),
        ]);
    }
    table
}

fn percent(hits: usize, packets: usize) -> f64 {
    100.0 * hits as f64 / packets.max(1) as f64
}

/// Reports the bands of depths while the cache is full.
fn summary(report: &mut Report, samples: &[Minute], gc: PassiveGc) -> Outcome {
    let full = |sample: &&Minute| sample.shape.leaves + gc.goal() >= gc.threshold();
    let full: Vec<&Minute> = samples.iter().filter(full).collect();
    let average = || full.iter().map(|sample| sample.shape.average_depth());
    let sum = |count: fn(&Minute) -> usize| full.iter().map(|sample| count(sample)).sum::<usize>();
    let packets = sum(|sample| sample.packets);
    let hit_rate = |hits| two(percent(hits, packets));
    let average_band = bounds(average());
    let max_band = bounds(full.iter().map(|sample| sample.shape.max_depth() as f64));
    judge(report, average_band, max_band);
    let mut table = Table::new(&["", "measured", "expected", "paper's"]);
    let filling = band(bounds(samples.iter().map(|sample| sample.shape.average_depth())));
    let (average_band, max_band) = (band(average_band), whole_band(max_band));
    table.row(&[&"average depth, cache full", &average_band, &"1.25 to 1.45", &"1.3 to 1.4"]);
    table.row(&[&"max depth, cache full", &max_band, &"at most 5", &"4, sometimes 5"]);
    table.row(&[&"average depth, filling included", &filling, &"-", &"-"]);
    table.row(&[&"minutes with a full cache", &full.len(), &"-", &"-"]);
    table.row(&[&"hit rate %, cache full", &hit_rate(sum(|sample| sample.hits)), &"-", &"-"]);
    table.row(&[
        &"hit rate %, FlowCache",
        &hit_rate(sum(|sample| sample.flow_cache_hits)),
        &"-",
        &"-",
    ]);
    report.table("figure_5_bands", "Production traffic, sampled each minute (figure 5)", table)
}

/// The least and the greatest value.
type Bounds = (f64, f64);

fn bounds(depths: impl Iterator<Item = f64>) -> Bounds {
    depths.fold((f64::INFINITY, 0.0), |(low, high), depth| (depth.min(low), depth.max(high)))
}

fn band((low, high): Bounds) -> String {
    format!("{low:.3} to {high:.3}")
}

fn whole_band((low, high): Bounds) -> String {
    format!("{low} to {high}")
}

/// Compares the depths of a full cache.
fn judge(report: &mut Report, average: Bounds, max: Bounds) {
    const PLACE: &str = "figure 5";
    let (what, rule) = ("average depth, cache full", "1.30 to 1.40, rounded to a hundredth");
    let holds = average.0 >= 1.295 && average.1 < 1.405;
    let finding = Finding::check(PLACE, what, "1.3 to 1.4", band(average), rule, holds);
    report.record(finding.at_full_scale());
    let (what, rule) = ("maximum depth, cache full", "4 and 5, nothing else");
    let holds = max == (4.0, 5.0);
    let finding = Finding::check(PLACE, what, "4, sometimes 5", whole_band(max), rule, holds);
    report.record(finding.at_full_scale());
}

fn figure(samples: &[Minute]) -> Figure<'static> {
    let line = |name, y: fn(&Minute) -> f64| Line {
        name,
        points: (1..).map(f64::from).zip(samples.iter().map(y)).collect(),
    };
    let last = samples.len() as f64;
    let band = |depths: &[f64]| {
        let minutes = [0.25, 0.5, 0.75, 1.0].map(|part| part * last);
        minutes.iter().flat_map(|x| depths.iter().map(|depth| (*x, *depth))).collect()
    };
    let panels = vec![
        Panel {
            y_label: "depth, nodes",
            y: 0.0..8.0,
            lines: vec![
                line("maximum depth", |sample| sample.shape.max_depth() as f64),
                line("average depth", |sample| sample.shape.average_depth()),
                Line { name: "published: 4, sometimes 5", points: band(&[4.0, 5.0]) },
            ],
        },
        Panel {
            y_label: "average depth, nodes",
            y: 1.2..1.6,
            lines: vec![
                line("average depth, enlarged", |sample| sample.shape.average_depth()),
                Line { name: "published: 1.3 to 1.4", points: band(&[1.3, 1.4]) },
            ],
        },
        Panel {
            y_label: "thousands of entries",
            y: 0.0..130.0,
            lines: vec![line("entries", |sample| sample.shape.leaves as f64 / 1000.0)],
        },
    ];
    Figure {
        title: "Production traffic through a cache of the paper's size",
        x_label: "time, minutes",
        x_scale: Scale::Linear,
        panels,
    }
}
