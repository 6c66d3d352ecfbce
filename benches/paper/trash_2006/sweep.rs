//! The paper's figure 4: a million concurrent flows against the size of the cache.

use std::time::Instant;

use flowtable::{DefaultHashBuilder, Passive, PassiveGc, Shape};

use super::cache::Trash;
use super::contest::{Contestant, Forwarder};
use super::figure::{Figure, Line, Panel, Scale};
use super::flow_cache::Flows;
use super::report::{Outcome, Report, Table, two};
use super::traffic::{Order, Packet, Rings, trash};

/// Thresholds of the collection for a million flows.
const THRESHOLDS: [usize; 11] =
    [300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 600_000, 1_000_000, 1_200_000, 2_000_000];
const PACKETS_PER_FLOW: u32 = 10;
const CHUNK: usize = 1 << 16;

/// What was measured at one threshold.
struct Point {
    threshold: usize,
    shape: Shape,
    trie: Speed,
    flow_cache: Speed,
}

/// What a cache does with packets.
struct Speed {
    hit_rate: f64,
    ns_per_packet: f64,
}

/// Flows take turns, so that nothing is used again before all others were.
pub(crate) fn cache_size(report: &Report, quick: bool) -> Outcome {
    let flows = if quick { 50_000 } else { 1_000_000 };
    let mut points = Vec::new();
    for threshold in THRESHOLDS {
        points.push(measure(flows, threshold * flows / 1_000_000)?);
    }
    let title = format!("{flows} concurrent flows of 10 packets in turn (figure 4)");
    report.table("figure_4", &title, &table(&points))?;
    figure(&points, flows).draw(&report.path("figure_4.svg"))
}

/// Fills the cache until nothing changes, then measures two turns of all flows.
fn measure(flows: usize, threshold: usize) -> Result<Point, Box<dyn std::error::Error>> {
    let hasher = DefaultHashBuilder::with_seed(2006);
    let gc = PassiveGc::new(threshold, PassiveGc::TRASH_2006.goal())?;
    let mut flows_cache = Forwarder::new(Flows::new(gc, Passive::new(gc), hasher.clone()));
    let flow_cache = speed(&mut flows_cache, flows, threshold);
    drop(flows_cache);
    let mut cache = Forwarder::new(Trash::new(gc, move |flow| trash(flow, &hasher)));
    let trie = speed(&mut cache, flows, threshold);
    let shape = cache.state().shape.expect("it is a trie");
    Ok(Point { threshold, shape, trie, flow_cache })
}

fn speed(cache: &mut dyn Contestant, flows: usize, threshold: usize) -> Speed {
    let mut packets = Rings::new(flows / 2, PACKETS_PER_FLOW, Order::RoundRobin, Rings::ADJACENT);
    // A cache with room for more fills up with ended flows, a tenth of all in a turn.
    let room = threshold.saturating_sub(flows);
    let filling = if threshold < flows / 2 { flows } else { 4 * flows + 10 * room };
    forward(cache, &mut packets, filling);
    let (hits, ns) = forward(cache, &mut packets, 2 * flows);
    let count = (2 * flows) as f64;
    Speed { hit_rate: hits as f64 / count, ns_per_packet: ns / count }
}

/// Hits, and nanoseconds without those for making the packets.
fn forward(
    cache: &mut dyn Contestant,
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
            ],
        },
        Panel {
            y_label: "root, bits",
            y: 0.0..24.0,
            lines: vec![line("root bits, at most 19", |point| f64::from(point.shape.root_bits))],
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
