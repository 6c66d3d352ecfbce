//! The names of flows in real captures, if they are at hand.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use capture::{Capture, Packet};
use flowtable::{BitString, FiveTuple, FlowKey, SourceIndex};
use model::papers::source_hash_1995::SEED;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Flows of a capture: the bytes of their five-tuples, and an index for each.
pub(crate) struct Named {
    pub(crate) capture: String,
    pub(crate) names: Vec<(Vec<u8>, SourceIndex)>,
}

/// Captures with fewer flows than this are counted among all only.
const FEW: usize = 300;

impl Named {
    /// Those of each capture with many flows, then those of all together; or why there are none.
    pub(crate) fn all() -> Result<Vec<Self>, String> {
        let folder = folder().ok_or("no captures here; set FLOWTABLE_DATA to their folder")?;
        let mut rng = StdRng::seed_from_u64(SEED);
        let mut each = vec![];
        let mut together = HashSet::new();
        for path in captures(&folder) {
            let keys = keys(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            together.extend(keys.iter().copied());
            if keys.len() >= FEW {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                each.push(Self::new(name.into_owned(), keys, &mut rng));
            }
        }
        each.push(Self::new("all".into(), together, &mut rng));
        Ok(each)
    }

    fn new(capture: String, keys: HashSet<FlowKey>, rng: &mut StdRng) -> Self {
        let mut names: Vec<Vec<u8>> = keys.iter().map(bytes).collect();
        names.sort_unstable();
        let mut named = |name| (name, SourceIndex::new(rng.random()));
        let names = names.into_iter().map(&mut named).collect();
        Self { capture, names }
    }
}

/// The folder that was named, or the one beside the crate.
fn folder() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("FLOWTABLE_DATA").map_or_else(beside, PathBuf::from);
    folder.join("captures").is_dir().then_some(folder)
}

fn captures(folder: &Path) -> Vec<PathBuf> {
    let folders = ["captures", "mix", "oltp"].map(|part| folder.join(part));
    let entries = folders.iter().filter_map(|part| part.read_dir().ok()).flatten();
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension != "csv"));
    paths.sort();
    paths
}

/// All flows of a capture, one way. What is no IP packet has none.
fn keys(path: &Path) -> Result<HashSet<FlowKey>, String> {
    let mut capture = Capture::open(path).map_err(|error| error.to_string())?;
    let mut keys = HashSet::new();
    while let Some(frame) = capture.next_frame() {
        keys.extend(Packet::of(&frame).ok().map(|packet| packet.key));
    }
    Ok(keys)
}

/// 13 bytes, or 37.
fn bytes(key: &FlowKey) -> Vec<u8> {
    match key {
        FlowKey::V4(tuple) => tuple_bytes(tuple, tuple.src.octets(), tuple.dst.octets()),
        FlowKey::V6(tuple) => tuple_bytes(tuple, tuple.src.octets(), tuple.dst.octets()),
    }
}

fn tuple_bytes<A: BitString, const N: usize>(
    tuple: &FiveTuple<A>,
    src: [u8; N],
    dst: [u8; N],
) -> Vec<u8> {
    let ports = [tuple.sport.to_be_bytes(), tuple.dport.to_be_bytes()].concat();
    [&src[..], &dst[..], &ports[..], &[tuple.protocol]].concat()
}
