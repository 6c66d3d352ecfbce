//! Comparisons with the peers: the best peer of each benchmark and size, and all losses.

use bench_common::figure::thousands;

use super::format::{Better, key, number, ratio, row, rule};
use super::recorded::{RecordedResults, unique};
use super::sections::Section;
use crate::results::Comparison;

/// The greatest number of sizes in a row of a table.
const MAX_COLUMNS: usize = 6;

/// The name of a key, and a number of entries.
type Size<'a> = (&'a str, usize);

/// A benchmark, and our comparison with the best peer at each size.
type BestPeers<'a> = (&'a str, Vec<&'a Comparison>);

impl Comparison {
    fn size(&self) -> Size<'_> {
        (&self.key, self.n)
    }

    fn better(&self) -> Better {
        Better::of(self.ratio, self.ours, self.peer)
    }
}

/// All comparisons of one of our structures with its peers.
fn comparisons<'a>(
    section: &'a Section,
    recorded: &'a [&'a RecordedResults],
    ours: &'a str,
) -> impl Iterator<Item = &'a Comparison> + Clone {
    let all = recorded.iter().flat_map(|results| &results.comparisons);
    all.filter(move |comparison| {
        comparison.structure == ours && section.is_peer(ours, &comparison.peer_name)
    })
}

/// Returns the numbers of comparisons in which ours, neither and the peer is better.
pub(crate) fn score(section: &Section, recorded: &[&RecordedResults], ours: &str) -> [usize; 3] {
    let all = comparisons(section, recorded, ours);
    let count = |better| all.clone().filter(|comparison| comparison.better() == better).count();
    [Better::Ours, Better::Neither, Better::Peer].map(count)
}

/// Formats the best peers in the benchmarks of the summary.
pub(crate) fn summary(section: &Section, recorded: &[&RecordedResults]) -> String {
    section.primary.iter().map(|ours| summary_of(section, recorded, ours)).collect()
}

fn summary_of(section: &Section, recorded: &[&RecordedResults], ours: &str) -> String {
    let all = comparisons(section, recorded, ours);
    let Some(first) = all.clone().next() else {
        return String::new();
    };
    let name = &first.ours_name;
    let of = |bench: &str| best(all.clone().filter(|it| section.benchmark(it) == bench));
    let rows = section.summary.iter().map(|bench| (bench.as_str(), of(bench)));
    let rows = rows.filter(|(_, best)| !best.is_empty());
    let (single, several): (Vec<_>, Vec<_>) = rows.partition(|(_, best)| best.len() == 1);
    let sets = unique(several.iter().map(|(_, best)| sizes(best)));
    let mut text = String::new();
    for set in &sets {
        let belongs = |row: &&BestPeers<'_>| table_of(&sizes(&row.1), &sets) == Some(set);
        let rows: Vec<_> = several.iter().filter(belongs).collect();
        for part in parts(set).into_iter().filter(|_| !rows.is_empty()) {
            text += &grid(name, &part, &rows);
        }
    }
    text + &list(name, &single)
}

fn sizes<'a>(best: &[&'a Comparison]) -> Vec<Size<'a>> {
    best.iter().map(|comparison| comparison.size()).collect()
}

/// Returns the longest set that contains all of `sizes`, unless most of its cells would be empty.
fn table_of<'s, 'a>(sizes: &[Size<'a>], sets: &'s [Vec<Size<'a>>]) -> Option<&'s Vec<Size<'a>>> {
    let has_all = |set: &&Vec<Size<'a>>| sizes.iter().all(|size| set.contains(size));
    let fitting = sets.iter().filter(has_all).filter(|set| set.len() < 2 * sizes.len());
    fitting.max_by_key(|set| set.len())
}

/// Splits a set with too many sizes for one table, by keys.
fn parts<'a>(sizes: &[Size<'a>]) -> Vec<Vec<Size<'a>>> {
    if sizes.len() <= MAX_COLUMNS {
        return vec![sizes.to_vec()];
    }
    let mut parts = Vec::new();
    for key in unique(sizes.iter().map(|size| size.0)) {
        let of: Vec<_> = sizes.iter().copied().filter(|size| size.0 == key).collect();
        let each = of.len().div_ceil(of.len().div_ceil(MAX_COLUMNS));
        parts.extend(of.chunks(each).map(<[_]>::to_vec));
    }
    parts
}

/// Returns the comparison with the best peer at each size.
fn best<'a>(comparisons: impl Iterator<Item = &'a Comparison> + Clone) -> Vec<&'a Comparison> {
    let sizes = unique(comparisons.clone().map(Comparison::size));
    let best = |size| {
        let of_size = comparisons.clone().filter(move |comparison| comparison.size() == size);
        of_size.min_by(|one, other| one.peer.total_cmp(&other.peer))
    };
    sizes.into_iter().filter_map(best).collect()
}

/// Formats a table of benchmarks with several sizes.
fn grid(name: &str, sizes: &[Size<'_>], rows: &[&BestPeers<'_>]) -> String {
    let keys = unique(sizes.iter().map(|size| size.0));
    let has_one_key = keys.len() == 1;
    let head = |&(of, n): &Size<'_>| match (has_one_key, n) {
        (true, _) => thousands(n as f64),
        (false, _) => format!("{}, {}", key(of), thousands(n as f64)),
    };
    let corner =
        if has_one_key { format!("**{name}**, {}", key(keys[0])) } else { format!("**{name}**") };
    let mut text = row([corner].into_iter().chain(sizes.iter().map(head)));
    text += &rule(1, sizes.len());
    for (bench, best) in rows {
        let of = |size: &Size<'_>| best.iter().find(|comparison| comparison.size() == *size);
        let cells = sizes
            .iter()
            .map(|size| of(size).map_or(String::new(), |it| ratio_and_peer(it, "<br>")));
        text += &row([with_unit(bench, best)].into_iter().chain(cells));
    }
    text + "\n"
}

/// Formats a benchmark with its unit, unless the unit is ns or part of the name.
fn with_unit(bench: &str, comparisons: &[&Comparison]) -> String {
    match comparisons[0].unit.as_str() {
        unit if unit == "ns" || bench.contains(unit) => bench.into(),
        unit => format!("{bench} ({unit})"),
    }
}

/// Formats a table of benchmarks with one size.
fn list(name: &str, rows: &[BestPeers<'_>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = row([&format!("**{name}**"), "", "ours", "best peer", "peer / ours"]);
    text += "|---|---|--:|--:|---|\n";
    for (bench, best) in rows {
        let comparison = best[0];
        let size = format!("{}, {}", key(&comparison.key), thousands(comparison.n as f64));
        let unit = if comparison.unit == "ratio" { "" } else { &comparison.unit };
        let [ours, peer] =
            [comparison.ours, comparison.peer].map(|value| format!("{} {unit}", number(value)));
        text += &row([*bench, size.as_str(), &ours, &peer, &ratio_and_peer(comparison, " ")]);
    }
    text + "\n"
}

/// Formats the ratio and the peer, the better side in bold.
fn ratio_and_peer(comparison: &Comparison, separator: &str) -> String {
    let Comparison { ours, peer, .. } = comparison;
    let figures = || format!("{} to {}", number(*ours), number(*peer));
    let ratio = comparison.ratio.map_or_else(figures, ratio);
    match (comparison.better(), &comparison.peer_name) {
        (Better::Ours, peer) => format!("**{ratio}**{separator}{peer}"),
        (Better::Neither, peer) => format!("{ratio}{separator}{peer}"),
        (Better::Peer, peer) => format!("{ratio}{separator}**{peer}**"),
    }
}

/// Formats all comparisons in which a peer is better than one of our primary structures.
pub(crate) fn losses(section: &Section, recorded: &[&RecordedResults]) -> String {
    section.primary.iter().map(|ours| losses_of(section, recorded, ours)).collect()
}

fn losses_of(section: &Section, recorded: &[&RecordedResults], ours: &str) -> String {
    let all = comparisons(section, recorded, ours);
    let lost = all.clone().filter(|comparison| comparison.better() == Better::Peer);
    let Some(first) = all.clone().next() else {
        return String::new();
    };
    let (name, of, count) = (&first.ours_name, all.count(), lost.clone().count());
    let mut text =
        format!("<details><summary><b>{name}</b>: {count} of {of} comparisons</summary>\n\n");
    text += "| benchmark | numbers of entries (peer / ours) |\n|---|---|\n";
    let what = |it: &Comparison| format!("{}: **{}**", section.benchmark(it), it.peer_name);
    for row_name in unique(lost.clone().map(what)) {
        let of_row = lost.clone().filter(|comparison| what(comparison) == row_name);
        text += &row([&row_name, &ratios_by_size(of_row)]);
    }
    text + "\n</details>\n\n"
}

/// Formats the ratios at all sizes, by keys.
fn ratios_by_size<'a>(lost: impl Iterator<Item = &'a Comparison> + Clone) -> String {
    let at = |comparison: &Comparison| {
        let ratio = comparison.ratio.map_or_else(|| number(comparison.ours), ratio);
        format!("{} ({ratio})", thousands(comparison.n as f64))
    };
    let keys = unique(lost.clone().map(|comparison| &comparison.key));
    let of = |of: &String| {
        let at: Vec<_> = lost.clone().filter(|it| it.key == *of).map(at).collect();
        format!("{}: {}", key(of), at.join(", "))
    };
    keys.into_iter().map(of).collect::<Vec<_>>().join("<br>")
}
