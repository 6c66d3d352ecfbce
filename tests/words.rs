//! Plain words: what the sources of this repository must not contain.
//!
//! Names and comments use the field's standard terms, so that a reader of other tables and
//! stacks, or a search engine, finds what is meant. The list has the phrases that came up most
//! often in texts that readers could not follow. It reads identifiers, comments and messages
//! alike: an identifier counts as the words that it is made of.

use std::fs;
use std::path::{Path, PathBuf};

/// Phrases that do not occur, each as lowercase words.
const FORBIDDEN: &[&str] = &[
    // Code is not a person.
    "whoever",
    "whom",
    "nobody",
    "somebody",
    "everybody",
    "anybody",
    "who has the lock",
    "who holds",
    "says so",
    "asks for the",
    "wants to know",
    "knows its",
    "is told",
    "tells its",
    // Quantities have names.
    "so many",
    "so long as",
    // The field's nouns instead of these.
    "anew",
    "in vain",
    "lawless",
    "bystander",
    "bystanders",
    "contestant",
    "contestants",
    "entrant",
    "entrants",
    "twin",
    "twins",
    "lettered",
    "look up s",
    "look ups",
    "mistake of this crate",
    "hand over",
    "hands over",
    "handed over",
    "puts in",
    "takes out",
    "taken out",
    "unpass",
    "greeted",
    "floors",
    "empty box",
    "make way",
    "further name",
    "further names",
];

/// Beginnings of summaries without a noun: rustdoc lists summaries without what precedes them.
const RIDDLES: [&str; 4] = ["/// The same", "/// That of", "/// Those of", "/// What "];

/// Occurrences that are meant: the beginning of a path, the phrase, and why.
const ALLOWED: &[(&str, &str, &str)] = &[("tests/words.rs", "", "the list itself")];

/// Pronouns that replace a noun, and how often they may occur in 10,000 words of comments of `src/`
/// and of Markdown: as often as in the libraries that this one is compared with. A sentence that
/// repeats the noun needs none of them.
const PRONOUNS: [(&[&str], f64); 5] = [
    (&["that of", "those of"], 5.0),
    (&["what"], 5.0),
    (&["another one"], 1.0),
    (&["besides", "meanwhile", "by then"], 1.0),
    (&["which has one", "which has none"], 0.4),
];

/// Files and folders that are read.
const ROOTS: [&str; 16] = [
    ".ci",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "benches",
    "ci",
    "crates",
    "docs/DESIGN.md",
    "docs/METER.md",
    "docs/RECIPES.md",
    "examples",
    "fuzz/fuzz_targets",
    "fuzz/src",
    "src",
    "tests",
];

/// The longest line of a source file, in characters; rows of tables cannot be wrapped.
const COLUMNS: usize = 100;

/// The longest line of prose in Markdown, in characters.
const PROSE_COLUMNS: usize = 120;

/// The longest source file, in lines.
const LINES: usize = 600;

#[test]
fn no_forbidden_phrase_occurs() {
    let mut faults = vec![];
    for (name, text) in texts() {
        let words = words(&text);
        for phrase in FORBIDDEN {
            let is_allowed = |&&(path, allowed, _): &&(&str, &str, &str)| {
                name.starts_with(path) && (allowed.is_empty() || allowed == *phrase)
            };
            if ALLOWED.iter().any(|allowed| is_allowed(&allowed)) {
                continue;
            }
            faults.extend(lines_of(&words, phrase).map(|line| format!("{name}:{line}: {phrase}")));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn summaries_stand_alone() {
    let is_fault = |lines: &[&str]| {
        let [before, line] = lines else { return false };
        let is_first = !before.trim_start().starts_with("///");
        let is_riddle = |words: &&str| line.trim_start().starts_with(words);
        is_first && RIDDLES.iter().any(is_riddle)
    };
    let mut faults = vec![];
    for (name, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.windows(2).enumerate().filter(|(_, pair)| is_fault(pair));
        faults.extend(at.map(|(at, pair)| format!("{name}:{}: {}", at + 2, pair[1].trim())));
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn sources_fit_the_screen_and_need_no_exceptions() {
    let mut faults = vec![];
    for (name, text) in sources() {
        if text.lines().count() > LINES {
            faults.push(format!("{name}: more than {LINES} lines"));
        }
        for (at, line) in text.lines().enumerate() {
            let is_table = ["//! |", "/// |"].iter().any(|row| line.trim_start().starts_with(row));
            if line.chars().count() > COLUMNS && !is_table {
                faults.push(format!("{name}:{}: more than {COLUMNS} columns", at + 1));
            }
            let exceptions = ["#[path", "(dead_code", "allow(unused"];
            if name != "tests/words.rs" && exceptions.iter().any(|mark| line.contains(mark)) {
                faults.push(format!("{name}:{}: {}", at + 1, line.trim()));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn prose_fits_the_screen() {
    let mut faults = vec![];
    // Pages in `benches/` are parts of generated pages.
    for (name, text) in texts().into_iter().filter(|(name, _)| is_page(name)) {
        let mut is_code = false;
        for (at, line) in text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            let is_prose = !is_code && !line.trim_start().starts_with('|');
            if is_prose && line.chars().count() > PROSE_COLUMNS {
                faults.push(format!("{name}:{}: more than {PROSE_COLUMNS} columns", at + 1));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Sentences name their subjects: see [`PRONOUNS`].
#[test]
fn nouns_are_repeated() {
    let is_read = |name: &str| name.starts_with("src/") || is_page(name);
    let texts: Vec<(String, Vec<(usize, String)>)> = texts()
        .into_iter()
        .filter(|(name, _)| is_read(name))
        .map(|(name, text)| (name.clone(), words(&prose(&name, &text))))
        .collect();
    let all: usize = texts.iter().map(|(_, words)| words.len()).sum();
    let mut faults = vec![];
    for (phrases, most) in PRONOUNS {
        let count = |words: &[(usize, String)]| -> usize {
            phrases.iter().map(|phrase| lines_of(words, phrase).count()).sum()
        };
        let mut files: Vec<(usize, &str)> =
            texts.iter().map(|(name, words)| (count(words), name.as_str())).collect();
        files.sort_unstable_by(|one, other| other.cmp(one));
        let rate = 1e4 * files.iter().map(|(count, _)| count).sum::<usize>() as f64 / all as f64;
        if rate > most {
            faults.push(format!("{phrases:?}: {rate:.1}, not {most}; most in {:?}", &files[..9]));
        }
    }
    assert!(faults.is_empty(), "in 10,000 of {all} words\n{}", faults.join("\n"));
}

fn is_page(name: &str) -> bool {
    name.ends_with(".md") && !name.starts_with("benches/")
}

/// The comments of a program without their examples, or a page of Markdown, on the same lines.
fn prose(name: &str, text: &str) -> String {
    let (mut is_code, mut prose) = (false, String::new());
    for line in text.lines().map(str::trim_start) {
        let line = if is_page(name) { Some(line) } else { line.strip_prefix("//") };
        let line = line.map(|line| line.trim_start_matches(['/', '!', ' ']));
        is_code = line.is_some_and(|line| is_code ^ line.starts_with("```"));
        prose.extend([line.filter(|_| !is_code).unwrap_or_default(), "\n"]);
    }
    prose
}

/// Every text that is read, by its path from the root of the repository.
fn texts() -> Vec<(String, String)> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let files = ROOTS.iter().flat_map(|name| files(&root.join(name)));
    let read = |file: PathBuf| {
        let name = file.strip_prefix(root).expect("the file is in the repository");
        let name = name.to_string_lossy().replace('\\', "/");
        Some((name, fs::read_to_string(&file).ok()?))
    };
    let texts: Vec<_> = files.filter_map(read).collect();
    assert!(texts.len() > 100, "there are {} texts only", texts.len());
    texts
}

/// The texts that are programs.
fn sources() -> impl Iterator<Item = (String, String)> {
    texts().into_iter().filter(|(name, _)| name.ends_with(".rs") || name.ends_with(".sh"))
}

/// A file, or all texts below a folder.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return vec![path.to_owned()] };
    let paths = entries.map(|entry| entry.expect("an entry is readable").path());
    let is_text = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        matches!(extension, None | Some("rs" | "sh" | "md"))
    };
    paths.flat_map(|path| files(&path)).filter(is_text).collect()
}

/// The lowercase words of a text with their lines: `leadTo_it` has three.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut words: Vec<(usize, String)> = vec![];
    for (at, line) in text.lines().enumerate() {
        let mut before = ' ';
        for letter in line.chars() {
            let begins =
                !before.is_alphabetic() || (before.is_lowercase() && letter.is_uppercase());
            if letter.is_alphabetic() {
                if begins {
                    words.push((at + 1, String::new()));
                }
                words.last_mut().expect("a word has begun").1.extend(letter.to_lowercase());
            }
            before = letter;
        }
    }
    words
}

/// The lines on which a phrase begins.
fn lines_of<'a>(words: &'a [(usize, String)], phrase: &str) -> impl Iterator<Item = usize> + 'a {
    let phrase: Vec<String> = phrase.split(' ').map(str::to_owned).collect();
    words.windows(phrase.len()).filter_map(move |window| {
        let is_it = window.iter().zip(&phrase).all(|((_, word), other)| word == other);
        is_it.then_some(window[0].0)
    })
}

#[test]
fn phrases_are_found_across_lines_and_in_identifiers() {
    let found = |text: &str, phrase: &str| lines_of(&words(text), phrase).collect::<Vec<_>>();
    assert_eq!(found("// a b\n// so\n// many of them", "so many"), [2]);
    assert_eq!(found("let so_many = SoMany;", "so many"), [1, 1]);
    assert_eq!(found("also many so_man y", "so many"), [0; 0]);
    assert_eq!(found("let twins = twin;", "twin"), [1]);
}
