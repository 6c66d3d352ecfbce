//! The inventory of the reproduction: each printed value is in the words of its paper.
//!
//! ```text
//!     “almost 21 %”                                 the paper's words
//!     row compare, SRAM: 3.98                       a cell, or a value that the text states
//!     section 4.2, chains: more are cheaper         the text, in other words than its own
//!     = 1218 / 1308: Kpps of rows …                 calculated from printed numbers, from the left
//!     no text at hand                               the words are missing
//! ```

use std::iter;

pub(super) const CSV: &str = include_str!("../../benches/paper/inventory.csv");

/// The lines of which the paper's words are not at hand. The number only goes down.
const WITHOUT_TEXT: usize = 5;
const NO_TEXT: &str = "no text at hand";

struct Line {
    name: String,
    printed: String,
    quotation: String,
}

fn lines() -> Vec<Line> {
    let records = csv::Reader::from_reader(CSV.as_bytes()).into_records();
    let line = |record: csv::StringRecord| Line {
        name: format!("{}, {}, {}", &record[0], &record[1], &record[2]),
        printed: record[3].to_string(),
        quotation: record[4].to_string(),
    };
    records.map(|record| line(record.unwrap())).collect()
}

/// Returns the numbers of a text with their last places: `1,045` is 1045 by 1, `0.72` by 0.01.
fn numbers(text: &str) -> Vec<(f64, f64)> {
    let text = text.replace("e-", "e\u{2212}");
    let is_part = |letter: char| letter.is_ascii_digit() || ",.e\u{2212}".contains(letter);
    let words = text.split(|letter| !is_part(letter));
    let words = words.map(|word| word.replace(',', "").replace('\u{2212}', "-"));
    let words = words.map(|word| word.trim_matches(['.', 'e', '-']).to_string());
    let number = |word: String| {
        let value: f64 = word.parse().ok()?;
        let digits = word.split('e').next()?.split_once('.').map_or(0, |(_, after)| after.len());
        let exponent: i32 =
            word.split_once('e').map_or(Some(0), |(_, after)| after.parse().ok())?;
        Some((value, 10f64.powi(exponent - digits as i32)))
    };
    words.filter_map(number).collect()
}

/// Calculates `a * b / c`, from the left.
fn calculated(expression: &str) -> Option<f64> {
    let mut words = expression.split_whitespace();
    let mut value: f64 = words.next()?.parse().ok()?;
    while let (Some(sign), Some(number)) = (words.next(), words.next()) {
        let number: f64 = number.parse().ok()?;
        value = match sign {
            "+" => value + number,
            "*" => value * number,
            "/" => value / number,
            _ => return None,
        };
    }
    Some(value)
}

/// Returns the values that a quotation states.
fn stated(quotation: &str) -> Vec<f64> {
    match quotation.strip_prefix("= ").and_then(|text| text.split_once(": ")) {
        Some((expressions, _)) => expressions.split(';').filter_map(calculated).collect(),
        None => {
            // The heads of a cell are before the colon.
            let value = quotation.rsplit_once(": ").map_or(quotation, |(_, value)| value);
            numbers(value).into_iter().map(|(value, _)| value).collect()
        }
    }
}

/// Returns the first four letters of each word that has three or more.
fn stems(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphabetic());
    let words = words.filter(|word| word.chars().count() >= 3);
    words.map(|word| word.chars().take(4).collect::<String>().to_lowercase()).collect()
}

/// Returns whether a quotation has the printed value: its numbers, and the stems of its words.
fn states(quotation: &str, printed: &str) -> bool {
    let (numbers, words) = (numbers(printed), stems(printed));
    let (stated, stated_words) = (stated(quotation), stems(quotation));
    if numbers.is_empty() && words.is_empty() {
        return false;
    }
    let is_stated = |&(number, place): &(f64, f64)| {
        stated.iter().any(|value| (value - number).abs() <= place / 2.0 * (1.0 + 1e-9))
    };
    numbers.iter().all(is_stated) && words.iter().all(|word| stated_words.contains(word))
}

#[test]
fn printed_values_are_in_their_quotations() {
    let lines = lines();
    assert!(lines.len() > 200, "{} lines", lines.len());
    for Line { name, printed, quotation } in &lines {
        assert_eq!(printed.is_empty(), quotation.is_empty(), "{name}");
        let holds = printed.is_empty() || quotation == NO_TEXT || states(quotation, printed);
        assert!(holds, "{name}: {printed} is not in: {quotation}");
        // Other words than the paper's have no quotation marks, and their place before a colon.
        let has_place = quotation == NO_TEXT || quotation.contains(['“', ':']);
        assert!(printed.is_empty() || has_place, "{name}: where is: {quotation}");
    }
    let without = lines.iter().filter(|line| line.quotation == NO_TEXT).count();
    assert_eq!(without, WITHOUT_TEXT, "lines without text");
}

/// A table of quotations which the check accepts proves nothing, unless it refuses others.
#[test]
fn other_values_are_not_in_a_quotation() {
    for (quotation, printed, other) in [
        ("R = 0.5 s, equation 5: 1,045", "1045", "1046"),
        ("R = 0.5 s, equation 5: 1,045", "1045", "0.5"),
        ("one chain: 1.9e-35", "1.9e-35", "1.8e-35"),
        ("= 13 * 3600: packets, connections", "46800", "46801"),
        ("= 906 / 3600 / 193 * 5040: seconds", "6.57", "6.58"),
        ("= 1 + 0.45; 1 / 0.55: “45 %”", "1.45 to 1.82", "1.45 to 1.83"),
        ("“it will drop”", "drops", "holds"),
        ("section 3.4: more chains are cheaper", "more are cheaper", "more are slower"),
        ("“almost 21 %”", "21", "20"),
    ] {
        let refused = iter::once(other).chain(["", "and"]).all(|text| !states(quotation, text));
        assert!(states(quotation, printed) && refused, "{quotation}");
    }
}
