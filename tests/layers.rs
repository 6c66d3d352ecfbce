//! Layers: a module of `src/` imports from lower layers only, and files of a folder form no
//! circles, in `src/` and in the other packages.
//!
//! Comments and strings are skipped, so examples in the documentation may use any module.
//!
//! A folder's `mod.rs` may import from its own files and re-export their items; an import
//! through such a re-export counts as one from the file that defines the item.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules by layer, from the lowest to the highest. `lib.rs` is above all of them.
const LAYERS: [&[&str]; 7] = [
    &["clock", "invariant", "probes", "raw", "timestamp"],
    &["key", "memory"],
    &["eviction", "hash", "table"],
    &["cache", "routes", "trash", "trie"],
    &["demux", "ephemeral", "flow_cache"],
    &["concurrent", "papers", "sockets"],
    &["serde"],
];

/// Sources of the other packages.
const PACKAGES: [&str; 9] = [
    "benches/common",
    "benches/criterion",
    "benches/paper",
    "benches/peers",
    "crates/capture/src",
    "crates/instructions/src",
    "crates/model/src",
    "crates/programs/src",
    "crates/traffic/src",
];

/// A module, by the names on its path from the root of the crate.
type Module = Vec<String>;

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

#[test]
fn modules_import_from_lower_layers_only() {
    let faults: Vec<String> =
        sources("src").iter().flat_map(|(module, source)| layer_faults(module, source)).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn files_of_a_folder_form_no_circles() {
    let circles_of = |folder| {
        let sources = sources(folder);
        assert!(!sources.is_empty(), "{folder} has no sources");
        let found = circles(&imports_by_file(&sources));
        (!found.is_empty()).then(|| format!("{folder}: {found:#?}"))
    };
    let faults: Vec<String> = PACKAGES.into_iter().chain(["src"]).filter_map(circles_of).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_module_has_a_layer_and_every_layer_exists() {
    let found: BTreeSet<String> =
        sources("src").into_keys().filter_map(|module| module.into_iter().next()).collect();
    let listed: BTreeSet<String> =
        LAYERS.iter().flat_map(|layer| layer.iter().map(|name| (*name).to_owned())).collect();
    assert_eq!(found, listed);
}

#[test]
fn the_design_lists_the_same_layers() {
    let design = include_str!("../docs/DESIGN.md");
    let mut listed = vec![BTreeSet::new(); LAYERS.len()];
    let mut layer = None;
    for line in design.lines().skip_while(|line| *line != "## Layers") {
        // `    layer 6   serde.rs      …`, then lines of modules of the same layer.
        let line = match line.strip_prefix("    layer ").and_then(|rest| rest.split_once(' ')) {
            Some((number, rest)) => {
                layer = number.parse::<usize>().ok();
                rest.trim_start()
            }
            None => line.strip_prefix("              ").unwrap_or(""),
        };
        let name = line.split(' ').next().unwrap_or("");
        if let Some(name) = name.strip_suffix('/').or(name.strip_suffix(".rs")) {
            listed[layer.expect("a module has a layer")].insert(name);
        }
    }
    assert_eq!(listed, LAYERS.map(|layer| layer.iter().copied().collect()));
}

/// All sources in a folder of the repository, by module.
fn sources(folder: &str) -> BTreeMap<Module, String> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(folder);
    let read = |file: PathBuf| {
        let source = fs::read_to_string(&file).expect("a source file is readable");
        (module_path(file.strip_prefix(&folder).expect("the file is in the folder")), source)
    };
    rust_files(&folder).into_iter().map(read).collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of sources is readable");
    let paths = entries.map(|entry| entry.expect("an entry is readable").path());
    let files = paths.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|name| name == "rs")).collect()
}

/// `trie/node.rs` is `trie`, `node`; `trie.rs` and `trie/mod.rs` are `trie`; `lib.rs` is the root.
fn module_path(file: &Path) -> Module {
    let file = file.with_extension("");
    let names = file.iter().map(|name| name.to_str().expect("names are UTF-8").to_owned());
    names.filter(|name| !["lib", "main", "mod"].contains(&name.as_str())).collect()
}

/// The imports of a module that break the order of the layers.
fn layer_faults(module: &[String], source: &str) -> Vec<String> {
    let Some(owner) = module.first() else { return vec![] };
    let Some(layer) = layer_of(owner) else {
        return vec![format!("{owner}: has no layer; add it to tests/layers.rs")];
    };
    let mut faults = vec![];
    for path in imports(module, &tokens(source)) {
        let import =
            format!("{} (layer {layer}) imports crate::{}", module.join("::"), path.join("::"));
        match path.first() {
            Some(other) if other == owner => {}
            Some(other) => match layer_of(other) {
                Some(lower) if lower < layer => {}
                Some(upper) => faults.push(format!("{import}, which is in layer {upper}")),
                None => faults.push(format!("{import}, which is not a module with a layer")),
            },
            None => faults.push(format!("{import}, which is the whole crate")),
        }
    }
    faults
}

/// By file, the files that it imports from. Imports of a parent from its descendants do not count.
fn imports_by_file(sources: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let reexports: BTreeMap<&Module, BTreeMap<String, Module>> = sources
        .iter()
        .map(|(module, source)| (module, reexports(module, &tokens(source))))
        .collect();
    let file_of = |path: &[String]| {
        let (mut file, mut rest) = longest_file(sources, path)?;
        while let Some(next) = rest.first().and_then(|item| reexports[&file].get(item)) {
            let (inner, _) = longest_file(sources, next)?;
            if inner == file {
                break;
            }
            (file, rest) = (inner, &rest[1..]);
        }
        Some(file)
    };
    let targets = |(module, source): (&Module, &String)| {
        let files = imports(module, &tokens(source)).into_iter().filter_map(|path| file_of(&path));
        (module.clone(), files.filter(|file| !file.starts_with(module)).collect())
    };
    sources.iter().map(targets).collect()
}

/// The file that defines the module at the beginning of a path, and the rest of the path.
fn longest_file<'a>(
    sources: &BTreeMap<Module, String>,
    path: &'a [String],
) -> Option<(Module, &'a [String])> {
    let lengths = (1..=path.len()).rev();
    let length = lengths.into_iter().find(|&length| sources.contains_key(&path[..length]))?;
    Some((path[..length].to_vec(), &path[length..]))
}

/// The files that reach themselves by imports, circle by circle.
fn circles(imports: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<Vec<String>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        imports.keys().map(|module| (module, reachable(imports, module))).collect();
    let mut circles = BTreeSet::new();
    for (module, others) in &reached {
        if others.contains(module) {
            let members = others.iter().filter(|other| reached[**other].contains(module));
            circles.insert(members.map(|member| member.join("::")).collect::<Vec<_>>());
        }
    }
    circles.into_iter().collect()
}

fn reachable<'a>(
    imports: &'a BTreeMap<Module, BTreeSet<Module>>,
    from: &Module,
) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Module> = imports[from].iter().collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(&imports[module]);
        }
    }
    reached
}

/// The items that a module re-exports from its own files, by name: `pub use check::Stats`.
fn reexports(module: &[String], tokens: &[&str]) -> BTreeMap<String, Module> {
    let mut found = vec![];
    for at in 0..tokens.len() {
        if let ["pub", "use", name, ..] = tokens[at..] {
            if !["crate", "super", "self"].contains(&name) {
                follow(module.to_vec(), tokens, at + 2, &mut found);
            }
        }
    }
    let by_item = |path: Module| Some((path.last()?.clone(), path));
    found.into_iter().filter_map(by_item).collect()
}

/// Every path that starts at `crate`, `self` or `super`, from the root of the crate.
fn imports(module: &[String], tokens: &[&str]) -> Vec<Module> {
    let (mut found, mut here, mut inline, mut depth, mut at) =
        (vec![], module.to_vec(), vec![], 0, 0);
    while at < tokens.len() {
        match tokens[at..] {
            ["crate" | "self" | "super", "::" | "as", ..] => {
                at = follow(here.clone(), tokens, at, &mut found);
                continue;
            }
            ["mod", name, "{", ..] => {
                here.push(name.to_owned());
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

/// Follows a path into all branches of its tree; returns the position after it.
fn follow(mut path: Module, tokens: &[&str], mut at: usize, found: &mut Vec<Module>) -> usize {
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
            name => path.push(name.to_owned()),
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
        let skipped = skipped(rest);
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let sign = if rest.starts_with("::") { 2 } else { first.len_utf8() };
        let length = skipped.unwrap_or(if word > 0 { word } else { sign });
        let (token, after) = rest.split_at(length);
        tokens.extend(skipped.is_none().then_some(token));
        rest = after.trim_start();
    }
    tokens
}

/// The length of the comment, string or character literal at the beginning of a source.
fn skipped(source: &str) -> Option<usize> {
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
fn fault(file: &str, source: &str) -> String {
    let faults = layer_faults(&module_path(Path::new(file)), source);
    assert_eq!(faults.len(), 1, "{source:?}: {faults:?}");
    faults.into_iter().next().unwrap_or_default()
}

#[test]
fn imports_from_higher_and_equal_layers_are_found() {
    for (file, source, import) in [
        ("trie.rs", "use crate::trash::TrashMap;", "trash::TrashMap, which is in layer 3"),
        ("key.rs", "use crate::hash;", "hash, which is in layer 2"),
        ("trie.rs", "use crate::{key::{self, A}, serde::*};", "serde, which is in layer 6"),
        (
            "trie.rs",
            "use crate::{\n    raw as r,\n    key, demux as d, };",
            "demux, which is in layer 4",
        ),
        ("trie.rs", "fn f(at: &crate::routes::T) {}", "routes::T, which is in layer 3"),
        ("key.rs", "use super::hash::Crc32;", "hash::Crc32, which is in layer 2"),
        ("trie/node.rs", "use super::super::trash;", "trash, which is in layer 3"),
        ("hash/crc.rs", "use super::{a, super::{raw, trie::T}};", "trie::T, which is in layer 3"),
        ("hash/mod.rs", "mod inner { use super::super::papers; }", "papers, which is in layer 5"),
        ("hash.rs", "mod a { } use self::super::papers;", "papers, which is in layer 5"),
        ("trie.rs", "use crate::FlowKey;", "FlowKey, which is not a module with a layer"),
        ("trie.rs", "use crate::*;", ", which is the whole crate"),
        ("trie.rs", "use crate as root;", ", which is the whole crate"),
        (
            "trie.rs",
            r##"const C: [char; 2] = ['"', '\'']; const S: &str = r#"""#; use crate::papers;"##,
            "papers, which is in layer 5",
        ),
    ] {
        let fault = fault(file, source);
        assert!(fault.ends_with(&format!("imports crate::{import}")), "{source:?}: {fault}");
    }
    assert_eq!(fault("attic/box.rs", ""), "attic: has no layer; add it to tests/layers.rs");
}

#[test]
fn imports_from_lower_layers_and_mentions_are_allowed() {
    for (file, source) in [
        ("trie.rs", "use crate::{key::bits, raw::*}; use super::probes; use crate::trie::node;"),
        (
            "trie/node.rs",
            "use super::{Trie, walk::Walk}; use super::super::key; pub(crate) fn f() {}",
        ),
        ("trie.rs", "mod tests { use super::*; use super::node::Node; } use self::node;"),
        (
            "key.rs",
            "// use crate::hash;\n/* crate::hash */ /// [`T`](crate::hash)\n extern crate alloc;",
        ),
        (
            "key.rs",
            r#"const S: &str = "\"crate::hash"; fn f<'a>(c: &'a char) -> bool { *c == '\'' }"#,
        ),
        ("lib.rs", "pub use crate::trie::Trie; pub use serde::X;"),
        ("serde.rs", "use crate::trie::Trie;"),
    ] {
        let faults = layer_faults(&module_path(Path::new(file)), source);
        assert!(faults.is_empty(), "{source:?}: {faults:?}");
    }
}

#[test]
fn circles_are_found() {
    let found = |files: &[(&str, &str)]| {
        let read =
            |&(file, source): &(&str, &str)| (module_path(Path::new(file)), source.to_owned());
        circles(&imports_by_file(&files.iter().map(read).collect()))
    };
    let (a, b) = (("t/a.rs", "use super::b::B;"), ("t/b.rs", "use super::a::A;"));
    assert_eq!(found(&[("t/mod.rs", ""), a, b]), [["t::a", "t::b"]]);
    assert!(found(&[("t/mod.rs", "use a::A; use self::b::B;"), a, ("t/b.rs", "")]).is_empty());
    // Through a re-export, and around three files.
    let reexport = ("t/mod.rs", "pub use a::{A, X as Y};");
    assert_eq!(found(&[reexport, a, ("t/b.rs", "use super::A;")]), [["t::a", "t::b"]]);
    let three =
        [("u/a.rs", "use super::b;"), ("u/b.rs", "use super::c;"), ("u/c.rs", "use super::a;")];
    assert_eq!(found(&three), [["u::a", "u::b", "u::c"]]);
}
