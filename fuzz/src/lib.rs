//! One script type for all maps: sequences of operations on keys that share long prefixes. And the
//! addresses of routes.
//!
//! Random keys differ in their first bits and reach only the root. These keys are of a few
//! families; within one they differ in a single bit anywhere, or in the last byte.

use std::ops::Bound;

use arbitrary::Arbitrary;
use flowtable::key::bits::{Address, BitString, Headed};
use flowtable::trie::{RebalanceFrom, Thresholds, Tuning};
use flowtable::{FiveTuple, FlowKey};

/// A sequence of operations on a map with this tuning and keys of this type.
#[derive(Arbitrary, Debug)]
pub struct Script {
    pub keys: KeyType,
    pub tuning: Dials,
    pub ops: Vec<Op>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum KeyType {
    Short,
    Word,
    Bytes,
    Headed,
    Flow,
}

/// Any [`Tuning`].
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Dials {
    node: (u8, u8),
    root: (u8, u8),
    root_bits: u8,
    from_parent: bool,
}

impl Dials {
    pub fn tuning(self) -> Tuning {
        let thresholds = |(inflate, halve): (u8, u8)| {
            let inflate = 2 + inflate % 99;
            Thresholds::new(inflate, 1 + halve % (inflate - 1)).expect("halve is below inflate")
        };
        Tuning {
            node: thresholds(self.node),
            root: thresholds(self.root),
            root_bits: u32::from(self.root_bits % 34),
            rebalance_from: match self.from_parent {
                true => RebalanceFrom::Parent,
                false => RebalanceFrom::NewNode,
            },
        }
    }
}

/// One operation. A structure skips those that it does not have.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Op {
    Insert(Seeds),
    Remove(Seeds),
    Get(Seed),
    GetMut(Seed),
    Entry(Seed, EntryOp),
    /// Removes the smallest key, or the largest.
    Pop {
        last: bool,
    },
    /// Retains the values that are multiples of the divisor, or the others.
    Retain {
        divisor: u8,
        keep_multiples: bool,
    },
    Range(Edge, Edge, u64),
    /// From both ends, selected by the bits.
    Iterate(u64),
    IterMut(u64),
    /// Takes some of what is drained, from both ends, and drops the rest.
    Drain(u8, u64),
    Clear,
    Clone,
    ShrinkToFit,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum EntryOp {
    Key,
    GetMut,
    Insert,
    OrInsert,
    AndModify,
    Remove,
}

/// An end of a range.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Edge {
    Open,
    At(Seed),
    After(Seed),
}

impl Edge {
    pub fn bound<K: Key>(self) -> Bound<K> {
        match self {
            Self::Open => Bound::Unbounded,
            Self::At(seed) => Bound::Included(K::grow(seed)),
            Self::After(seed) => Bound::Excluded(K::grow(seed)),
        }
    }
}

/// A key for any key type.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Seed {
    family: u8,
    flipped: u16,
    tail: u8,
}

impl Seed {
    fn bytes<const N: usize>(self) -> [u8; N] {
        let mut bytes = [[0, 0xff, 0xa5, 0x01][usize::from(self.family % 4)]; N];
        let bit = usize::from(self.flipped) % (8 * N);
        bytes[N - 1] ^= self.tail;
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
        bytes
    }
}

/// Up to 64 keys: neighbours, or each with another bit flipped.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Seeds {
    first: Seed,
    more: u8,
    comb: bool,
}

impl Seeds {
    pub fn iter(self) -> impl Iterator<Item = Seed> {
        let first = self.first;
        (0..=self.more % 64).map(move |i| match self.comb {
            true => Seed { flipped: first.flipped.wrapping_add(i.into()), ..first },
            false => Seed { tail: first.tail.wrapping_add(i), ..first },
        })
    }
}

/// A key type that scripts can be run with.
pub trait Key: BitString + std::fmt::Debug {
    fn grow(seed: Seed) -> Self;
}

impl Key for u16 {
    fn grow(seed: Seed) -> Self {
        Self::from_be_bytes(seed.bytes())
    }
}

impl Key for u64 {
    fn grow(seed: Seed) -> Self {
        Self::from_be_bytes(seed.bytes())
    }
}

impl Key for [u8; 20] {
    fn grow(seed: Seed) -> Self {
        seed.bytes()
    }
}

/// One of eight headers each, so that most of them collide.
impl Key for Headed<u64, u32> {
    fn grow(seed: Seed) -> Self {
        let key = u64::grow(seed);
        Self { header: (key as u32 ^ (key >> 35) as u32) << 29, key }
    }
}

impl Key for FlowKey {
    fn grow(seed: Seed) -> Self {
        let bytes: [u8; 38] = seed.bytes();
        let number = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let protocol = bytes[37];
        if bytes[0] & 1 == 0 {
            let address =
                |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]].into();
            let (src, dst) = (address(1), address(5));
            return Self::V4(FiveTuple { src, dst, sport: number(9), dport: number(35), protocol });
        }
        let address = |at: usize| bytes[at..].first_chunk::<16>().map(|bytes| (*bytes).into());
        let (src, dst) = (address(1).expect("in range"), address(17).expect("in range"));
        Self::V6(FiveTuple { src, dst, sport: number(33), dport: number(35), protocol })
    }
}

/// Returns the address of any width whose first bits these are.
pub fn address<A: Address>(bits: u128) -> A {
    A::from_windows(|pos| bits.window(pos))
}

/// Checks that two iterators yield the same, from the front or from the back, selected by the bits.
pub fn assert_same<T: PartialEq + std::fmt::Debug>(
    mut ours: impl DoubleEndedIterator<Item = T>,
    mut theirs: impl DoubleEndedIterator<Item = T>,
    mut ends: u64,
) {
    loop {
        let (our, their) = match ends & 1 {
            0 => (ours.next(), theirs.next()),
            _ => (ours.next_back(), theirs.next_back()),
        };
        assert_eq!(our, their);
        if our.is_none() {
            assert_eq!((ours.next(), ours.next_back()), (None, None), "the iterators are fused");
            return;
        }
        ends = ends.rotate_right(1);
    }
}

/// Calls a function with the selected key type.
#[macro_export]
macro_rules! with_keys {
    ($keys:expr, $run:ident($($argument:expr),+)) => {
        match $keys {
            $crate::KeyType::Short => $run::<u16>($($argument),+),
            $crate::KeyType::Word => $run::<u64>($($argument),+),
            $crate::KeyType::Bytes => $run::<[u8; 20]>($($argument),+),
            $crate::KeyType::Headed => {
                $run::<flowtable::key::bits::Headed<u64, u32>>($($argument),+)
            }
            $crate::KeyType::Flow => $run::<flowtable::FlowKey>($($argument),+),
        }
    };
}
