//! What a trie is made of: leaves, nodes, the children between them, and the links they hang by.

use alloc::boxed::Box;
use alloc::vec;

use crate::key::bits::BitString;

/// Index of a leaf in the slab of leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeafId(pub(crate) u32);

/// Index of a node in the slab of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(pub(crate) u32);

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    Empty,
    Leaf(LeafId),
    Node(NodeId),
}

impl Child {
    /// The leaf, if it is one.
    pub(crate) fn leaf(self) -> Option<LeafId> {
        match self {
            Self::Leaf(id) => Some(id),
            Self::Empty | Self::Node(_) => None,
        }
    }
}

/// A [`Child`] in four bytes: the slots are most of the memory that a look-up misses the cache on.
///
/// The top bit tells a node from a leaf, and all ones is empty: indices in slabs stay below 2^31 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed(u32);

impl Packed {
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

/// The `2^bits` children of a node.
#[derive(Clone, Debug)]
pub(crate) enum Slots {
    /// Nine of ten nodes have two slots: they lie in the node itself, which saves a cache line.
    Two([Packed; 2]),
    Many(Box<[Packed]>),
}

impl Slots {
    /// Empty slots, `2^bits` of them; `bits` is at least 1.
    pub(crate) fn new(bits: u32) -> Self {
        match bits {
            1 => Self::Two([Packed::EMPTY; 2]),
            _ => Self::Many(vec![Packed::EMPTY; 1 << bits].into_boxed_slice()),
        }
    }

    fn as_slice(&self) -> &[Packed] {
        match self {
            Self::Two(slots) => slots,
            Self::Many(slots) => slots,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [Packed] {
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
        self.as_mut_slice()[index] = Packed::pack(child);
    }

    /// Replaces each child by another one.
    pub(crate) fn replace(&mut self, mut by: impl FnMut(Child) -> Child) {
        self.as_mut_slice().iter_mut().for_each(|slot| *slot = Packed::pack(by(slot.unpack())));
    }

    /// The children in order, empty ones included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Child> + Clone {
        self.as_slice().iter().map(|slot| slot.unpack())
    }

    /// The children in order, empty ones left out.
    pub(crate) fn used(&self) -> impl Iterator<Item = Child> {
        self.iter().filter(|&child| child != Child::Empty)
    }

    /// The first slot from `from` on that is not empty.
    pub(crate) fn next_used(&self, from: usize) -> Option<usize> {
        let rest = &self.as_slice()[from..];
        Some(from + rest.iter().position(|&slot| slot != Packed::EMPTY)?)
    }

    /// The last slot before `to` that is not empty.
    pub(crate) fn last_used(&self, to: usize) -> Option<usize> {
        self.as_slice()[..to].iter().rposition(|&slot| slot != Packed::EMPTY)
    }

    /// Bytes allocated apart from the node.
    pub(crate) fn allocation_size(&self) -> usize {
        match self {
            Self::Two(_) => 0,
            Self::Many(slots) => size_of_val(&**slots),
        }
    }
}

/// Where a child hangs: the root of the trie, or a slot of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Root,
    Slot(NodeId, usize),
}

impl Link {
    /// The node that has the slot.
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

/// A branch of `2^bits` ways.
///
/// In the order of declaration, so that what a look-up reads is together at the front.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Node<K, S> {
    /// Child `i` holds the keys whose bits `pos .. end` are `i`.
    pub(crate) slots: Slots,
    /// First bit that this node branches on. At least the parent's [`end`](Self::end); what lies
    /// between the two is skipped.
    pub(crate) pos: u32,
    /// The longest suffix below, at least `K::BITS - end`; or nothing.
    pub(crate) slen: S,
    /// Children that are not empty. At least 2, except while the trie is being changed.
    pub(crate) used: u32,
    /// Children that are nodes and skip nothing: whose `pos` is this node's `end`.
    pub(crate) full: u32,
    /// The node that this one hangs under; `None` at the root.
    pub(crate) parent: Option<NodeId>,
    /// Agrees with every key below on the bits `0 .. pos`, and so locates this node itself. It is a
    /// copy: keys come and go, and the node stays.
    pub(crate) key: K,
}

impl<K: BitString, S> Node<K, S> {
    /// log2 of the number of children. At least 1: a node with one child is collapsed.
    #[inline]
    pub(crate) fn bits(&self) -> u32 {
        self.slots.bits()
    }

    /// The bit behind the last one that this node branches on.
    #[inline]
    pub(crate) fn end(&self) -> u32 {
        self.pos + self.bits()
    }

    /// The slot that `key` belongs to.
    #[inline]
    pub(crate) fn slot_of(&self, key: &K) -> usize {
        key.slice(self.pos, self.bits()) as usize
    }

    /// The child on the way to `key`: `slots.get(slot_of(key))`, telling the kinds of slots apart
    /// only once.
    #[inline]
    pub(crate) fn child_of(&self, key: &K) -> Child {
        match &self.slots {
            Slots::Two(slots) => slots[key.slice(self.pos, 1) as usize & 1].unpack(),
            Slots::Many(slots) => {
                let bits = slots.len().trailing_zeros();
                slots[key.slice(self.pos, bits) as usize].unpack()
            }
        }
    }

    /// The first bit that this node skips, behind a parent that ends at `from`, and in which `key`
    /// differs from all keys below.
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
    fn a_node_that_keeps_nothing_of_suffixes_is_as_if_there_were_none() {
        type Plain = Node<u64, ()>;
        assert_eq!(offset_of!(Plain, used), offset_of!(Plain, pos) + size_of::<u32>());
    }
}
