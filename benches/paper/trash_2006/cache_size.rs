//! Figure 4: a million concurrent flows, by the size of the cache.

use std::time::Instant;

use bench_common::figure::{Figure, Line, Panel, Scale};
use flowtable::DefaultHashBuilder;
use flowtable::eviction::{Passive, PassiveGc};
use flowtable::trie::TrieShape;
use model::papers::trash_2006::traffic::{Order, Packet, Rings, trash};

use super::cache::Trash;
use super::flow_cache::Flows;
use super::forwarder::{Forwarder, Subject};
use crate::causes::Cause;
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

/// Thresholds of the collection for a million flows.
const THRESHOLDS: [usize; 11] =
    [300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 600_000, 1_000_000, 1_200_000, 2_000_000];
const PACKETS_PER_FLOW: u32 = 10;
const CHUNK: usize = 1 << 16;

/// Measurements at one threshold.
struct Point {
    threshold: usize,
    shape: TrieShape,
    trie: Speed,
    flow_cache: Speed,
}

/// The speed of a cache.
struct Speed {
    hit_rate: f64,
    ns_per_packet: f64,
}

/// Measures flows that send in turns: the reuse distance is the number of flows.
pub(crate) fn cache_size(report: &mut Report, quick: bool) -> Outcome {
    let flows = if quick { 50_000 } else { 1_000_000 };
    let mut points = Vec::new();
    for threshold in THRESHOLDS {
        points.push(measure(flows, threshold * flows / 1_000_000, Order::RoundRobin)?);
    }
    judge(report, &points, flows);
    let title = format!("{flows} concurrent flows of 10 packets in turn (figure 4)");
    report.table("figure_4", &title, table(&points))?;
    let hits = |room: usize| {
        let point = points.iter().find(|point| point.threshold == room * flows);
        point.map_or(f64::NAN, |point| 100.0 * point.trie.hit_rate)
    };
    report.remark(format!(
        "Of ten packets of a flow nine can be hits. {} % are with room for just all flows, and \
            {} % with room for twice as many: passive collection picks the oldest of four, not of \
            all.",
        two(hits(1)),
        two(hits(2))
    ));
    report.figure("figure_4", &figure(&points, flows))
}

/// Thresholds for flows in random order, as parts of a million.
const RANDOM_THRESHOLDS: [usize; 5] = [10_000, 100_000, 300_000, 600_000, 1_200_000];

/// Measures flows that send in random order, as those of the kernel's generator.
pub(crate) fn random_flows(report: &mut Report, quick: bool) -> Outcome {
    let flows = if quick { 20_000 } else { 1_000_000 };
    let mut points = Vec::new();
    for threshold in RANDOM_THRESHOLDS {
        points.push(measure(flows, threshold * flows / 1_000_000, Order::Random)?);
    }
    let title = format!("{flows} concurrent flows of 10 packets in random order");
    report.table("figure_4_random", &title, table(&points))?;
    let part = |at: usize| 100.0 * points[at].trie.hit_rate;
    report.remark(format!(
        "The generator picks flows at random. {} % of the packets hit with room for a tenth of \
            the flows, and {} % for six tenths: {} times as many with six times the room. The \
            published curve is flat up to there, as with flows in turn.",
        two(part(1)),
        two(part(3)),
        two(part(3) / part(1))
    ));
    Ok(())
}

/// Compares the curves of the paper.
fn judge(report: &mut Report, points: &[Point], flows: usize) {
    const PLACE: &str = "figure 4";
    let most = points.iter().map(|point| point.shape.root_bits).max().unwrap_or(0);
    let finding = Finding::number(PLACE, "bits of the root at most", 19.0, f64::from(most));
    // The limit is a setting of the trie.
    report.record(finding.calculated());
    let depths = || points.iter().map(|point| point.shape.max_depth());
    let (least, most) = (depths().min().unwrap_or(0), depths().max().unwrap_or(0));
    let what = "maximum depth, by the size of the cache";
    let ours = format!("{least} to {most}");
    let (paper, rule, holds) = ("flat", "changes by one at most", most - least <= 1);
    let finding = Finding::check(PLACE, what, paper, ours, rule, holds);
    report.record(finding.because(Cause::MaxDepth).at_full_scale());
    let below = |point: &&Point| point.shape.root_bits < 19;
    let depths = points.iter().filter(below).map(|point| point.shape.average_depth());
    let flat = depths.fold(0.0, f64::max);
    let what = "average depth, while the root has fewer than 19 bits";
    let (ours, rule) = (format!("{} at most", two(flat)), "below 1.6");
    let finding = Finding::check(PLACE, what, "low and flat", ours, rule, flat < 1.6);
    report.record(finding.at_full_scale());
    let deepest = points.last().map_or(0.0, |point| point.shape.average_depth());
    let ours = format!("{} in the largest cache", two(deepest));
    let what = "average depth, from a root of 19 bits on";
    let finding =
        Finding::check(PLACE, what, "rises", ours, "rises by 0.5 or more", deepest > flat + 0.5);
    report.record(finding.at_full_scale());
    judge_speed(report, points, flows);
}

/// Compares throughput, the inverse of time.
fn judge_speed(report: &mut Report, points: &[Point], flows: usize) {
    const PLACE: &str = "figure 4";
    let of = |part: f64| {
        let target = part * flows as f64;
        let off = |point: &&Point| (point.threshold as f64 - target).abs();
        points
            .iter()
            .min_by(|a, b| off(a).total_cmp(&off(b)))
            .map_or(f64::NAN, |point| point.trie.ns_per_packet)
    };
    let [tiny, small, all] = [of(0.01), of(0.6), of(1.2)];
    let what = "ns for a packet, room for 60 % of the flows and for 120 %";
    let ours = format!("{small:.0}, then {all:.0}");
    let rule = "throughput more than half as much again";
    let finding =
        Finding::check(PLACE, what, "throughput rises sharply", ours, rule, small > 1.5 * all);
    report.record(finding.at_full_scale());
    let what = "ns for a packet, room for 1 % of the flows and for 60 %";
    let ours = format!("{tiny:.0}, then {small:.0}");
    let other = 2.0 * 1e6 / 320.0;
    let slower = 100.0 * (1.0 - (other + tiny) / (other + small));
    let why = format!("Beside the 6250 ns of the paper's packet it would fall by {slower:.0} %.");
    let finding = Finding::check(
        PLACE,
        what,
        "throughput is flat",
        ours,
        "within 25 %",
        (small / tiny - 1.0).abs() <= 0.25,
    );
    report.record(finding.because(Cause::OtherWork).noting(why).at_full_scale());
}

/// Fills the cache until it is stationary, then measures two packets per flow.
fn measure(
    flows: usize,
    threshold: usize,
    order: Order,
) -> Result<Point, Box<dyn std::error::Error>> {
    let hasher = DefaultHashBuilder::with_seed(2006);
    let gc = PassiveGc::new(threshold, PassiveGc::TRASH_2006.goal())?;
    let mut flows_cache = Forwarder::new(Flows::new(gc, Passive::new(gc), hasher.clone()));
    let flow_cache = speed(&mut flows_cache, flows, threshold, order);
    drop(flows_cache);
    let mut cache = Forwarder::new(Trash::new(gc, move |flow| trash(flow, &hasher)));
    let trie = speed(&mut cache, flows, threshold, order);
    let shape = cache.state().shape.expect("it is a trie");
    Ok(Point { threshold, shape, trie, flow_cache })
}

fn speed(cache: &mut dyn Subject, flows: usize, threshold: usize, order: Order) -> Speed {
    let mut packets = Rings::new(flows / 2, PACKETS_PER_FLOW, order, Rings::ADJACENT);
    // A cache with spare capacity fills up with ended flows, one tenth of all per turn.
    let room = threshold.saturating_sub(flows);
    let filling = if threshold < flows / 2 { flows } else { 4 * flows + 10 * room };
    forward(cache, &mut packets, filling);
    let (hits, ns) = forward(cache, &mut packets, 2 * flows);
    let count = (2 * flows) as f64;
    Speed { hit_rate: hits as f64 / count, ns_per_packet: ns / count }
}

/// Returns the hits, and the nanoseconds without generating packets.
fn forward(
    cache: &mut dyn Subject,
    packets: &mut impl Iterator<Item = Packet>,
    count: usize,
) -> (usize, f64) {
    let (mut hits, mut ns, mut left) = (0, 0.0, count);
    while left > 0 {
        let chunk: Vec<Packet> = packets.take(CHUNK.min(left)).collect();
        let start = Instant::now();
        hits += cache.forward(&chunk);
        ns += start.elapsed().as_nanos() as f64;
        left -= chunk.len();
    }
    (hits, ns)
}

fn table(points: &[Point]) -> Table {
    let mut table = Table::new(&[
        "threshold",
        "leaves",
        "root bits",
        "average depth",
        "max depth",
        "hit rate %",
        "ns per packet",
        "FlowCache: hit rate %",
        "ns per packet of FlowCache",
    ]);
    for point in points {
        table.row(&[
            &point.threshold,
            &point.shape.leaves,
            &point.shape.root_bits,
            &two(point.shape.average_depth()),
            &point.shape.max_depth(),
            &two(100.0 * point.trie.hit_rate),
            &format!("{:.0}", point.trie.ns_per_packet),
            &two(100.0 * point.flow_cache.hit_rate),
            &format!("{:.0}", point.flow_cache.ns_per_packet),
        ]);
    }
    table
}

fn figure(points: &[Point], flows: usize) -> Figure<'static> {
    let line = |name, y: fn(&Point) -> f64| Line {
        name,
        points: points.iter().map(|point| (point.threshold as f64, y(point))).collect(),
    };
    let slowest = points.iter().map(|point| point.trie.ns_per_packet).fold(0.0, f64::max);
    let panels = vec![
        Panel {
            y_label: "depth, nodes",
            y: 0.0..8.0,
            lines: vec![
                line("maximum depth", |point| point.shape.max_depth() as f64),
                line("average depth", |point| point.shape.average_depth()),
                Line {
                    name: "published: 1.3 and 4 at 100 000",
                    points: vec![(1e5, 1.3), (1e5, 4.0)],
                },
            ],
        },
        Panel {
            y_label: "root, bits",
            y: 0.0..24.0,
            lines: vec![
                line("root bits, at most 19", |point| f64::from(point.shape.root_bits)),
                Line { name: "published limit", points: vec![(1e6, 19.0)] },
            ],
        },
        Panel {
            y_label: "hits, % of packets",
            y: 0.0..105.0,
            lines: vec![
                line("hit rate", |point| 100.0 * point.trie.hit_rate),
                line("of FlowCache", |point| 100.0 * point.flow_cache.hit_rate),
            ],
        },
        Panel {
            y_label: "time, ns per packet",
            y: 0.0..1.3 * slowest,
            lines: vec![
                line("time per packet", |point| point.trie.ns_per_packet),
                line("of FlowCache", |point| point.flow_cache.ns_per_packet),
            ],
        },
    ];
    let title = match flows {
        1_000_000 => "1 000 000 concurrent flows of 10 packets, by the size of the cache",
        _ => "Concurrent flows of 10 packets, by the size of the cache",
    };
    Figure {
        title,
        x_label: "threshold of the collection, entries",
        x_scale: Scale::Logarithmic,
        panels,
    }
}
