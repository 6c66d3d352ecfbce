//! `docs/PEERS.md`: a page from the figures of a run, with plots.
//!
//! ```text
//!     figures.jsonl ─► tables of results ─► tables ────┐
//!                             │          ─► plots ─────┤
//!                             └─ by section ─► summary ┴► PEERS.md
//! ```
//!
//! Numbers come from the figures, texts from `page/text/*.md`, the contents of sections from
//! `page/sections.json`.

mod compare;
mod format;
mod plots;
mod recorded;
mod sections;
mod tables;

use std::fs;
use std::path::Path;

use recorded::RecordedResults;
use sections::Section;

use crate::results::{Origin, Outcome, file_error};

/// The folder of the plots, beside the page.
const PLOTS: &str = "peers";

/// A section with its results.
type Part<'a> = (&'a Section, Vec<&'a RecordedResults>);

/// Writes the page with the figures of a file, and its plots.
pub(crate) fn write(page: &Path, figures: &Path) -> Outcome {
    let (origin, recorded) = recorded::read(figures)?;
    let sections = sections::read()?;
    let parts: Vec<Part<'_>> = sections
        .iter()
        .map(|section| (section, recorded.iter().filter(|it| section.has(it)).collect()))
        .filter(|(_, recorded): &Part<'_>| !recorded.is_empty())
        .collect();
    let folder = page.parent().unwrap_or(Path::new("")).to_path_buf();
    let plots = folder.join(PLOTS);
    fs::create_dir_all(&plots).map_err(|error| file_error(&plots, &error))?;
    let link = figures.strip_prefix(&folder).unwrap_or(figures);
    let mut text = head(&origin, link)? + &summary(&parts) + &losses(&parts);
    for (section, recorded) in &parts {
        text += &format!("## {}\n\n{}\n", section.title, section.text()?);
        for plot in &section.plots {
            let name = format!("{PLOTS}/{}.svg", plot.file);
            if plots::draw(plot, recorded, &folder.join(&name))? {
                text += &format!("![{}]({name})\n\n", plot.title);
            }
        }
        text.extend(recorded.iter().map(|results| tables::table(section, results)));
    }
    Ok(fs::write(page, text.trim_end().to_string() + "\n")
        .map_err(|error| file_error(page, &error))?)
}

/// The title, the method, and the origin of the figures.
fn head(origin: &Origin, figures: &Path) -> Result<String, String> {
    let scale = if origin.quick { "\n**A quick run, at a small scale.**\n" } else { "" };
    let Origin { command, machine, .. } = origin;
    Ok(format!(
        "# The crate and its peers\n\n{}\n{scale}\nMeasured by `{command}` on this machine: \
         {machine}. All figures are in [{}]({}).\n\n",
        sections::text("method.md")?.trim_end(),
        figures.file_name().unwrap_or_default().to_string_lossy(),
        figures.display()
    ))
}

/// The numbers of comparisons that each side wins, and the best peers.
fn summary(parts: &[Part<'_>]) -> String {
    let mut text = format!(
        "## Summary\n\nAll comparisons with a peer in one benchmark at one size:\n\n{}{}",
        format::row(["", "", "comparisons", "ours is better", "within 5 %", "the peer is better"]),
        format::rule(2, 4)
    );
    for (section, recorded) in parts {
        for (ours, name) in section.primary.iter().filter_map(|ours| named(ours, recorded)) {
            let score @ [won, even, lost] = compare::score(section, recorded, ours);
            let all = score.iter().sum::<usize>();
            let [won, lost] = [(won, lost), (lost, won)].map(|(one, other)| {
                if one > other { format!("**{one}**") } else { one.to_string() }
            });
            let anchor = section.title.to_lowercase().replace(' ', "-");
            let link = format!("[{}](#{anchor})", section.title);
            text += &format::row([&link, name, &all.to_string(), &won, &even.to_string(), &lost]);
        }
    }
    text += "\nThe best peer in each benchmark, and the ratio peer / ours: a bold number means \
             that ours is better, a bold name that the peer is.\n\n";
    text.extend(parts.iter().map(|(section, recorded)| compare::summary(section, recorded)));
    text
}

/// Returns a structure with the name of its rows.
fn named<'a>(ours: &'a str, recorded: &[&'a RecordedResults]) -> Option<(&'a str, &'a str)> {
    let mut comparisons = recorded.iter().flat_map(|results| &results.comparisons);
    let comparison = comparisons.find(|comparison| comparison.structure == ours)?;
    Some((ours, &comparison.ours_name))
}

fn losses(parts: &[Part<'_>]) -> String {
    let mut text = "## Where peers are better\n\nAll comparisons in which a peer is better by \
                    more than a twentieth.\n\n"
        .to_string();
    text.extend(parts.iter().map(|(section, recorded)| compare::losses(section, recorded)));
    text
}
