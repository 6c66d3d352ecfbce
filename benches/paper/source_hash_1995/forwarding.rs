//! Figure 4, left: IP forwarding without a cache, and with caches by three kinds of index.

use std::hint::black_box;
use std::net::Ipv4Addr;

use flowtable::hash::source_index::SourceIndex;
use flowtable::papers::source_index::analysis::Transfer;
use flowtable::trie::routes::LcRouteTable;
use flowtable::{Prefix, RouteTable};
use model::papers::source_hash_1995::SEED;
use model::papers::source_hash_1995::fids::Fid;
use model::papers::source_hash_1995::indices::SLOTS;
use model::papers::source_hash_1995::router::{
    Cache, PORTS, Port, binary, by_crc, by_source, by_xor, forward, forward_cached, hop, in_trie,
    is_valid, name_of, radix_tree, routes,
};
use model::papers::source_hash_1995::traffic::{ETHERNET, Traffic};
use model::papers::source_hash_1995::transfers::packets_for_a_circuit;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::causes::Cause;
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};
use crate::rounds::{Subject, Times};

/// The slow path of the paper.
const PAPER_SLOW_PATH: &str = "binary trie, 100 routes";
/// Packets queued at the router. A packet written immediately before would be slow to read.
const RING: usize = 32;
/// Routes of the large table.
const MANY: usize = 100_000;

/// Measures the experiment of the paper, then variants of it.
pub(crate) fn forwarding(report: &mut Report, quick: bool) -> Outcome {
    let rounds = if quick { 5 } else { 301 };
    let traffic = Traffic::few(quick);
    let radix = radix_tree();
    let shape = radix.shape();
    report.remark(format!(
        "{} routes in a binary trie: {} nodes, {:.1} on the way to an address, {} at most.",
        radix.len(),
        shape.nodes(),
        shape.average_depth(),
        shape.max_depth()
    ));
    let lpm: RouteTable<Ipv4Addr, Port> = routes().into_iter().collect();
    let many = many_routes(if quick { MANY / 10 } else { MANY });
    let mut table = Table::new(&[
        "slow path",
        "series",
        "ns for a packet",
        "of them beyond the rest",
        "times as fast",
        "time saved %",
        "paper",
        "hits %",
    ]);
    let mut measure = |name, traffic: &Traffic, all: &mut [Subject<'_>]| {
        let times = Times::measure(all, traffic.order.len(), rounds);
        rows(&mut table, name, &times, &hits_of_kinds(traffic));
        times
    };
    let slow = in_trie(&radix);
    let times = measure(PAPER_SLOW_PATH, &traffic, &mut subjects(&traffic, &slow));
    let more = Traffic::many(quick);
    measure("the same, 16,384 flows", &more, &mut subjects(&more, &slow));
    let fast = |address: Ipv4Addr| lpm.lookup(&address).map(|route| *route.1);
    measure("RouteTable, 100 routes", &traffic, &mut subjects(&traffic, &fast));
    let name = format!("a trie of {} routes", many.len());
    measure(&name, &traffic, &mut subjects(&traffic, &in_trie(&many)));
    report.table("forwarding", "Forwarding of IP packets of 1024 flows (figure 4)", table)?;
    judge(report, &times);
    let (long, short) = (times.of(LONG) - times.of(REST), times.of(SHORT) - times.of(REST));
    other_work(report, long, short, times.of(REST))
}

/// Builds a trie of `count` random routes and those of the paper.
fn many_routes(count: usize) -> LcRouteTable<Ipv4Addr, Port> {
    let mut rng = StdRng::seed_from_u64(SEED);
    let mut table = LcRouteTable::with_tuning(binary());
    while table.len() < count {
        let prefix = Prefix::new(rng.random::<u32>().into(), rng.random_range(16..=24));
        table.insert(prefix.expect("lengths are right"), rng.random_range(0..PORTS));
    }
    table.extend(routes());
    table
}

/// Indices into [`NAMES`].
const REST: usize = 0;
const LONG: usize = 1;
const SHORT: usize = 4;
pub(crate) const NAMES: [&str; 8] = [
    "neither lookup nor validation",
    "no cache",
    "cache by XOR-16",
    "cache by CRC-8 pair",
    "cache by source index",
    "XOR-16, header validated too",
    "CRC-8 pair, header validated too",
    "source index, header validated too",
];

/// Returns all series over the same packets, in the order of [`NAMES`].
pub(crate) fn subjects<'a>(
    traffic: &'a Traffic,
    route: &'a impl Fn(Ipv4Addr) -> Option<Port>,
) -> Vec<Subject<'a>> {
    vec![
        subject(traffic, |ip| hop(ip).then_some(ip[15] % PORTS)),
        subject(traffic, move |ip| forward(ip, route)),
        cached(traffic, false, by_xor, route),
        cached(traffic, false, by_crc, route),
        cached(traffic, false, by_source, route),
        cached(traffic, true, by_xor, route),
        cached(traffic, true, by_crc, route),
        cached(traffic, true, by_source, route),
    ]
}

/// Forwards with its own cache.
fn cached<'a>(
    traffic: &'a Traffic,
    validates: bool,
    index: impl Fn(&Fid, SourceIndex) -> SourceIndex + Copy + 'a,
    route: &'a impl Fn(Ipv4Addr) -> Option<Port>,
) -> Subject<'a> {
    let mut cache: Cache<Port> = Cache::new(SLOTS).expect("there is memory");
    subject(traffic, move |ip| {
        if validates && !is_valid(ip) {
            return None;
        }
        forward_cached(ip, &mut cache, index, route)
    })
}

/// Processes all packets: the generators write some, `forward` changes each, and the queue of an
/// interface counts it.
fn subject<'a>(
    traffic: &'a Traffic,
    mut forward: impl FnMut(&mut [u8]) -> Option<Port> + 'a,
) -> Subject<'a> {
    let mut queues = [0_u64; PORTS as usize];
    let mut ring = [traffic.frames[0]; RING];
    Box::new(move || {
        for flows in traffic.order.chunks(RING) {
            for (frame, &flow) in ring.iter_mut().zip(flows) {
                *frame = traffic.frames[flow];
            }
            for frame in &mut black_box(&mut ring)[..flows.len()] {
                let port = forward(&mut frame[ETHERNET..]);
                if let Some(queue) = port.and_then(|port| queues.get_mut(usize::from(port))) {
                    *queue += 1;
                }
            }
            black_box(&mut ring);
        }
        queues.iter().sum()
    })
}

/// Returns the hit ratios of caches by XOR, by the pair of CRCs and by source index, in per cent.
pub(crate) fn hits_of_kinds(traffic: &Traffic) -> [f64; 3] {
    [hits(traffic, by_xor), hits(traffic, by_crc), hits(traffic, by_source)]
}

/// Returns the hit ratio of a cache after all packets have passed once, in per cent.
fn hits(traffic: &Traffic, index: impl Fn(&Fid, SourceIndex) -> SourceIndex) -> f64 {
    let mut cache: Cache<()> = Cache::new(SLOTS).expect("there is memory");
    let names = || {
        let frames = traffic.order.iter().map(|&flow| &traffic.frames[flow]);
        frames.filter_map(|frame| name_of(&frame[ETHERNET..]))
    };
    let mut hits = 0;
    for (turn, (fid, source)) in names().chain(names()).enumerate() {
        let index = index(&fid, source);
        let is_hit = cache.get(index, &fid).is_some();
        hits += usize::from(is_hit && turn >= traffic.order.len());
        if !is_hit {
            let _ = cache.insert(index, fid, ());
        }
    }
    100.0 * hits as f64 / traffic.order.len() as f64
}

fn rows(table: &mut Table, slow_path: &str, times: &Times, hits: &[f64; 3]) {
    for (number, name) in NAMES.iter().enumerate() {
        let beyond = two(times.of(number) - times.of(REST));
        let (faster, saved, paper, hits) = match number {
            REST | LONG => ("-".into(), "-".into(), "-", "-".into()),
            _ => {
                let faster = times.times_as_fast(number, LONG);
                let hits = two(hits[(number - 2) % 3]);
                let paper = if slow_path == PAPER_SLOW_PATH && number <= SHORT {
                    "1.45 to 1.8"
                } else {
                    "-"
                };
                (two(faster), two(100.0 * (1.0 - 1.0 / faster)), paper, hits)
            }
        };
        let time = two(times.of(number));
        table.row(&[&slow_path, name, &time, &beyond, &faster, &saved, &paper, &hits]);
    }
}

/// Interpretations of "45 % better" in the paper, as a ratio of speeds.
const MEANINGS: [(&str, f64); 2] = [("45 % more packets", 1.45), ("55 % of the time", 1.0 / 0.55)];

/// Returns the nanoseconds of other work with which the fast path yields this ratio of speeds.
fn rest(faster: f64, long: f64, short: f64) -> f64 {
    (long - faster * short) / (faster - 1.0)
}

/// Compares the caches with the slow path, and with each other.
fn judge(report: &mut Report, times: &Times) {
    const PLACE: &str = "figure 4";
    let faster = times.times_as_fast(SHORT, LONG);
    let ours = format!("{} times as fast", two(faster));
    let what = "forwarding, source index: \"45 % better\"";
    let [least, most] = MEANINGS.map(|(_, faster)| faster);
    let holds = (least..=most).contains(&faster);
    let rule = "45 % more packets, to 55 % of the time";
    let finding = Finding::check(PLACE, what, "1.45 to 1.82 times as fast", ours, rule, holds);
    let [long, short] = [LONG, SHORT].map(|number| times.of(number) - times.of(REST));
    let why = format!(
        "Beside {:.0} to {:.0} ns of other work 45 % would be left of the gain. The slow path \
            validates the header's checksum, which a hit does not.",
        rest(most, long, short),
        rest(least, long, short)
    );
    let finding =
        if faster > most { finding.because(Cause::OtherWork).noting(&why) } else { finding };
    report.record(finding.on_this_machine().at_full_scale());
    judge_hashes(report, times);
}

/// Compares the spread between hashes with the gain of a cache.
fn judge_hashes(report: &mut Report, times: &Times) {
    let all = [SHORT - 2, SHORT - 1, SHORT].map(|number| times.of(number));
    let [xor, crc, source] = all;
    let what = "forwarding: which hash, beside whether there is a cache";
    let [least, most] =
        [all.into_iter().fold(f64::INFINITY, f64::min), all.into_iter().fold(0.0, f64::max)];
    let ours = format!(
        "XOR {}, CRC {}, source {} ns; no cache {}",
        two(xor),
        two(crc),
        two(source),
        two(times.of(LONG))
    );
    let (paper, rule) = ("no difference above the timer's resolution", "apart by 25 % at most");
    let holds = most <= 1.25 * least;
    let finding = Finding::check("figure 4", what, paper, ours, rule, holds);
    report.record(finding.because(Cause::OtherWork).on_this_machine().at_full_scale());
}

/// Reports the other work per packet that would explain the gain of the paper, and the meaning of
/// the measured lookups in its figure 2.
fn other_work(report: &mut Report, long: f64, short: f64, here: f64) -> Outcome {
    let mut table =
        Table::new(&["\"45 % better\" means", "times as fast", "the rest takes, ns", "here, ns"]);
    for (meaning, faster) in MEANINGS {
        let rest = rest(faster, long, short);
        table.row(&[&meaning, &two(faster), &two(rest), &two(here)]);
    }
    let title =
        "What all other work for a packet would take, if a source index gained what the paper saw";
    report.table("forwarding_rest", title, table)?;
    let transfer = Transfer { round_trip: 60e6, long, short, hops: 1 };
    let packets = packets_for_a_circuit(&transfer);
    report.remark(format!(
        "With these lookups, a circuit over 60 ms is worth its set-up from {packets:.0} packets \
            on."
    ));
    Ok(())
}
