//! The page as HTML: one file with its style sheet and figures, without scripts or requests.

use std::fmt::{Display, Write};

use crate::finding::{Finding, Verdict};
use crate::page::{
    INTRODUCTION, Page, Place, SMALL_SCALE, Shown, TITLE, count, documentation, in_words, places,
    verdict,
};
use crate::report::{Item, Report, Table};

const STYLE: &str = include_str!("style.css");

/// Longer tables are folded.
pub(crate) const LONG: usize = 20;

/// Renders the page. `root` is the way from it to the repository.
pub(crate) fn page(page: &Page, root: &str) -> String {
    let mut setting = String::new();
    for (name, text) in &page.setting {
        push(&mut setting, format_args!("<dt>{name}</dt><dd>{}</dd>\n", escape(text)));
    }
    let warning = if page.quick {
        format!("<p class=\"warning\">{SMALL_SCALE}</p>\n")
    } else {
        String::new()
    };
    let papers: String = page.reports.iter().map(|report| paper(report, root)).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<title>{TITLE}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{TITLE}</h1>\n{warning}\
         </header>\n<main>\n{}{}{papers}\
         <section id=\"run\">\n<h2>About this run</h2>\n<p>{INTRODUCTION}</p>\n\
         <dl class=\"setting\">\n{setting}</dl>\n</section>\n</main>\n</body>\n</html>\n",
        summary(page),
        causes(page)
    )
}

/// Renders the first screen: the counts, a line for each paper, and the contents.
fn summary(page: &Page) -> String {
    let mut text = format!("<section id=\"summary\">\n<p><b>{}.</b> ", in_words(page.counts()));
    text += "<a href=\"#run\">How to read it.</a></p>\n<ul class=\"papers\">\n";
    for report in &page.reports {
        let about = report.about;
        push(
            &mut text,
            format_args!(
                "<li><a href=\"#{}\">{}</a> <small>{}, {}</small>\n<span>{} <small>{}.</small>\
                 </span></li>\n",
                about.name,
                escape(about.title),
                escape(about.authors),
                escape(about.published),
                escape(about.outcome),
                in_words(count(report.findings.iter()))
            ),
        );
    }
    text += "</ul>\n<nav class=\"contents\" aria-label=\"Contents\"><b>Contents</b> \
        <a href=\"#causes\">What differs, and why</a>";
    for report in &page.reports {
        let about = report.about;
        push(&mut text, format_args!(" <a href=\"#{}\">{}</a>", about.name, escape(about.authors)));
    }
    text + " <a href=\"#run\">About this run</a></nav>\n</section>\n"
}

/// Renders the causes, with their runs folded.
fn causes(page: &Page) -> String {
    let mut text = "<section id=\"causes\">\n<h2>What differs, and why</h2>\n".to_string();
    text += "<p>A cause is <i>shown</i> if a run with it changed yields the printed number, \
        <i>inferred</i> if it follows from printed numbers, and <i>open</i> if variants were \
        tried without success. A run shows that a cause suffices, not that it was the one of the \
        day.</p>\n<ol class=\"causes\">\n";
    page.causes.iter().for_each(|cause| text += &one_cause(cause));
    text + "</ol>\n</section>\n"
}

fn one_cause(cause: &Shown) -> String {
    let (number, explanation) = (cause.number, cause.explanation);
    let mut text = format!(
        "<li id=\"cause-{number}\" value=\"{number}\"><b>{}</b> \
         <span class=\"status {}\">{}</span> {}\n",
        escape(explanation.title),
        explanation.status.name(),
        explanation.status.name(),
        escape(explanation.text)
    );
    if !cause.evidence.is_empty() {
        let command = escape(&cause.command());
        text += "<details><summary>The run</summary>\n";
        if !explanation.more.is_empty() {
            push(&mut text, format_args!("<p>{}</p>\n", escape(explanation.more)));
        }
        push(&mut text, format_args!("<p><code>{command}</code></p>\n"));
        for (title, table) in &cause.evidence {
            push(&mut text, format_args!("<h4>{}</h4>\n{}", escape(title), grid(title, table)));
        }
        text += "</details>\n";
    }
    text + "</li>\n"
}

fn paper(report: &Report, root: &str) -> String {
    let about = report.about;
    let modules = about
        .modules
        .iter()
        .map(|module| format!("<a href=\"{}\"><code>{module}</code></a>", documentation(module)));
    let modules = modules.collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "<section class=\"paper\" id=\"{}\">\n<h2>{}</h2>\n<p class=\"authors\">{}, {}. \
         Documentation: {modules}.</p>\n\
         <p><b>The paper.</b> {}</p>\n<p><b>Here.</b> {}</p>\n<p><b>To keep in mind.</b> {}</p>\n",
        about.name,
        escape(about.title),
        escape(about.authors),
        escape(about.published),
        escape(about.claims),
        escape(about.ours),
        escape(about.caution)
    );
    let places = places(report);
    text += "<p class=\"places\">";
    for place in &places {
        let (class, anchor) = (class(place.verdict()), anchor(report, &place.name));
        let label = escape(&place.label());
        push(&mut text, format_args!("<a class=\"{class}\" href=\"#{anchor}\">{label}</a>\n"));
    }
    let counts = in_words(count(report.findings.iter()));
    push(&mut text, format_args!("</p>\n<h3>{counts}</h3>\n{HEAD}"));
    places.iter().for_each(|place| text += &place_rows(report, place, root));
    text += "</table>\n";
    folded(&mut text, "Figures, with the published points", report, |item| {
        matches!(item, Item::Figure { .. })
    });
    folded(&mut text, "Tables", report, |item| !matches!(item, Item::Figure { .. }));
    text + "<p class=\"up\"><a href=\"#summary\">Up to the summary</a></p>\n</section>\n"
}

/// The head of a table of findings.
const HEAD: &str = "<table class=\"findings\">\n<thead><tr><th scope=\"col\">Where</th>\
    <th scope=\"col\">What</th><th scope=\"col\">Published</th><th scope=\"col\">Measured</th>\
    <th scope=\"col\">Rule</th><th scope=\"col\">Verdict</th></tr></thead>\n";

/// Adds the items of one kind, folded.
fn folded(text: &mut String, title: &str, report: &Report, is_shown: impl Fn(&Item) -> bool) {
    let items: Vec<&Item> = report.items.iter().filter(|item| is_shown(item)).collect();
    if items.is_empty() {
        return;
    }
    push(text, format_args!("<details><summary>{title} ({})</summary>\n", items.len()));
    items.into_iter().for_each(|item| *text += &show(item));
    *text += "</details>\n";
}

fn place_rows(report: &Report, place: &Place<'_>, root: &str) -> String {
    let mut text = format!("<tbody id=\"{}\">\n", anchor(report, &place.name));
    for (number, finding) in place.findings.iter().enumerate() {
        let first = (number == 0).then(|| {
            format!(
                "<th class=\"where\" scope=\"rowgroup\" rowspan=\"{}\">{}</th>",
                place.findings.len(),
                escape(&place.name)
            )
        });
        text += &finding_row(finding, &first.unwrap_or_default(), root);
    }
    text + "</tbody>\n"
}

/// Renders a row. A reason replaces the numbers of what is not measured.
fn finding_row(finding: &Finding, first: &str, root: &str) -> String {
    let Finding { what, published, quotation, rule, why, source, .. } = finding;
    let class = class(finding.verdict);
    let mut text = format!("<tr class=\"{class}\">{first}");
    let why = match why.is_empty() {
        true => String::new(),
        false => format!("<span class=\"why\">{}</span>", escape(why)),
    };
    let link = format!("{root}/{}#L{}", source.file(), source.line());
    push(
        &mut text,
        format_args!(
            "<td class=\"what\"><a href=\"{link}\" title=\"The code\">{}</a> {why}</td>",
            escape(what)
        ),
    );
    if published == "-" {
        text += "<td class=\"none\" colspan=\"3\"></td>";
    } else {
        let measured = finding.of_all_runs();
        for (name, title, cell) in [
            ("published", quotation.as_str(), published),
            ("measured", "", &measured),
            ("rule", "", rule),
        ] {
            let (title, cell) = (escape(title), escape(cell));
            push(
                &mut text,
                format_args!(
                    "<td class=\"cell\" data-name=\"{name}\" title=\"{title}\">{cell}</td>"
                ),
            );
        }
    }
    let verdict = verdict(finding, |number| format!("<a href=\"#cause-{number}\">[{number}]</a>"));
    push(&mut text, format_args!("<td class=\"verdict\">{verdict}</td></tr>\n"));
    text
}

fn show(item: &Item) -> String {
    match item {
        Item::Table { title, table, .. } if table.rows.len() > LONG + 1 => format!(
            "<details><summary>{} <small>({} rows)</small></summary>\n{}</details>\n",
            escape(title),
            table.rows.len() - 1,
            grid(title, table)
        ),
        Item::Table { title, table, .. } => {
            format!("<h4>{}</h4>\n{}", escape(title), grid(title, table))
        }
        Item::Figure { title, svg, .. } => {
            let title = escape(title);
            let image =
                format!("<div role=\"img\" aria-label=\"{title}\">\n{}\n</div>", svg.trim());
            format!("<figure>\n{}</figure>\n", wide(&title, &image))
        }
        Item::Remark(text) => format!("<p class=\"remark\">{}</p>\n", escape(text)),
    }
}

/// Wraps wide content in a box with its own scroll bar, which is reachable by keyboard.
fn wide(name: &str, content: &str) -> String {
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" \
            aria-label=\"{name}\">{content}</div>\n"
    )
}

fn grid(title: &str, table: &Table) -> String {
    let row = |cells: &[String], open: &str, close: &str| {
        let cells: String =
            cells.iter().map(|cell| format!("<{open}>{}</{close}>", escape(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let Some((header, rows)) = table.rows.split_first() else { return String::new() };
    let rows: String = rows.iter().map(|cells| row(cells, "td", "td")).collect();
    let header = row(header, "th scope=\"col\"", "th");
    let grid =
        format!("<table class=\"grid\">\n<thead>{header}</thead>\n<tbody>\n{rows}</tbody></table>");
    wide(&escape(title), &grid)
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Agrees => "agrees",
        Verdict::Differs => "differs",
        Verdict::Calculated => "calculated",
        Verdict::NotMeasured => "lost",
    }
}

/// Returns the anchor of the findings about a place.
fn anchor(report: &Report, place: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    format!("{}-{}", report.about.name, place.chars().map(letter).collect::<String>())
}

/// Escapes text, and joins a number with its per cent sign.
fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace(" %", "&nbsp;%")
}

fn push(text: &mut String, more: impl Display) {
    write!(text, "{more}").expect("a string takes everything");
}
