//! Numbers and names, as the page writes them.

use crate::board::short;
use bench_common::figure::thousands;

/// Figures whose ratio is this close to 1 are as good as each other.
const CLOSE: f64 = 0.05;

/// Who is better.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    Ours,
    Neither,
    Peer,
}

impl Better {
    /// By the ratio; by the figures where there is none, as one of them is zero.
    pub(crate) fn of(ratio: Option<f64>, ours: f64, peer: f64) -> Self {
        match ratio {
            Some(ratio) if ratio < 1.0 - CLOSE => Self::Peer,
            Some(ratio) if ratio > 1.0 + CLOSE => Self::Ours,
            None if ours > peer => Self::Peer,
            None if ours < peer => Self::Ours,
            _ => Self::Neither,
        }
    }
}

/// A measured figure: three digits or all before the point.
pub(crate) fn number(figure: f64) -> String {
    if figure.round() >= 1000.0 { thousands(figure) } else { short(figure, 1) }
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

/// The digits of a title's numbers in groups of three, where they are numbers of entries.
pub(crate) fn title(title: &str) -> String {
    let word = |word: &str| match word.parse::<u64>() {
        Ok(number) if number >= 1000 => thousands(number as f64),
        _ => word.into(),
    };
    title.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// What keys are called in the lines, in words.
pub(crate) fn key(key: &str) -> String {
    match key {
        "v4" => "IPv4".into(),
        "v6" => "IPv6".into(),
        _ => format!("keys of {key} bytes"),
    }
}

/// A row of a table.
pub(crate) fn row<S: AsRef<str>>(cells: impl IntoIterator<Item = S>) -> String {
    let cells = cells.into_iter().map(|cell| format!(" {} |", cell.as_ref().replace('|', "\\|")));
    format!("|{}\n", cells.collect::<String>())
}

/// The line below a table's header: the first columns to the left, then numbers.
pub(crate) fn rule(left: usize, right: usize) -> String {
    format!("|{}{}\n", "---|".repeat(left), "--:|".repeat(right))
}
