//! Leaves and nodes of a trie, and the links between them.

use alloc::boxed::Box;
use alloc::vec;

use crate::key::bits::BitString;

/// The index of a leaf in the slab of leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeafId(pub(crate) u32);

/// The index of a node in the slab of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(pub(crate) u32);

/// The content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    Empty,
    Leaf(LeafId),
    Node(NodeId),
}

impl Child {
    /// Returns the leaf, if the child is one.
    pub(crate) fn leaf(self) -> Option<LeafId> {
        match self {
            Self::Leaf(id) => Some(id),
            Self::Empty | Self::Node(_) => None,
        }
    }
}

/// A [`Child`] in four bytes, as most cache misses of a lookup are reads of slots.
///
/// The top bit is set for a node, and all bits for an empty slot: slab indices stay below 2^31 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedChild(u32);

impl PackedChild {
    const EMPTY: Self = Self(u32::MAX);
    const NODE: u32 = 1 << 31;

    #[inline]
    fn unpack(self) -> Child {
        match self {
            Self::EMPTY => Child::Empty,
            Self(id) if id & Self::NODE != 0 => Child::Node(NodeId(id & !Self::NODE)),
            Self(id) => Child::Leaf(LeafId(id)),
        }
    }

    fn pack(child: Child) -> Self {
        match child {
            Child::Empty => Self::EMPTY,
            Child::Leaf(LeafId(id)) => Self(id),
            Child::Node(NodeId(id)) => Self(id | Self::NODE),
        }
    }
}

/// The `2^bits` slots of a node.
#[derive(Clone, Debug)]
pub(crate) enum NodeSlots {
    /// Nine of ten nodes have two slots: stored in the node itself, they save a cache line.
    Two([PackedChild; 2]),
    Many(Box<[PackedChild]>),
}

impl NodeSlots {
    /// Creates `2^bits` empty slots; `bits` is at least 1.
    pub(crate) fn new(bits: u32) -> Self {
        match bits {
            1 => Self::Two([PackedChild::EMPTY; 2]),
            _ => Self::Many(vec![PackedChild::EMPTY; 1 << bits].into_boxed_slice()),
        }
    }

    fn as_slice(&self) -> &[PackedChild] {
        match self {
            Self::Two(slots) => slots,
            Self::Many(slots) => slots,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [PackedChild] {
        match self {
            Self::Two(slots) => slots,
            Self::Many(slots) => slots,
        }
    }

    /// log2 of the number of slots.
    #[inline]
    pub(crate) fn bits(&self) -> u32 {
        match self {
            Self::Two(_) => 1,
            Self::Many(slots) => slots.len().trailing_zeros(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.as_slice().len()
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Child {
        match self {
            Self::Two(slots) => slots[index & 1].unpack(),
            Self::Many(slots) => slots[index].unpack(),
        }
    }

    pub(crate) fn set(&mut self, index: usize, child: Child) {
        self.as_mut_slice()[index] = PackedChild::pack(child);
    }

    /// Replaces each child by the result of `replacement`.
    pub(crate) fn replace(&mut self, mut replacement: impl FnMut(Child) -> Child) {
        self.as_mut_slice()
            .iter_mut()
            .for_each(|slot| *slot = PackedChild::pack(replacement(slot.unpack())));
    }

    /// The children in order, empty ones included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Child> + Clone {
        self.as_slice().iter().map(|slot| slot.unpack())
    }

    /// The children in order, without empty slots.
    pub(crate) fn used(&self) -> impl Iterator<Item = Child> {
        self.iter().filter(|&child| child != Child::Empty)
    }

    /// Returns the first slot at or after `from` that is not empty.
    pub(crate) fn next_used(&self, from: usize) -> Option<usize> {
        let rest = &self.as_slice()[from..];
        Some(from + rest.iter().position(|&slot| slot != PackedChild::EMPTY)?)
    }

    /// Returns the last slot before `to` that is not empty.
    pub(crate) fn last_used(&self, to: usize) -> Option<usize> {
        self.as_slice()[..to].iter().rposition(|&slot| slot != PackedChild::EMPTY)
    }

    /// Bytes allocated outside of the node.
    pub(crate) fn allocation_size(&self) -> usize {
        match self {
            Self::Two(_) => 0,
            Self::Many(slots) => size_of_val(&**slots),
        }
    }
}

/// A link to a child: the root of the trie, or a slot of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Root,
    Slot(NodeId, usize),
}

impl Link {
    /// Returns the node that has the slot.
    pub(crate) fn node(self) -> Option<NodeId> {
        match self {
            Self::Root => None,
            Self::Slot(node, _) => Some(node),
        }
    }
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Leaf<K, V> {
    pub(crate) key: K,
    pub(crate) value: V,
}

/// An inner node with `2^bits` slots.
///
/// `repr(C)` keeps the fields that a lookup reads together at the front.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Node<K, S> {
    /// Child `i` holds the keys whose bits `pos .. end` are `i`.
    pub(crate) slots: NodeSlots,
    /// First bit that this node branches on. At least the parent's [`end`](Self::end); the bits
    /// between the two are skipped.
    pub(crate) pos: u32,
    /// Length of the longest suffix below, at least `K::BITS - end`; `()` where it is not tracked.
    pub(crate) slen: S,
    /// Number of slots that are not empty. At least 2, except while the trie is being modified.
    pub(crate) used: u32,
    /// Number of children that are nodes and skip no bits: their `pos` is this node's `end`.
    pub(crate) full: u32,
    /// The parent node; `None` at the root.
    pub(crate) parent: Option<NodeId>,
    /// Agrees with every key below on the bits `0 .. pos`, and so locates this node. It is a copy,
    /// as the node outlives the leaf with this key.
    pub(crate) key: K,
}

impl<K: BitString, S> Node<K, S> {
    /// log2 of the number of children. At least 1: a node with one child is collapsed.
    #[inline]
    pub(crate) fn bits(&self) -> u32 {
        self.slots.bits()
    }

    /// The first bit after those that this node branches on.
    #[inline]
    pub(crate) fn end(&self) -> u32 {
        self.pos + self.bits()
    }

    /// Returns the slot of `key`.
    #[inline]
    pub(crate) fn slot_of(&self, key: &K) -> usize {
        key.slice(self.pos, self.bits()) as usize
    }

    /// Returns the child on the path to `key`: `slots.get(slot_of(key))` with a single branch on
    /// the kind of slots.
    #[inline]
    pub(crate) fn child_of(&self, key: &K) -> Child {
        match &self.slots {
            NodeSlots::Two(slots) => slots[key.slice(self.pos, 1) as usize & 1].unpack(),
            NodeSlots::Many(slots) => {
                let bits = slots.len().trailing_zeros();
                slots[key.slice(self.pos, bits) as usize].unpack()
            }
        }
    }

    /// Returns the first of the skipped bits `from .. pos` in which `key` differs from the keys
    /// below. `from` is the end of the parent.
    #[inline]
    pub(crate) fn skipped_difference(&self, key: &K, from: u32) -> Option<u32> {
        if from == self.pos {
            return None;
        }
        self.key.first_difference(key, from).filter(|&bit| bit < self.pos)
    }
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    #[test]
    fn untracked_suffixes_take_no_space_in_nodes() {
        type Plain = Node<u64, ()>;
        assert_eq!(offset_of!(Plain, used), offset_of!(Plain, pos) + size_of::<u32>());
    }
}
