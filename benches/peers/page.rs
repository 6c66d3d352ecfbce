//! `docs/PEERS.md`: a page about the figures of a run, with plots.
//!
//! ```text
//!     figures.jsonl ─► sheets, one for each board ─► tables ───┐
//!                             │                     ─► plots ──┤
//!                             └─ by section ─► who wins ───────┴► PEERS.md
//! ```
//!
//! Numbers come from the lines; words, which may not have any, from [`sections`] and `page/*.md`.

mod compare;
mod plots;
mod sections;
mod sheet;
mod tables;
mod text;

use std::fs;
use std::path::Path;

use crate::board::{Origin, Outcome, in_file};
use sections::{SECTIONS, Section};
use sheet::Sheet;

/// What the page says of how all this was measured.
const METHOD: &str = include_str!("page/method.md");

/// Where the plots are, beside the page.
const PLOTS: &str = "peers";

/// A section, and those of the boards that belong to it.
type Part<'a> = (&'static Section, Vec<&'a Sheet>);

/// Writes the page about the figures of a file, and its plots.
pub(crate) fn write(page: &Path, figures: &Path) -> Outcome {
    let (origin, sheets) = sheet::read(figures)?;
    let parts: Vec<Part<'_>> = SECTIONS
        .iter()
        .map(|section| (section, sheets.iter().filter(|sheet| section.has(sheet)).collect()))
        .filter(|(_, sheets): &Part<'_>| !sheets.is_empty())
        .collect();
    let directory = page.parent().unwrap_or(Path::new("")).to_path_buf();
    let plots = directory.join(PLOTS);
    fs::create_dir_all(&plots).map_err(|error| in_file(&plots, &error))?;
    let link = figures.strip_prefix(&directory).unwrap_or(figures);
    let mut text = head(&origin, link) + &summary(&parts) + &losses(&parts);
    for (section, sheets) in &parts {
        text += &format!("## {}\n\n{}\n", section.title, section.words);
        for plot in section.plots {
            let name = format!("{PLOTS}/{}.svg", plot.file);
            if plots::draw(plot, sheets, &directory.join(&name))? {
                text += &format!("![{}]({name})\n\n", plot.title);
            }
        }
        text.extend(sheets.iter().map(|sheet| tables::table(section, sheet)));
    }
    Ok(fs::write(page, text.trim_end().to_string() + "\n")
        .map_err(|error| in_file(page, &error))?)
}

/// What all this is, and where its figures are from.
fn head(origin: &Origin, figures: &Path) -> String {
    let scale = if origin.quick { "\n**A quick run: everything on a small scale.**\n" } else { "" };
    let [command, machine] = [&origin.command, &origin.machine];
    format!(
        "# The crate and its peers\n\n{}\n{scale}\nMeasured by `{command}` on this machine: {machine}. All figures \
         are in [{}]({}).\n\n",
        METHOD.trim_end(),
        figures.file_name().unwrap_or_default().to_string_lossy(),
        figures.display()
    )
}

/// Who wins how often, and at what.
fn summary(parts: &[Part<'_>]) -> String {
    let mut text = format!(
        "## Summary\n\nAll comparisons with a peer at a job and a size:\n\n{}{}",
        text::row(["", "", "comparisons", "ours is better", "within 5 %", "the peer is better"]),
        text::rule(2, 4)
    );
    for (section, sheets) in parts {
        for (ours, name) in section.leaders.iter().filter_map(|ours| named(ours, sheets)) {
            let score @ [won, even, lost] = compare::score(section, sheets, ours);
            let all = score.iter().sum::<usize>();
            let [won, lost] = [(won, lost), (lost, won)].map(|(one, other)| {
                if one > other { format!("**{one}**") } else { one.to_string() }
            });
            let link = format!("[{}](#{})", section.title, section.title.to_lowercase());
            text += &text::row([&link, name, &all.to_string(), &won, &even.to_string(), &lost]);
        }
    }
    text += "\nThe best peer at each job, and how many times ours is better: a bold number is a win of ours, a bold \
             name one of the peer's.\n\n";
    text.extend(parts.iter().map(|(section, sheets)| compare::summary(section, sheets)));
    text
}

/// A structure with the name of its rows.
fn named<'a>(ours: &'a str, sheets: &[&'a Sheet]) -> Option<(&'a str, &'a str)> {
    let mut figures = sheets.iter().flat_map(|sheet| &sheet.figures);
    let figure = figures.find(|figure| figure.structure == ours)?;
    Some((ours, &figure.ours_name))
}

fn losses(parts: &[Part<'_>]) -> String {
    let mut text =
        "## Where others win\n\nEverything at which a peer is better by more than a twentieth.\n\n"
            .to_string();
    text.extend(parts.iter().map(|(section, sheets)| compare::losses(section, sheets)));
    text
}
