//! Depths and node sizes, which are independent of time.

use std::error::Error;
use std::net::Ipv4Addr;

use flowtable::key::bits::BitString;
use flowtable::trie::{RebalanceFrom, Thresholds, TrieShape, Tuning};
use flowtable::{DefaultHashBuilder, LcTrieMap};
use model::papers::trash_2006::traffic::{
    Flow, PaperKey, Rings, distinct, dst_src, src_dst, trash, wide,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::causes::{Cause, Evidence};
use crate::finding::Finding;
use crate::report::{Outcome, Report, Table, two};

/// Returns the shape of a trie over keys, inserted in this order.
fn shape<K: BitString>(keys: impl IntoIterator<Item = K>, tuning: Tuning) -> TrieShape {
    let mut map = LcTrieMap::with_tuning(tuning);
    map.extend(keys.into_iter().map(|key| (key, ())));
    map.shape()
}

fn tuning(inflate: u8, halve: u8, root_bits: u32) -> Tuning {
    let root = Thresholds::new(inflate, halve).expect("thresholds of this file are in order");
    Tuning { root, root_bits, ..Tuning::TRASH_2006 }
}

fn three(number: f64) -> String {
    format!("{number:.3}")
}

/// The strings of figure 1, in order, as in the same figure of Nilsson and Karlsson, *IP-address
/// lookup using LC-tries*, 1999. The drawing in the paper itself was not at hand.
const STRINGS: [&str; 15] = [
    "0000", "0001", "00101", "010", "0110", "0111", "100", "101000", "101001", "10101", "10110",
    "10111", "110", "11101000", "11101001",
];

/// Returns the bits of the root, the inner nodes and the maximum depth of a level-compressed trie
/// by its definition. A node skips the bits from `at` on in which its strings agree, and replaces
/// as many levels below as are complete. The strings are in order.
fn by_definition(strings: &[&str], at: usize) -> [usize; 3] {
    let [first, .., last] = strings else { return [0; 3] };
    let pairs = first.bytes().zip(last.bytes()).skip(at);
    let at = at + pairs.take_while(|(first, last)| first == last).count();
    let is_complete = |bits: &usize| {
        let mut heads: Vec<_> = strings.iter().map(|string| string.get(at..at + bits)).collect();
        heads.dedup();
        heads.len() == 1 << bits && heads.iter().all(Option::is_some)
    };
    let bits = (1..).take_while(is_complete).count();
    let (mut nodes, mut depth) = (1, 0);
    for child in strings.chunk_by(|a, b| a[at..at + bits] == b[at..at + bits]) {
        let [_, below, deepest] = by_definition(child, at + bits);
        (nodes, depth) = (nodes + below, depth.max(1 + deepest));
    }
    [bits, nodes, depth]
}

/// Figure 1: the insertion of its strings yields the trie of the definition.
pub(crate) fn figure_1(report: &mut Report) {
    const PLACE: &str = "section 2, figure 1";
    let key = |text: &&str| {
        let bits = u8::from_str_radix(text, 2).expect("strings of this file are binary");
        bits << (8 - text.len())
    };
    let complete = Thresholds::new(100, 99).expect("thresholds of this file are in order");
    let tuning = Tuning { node: complete, root: complete, ..Tuning::TRASH_2006 };
    let shape = shape(STRINGS.iter().map(key), tuning);
    let text = |[bits, nodes, depth]: [usize; 3]| format!("{bits}, {nodes}, {depth}");
    let paper = text(by_definition(&STRINGS, 0));
    let ours = text([shape.root_bits as usize, shape.nodes(), shape.max_depth()]);
    let what = "15 strings, complete levels: bits of the root, inner nodes, maximum depth";
    let rule = "by the definition";
    let finding = Finding::check(PLACE, what, &paper, &*ours, rule, ours == paper);
    report.record(finding.calculated());
    // A node of 2^b slots replaces 2^b - 1 of two.
    let replaced = shape.nodes_by_bits.iter().enumerate().map(|(bits, n)| ((1 << bits) - 1) * n);
    let nodes = replaced.sum::<usize>() + shape.leaves;
    let what = "15 strings, path compression alone: nodes";
    let holds = nodes == 2 * STRINGS.len() - 1;
    let finding = Finding::check(PLACE, what, "2n - 1", nodes.to_string(), "29", holds);
    report.record(finding.calculated());
}

/// Number of random keys, thresholds and maximum bits of the root, and the results of a model of
/// the kernel of 2006: root bits, average and maximum depth, slots per key.
type Row = (usize, (u8, u8, u32), u32, &'static str, f64);

const ROWS: [Row; 12] = [
    (1_000, (25, 15, 19), 11, "1.456 / 3", 2.50),
    (5_983, (25, 15, 19), 14, "1.318 / 3-4", 3.05),
    (10_000, (25, 15, 19), 15, "1.276 / 3", 3.55),
    (65_536, (25, 15, 19), 17, "1.434 / 4", 2.43),
    (100_000, (25, 15, 19), 18, "1.341 / 4", 2.96),
    (262_144, (25, 15, 19), 19, "1.435 / 5", 2.43),
    (524_288, (25, 15, 19), 19, "1.756 / 5", 1.74),
    (1_000_000, (25, 15, 19), 19, "2.129 / 6", 1.65),
    (1_048_576, (25, 15, 19), 19, "2.156 / 6", 1.66),
    (1_000_000, (30, 15, 30), 21, "1.416 / 5", 2.51),
    (1_000_000, (15, 8, 30), 22, "1.222 / 4", 4.41),
    (100_000, (50, 25, 30), 17, "1.612 / 4-5", 1.93),
];

/// Reports the depth over random 64-bit keys, by size and by the thresholds of the root.
pub(crate) fn depth_by_size(report: &mut Report, quick: bool) -> Outcome {
    let mut table = Table::new(&[
        "keys",
        "root",
        "root bits",
        "model's",
        "avg depth",
        "max",
        "model's depth",
        "slots per key",
        "model's slots",
    ]);
    for (keys, (inflate, halve, root_bits), bits, depth, slots) in ROWS {
        if quick && keys > 100_000 {
            continue;
        }
        let rng = StdRng::seed_from_u64(2007);
        let random = rng.random_iter::<u64>().take(keys);
        let shape = shape(random, tuning(inflate, halve, root_bits));
        table.row(&[
            &keys,
            &format!("{inflate}/{halve}, {root_bits} bits"),
            &shape.root_bits,
            &bits,
            &three(shape.average_depth()),
            &shape.max_depth(),
            &depth,
            &two(shape.slots_per_leaf()),
            &two(slots),
        ]);
    }
    report.table("depth_by_size", "Random keys, by size and by thresholds of the root", table)
}

/// Reports the shape for each key of the paper, with the values of the paper and of a model of it.
pub(crate) fn key_order(report: &mut Report) -> Outcome {
    const KEYS: usize = 100_000;
    let hasher = DefaultHashBuilder::with_seed(2006);
    let adjacent = Rings::ADJACENT;
    let tuning = Tuning::TRASH_2006;
    let plain = |nets, key: fn(&Flow) -> PaperKey| shape(distinct(KEYS, nets, key), tuning);
    let h160 = shape(distinct(KEYS, adjacent, |flow| trash(flow, &hasher)), tuning);
    let h352 = shape(distinct(KEYS, adjacent, |flow| wide::<40>(flow, &hasher)), tuning);
    let h384 = shape(distinct(KEYS, adjacent, |flow| wide::<44>(flow, &hasher)), tuning);
    let rows = [
        ("plain src,dst", "2.78 / 6", Some(16.0), 1, "2.61 / 6", plain(adjacent, src_dst)),
        ("plain dst,src", "1.29 / 4", Some(18.0), 18, "1.341 / 4", plain(adjacent, dst_src)),
        ("plain dst,src, nets 10/8 and 192/8", "-", None, 1, "2.61", plain([10, 192], dst_src)),
        ("TRASH 160", "1.30 / 4", None, 18, "1.341 / 4", h160),
        ("TRASH 352", "1.30 / 4", None, 18, "1.341 / 4", h352),
        ("TRASH 384", "-", None, 18, "1.341 / 4", h384),
    ];
    let header = [
        "key",
        "root bits",
        "model's",
        "avg depth",
        "max",
        "model's depth",
        "paper's depth",
        "nodes x bits",
    ];
    let mut table = Table::new(&header);
    for (name, paper, node, bits, model, shape) in rows {
        let largest = largest_nodes(&shape);
        let (average, max) = (three(shape.average_depth()), shape.max_depth());
        if let Some(paper) = node {
            let what = format!("{name}, 100 000 keys: bits of the root");
            let bits = f64::from(shape.root_bits);
            let finding = Finding::number("section 4.2, key order", what, paper, bits);
            let why = "Its two largest nodes, one for each interface, have 16 bits.";
            report.record(finding.because(Cause::UnevenLeaves).noting(why));
        }
        table.row(&[&name, &shape.root_bits, &bits, &average, &max, &model, &paper, &largest]);
    }
    report.table("key_order", "100 000 flows of the denial of service, by key", table)
}

/// Formats the number of nodes of the three largest sizes.
fn largest_nodes(shape: &TrieShape) -> String {
    let nodes = shape.nodes_by_bits.iter().enumerate().rev().filter(|(_, count)| **count > 0);
    let largest = nodes.take(3).map(|(bits, count)| format!("{count} x {bits}"));
    largest.collect::<Vec<_>>().join(", ")
}

/// Reports the key sets that made the trie of 2006 deep, for which Linux changed the start of
/// rebalancing.
///
/// The keys are 10.255.255.254 and addresses below it in doubling steps. Linux stated the depths of
/// 29 keys: these 23 and the routes of a host, here those of the loopback network and of one more
/// network.
pub(crate) fn doubling_steps(report: &mut Report) -> Outcome {
    let steps = || {
        let mut address = Ipv4Addr::new(10, 255, 255, 254).to_bits();
        (1..=23).map(move |power| {
            address -= 1 << power;
            address
        })
    };
    let host = [[127, 0, 0, 0], [127, 0, 0, 1], [127, 255, 255, 255]]
        .into_iter()
        .chain([[192, 168, 1, 0], [192, 168, 1, 1], [192, 168, 1, 255]])
        .map(u32::from_be_bytes);
    let mut table =
        Table::new(&["keys", "rebalancing from", "avg depth", "max", "model's depth", "Linux"]);
    for (from, linux) in
        [(RebalanceFrom::NewNode, "4.72 / 9"), (RebalanceFrom::Parent, "10.82 / 23")]
    {
        let tuning = Tuning { rebalance_from: from, ..Tuning::TRASH_2006 };
        let up: Vec<u32> = steps().collect();
        for (keys, shape, model, linux) in [
            ("23, down", shape(steps(), tuning), "4.00 / 7", "-"),
            ("23, up", shape(up.into_iter().rev(), tuning), "4.00 / 7", "-"),
            ("a host's 6, then 23 down", shape(host.clone().chain(steps()), tuning), "-", linux),
        ] {
            let (average, max) = (three(shape.average_depth()), shape.max_depth());
            table.row(&[&keys, &format!("{from:?}"), &average, &max, &model, &linux]);
        }
    }
    report.table("doubling_steps", "Addresses in doubling steps below 10.255.255.254", table)?;
    report.remark("Linux did not list the 6 keys beside the 23: these are assumed.".into());
    Ok(())
}

/// Builds the trie with the source first, by the part of the leaves that each interface has.
pub(crate) fn explain_uneven_leaves(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let mut table = Table::new(&["leaves of the interfaces", "avg depth", "max", "nodes x bits"]);
    table.row(&[&"printed: 99 905 in all", &"2.78", &"6", &"16 bits"]);
    let parts: &[usize] = if quick { &[50, 55] } else { &[50, 52, 54, 55, 58, 65] };
    let keys = distinct(140_000, Rings::ADJACENT, src_dst);
    // The sources differ in the last bit of their third octet.
    let (first, second): (Vec<PaperKey>, Vec<PaperKey>) =
        keys.into_iter().partition(|key| key[2] & 1 == 0);
    for &part in parts {
        let counts = [1000 * part, 1000 * (100 - part)];
        let (mut first, mut second) = (first.iter(), second.iter());
        let pairs = (0..100_000).filter_map(|turn| {
            // In proportion all the time.
            let is_first = (turn + 1) * part / 100 > turn * part / 100;
            if is_first { first.next() } else { second.next() }
        });
        let shape = shape(pairs.copied(), Tuning::TRASH_2006);
        let (average, most) = (three(shape.average_depth()), shape.max_depth());
        let name = format!("{} and {}", counts[0], counts[1]);
        table.row(&[&name, &average, &most, &largest_nodes(&shape)]);
    }
    Ok(vec![("Plain src,dst, 100 000 keys, insertions only", table)])
}

/// Counts the maximum depths of random keys over seeds.
pub(crate) fn explain_max_depth(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let header = ["random keys", "avg depth", "max 3", "max 4", "max 5", "max 6 or more"];
    let mut table = Table::new(&header);
    for keys in [300, 5_983, 30_000, 100_000] {
        let seeds = 0..if quick { 2 } else { 40 };
        let (mut seen, mut sum) = ([0; 4], 0.0);
        for seed in seeds.clone() {
            let rng = StdRng::seed_from_u64(seed);
            let shape = shape(rng.random_iter::<u64>().take(keys), Tuning::TRASH_2006);
            seen[shape.max_depth().clamp(3, 6) - 3] += 1;
            sum += shape.average_depth();
        }
        let average = three(sum / seeds.count() as f64);
        table.row(&[&keys, &average, &seen[0], &seen[1], &seen[2], &seen[3]]);
    }
    Ok(vec![("Seeds by the maximum depth of their trie", table)])
}

/// Sets the least average depth of random keys below a root of 18 bits beside those of tries.
pub(crate) fn explain_least_depth(quick: bool) -> Result<Evidence, Box<dyn Error>> {
    let header =
        ["random keys", "least: 2 - e^-λ", "insertions only", "then each replaced twice, in order"];
    let mut table = Table::new(&header);
    table.row(&[&"printed: 99 952", &"-", &"-", &"1.30"]);
    let sizes: &[usize] = if quick { &[93_500] } else { &[93_500, 99_952] };
    for &size in sizes {
        let keys: Vec<u64> = StdRng::seed_from_u64(2006).random_iter().take(3 * size).collect();
        let mut map = LcTrieMap::with_tuning(Tuning::TRASH_2006);
        map.extend(keys[..size].iter().map(|&key| (key, ())));
        let filled = map.shape().average_depth();
        for (old, &new) in keys.iter().zip(&keys[size..]) {
            map.remove(old);
            map.insert(new, ());
        }
        let least = 2.0 - (-(size as f64) / f64::from(1 << 18)).exp();
        let replaced = map.shape().average_depth();
        table.row(&[&size, &three(least), &three(filled), &three(replaced)]);
    }
    Ok(vec![("Average depth below a root of 18 bits", table)])
}
