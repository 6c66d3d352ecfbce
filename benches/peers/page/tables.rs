//! A board as a table: contestants are its rows, jobs its columns.

use std::fmt::Write;

use super::sections::Section;
use super::sheet::{Column, Sheet};
use super::text::{number, ratio, row, rule, title};

/// The table, folded below its title, and remarks. Of those who compete, the best figure of a column is bold.
pub(crate) fn table(section: &Section, sheet: &Sheet) -> String {
    let columns = sheet.columns();
    let (ours, peers) = (sheet.ours(), sheet.peers());
    let mut text = format!("<details><summary>{}</summary>\n\n", title(&sheet.title));
    text += &row([String::new()].into_iter().chain(heads(&columns)));
    text += &rule(1, columns.len());
    let names = ours.iter().chain(&peers);
    let competing = names.clone().filter(|name| !section.bystanders.contains(*name));
    let best: Vec<_> =
        columns.iter().map(|column| least(sheet, competing.clone(), column)).collect();
    for (at, name) in names.clone().enumerate() {
        let cells =
            columns.iter().zip(&best).map(|(column, best)| cell(sheet, name, column, *best));
        let name = if at < ours.len() { format!("**{name}**") } else { (*name).into() };
        text += &row([name].into_iter().chain(cells));
    }
    let remarks: String = names.filter_map(|name| remark(sheet, name)).collect();
    if !remarks.is_empty() {
        write!(text, "\n{remarks}").expect("a string takes all");
    }
    text + "\n</details>\n\n"
}

/// Jobs; with what else tells the columns apart.
fn heads(columns: &[Column]) -> impl Iterator<Item = String> {
    let is_of_one_size = columns.iter().all(|column| column.n == columns[0].n);
    let is_in_ns = columns.iter().all(|column| column.unit == "ns");
    columns.iter().map(move |Column { bench, unit, n }| {
        let size = if is_of_one_size { String::new() } else { format!(", {}", number(*n as f64)) };
        let says_it = is_in_ns || bench.contains(unit.as_str());
        format!("{bench}{size}{}", if says_it { String::new() } else { format!(" ({unit})") })
    })
}

fn least<'a>(
    sheet: &Sheet,
    names: impl Iterator<Item = &'a &'a str>,
    column: &Column,
) -> Option<f64> {
    names.filter_map(|name| sheet.figure(name, column)).min_by(f64::total_cmp)
}

/// A figure, bold if it is the best one; and how many times our first one is better.
fn cell(sheet: &Sheet, name: &str, column: &Column, best: Option<f64>) -> String {
    let Some(figure) = sheet.figure(name, column) else {
        return String::new();
    };
    let text = number(figure);
    let text = if Some(figure) == best { format!("**{text}**") } else { text };
    let times = sheet.ratio(name, column).map(|times| format!(" ({})", ratio(times)));
    text + &times.unwrap_or_default()
}

fn remark(sheet: &Sheet, name: &str) -> Option<String> {
    let remarks = sheet.remarks(name);
    (!remarks.is_empty()).then(|| format!("- {name}: {}\n", remarks.join(", ")))
}
