//! The binaries of the examples: paths and staleness.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the binary of an example, which `cargo test` at the root builds next to this test.
///
/// # Errors
///
/// The command that builds it, if it is missing or older than its sources.
pub(crate) fn of_example(name: &str) -> Result<PathBuf, String> {
    let test = std::env::current_exe().expect("the test is a file");
    let profile = test.ancestors().nth(2).expect("it is in target/<profile>/deps");
    let example = profile.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let Some(why) = staleness(&example) else { return Ok(example) };
    let flags = match profile.file_name().unwrap_or_default().to_string_lossy().as_ref() {
        "debug" => String::new(),
        "release" => " --release".to_owned(),
        other => format!(" --profile {other}"),
    };
    Err(format!(
        "{} {why}: run `cargo build --example {name}{flags}`, with the --target and the \
         features of this test if it has any",
        example.display()
    ))
}

/// Returns why this binary is stale, if it is. Its sources are those that Cargo listed next to it:
/// a change of other files, such as ones of disabled features, rebuilds nothing.
pub(crate) fn staleness(binary: &Path) -> Option<String> {
    let modified = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
    let Some(built) = modified(binary) else { return Some("is missing".to_owned()) };
    let Ok(list) = fs::read_to_string(binary.with_extension("d")) else {
        return Some("has no list of its sources".to_owned());
    };
    let sources = listed_sources(&list);
    if sources.is_empty() {
        return Some("has an empty list of its sources".to_owned());
    }
    sources.iter().find_map(|source| match modified(source) {
        None => Some(format!("is stale: {} is gone", source.display())),
        Some(time) if time > built => Some(format!("is older than {}", source.display())),
        Some(_) => None,
    })
}

/// Returns the paths after the first colon and space of a make rule, in which spaces are escaped by
/// a backslash.
fn listed_sources(rule: &str) -> Vec<PathBuf> {
    let Some((_, sources)) = rule.split_once(": ") else { return vec![] };
    let sources = sources.lines().next().unwrap_or_default().replace("\\ ", "\0");
    sources.split_whitespace().map(|source| source.replace('\0', " ").into()).collect()
}
