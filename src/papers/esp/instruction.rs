//! The instructions of packets, and their operands.

use crate::raw::splitmix::{GOLDEN_GAMMA, mix};

/// An instruction with its operands. Tags name bindings of an
/// [`EphemeralStore`](crate::EphemeralStore); a missing binding is created, unless stated
/// otherwise.
///
/// # Example
///
/// ```
/// use flowtable::papers::esp::{Instruction, Operation, Relation};
///
/// // Of all receivers that miss a packet, only the first complaint is forwarded.
/// let complaint = Instruction::Count { tag: 0x8a11, threshold: 1 };
/// // Only receivers farther away than all before are forwarded.
/// let depth = Instruction::Compare { tag: 0x91f0, relation: Relation::Greater, value: 7 };
/// assert_ne!(complaint, depth);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// Increments the value of `tag`, which starts at 0. Forwards if the result is at most
    /// `threshold`, or drops.
    Count {
        /// The counter.
        tag: u64,
        /// The number of packets to forward.
        threshold: u32,
    },
    /// Binds `tag` to `value` and forwards if `tag` is not bound, or if `value` and the bound value
    /// satisfy the relation, in this order; or drops.
    Compare {
        /// The binding to compare with.
        tag: u64,
        /// The relation of the packet's value to the bound value.
        relation: Relation,
        /// The packet's value.
        value: u64,
    },
    /// Decrements the value of `count`, which must exist and be above 0. Binds `result` to `value`
    /// if it is not bound, or else to the combination of its value and `value`. Forwards if the
    /// count is 0 now, with the result as `value`; or drops.
    Collect {
        /// The number of packets to expect, counted by [`Count`](Self::Count).
        count: u64,
        /// The combination of the values so far.
        result: u64,
        /// The operation that combines values.
        operation: Operation,
        /// The packet's value.
        value: u64,
    },
    /// Marks `child` in the set `children`, which starts empty. Forwards if that changes the set,
    /// with `child` replaced by the identity of this router; or drops.
    RChild {
        /// The set of children, as [bits](child_bits).
        children: u64,
        /// The previous hop: an end system, or the last router that forwarded the packet.
        child: u64,
    },
    /// Drops if `child` is marked in the set `reported`, which starts empty. Otherwise marks it,
    /// and binds `result` to `value` or to the combination of both, as [`Collect`](Self::Collect)
    /// does. Forwards if all of the set `children` have reported now, with the result as `value`
    /// and `child` replaced by the identity of this router; or drops. `child` must be in the set
    /// `children`.
    RCollect {
        /// The set of children that must report, marked by [`RChild`](Self::RChild).
        children: u64,
        /// The set of children that have reported.
        reported: u64,
        /// The combination of the values so far.
        result: u64,
        /// The operation that combines values.
        operation: Operation,
        /// The previous hop.
        child: u64,
        /// The packet's value.
        value: u64,
    },
}

impl Instruction {
    /// Returns the length of the operands in bytes.
    #[inline]
    pub(super) const fn operands_len(&self) -> usize {
        match self {
            Self::Count { .. } => 8 + 4,
            Self::Compare { .. } | Self::RChild { .. } => 2 * 8,
            Self::Collect { .. } => 3 * 8,
            Self::RCollect { .. } => 5 * 8,
        }
    }
}

/// A relation of a packet's value to the bound value.
///
/// # Example
///
/// ```
/// use flowtable::papers::esp::Relation;
///
/// assert!(Relation::Less.holds(3, 4) && !Relation::Less.holds(4, 4));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Relation {
    /// 1: less than.
    Less = 1,
    /// 2: less than or equal.
    AtMost = 2,
    /// 3: equal.
    Equal = 3,
    /// 4: not equal.
    NotEqual = 4,
    /// 5: greater than or equal.
    AtLeast = 5,
    /// 6: greater than.
    Greater = 6,
}

impl Relation {
    const ALL: [Self; 6] =
        [Self::Less, Self::AtMost, Self::Equal, Self::NotEqual, Self::AtLeast, Self::Greater];

    /// Returns whether the relation of `value` to `bound` holds.
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

    /// Returns the relation with this code in the packet format.
    pub(super) fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|relation| *relation as u8 == code)
    }
}

/// An operation that combines values. All are commutative and associative: neither the order of
/// arrival nor the shape of the tree matters.
///
/// # Example
///
/// ```
/// use flowtable::papers::esp::Operation;
///
/// assert_eq!([3, 9, 4].into_iter().reduce(|a, b| Operation::Max.apply(a, b)), Some(9));
/// assert_eq!(Operation::Sum.apply(u64::MAX, 1), u64::MAX);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// 17: saturating sum.
    Sum = 17,
    /// 18: minimum.
    Min = 18,
    /// 19: maximum.
    Max = 19,
    /// 20: bitwise AND.
    And = 20,
    /// 21: bitwise OR.
    Or = 21,
    /// 22: bitwise XOR.
    Xor = 22,
}

impl Operation {
    const ALL: [Self; 6] = [Self::Sum, Self::Min, Self::Max, Self::And, Self::Or, Self::Xor];

    /// Returns the combination of two values.
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

    /// Returns the operation with this code in the packet format.
    pub(super) fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| *operation as u8 == code)
    }
}

/// Returns the bits of a child in a set of children: one to four of the 64.
///
/// They depend on the computation, so that two children with equal bits in one have different bits
/// in the next. The hash is splitmix64 without a key: all routers must agree, and an attacker gains
/// nothing, as the tag is secret.
///
/// # Example
///
/// ```
/// use flowtable::papers::esp::child_bits;
///
/// let bits = child_bits(1, 7);
/// assert!((1..=4).contains(&bits.count_ones()));
/// assert!(bits != child_bits(2, 7) && bits != child_bits(1, 8));
/// ```
#[must_use]
pub const fn child_bits(computation: u64, child: u64) -> u64 {
    let hash = hashed(hashed(computation) ^ child);
    1 << (hash & 63) | 1 << (hash >> 16 & 63) | 1 << (hash >> 32 & 63) | 1 << (hash >> 48 & 63)
}

const fn hashed(value: u64) -> u64 {
    mix(value.wrapping_add(GOLDEN_GAMMA))
}
