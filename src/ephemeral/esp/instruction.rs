//! What packets ask for.

use crate::raw::splitmix::{GOLDEN_GAMMA, mix};

/// An instruction with its operands. Tags name bindings of an [`EphemeralStore`](crate::EphemeralStore); those that
/// have no binding yet get one, unless said otherwise.
///
/// # Example
///
/// ```
/// use flowtable::ephemeral::esp::{Instruction, Operation, Relation};
///
/// // Only the first of all receivers that miss the same packet is heard.
/// let complaint = Instruction::Count { tag: 0x8a11, threshold: 1 };
/// // Only those are heard that are farther away than all that were heard before.
/// let depth = Instruction::Compare { tag: 0x91f0, relation: Relation::Greater, value: 7 };
/// assert_eq!([complaint, depth].map(|instruction| instruction.operands_len()), [12, 16]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// Adds one to the value of `tag`, from 0 on. Forwards if it is not above `threshold` then, or drops.
    Count {
        /// The counter.
        tag: u64,
        /// So many are forwarded.
        threshold: u32,
    },
    /// Binds `tag` to `value` and forwards if `tag` is not bound or if `value` and what it is bound to
    /// stand in this relation, in this order; or drops.
    Compare {
        /// What is compared with.
        tag: u64,
        /// When the packet's value is the better one.
        relation: Relation,
        /// The packet's value.
        value: u64,
    },
    /// Takes one from the value of `count`, which must be there and be above 0. Binds `result` to `value` if it is not
    /// bound, or else to what the operation makes of its value and `value`. Forwards if the count is 0 now, with the
    /// result as `value`; or drops.
    Collect {
        /// How many are to come. [`Count`](Self::Count) has counted them.
        count: u64,
        /// What has come.
        result: u64,
        /// How values are joined.
        operation: Operation,
        /// The packet's value.
        value: u64,
    },
    /// Marks `child` in the set `children`, from an empty one on. Forwards if that has changed the set, as a child of
    /// the name of this router; or drops.
    RChild {
        /// The set of children, as [bits](child_bits).
        children: u64,
        /// Who has sent the packet on: an end system, or the router that has forwarded it last.
        child: u64,
    },
    /// Drops if `child` is marked in the set `reported`, from an empty one on. Or else marks it there, and binds
    /// `result` to `value` or to what the operation makes of both, as [`Collect`](Self::Collect) does. Forwards if
    /// all of the set `children` have reported now, as a child of the name of this router with the result as `value`;
    /// or drops. `child` must be in the set `children`.
    RCollect {
        /// Who is to report. [`RChild`](Self::RChild) has marked them.
        children: u64,
        /// Who has reported.
        reported: u64,
        /// What they have reported.
        result: u64,
        /// How values are joined.
        operation: Operation,
        /// Who has sent the packet on.
        child: u64,
        /// The packet's value.
        value: u64,
    },
}

impl Instruction {
    /// Bytes of its operands.
    #[inline]
    #[must_use]
    pub const fn operands_len(&self) -> usize {
        match self {
            Self::Count { .. } => 8 + 4,
            Self::Compare { .. } | Self::RChild { .. } => 2 * 8,
            Self::Collect { .. } => 3 * 8,
            Self::RCollect { .. } => 5 * 8,
        }
    }
}

/// How the value of a packet has to stand to the one that is bound.
///
/// # Example
///
/// ```
/// use flowtable::ephemeral::esp::Relation;
///
/// assert!(Relation::Less.holds(3, 4) && !Relation::Less.holds(4, 4));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Relation {
    /// 1: below it.
    Less = 1,
    /// 2: not above it.
    AtMost = 2,
    /// 3: the same.
    Equal = 3,
    /// 4: another one.
    NotEqual = 4,
    /// 5: not below it.
    AtLeast = 5,
    /// 6: above it.
    Greater = 6,
}

impl Relation {
    const ALL: [Self; 6] =
        [Self::Less, Self::AtMost, Self::Equal, Self::NotEqual, Self::AtLeast, Self::Greater];

    /// Whether the value stands so to the one that is bound.
    #[inline]
    #[must_use]
    pub const fn holds(self, value: u64, bound: u64) -> bool {
        match self {
            Self::Less => value < bound,
            Self::AtMost => value <= bound,
            Self::Equal => value == bound,
            Self::NotEqual => value != bound,
            Self::AtLeast => value >= bound,
            Self::Greater => value > bound,
        }
    }

    /// The one of this number on the wire.
    pub(super) fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|relation| *relation as u8 == number)
    }
}

/// How values are joined. Neither the order in which they come nor the shape of the tree matters.
///
/// # Example
///
/// ```
/// use flowtable::ephemeral::esp::Operation;
///
/// assert_eq!([3, 9, 4].into_iter().reduce(|a, b| Operation::Max.apply(a, b)), Some(9));
/// assert_eq!(Operation::Sum.apply(u64::MAX, 1), u64::MAX);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// 17: their sum, which saturates.
    Sum = 17,
    /// 18: the smallest one.
    Min = 18,
    /// 19: the largest one.
    Max = 19,
    /// 20: the bits that all have.
    And = 20,
    /// 21: the bits that any has.
    Or = 21,
    /// 22: the bits that an odd number of them has.
    Xor = 22,
}

impl Operation {
    const ALL: [Self; 6] = [Self::Sum, Self::Min, Self::Max, Self::And, Self::Or, Self::Xor];

    /// What becomes of two values.
    #[inline]
    #[must_use]
    pub fn apply(self, one: u64, other: u64) -> u64 {
        match self {
            Self::Sum => one.saturating_add(other),
            Self::Min => one.min(other),
            Self::Max => one.max(other),
            Self::And => one & other,
            Self::Or => one | other,
            Self::Xor => one ^ other,
        }
    }

    /// The one of this number on the wire.
    pub(super) fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| *operation as u8 == number)
    }
}

/// Bits of a child in a set of children: one to four of the 64.
///
/// They depend on the computation, so that two children who have the same in one have others in the next. The hash
/// is splitmix64's and has no key: all routers have to agree, and a stranger gains nothing, as he does not know the
/// tag.
///
/// # Example
///
/// ```
/// use flowtable::ephemeral::esp::child_bits;
///
/// let bits = child_bits(1, 7);
/// assert!((1..=4).contains(&bits.count_ones()) && bits != child_bits(2, 7) && bits != child_bits(1, 8));
/// ```
#[must_use]
pub const fn child_bits(computation: u64, child: u64) -> u64 {
    let hash = hashed(hashed(computation) ^ child);
    1 << (hash & 63) | 1 << (hash >> 16 & 63) | 1 << (hash >> 32 & 63) | 1 << (hash >> 48 & 63)
}

const fn hashed(number: u64) -> u64 {
    mix(number.wrapping_add(GOLDEN_GAMMA))
}
