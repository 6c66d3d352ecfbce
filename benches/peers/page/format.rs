//! The format of numbers, names and table rows on the page.

use bench_common::figure::thousands;

use crate::results::formatted;

/// Figures whose ratio differs from 1 by at most this count as equal.
const TOLERANCE: f64 = 0.05;

/// The better side of a comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    Ours,
    Neither,
    Peer,
}

impl Better {
    /// Compares by the ratio, or by the figures where one of them is zero.
    pub(crate) fn of(ratio: Option<f64>, ours: f64, peer: f64) -> Self {
        match ratio {
            Some(ratio) if ratio < 1.0 - TOLERANCE => Self::Peer,
            Some(ratio) if ratio > 1.0 + TOLERANCE => Self::Ours,
            None if ours > peer => Self::Peer,
            None if ours < peer => Self::Ours,
            _ => Self::Neither,
        }
    }
}

/// Formats a figure with three digits, or with all before the point.
pub(crate) fn number(figure: f64) -> String {
    if figure.round() >= 1000.0 { thousands(figure) } else { formatted(figure, 1) }
}

pub(crate) fn ratio(ratio: f64) -> String {
    match ratio {
        _ if ratio < 0.001 => "below 0.001".into(),
        _ if ratio < 0.1 => format!("{ratio:.3}"),
        _ if ratio < 10.0 => format!("{ratio:.2}"),
        _ if ratio < 100.0 => format!("{ratio:.1}"),
        _ => thousands(ratio),
    }
}

/// Groups the digits of numbers in a title by three.
pub(crate) fn title(title: &str) -> String {
    let word = |word: &str| match word.parse::<u64>() {
        Ok(number) if number >= 1000 => thousands(number as f64),
        _ => word.into(),
    };
    title.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Formats the name of a key in the JSON.
pub(crate) fn key(key: &str) -> String {
    match key {
        "v4" => "IPv4".into(),
        "v6" => "IPv6".into(),
        "v4, native" => "IPv4, native".into(),
        "v6, native" => "IPv6, native".into(),
        _ => format!("keys of {key} bytes"),
    }
}

/// Formats a row of a table.
pub(crate) fn row<S: AsRef<str>>(cells: impl IntoIterator<Item = S>) -> String {
    let cells = cells.into_iter().map(|cell| format!(" {} |", cell.as_ref().replace('|', "\\|")));
    format!("|{}\n", cells.collect::<String>())
}

/// Formats the line below a table's header: columns aligned to the left, then to the right.
pub(crate) fn rule(left: usize, right: usize) -> String {
    format!("|{}{}\n", "---|".repeat(left), "--:|".repeat(right))
}
