//! Who wins: the best peer of each job at each size, and all that others do better.

use super::sections::Section;
use super::sheet::{Sheet, unique};
use super::text::{Better, key, number, ratio, row, rule};
use crate::board::Figure;
use bench_common::figure::thousands;

/// Sizes that have room beside each other.
const WIDE: usize = 6;

/// Keys, and how many entries.
type Size<'a> = (&'a str, usize);

impl Figure {
    fn size(&self) -> Size<'_> {
        (&self.key, self.n)
    }

    fn better(&self) -> Better {
        Better::of(self.ratio, self.ours, self.peer)
    }
}

/// All figures of one of ours beside who is a peer.
fn contests<'a>(
    section: &'a Section,
    sheets: &'a [&'a Sheet],
    ours: &'a str,
) -> impl Iterator<Item = &'a Figure> + Clone {
    let figures = sheets.iter().flat_map(|sheet| &sheet.figures);
    figures.filter(move |figure| {
        figure.structure == ours && !section.bystanders.contains(&figure.peer_name.as_str())
    })
}

/// How often which of both is better: ours, neither, the peer.
pub(crate) fn score(section: &Section, sheets: &[&Sheet], ours: &str) -> [usize; 3] {
    let count =
        |better| contests(section, sheets, ours).filter(|figure| figure.better() == better).count();
    [Better::Ours, Better::Neither, Better::Peer].map(count)
}

/// The best peer at what the section is mostly about.
pub(crate) fn summary(section: &Section, sheets: &[&Sheet]) -> String {
    section.leaders.iter().map(|ours| summary_of(section, sheets, ours)).collect()
}

fn summary_of(section: &Section, sheets: &[&Sheet], ours: &str) -> String {
    let Some(first) = contests(section, sheets, ours).next() else {
        return String::new();
    };
    let name = &first.ours_name;
    let jobs: Vec<_> = section
        .jobs
        .iter()
        .map(|job| {
            (
                job,
                best(
                    contests(section, sheets, ours)
                        .filter(|figure| section.job_of(figure) == **job),
                ),
            )
        })
        .filter(|(_, best)| !best.is_empty())
        .collect();
    let (one, many): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|(_, best)| best.len() == 1);
    let sets = unique(many.iter().map(|(_, best)| sizes(best)));
    let mut text = String::new();
    for set in &sets {
        let jobs: Vec<_> =
            many.iter().filter(|(_, best)| home(&sizes(best), &sets) == Some(set)).collect();
        for part in parts(set).into_iter().filter(|_| !jobs.is_empty()) {
            text += &grid(name, &part, &jobs);
        }
    }
    text + &list(name, &one)
}

fn sizes<'a>(figures: &[&'a Figure]) -> Vec<Size<'a>> {
    figures.iter().map(|figure| figure.size()).collect()
}

/// The longest set of sizes that has all of these, unless most of it would be empty.
fn home<'s, 'a>(sizes: &[Size<'a>], sets: &'s [Vec<Size<'a>>]) -> Option<&'s Vec<Size<'a>>> {
    let has_all = |set: &&Vec<Size<'a>>| sizes.iter().all(|size| set.contains(size));
    let fitting = sets.iter().filter(has_all).filter(|set| set.len() < 2 * sizes.len());
    fitting.max_by_key(|set| set.len())
}

/// Tables of sizes: where there are many, those of one kind of keys at a time.
fn parts<'a>(sizes: &[Size<'a>]) -> Vec<Vec<Size<'a>>> {
    if sizes.len() <= WIDE {
        return vec![sizes.to_vec()];
    }
    let mut parts = Vec::new();
    for key in unique(sizes.iter().map(|size| size.0)) {
        let of: Vec<_> = sizes.iter().copied().filter(|size| size.0 == key).collect();
        let each = of.len().div_ceil(of.len().div_ceil(WIDE));
        parts.extend(of.chunks(each).map(<[_]>::to_vec));
    }
    parts
}

/// Of each size the figure beside the peer that is best there.
fn best<'a>(figures: impl Iterator<Item = &'a Figure> + Clone) -> Vec<&'a Figure> {
    let sizes = unique(figures.clone().map(Figure::size));
    let best = |size| {
        let those = figures.clone().filter(move |figure| figure.size() == size);
        those.min_by(|one, other| one.peer.total_cmp(&other.peer))
    };
    sizes.into_iter().filter_map(best).collect()
}

/// Jobs of several sizes.
fn grid(name: &str, sizes: &[Size<'_>], jobs: &[&(&&str, Vec<&Figure>)]) -> String {
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
    for (job, best) in jobs {
        let of = |size: &Size<'_>| best.iter().find(|figure| figure.size() == *size);
        let cells = sizes
            .iter()
            .map(|size| of(size).map_or(String::new(), |figure| verdict(figure, "<br>")));
        text += &row([job_and_unit(job, best)].into_iter().chain(cells));
    }
    text + "\n"
}

/// The job; and the unit, unless it is the usual one or the job says it.
fn job_and_unit(job: &str, figures: &[&Figure]) -> String {
    match figures[0].unit.as_str() {
        unit if unit == "ns" || job.contains(unit) => job.into(),
        unit => format!("{job} ({unit})"),
    }
}

/// Jobs of one size each.
fn list(name: &str, jobs: &[(&&str, Vec<&Figure>)]) -> String {
    if jobs.is_empty() {
        return String::new();
    }
    let mut text =
        row([&format!("**{name}**"), "", "ours", "best peer", "how many times ours is better"]);
    text += "|---|---|--:|--:|---|\n";
    for (job, best) in jobs {
        let figure = best[0];
        let what = format!("{}, {}", key(&figure.key), thousands(figure.n as f64));
        let unit = if figure.unit == "ratio" { "" } else { &figure.unit };
        let [ours, peer] =
            [figure.ours, figure.peer].map(|value| format!("{} {unit}", number(value)));
        text += &row([*job, what.as_str(), &ours, &peer, &verdict(figure, " ")]);
    }
    text + "\n"
}

/// How many times ours is better, and than whom. Bold is who wins.
fn verdict(figure: &Figure, gap: &str) -> String {
    let times = figure
        .ratio
        .map_or_else(|| format!("{} to {}", number(figure.ours), number(figure.peer)), ratio);
    match (figure.better(), &figure.peer_name) {
        (Better::Ours, peer) => format!("**{times}**{gap}{peer}"),
        (Better::Neither, peer) => format!("{times}{gap}{peer}"),
        (Better::Peer, peer) => format!("{times}{gap}**{peer}**"),
    }
}

/// All that others do better than our main ones.
pub(crate) fn losses(section: &Section, sheets: &[&Sheet]) -> String {
    section.leaders.iter().map(|ours| losses_of(section, sheets, ours)).collect()
}

fn losses_of(section: &Section, sheets: &[&Sheet], ours: &str) -> String {
    let all = contests(section, sheets, ours);
    let lost = all.clone().filter(|figure| figure.better() == Better::Peer);
    let Some(first) = all.clone().next() else {
        return String::new();
    };
    let (name, of, count) = (&first.ours_name, all.count(), lost.clone().count());
    let mut text =
        format!("<details><summary><b>{name}</b>: {count} of {of} comparisons</summary>\n\n");
    text += "| job | at how many entries (how many times ours is better) |\n|---|---|\n";
    let job = |figure: &Figure| format!("{}: **{}**", section.job_of(figure), figure.peer_name);
    for what in unique(lost.clone().map(job)) {
        text += &row([&what, &places(lost.clone().filter(|figure| job(figure) == what))]);
    }
    text + "\n</details>\n\n"
}

/// Where a job is lost to a peer, by keys.
fn places<'a>(lost: impl Iterator<Item = &'a Figure> + Clone) -> String {
    let at = |figure: &Figure| {
        let times = figure.ratio.map_or_else(|| number(figure.ours), ratio);
        format!("{} ({times})", thousands(figure.n as f64))
    };
    let keys = unique(lost.clone().map(|figure| &figure.key));
    let of = |of: &String| {
        let at: Vec<_> = lost.clone().filter(|figure| figure.key == *of).map(at).collect();
        format!("{}: {}", key(of), at.join(", "))
    };
    keys.into_iter().map(of).collect::<Vec<_>>().join("<br>")
}
