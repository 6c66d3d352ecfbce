//! The figures of README are those of `docs/peers/figures.jsonl`, which the bench `peers` writes.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// A row of README's table of peers.
struct Row<'t> {
    line: &'t str,
    ours: Figure<'t>,
    peer_name: String,
    peer: Figure<'t>,
    ratio: Figure<'t>,
}

/// A number as it is printed, and its unit in nanoseconds or bytes.
#[derive(Clone, Copy, Debug)]
struct Figure<'t> {
    digits: &'t str,
    unit: f64,
}

impl<'t> Figure<'t> {
    /// Parses a number with a unit or, of ratios, without one.
    fn parse(text: &'t str) -> Option<Self> {
        let (digits, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let unit = match unit {
            "" | "ns" | "bytes" => 1.0,
            "µs" => 1e3,
            "ms" => 1e6,
            _ => return None,
        };
        digits.parse::<f64>().ok().map(|_| Self { digits, unit })
    }

    /// Returns whether a measured value is printed like this: it differs by half of the last digit.
    fn is(self, measured: &Value) -> bool {
        let decimals = self.digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let last_digit = self.unit / 10_f64.powi(decimals as i32);
        let printed = self.digits.parse::<f64>().unwrap() * self.unit;
        measured.as_f64().is_some_and(|value| (value - printed).abs() <= 0.501 * last_digit)
    }
}

/// Parses `| structure | benchmark | ours | peer: figure | ratio |`; the ratio may be bold.
fn parse(line: &str) -> Option<Row<'_>> {
    let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
    let [_, _, ours, peer, ratio, _] = cells[..] else { return None };
    let (peer_name, peer) = peer.rsplit_once(": ")?;
    Some(Row {
        line,
        ours: Figure::parse(ours)?,
        peer_name: peer_name.replace('`', ""),
        peer: Figure::parse(peer)?,
        ratio: Figure::parse(ratio.trim_matches('*'))?,
    })
}

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join(path)).unwrap()
}

fn measured() -> Vec<Value> {
    let figures = read("docs/peers/figures.jsonl");
    figures.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A ratio in README's list of limits: the words before and after it, and the benchmarks of which
/// it is the largest quotient of our time and a peer's.
type Limit = (&'static str, &'static str, fn(&Value) -> bool);

const LIMITS: [Limit; 7] = [
    ("A single lookup in a `TrashMap` takes up to ", " times as long as in a Swiss table", |of| {
        of["ours_name"] == "TrashMap" && of["peer_name"] == "hashbrown + our hash" && is_lookup(of)
    }),
    ("take a `FlowCache` up to ", " times as long as a hash table with an LRU list", |of| {
        is_beside_lru(of) && is_of_packets(of) && of["n"] == 16_384
    }),
    ("single packets take ", " longer, and bursts", |of| {
        is_beside_lru(of) && is_of_packets(of) && of["n"] != 16_384 && !is_burst(of)
    }),
    ("bursts take up to ", " times as long, as their cache misses", |of| {
        is_beside_lru(of) && is_of_packets(of) && of["n"] != 16_384 && is_burst(of)
    }),
    ("A new flow takes up to ", " times as long while the table fills", |of| {
        is_beside_lru(of) && has(of, "board", "while a table fills") && of["bench"] == "p50"
    }),
    ("**A `RouteTable` takes up to ", " times as long as a flat array**", |of| {
        is_beside_array(of) && of["n"] == 901_899
    }),
    ("up to ", " times as long with some thousand routes", |of| {
        is_beside_array(of) && of["n"] != 901_899
    }),
];

fn has(of: &Value, name: &str, part: &str) -> bool {
    of[name].as_str().is_some_and(|text| text.contains(part))
}

fn is_lookup(of: &Value) -> bool {
    ["hit", "miss", "zipf", "dependent hit"].iter().any(|bench| of["bench"] == **bench)
}

fn is_burst(of: &Value) -> bool {
    has(of, "bench", "burst")
}

fn is_of_packets(of: &Value) -> bool {
    has(of, "board", "ns for a packet; bursts of 32")
}

fn is_beside_lru(of: &Value) -> bool {
    let is_list = has(of, "peer_name", "hashlink") || has(of, "peer_name", "list by hand");
    of["ours_name"] == "FlowCache" && is_list
}

fn is_beside_array(of: &Value) -> bool {
    of["ours_name"] == "RouteTable"
        && of["peer_name"] == "DIR-24-8 array"
        && has(of, "board", "lookups, ns each")
}

#[test]
fn the_limits_of_the_readme_are_the_largest_ratios() {
    let figures = measured();
    let readme = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    for (before, after, is_of) in LIMITS {
        let (rest, _) = readme.split_once(after).expect(after);
        let (_, printed) = rest.rsplit_once(before).expect(before);
        let ratios = figures.iter().filter(|of| is_of(of)).filter_map(|of| of["ratio"].as_f64());
        let most = ratios.map(f64::recip).fold(0.0, f64::max);
        let holds = match printed {
            "no" => (0.5..=1.0).contains(&most),
            _ => Figure::parse(printed).expect(printed).is(&most.into()),
        };
        assert!(holds, "{before}{printed}{after}: {most:.3} is measured");
    }
}

#[test]
fn the_figures_of_the_readme_are_measured_ones() {
    let figures = measured();
    let readme = read("README.md");
    let rows: Vec<Row<'_>> = readme.lines().filter_map(parse).collect();
    assert!(rows.len() >= 10, "README has {} rows with a peer", rows.len());
    let is_measured = |row: &&Row<'_>| {
        figures.iter().any(|figure| {
            figure["peer_name"] == *row.peer_name
                && row.ours.is(&figure["ours"])
                && row.peer.is(&figure["peer"])
                && row.ratio.is(&figure["ratio"])
        })
    };
    let unknown: Vec<_> = rows.iter().filter(|row| !is_measured(row)).map(|row| row.line).collect();
    assert!(unknown.is_empty(), "not in figures.jsonl:\n{}", unknown.join("\n"));
}
