//! Table indices: every way to derive an index from a flow, and the number of collisions.

use std::hash::{BuildHasher, Hasher};

use flowtable::DefaultHashBuilder;
use flowtable::hash::source_index::SourceIndex;
use flowtable::papers::hash::{
    Crc8Pair, Crc16, Crc32, Fletcher16, XorFold8, XorFold16, hash_bytes,
};

use super::SEED;
use super::fids::Flow;

/// Slots of a table, in the paper and here.
pub const SLOTS: usize = 1 << 16;

/// A way to derive an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Source,
    CrcPair,
    Xor16,
    Xor8,
    Crc16,
    Crc32,
    Fletcher,
    Keyed,
}

impl Kind {
    pub const ALL: [Self; 8] = [
        Self::Source,
        Self::CrcPair,
        Self::Xor16,
        Self::Xor8,
        Self::Crc16,
        Self::Crc32,
        Self::Fletcher,
        Self::Keyed,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Source => "source index",
            Self::CrcPair => "CRC-8 pair",
            Self::Xor16 => "XOR-16",
            Self::Xor8 => "XOR-8",
            Self::Crc16 => "CRC-16",
            Self::Crc32 => "CRC-32",
            Self::Fletcher => "Fletcher-16",
            Self::Keyed => "keyed default",
        }
    }

    /// Returns the index of a flow with this name and source index.
    pub fn index(self, name: &[u8], source: SourceIndex, keyed: &DefaultHashBuilder) -> u32 {
        match self {
            Self::Source => source.get(),
            Self::CrcPair => hash_bytes::<Crc8Pair>(name) as u32,
            Self::Xor16 => hash_bytes::<XorFold16>(name) as u32,
            Self::Xor8 => hash_bytes::<XorFold8>(name) as u32,
            Self::Crc16 => hash_bytes::<Crc16>(name) as u32,
            Self::Crc32 => hash_bytes::<Crc32>(name) as u32,
            Self::Fletcher => hash_bytes::<Fletcher16>(name) as u32,
            Self::Keyed => {
                let mut hasher = keyed.build_hasher();
                hasher.write(name);
                hasher.finish() as u32
            }
        }
    }
}

/// Counts the indices whose slot is already occupied. A slot is given by the low bits of an index.
pub fn collisions(indices: impl IntoIterator<Item = u32>) -> usize {
    let mut is_taken = vec![false; SLOTS];
    let place = |index: u32| index as usize % SLOTS;
    indices
        .into_iter()
        .filter(|&index| std::mem::replace(&mut is_taken[place(index)], true))
        .count()
}

/// Three standard deviations of the number of random collisions, at least three. The square root of
/// the expected number bounds the deviation.
pub fn three_sigma(expected: f64) -> f64 {
    3.0 * expected.max(1.0).sqrt()
}

/// Counts the collisions of flows for one kind of index.
pub fn colliding(flows: &[Flow], kind: Kind) -> usize {
    let keyed = DefaultHashBuilder::with_seed(SEED);
    collisions(flows.iter().map(|flow| kind.index(&flow.fid.0, flow.index, &keyed)))
}
