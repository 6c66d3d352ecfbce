//! The page as Markdown, for a repository: one file for all lines, and one for the details of each
//! paper. Figures and long tables are files of their own.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf, absolute};

use crate::causes::Explanation;
use crate::finding::{Finding, Verdict};
use crate::html::LONG;
use crate::page::{
    INTRODUCTION, Page, SMALL_SCALE, Shown, TITLE, count, documentation, in_words, verdict,
};
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

/// Renders the page; its files are in `dir`, the repository is in `root`.
pub(crate) fn page(page: &Page, dir: &str, root: &str) -> String {
    let mut text = format!("# {TITLE}\n\n");
    if page.quick {
        text += &format!("**{SMALL_SCALE}**\n\n");
    }
    text += &format!("**{}.** {INTRODUCTION}\n\n", in_words(page.counts()));
    text += "| paper | outcome | agree | differ | calculated | not measured |\n";
    text += "|---|---|--:|--:|--:|--:|\n";
    for report in &page.reports {
        let about = report.about;
        let paper = format!("[{}](#{})", about.title, anchor(about.title));
        let paper = format!("{paper}, {}, {}", about.authors, about.published);
        let counts = count(report.findings.iter()).map(|count| count.to_string());
        text += &line([paper, about.outcome.into()].into_iter().chain(counts));
    }
    text += "\nContents: [what differs, and why](#what-differs-and-why)";
    for report in &page.reports {
        text += &format!(" · [{}](#{})", report.about.authors, anchor(report.about.title));
    }
    text += " · [about this run](#about-this-run)\n";
    text += "\n## What differs, and why\n\nA cause is *shown* if a run with it changed yields the \
        printed number, *inferred* if it follows from printed numbers, and *open* if variants \
        were tried without success. A run shows that a cause suffices, not that it was the one of \
        the day.\n\n";
    page.causes.iter().for_each(|cause| text += &one_cause(cause));
    page.reports.iter().for_each(|report| text += &paper(report, dir, root));
    text += "\n## About this run\n\n";
    for (name, setting) in &page.setting {
        text += &format!("- {name}: `{setting}`\n");
    }
    text
}

fn one_cause(cause: &Shown) -> String {
    let (number, explanation) = (cause.number, cause.explanation);
    format!(
        "{number}. <a id=\"cause-{number}\"></a>**{}** (*{}*). {}\n",
        explanation.title,
        explanation.status.name(),
        explanation.text
    )
}

const HEAD: &str = "| where | what | paper | here | verdict |\n|---|---|---|---|---|\n";

fn paper(report: &Report, dir: &str, root: &str) -> String {
    let about = report.about;
    let modules = about.modules.iter();
    let modules = modules.map(|module| format!("[`{module}`]({})", documentation(module)));
    let modules = modules.collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "\n## {}\n\n{}, {}. Documentation: {modules}. [Tables, figures and runs]({dir}/{}.md).\n\n\
         **The paper.** {}\n\n**Here.** {}\n\n**To keep in mind.** {}\n\n{}:\n\n{HEAD}",
        about.title,
        about.authors,
        about.published,
        about.name,
        about.claims,
        about.ours,
        about.caution,
        in_words(count(report.findings.iter()))
    );
    report.findings.iter().for_each(|finding| text += &finding_row(finding, root));
    text
}

fn finding_row(finding: &Finding, root: &str) -> String {
    let Finding { place, what, published, why, source, .. } = finding;
    let why = if why.is_empty() { String::new() } else { format!(" *{why}*") };
    let verdict = verdict(finding, |number| format!("[{number}](#cause-{number})"));
    let verdict = format!("{} {verdict}", sign(finding.verdict));
    // No line numbers: they would change with each edit.
    let what = format!("[{what}]({root}/{}){why}", source.file());
    let cells: [&str; 5] = [place, &what, published, &finding.of_all_runs(), &verdict];
    line(cells.iter().map(ToString::to_string))
}

/// Renders the page of details of a paper, which is beside the folder of its files.
pub(crate) fn details(report: &Report, causes: &[Shown]) -> String {
    let about = report.about;
    let mut text = format!("# {}: tables, figures and runs\n", about.title);
    report.items.iter().for_each(|item| text += &show(item, about.name));
    let of_this = |cause: &&Shown| cause.paper == Some(about.title);
    for cause in causes.iter().filter(of_this).filter(|cause| !cause.evidence.is_empty()) {
        let (number, command) = (cause.number, cause.command());
        let Explanation { title, more, .. } = cause.explanation;
        text += &format!("\n## Cause {number}: {title}\n");
        if !more.is_empty() {
            text += &format!("\n{more}\n");
        }
        text += &format!("\n`{command}`\n");
        for (title, table) in &cause.evidence {
            text += &format!("\n{title}:\n\n{}", grid(table));
        }
    }
    text
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
