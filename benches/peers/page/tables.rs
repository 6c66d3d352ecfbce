//! Tables of results: a row per subject, a column per benchmark.

use std::fmt::Write;

use super::format::{number, ratio, row, rule, title};
use super::recorded::{RecordedColumn, RecordedResults};
use super::sections::Section;

/// Formats a table, folded below its title, with remarks. The best figure of a column is bold.
pub(crate) fn table(section: &Section, results: &RecordedResults) -> String {
    let columns = results.columns();
    let (ours, peers) = (results.ours(), results.peers());
    let mut text = format!("<details><summary>{}</summary>\n\n", title(&results.title));
    text += &row([String::new()].into_iter().chain(heads(&columns)));
    text += &rule(1, columns.len());
    let names = ours.iter().chain(&peers);
    let competing = names.clone().filter(|name| section.is_counted(name));
    let best: Vec<_> =
        columns.iter().map(|column| least(results, competing.clone(), column)).collect();
    for (at, name) in names.clone().enumerate() {
        let cells =
            columns.iter().zip(&best).map(|(column, best)| cell(results, name, column, *best));
        let name = if at < ours.len() { format!("**{name}**") } else { (*name).into() };
        text += &row([name].into_iter().chain(cells));
    }
    let remarks: String = names.filter_map(|name| remark(results, name)).collect();
    if !remarks.is_empty() {
        write!(text, "\n{remarks}").expect("writing to a string");
    }
    text + "\n</details>\n\n"
}

/// The names of the columns, with size and unit where these differ.
fn heads(columns: &[RecordedColumn]) -> impl Iterator<Item = String> {
    let is_of_one_size = columns.iter().all(|column| column.n == columns[0].n);
    let is_in_ns = columns.iter().all(|column| column.unit == "ns");
    columns.iter().map(move |RecordedColumn { bench, unit, n }| {
        let size = if is_of_one_size { String::new() } else { format!(", {}", number(*n as f64)) };
        let has_unit = is_in_ns || bench.contains(unit.as_str());
        format!("{bench}{size}{}", if has_unit { String::new() } else { format!(" ({unit})") })
    })
}

fn least<'a>(
    results: &RecordedResults,
    names: impl Iterator<Item = &'a &'a str>,
    column: &RecordedColumn,
) -> Option<f64> {
    names.filter_map(|name| results.figure(name, column)).min_by(f64::total_cmp)
}

/// Formats a figure, in bold if it is the best one, with its ratio to the first of our rows.
fn cell(
    results: &RecordedResults,
    name: &str,
    column: &RecordedColumn,
    best: Option<f64>,
) -> String {
    let Some(figure) = results.figure(name, column) else {
        return String::new();
    };
    let text = number(figure);
    let text = if Some(figure) == best { format!("**{text}**") } else { text };
    let ratio = results.ratio(name, column).map(|value| format!(" ({})", ratio(value)));
    text + &ratio.unwrap_or_default()
}

fn remark(results: &RecordedResults, name: &str) -> Option<String> {
    let remarks = results.remarks(name);
    (!remarks.is_empty()).then(|| format!("- {name}: {}\n", remarks.join(", ")))
}
