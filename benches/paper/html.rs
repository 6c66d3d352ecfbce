//! The page as HTML: one file with its style sheet and figures, without scripts or requests.

use std::fmt::{Display, Write};

use crate::finding::{Finding, Verdict};
use crate::page::{INTRODUCTION, Page, Place, SMALL_SCALE, TITLE, count, in_words, places};
use crate::report::{Item, Report, Table};

const STYLE: &str = include_str!("style.css");

/// Longer tables are folded.
pub(crate) const LONG: usize = 20;

/// Renders the page.
pub(crate) fn page(page: &Page) -> String {
    let mut setting = String::new();
    for (name, text) in &page.setting {
        push(&mut setting, format_args!("<dt>{name}</dt><dd>{}</dd>\n", escape(text)));
    }
    let warning = if page.quick {
        format!("<p class=\"warning\">{SMALL_SCALE}</p>\n")
    } else {
        String::new()
    };
    let papers: String = page.reports.iter().map(paper).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<title>{TITLE}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{TITLE}</h1>\n{warning}\
         <p>{INTRODUCTION}</p>\n<dl \
         class=\"setting\">\n{setting}</dl>\n</header>\n<main>\n{}{papers}</main>\n\
         </body>\n</html>\n",
        summary(page)
    )
}

/// Renders the summary: per paper, its counts and a coloured link to each place.
fn summary(page: &Page) -> String {
    let mut text = format!("<section id=\"summary\">\n<h2>{}</h2>\n", in_words(page.counts()));
    text += "<p>For each table and figure: how many of the lines about it agree. Each leads to \
        its lines.</p>\n";
    for report in &page.reports {
        let about = report.about;
        push(
            &mut text,
            format_args!(
                "<nav class=\"places\" aria-label=\"{}\"><h3><a href=\"#{}\">{}</a> <small>{}, {}: \
                    {}</small></h3>\n<p>",
                escape(about.title),
                about.name,
                escape(about.title),
                escape(about.authors),
                escape(about.published),
                in_words(count(report.findings.iter()))
            ),
        );
        for place in places(report) {
            let (class, anchor) = (class(place.verdict()), anchor(report, place.name));
            let label = escape(&place.label());
            push(&mut text, format_args!("<a class=\"{class}\" href=\"#{anchor}\">{label}</a>\n"));
        }
        text += "</p></nav>\n";
    }
    text + "</section>\n"
}

fn paper(report: &Report) -> String {
    let about = report.about;
    let mut text = format!(
        "<section class=\"paper\" id=\"{}\">\n<h2>{}</h2>\n<p class=\"authors\">{}, {}</p>\n\
         <p><b>The paper.</b> {}</p>\n<p><b>Here.</b> {}</p>\n<p><b>To keep in mind.</b> {}</p>\n",
        about.name,
        escape(about.title),
        escape(about.authors),
        escape(about.published),
        escape(about.claims),
        escape(about.ours),
        escape(about.caution)
    );
    push(
        &mut text,
        format_args!(
            "<h3>Published and measured</h3>\n<p>{}.</p>\n",
            in_words(count(report.findings.iter()))
        ),
    );
    let header = ["Where", "What", "Published", "Measured", "Rule", "Verdict"]
        .map(|name| format!("<th scope=\"col\" role=\"columnheader\">{name}</th>"));
    push(
        &mut text,
        format_args!(
            "<table class=\"findings\" role=\"table\">\n<thead role=\"rowgroup\"><tr \
                role=\"row\">{}</tr></thead>\n",
            header.concat()
        ),
    );
    places(report).iter().for_each(|place| text += &place_rows(report, place));
    text += "</table>\n<h3>Tables and figures</h3>\n";
    report.items.iter().for_each(|item| text += &show(item));
    text + "<p class=\"up\"><a href=\"#summary\">Up to the summary</a></p>\n</section>\n"
}

fn place_rows(report: &Report, place: &Place<'_>) -> String {
    let mut text = format!("<tbody id=\"{}\" role=\"rowgroup\">\n", anchor(report, place.name));
    for (number, finding) in place.findings.iter().enumerate() {
        let first = (number == 0).then(|| {
            format!(
                "<th class=\"where\" scope=\"rowgroup\" role=\"rowheader\" rowspan=\"{}\">{}</th>",
                place.findings.len(),
                escape(place.name)
            )
        });
        text += &finding_row(finding, &first.unwrap_or_default());
    }
    text + "</tbody>\n"
}

/// Renders a row. A reason replaces the numbers of what is not measured.
fn finding_row(finding: &Finding, first: &str) -> String {
    let Finding { what, published, measured, rule, verdict, why, .. } = finding;
    let class = class(*verdict);
    let mut text = format!("<tr class=\"{class}\" role=\"row\">{first}");
    let why = match why.is_empty() {
        true => String::new(),
        false => format!("<span class=\"why\">{}</span>", escape(why)),
    };
    push(&mut text, format_args!("<td class=\"what\" role=\"cell\">{} {why}</td>", escape(what)));
    if published == "-" {
        text += "<td class=\"none\" role=\"cell\" colspan=\"3\"></td>";
    } else {
        for (name, cell) in [("published", published), ("measured", measured), ("rule", rule)] {
            push(
                &mut text,
                format_args!(
                    "<td class=\"cell\" role=\"cell\" data-name=\"{name}\">{}</td>",
                    escape(cell)
                ),
            );
        }
    }
    push(&mut text, format_args!("<td class=\"verdict\" role=\"cell\">{verdict}</td></tr>\n"));
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
