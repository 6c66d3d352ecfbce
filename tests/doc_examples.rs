//! Every public function is called in an example of its module's documentation.
//!
//! A module is a file of `src/` with the folder of its name. A call is `.name(` or `::name(` in a
//! fenced block. Examples are tests, so their assertions hold.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The examples in the documentation of a module, and its functions.
#[derive(Default)]
struct Module {
    examples: String,
    /// The file and the name of each.
    functions: Vec<(String, String)>,
}

#[test]
fn every_public_function_is_in_an_example() {
    let src = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../src"));
    let mut modules: BTreeMap<String, Module> = BTreeMap::new();
    for file in rust_files(src) {
        let source = fs::read_to_string(&file).expect("a source file can be read");
        let place = file.strip_prefix(src).expect("it is in src/").display().to_string();
        let name = place.split(['/', '.']).next().expect("a path has a beginning").to_owned();
        modules.entry(name).or_default().read(&place, &source);
    }
    let front = modules.remove("lib").expect("there is a front page").examples;
    let missing = modules.values().flat_map(|module| module.missing(&front));
    let missing: Vec<String> = missing.collect();
    assert!(modules.values().map(|module| module.functions.len()).sum::<usize>() > 500);
    assert!(missing.is_empty(), "{} without an example:\n{}", missing.len(), missing.join("\n"));
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of src/ can be read");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let files = paths.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|name| name == "rs")).collect()
}

impl Module {
    fn read(&mut self, place: &str, source: &str) {
        let mut is_code = false;
        for line in source.lines().map(str::trim) {
            match line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) {
                Some(doc) if doc.trim().starts_with("```") => is_code = !is_code,
                Some(doc) if is_code => self.examples.extend([doc, "\n"]),
                Some(_) => {}
                None => {
                    is_code = false;
                    self.functions.extend(function(line).map(|name| (place.into(), name.into())));
                }
            }
        }
    }

    /// The functions that occur neither in its examples nor in `more`.
    fn missing<'a>(&'a self, more: &'a str) -> impl Iterator<Item = String> + 'a {
        let is_shown =
            move |name: &str| [self.examples.as_str(), more].iter().any(|code| calls(code, name));
        let missing = self.functions.iter().filter(move |(_, name)| !is_shown(name));
        missing.map(|(place, name)| format!("{place}: {name}"))
    }
}

/// The name of the public function whose signature begins on this line.
fn function(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let words = ["const ", "unsafe ", "async "];
    let rest = words.iter().fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    rest.strip_prefix("fn ")?.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// Whether the code has the name after a dot or `::`, as a call or as a function.
fn calls(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let next = code[at + name.len()..].chars().next();
        let ends = next.is_none_or(|c| !c.is_alphanumeric() && c != '_');
        ends && (code[..at].ends_with('.') || code[..at].ends_with("::"))
    })
}
