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

#[test]
fn the_figures_of_the_readme_are_measured_ones() {
    let figures = read("docs/peers/figures.jsonl");
    let figures: Vec<Value> =
        figures.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
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
