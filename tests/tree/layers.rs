//! The floors of the house: a module of `src/` imports from lower floors only.
//!
//! Comments and strings do not count, so examples in the documentation may use what they like.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules by floor, those to come included. `lib.rs` stands above them all.
const FLOORS: [&[&str]; 6] = [
    &[
        "bits",
        "hash",
        "timestamp",
        "observe",
        "popcount",
        "prefetch",
        "slab",
        "chunks",
        "tags",
        "splitmix",
    ],
    &["flow", "prefix", "trie", "lists", "slots", "share"],
    &["life", "wheel", "evict", "source_index"],
    &["lc_trie", "lc_routes", "lpm", "trash", "cache", "ephemeral", "dml", "schedule"],
    &["demux", "unicache", "flow_cache", "threaded", "esp"],
    &["serde", "concurrent"],
];

fn floor_of(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

#[test]
fn modules_import_from_lower_floors_only() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = rust_files(&src);
    assert!(files.len() > 5, "{src:?} has {} files only", files.len());
    let faults = files.iter().flat_map(|file| {
        let source = fs::read_to_string(file).expect("a source file can be read");
        faults(&module_path(file.strip_prefix(&src).expect("it is in src/")), &source)
    });
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of src/ can be read");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let files = paths.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|name| name == "rs")).collect()
}

/// `trie/node.rs` is `trie`, `node`; `trie.rs` and `trie/mod.rs` are `trie`; `lib.rs` is nothing.
fn module_path(file: &Path) -> Vec<String> {
    let file = file.with_extension("");
    let names = file.iter().map(|name| name.to_str().expect("names are UTF-8").to_string());
    names.filter(|name| !["lib", "mod"].contains(&name.as_str())).collect()
}

/// What the source of a module imports and must not.
fn faults(module: &[String], source: &str) -> Vec<String> {
    let Some(owner) = module.first() else { return vec![] };
    let Some(floor) = floor_of(owner) else {
        return vec![format!("{owner}: has no floor; give it one in tests/tree/layers.rs")];
    };
    let mut faults = vec![];
    for path in imports(module, &tokens(source)) {
        let place =
            format!("{} (floor {floor}) imports crate::{}", module.join("::"), path.join("::"));
        match path.first() {
            Some(other) if other == owner => {}
            Some(other) => match floor_of(other) {
                Some(lower) if lower < floor => {}
                Some(upper) => faults.push(format!("{place}, which is on floor {upper}")),
                None => faults.push(format!("{place}, which is no module with a floor")),
            },
            None => faults.push(format!("{place}, which is everything")),
        }
    }
    faults
}

/// Every path that starts at `crate`, `self` or `super`, from the root of the crate on.
fn imports(module: &[String], tokens: &[&str]) -> Vec<Vec<String>> {
    let (mut found, mut here, mut inline, mut depth, mut at) =
        (vec![], module.to_vec(), vec![], 0, 0);
    while at < tokens.len() {
        match tokens[at..] {
            ["crate" | "self" | "super", "::" | "as", ..] => {
                at = follow(here.clone(), tokens, at, &mut found);
                continue;
            }
            ["mod", name, "{", ..] => {
                here.push(name.to_string());
                inline.push(depth);
            }
            ["{", ..] => depth += 1,
            ["}", ..] => {
                depth -= 1;
                if inline.last() == Some(&depth) {
                    inline.pop();
                    here.pop();
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Follows a path into all branches of its tree; returns the place behind it.
fn follow(
    mut path: Vec<String>,
    tokens: &[&str],
    mut at: usize,
    found: &mut Vec<Vec<String>>,
) -> usize {
    loop {
        match tokens[at] {
            "crate" => path.clear(),
            "super" => drop(path.pop()),
            "{" => {
                at += 1;
                while tokens[at] != "}" {
                    at = follow(path.clone(), tokens, at, found);
                    at += usize::from(tokens[at] == ",");
                }
                return at + 1;
            }
            "self" | "*" | "<" => {}
            name => path.push(name.to_string()),
        }
        if tokens.get(at + 1) != Some(&"::") {
            break;
        }
        at += 2;
    }
    found.push(path);
    at + if tokens.get(at + 1) == Some(&"as") { 3 } else { 1 }
}

/// The words and signs of a source; `::` is one sign.
fn tokens(source: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (vec![], source.trim_start());
    while let Some(first) = rest.chars().next() {
        let silent = silent(rest);
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let sign = if rest.starts_with("::") { 2 } else { first.len_utf8() };
        let (token, behind) = rest.split_at(silent.unwrap_or(if word > 0 { word } else { sign }));
        tokens.extend(silent.is_none().then_some(token));
        rest = behind.trim_start();
    }
    tokens
}

/// The length of the comment, string or character that the source begins with.
fn silent(source: &str) -> Option<usize> {
    let until = |from: usize, end: &str| {
        source[from..].find(end).map_or(source.len(), |length| from + length + end.len())
    };
    let raw = source.strip_prefix('r').map(|raw| raw.len() - raw.trim_start_matches('#').len());
    match source.as_bytes() {
        [b'/', b'/', ..] => Some(until(0, "\n")),
        [b'/', b'*', ..] => Some(until(2, "*/")),
        [b'"', ..] | [b'\'', b'\\', ..] => {
            let mut escaped = false;
            let end = source[1..].find(|c| {
                let ends = !escaped && source.starts_with(c);
                escaped = !escaped && c == '\\';
                ends
            });
            Some(end.map_or(source.len(), |length| length + 2))
        }
        [b'\'', ..] if source.chars().nth(2) == Some('\'') => Some(until(1, "'")),
        [b'r', ..] if source[1 + raw?..].starts_with('"') => {
            Some(until(2 + raw?, &format!("\"{}", "#".repeat(raw?))))
        }
        _ => None,
    }
}

/// The only fault of a source.
#[track_caller]
fn fault(module: &str, source: &str) -> String {
    let faults = faults(&module_path(Path::new(module)), source);
    assert_eq!(faults.len(), 1, "{source:?}: {faults:?}");
    faults.into_iter().next().unwrap_or_default()
}

#[test]
fn imports_upwards_and_sideways_are_found() {
    for (file, source, import) in [
        ("trie.rs", "use crate::lc_trie::LcTrieMap;", "lc_trie::LcTrieMap, which is on floor 3"),
        ("trie.rs", "use crate::flow;", "flow, which is on floor 1"),
        (
            "trie.rs",
            "use crate::{bits::{self, Header}, unicache::*};",
            "unicache, which is on floor 4",
        ),
        (
            "trie.rs",
            "use crate::{\n    slab as s,\n    bits, serde as t, };",
            "serde, which is on floor 5",
        ),
        ("trie.rs", "fn f(at: &crate::lpm::Table) {}", "lpm::Table, which is on floor 3"),
        ("trie.rs", "use super::flow::FlowKey;", "flow::FlowKey, which is on floor 1"),
        ("trie/node.rs", "use super::super::wheel;", "wheel, which is on floor 2"),
        (
            "trie/node.rs",
            "use super::{walk, super::{slab, share::Share}};",
            "share::Share, which is on floor 1",
        ),
        ("trie/mod.rs", "mod inner { use super::super::flow; }", "flow, which is on floor 1"),
        ("trie.rs", "mod a { } use self::super::flow;", "flow, which is on floor 1"),
        ("trie.rs", "use crate::FlowKey;", "FlowKey, which is no module with a floor"),
        ("trie.rs", "use crate::*;", ", which is everything"),
        ("trie.rs", "use crate as root;", ", which is everything"),
        (
            "trie.rs",
            r##"const C: [char; 2] = ['"', '\'']; const S: &str = r#"""#; use crate::flow;"##,
            "flow, which is on floor 1",
        ),
    ] {
        let fault = fault(file, source);
        assert!(fault.ends_with(&format!("imports crate::{import}")), "{source:?}: {fault}");
    }
    assert_eq!(
        fault("attic/box.rs", ""),
        "attic: has no floor; give it one in tests/tree/layers.rs"
    );
}

#[test]
fn imports_downwards_and_mentions_are_not() {
    for (file, source) in [
        (
            "trie.rs",
            "use crate::{bits::BitString, slab::*}; use super::observe; use crate::trie::node;",
        ),
        (
            "trie/node.rs",
            "use super::{Trie, walk::Walk}; use super::super::bits; pub(crate) fn f() {}",
        ),
        ("trie.rs", "mod tests { use super::*; use super::node::Node; } use self::node;"),
        (
            "trie.rs",
            "// use crate::flow;\n/* crate::flow */ /// [`T`](crate::flow)\n extern crate alloc;",
        ),
        (
            "trie.rs",
            r#"const S: &str = "\"crate::flow"; fn f<'a>(c: &'a char) -> bool { *c == '\'' }"#,
        ),
        ("lib.rs", "pub use crate::unicache::Unicache; pub use serde::X;"),
        ("serde.rs", "use crate::unicache::Unicache;"),
    ] {
        let faults = faults(&module_path(Path::new(file)), source);
        assert!(faults.is_empty(), "{source:?}: {faults:?}");
    }
}
