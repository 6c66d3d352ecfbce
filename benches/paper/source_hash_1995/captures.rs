//! Flow names of real captures, if these are available.

use std::collections::HashSet;
use std::path::Path;

use capture::data::{NO_CAPTURES, captures, folder};
use capture::{Capture, Tunnels, packets};
use flowtable::hash::source_index::SourceIndex;
use flowtable::key::bits::BitString;
use flowtable::{FiveTuple, FlowKey};
use model::papers::source_hash_1995::SEED;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The flows of a capture: five-tuples as bytes, and an index for each.
pub(crate) struct Named {
    pub(crate) capture: String,
    pub(crate) names: Vec<(Vec<u8>, SourceIndex)>,
}

/// The name of all captures together.
pub(crate) const ALL: &str = "all";
/// Captures with fewer flows than this are counted in the total only.
const FEW: usize = 300;

impl Named {
    /// Returns the flows of each large capture, then those of all captures; or the reason why there
    /// are none.
    pub(crate) fn all() -> Result<Vec<Self>, String> {
        let folder = folder().ok_or(NO_CAPTURES)?;
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
        each.push(Self::new(ALL.into(), together, &mut rng));
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

/// Returns all flows of a capture, one direction each. Packets other than IP are skipped.
fn keys(path: &Path) -> Result<HashSet<FlowKey>, String> {
    let mut capture = Capture::open(path).map_err(|error| error.to_string())?;
    let mut keys = HashSet::new();
    while let Some(frame) = capture.next_frame() {
        keys.extend(packets(&frame, Tunnels::Outer).flatten().map(|packet| packet.key));
    }
    Ok(keys)
}

/// Encodes a key in 13 or 37 bytes.
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
