//! The page of the reproduction: short enough to follow, with every line of the inventory.

const PAGE: &str = include_str!("../../docs/REPORT.md");

#[test]
fn page_is_short() {
    let lines = PAGE.lines().count();
    assert!(lines <= 350, "{lines} lines");
}

/// Splits a line of the list of causes after its title and status.
fn cause(line: &str) -> Option<&str> {
    line.contains("<a id=\"cause-").then(|| line.split_once("*). ")).flatten().map(|(_, text)| text)
}

#[test]
fn causes_have_two_sentences_at_most() {
    let causes: Vec<&str> = PAGE.lines().filter_map(cause).collect();
    assert!(causes.len() > 10, "{} causes", causes.len());
    for text in causes {
        let sentences = text.trim_end().trim_end_matches('.').matches(". ").count() + 1;
        assert!(sentences <= 2, "{sentences} sentences: {text}");
    }
    assert!(!PAGE.contains("No cause is known"), "a line differs without a cause");
}

#[test]
fn page_has_every_line_of_the_inventory() {
    let records = csv::Reader::from_reader(super::inventory::CSV.as_bytes()).into_records();
    for record in records.map(|record| record.unwrap()) {
        let (start, printed) = (format!("| {} | [{}](", &record[1], &record[2]), &record[3]);
        let mut rows = PAGE.lines().filter(|row| row.starts_with(&start));
        let has_value =
            rows.any(|row| printed.is_empty() || row.contains(&format!("| {printed} |")));
        assert!(has_value, "{start}{printed}");
    }
}
