//! The page as Markdown, for a repository: figures and long tables are separate files.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf, absolute};

use crate::finding::{Finding, Verdict};
use crate::html::LONG;
use crate::page::{INTRODUCTION, Page, Place, SMALL_SCALE, TITLE, count, in_words, places};
use crate::report::{Item, Report, Table};

/// Returns the relative path from the folder of `file` to `dir`, with slashes.
pub(crate) fn from_file_to(file: &Path, dir: &Path) -> io::Result<String> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let (folder, dir) = (whole(folder.unwrap_or(Path::new(".")))?, whole(dir)?);
    let both = folder.components().zip(dir.components());
    let common = both.take_while(|(from, to)| from == to).count();
    let up = folder.components().skip(common).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(dir.components().skip(common)).collect();
    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    Ok(if names.is_empty() { ".".into() } else { names.join("/") })
}

/// Returns the absolute path, canonical if it exists.
fn whole(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path).or_else(|_| absolute(path))
}

/// Renders the page; its files are in `dir`.
pub(crate) fn page(page: &Page, dir: &str) -> String {
    let mut text = format!("# {TITLE}\n\n");
    if page.quick {
        text += &format!("**{SMALL_SCALE}**\n\n");
    }
    text += &format!("{INTRODUCTION}\n\n");
    for (name, setting) in &page.setting {
        text += &format!("- {name}: `{setting}`\n");
    }
    text += &format!("\n## {}\n\n", in_words(page.counts()));
    text += "For each table and figure: how many of the lines about it agree.\n\n";
    for report in &page.reports {
        let places = places(report).into_iter();
        let label = |place: Place<'_>| format!("{} {}", sign(place.verdict()), place.label());
        let labels: Vec<String> = places.map(label).collect();
        let about = report.about;
        text += &format!(
            "- [{}](#{}) ({}, {}): {}. {}\n",
            about.title,
            anchor(about.title),
            about.authors,
            about.published,
            in_words(count(report.findings.iter())),
            labels.join(" · ")
        );
    }
    page.reports.iter().for_each(|report| text += &paper(report, dir));
    text
}

fn paper(report: &Report, dir: &str) -> String {
    let about = report.about;
    let mut text = format!(
        "\n## {}\n\n{}, {}\n\n**The paper.** {}\n\n**Here.** {}\n\n**To keep in mind.** {}\n\n",
        about.title, about.authors, about.published, about.claims, about.ours, about.caution
    );
    text += &format!("{}.\n\n", in_words(count(report.findings.iter())));
    text += "| where | what | published | measured | rule | verdict |\n|---|---|---|---|---|---|\n";
    report.findings.iter().for_each(|finding| text += &finding_row(finding));
    let dir = format!("{dir}/{}", about.name);
    report.items.iter().for_each(|item| text += &show(item, &dir));
    text
}

fn finding_row(finding: &Finding) -> String {
    let Finding { place, what, published, measured, rule, verdict, why, .. } = finding;
    let why = if why.is_empty() { String::new() } else { format!(". *{why}*") };
    let verdict = format!("{} {verdict}", sign(*verdict));
    let what = format!("{what}{why}");
    let cells: [&str; 6] = [place, &what, published, measured, rule, &verdict];
    line(cells.iter().map(ToString::to_string))
}

fn show(item: &Item, dir: &str) -> String {
    match item {
        Item::Table { name, title, table } if table.rows.len() > LONG + 1 => {
            format!("\n{title}: [{} rows]({dir}/{name}.csv).\n", table.rows.len() - 1)
        }
        Item::Table { name, title, table } => {
            format!("\n{title} ([CSV]({dir}/{name}.csv)):\n\n{}", grid(table))
        }
        Item::Figure { name, title, .. } => format!("\n![{title}]({dir}/{name}.svg)\n"),
        Item::Remark(text) => format!("\n{text}\n"),
    }
}

fn grid(table: &Table) -> String {
    let Some((header, rows)) = table.rows.split_first() else { return String::new() };
    let mut text = line(header.iter().cloned());
    let right = header.iter().skip(1).map(|_| "--:".to_string());
    text += &line(std::iter::once("---".to_string()).chain(right));
    rows.iter().for_each(|row| text += &line(row.iter().cloned()));
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn sign(verdict: Verdict) -> char {
    match verdict {
        Verdict::Agrees => '✓',
        Verdict::Differs => '✗',
        Verdict::Calculated => '○',
        Verdict::NotMeasured => '–',
    }
}

/// Returns the anchor that GitHub generates for a heading.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|letter| letter.is_alphanumeric() || " -".contains(*letter));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}
