//! Extras, which only some flows have: a timeout of their own, a parent, children, expected flows.
//!
//! ```text
//!     flow    marks: EXTRA ──▸ map: slot ──▸ Extra │ timeout │ parent │ children │ expected │
//!                                                                          │          │
//!     children that end with their parent: a ring of slots  4 ⇄ 9 ⇄ 7 ─────┘          │
//!     expected flows: a list of patterns, found by a map of keys, too ────────────────┘
//! ```
//!
//! When a parent ends, its ring is joined to the ring of orphans, which
//! [`advance`](crate::FlowCache::advance) ends one by one: the end of a flow is O(1) in children.

use super::handle::Handle;
use crate::hash::DefaultHashBuilder;
use crate::invariant::{InvariantError, ensure};
use crate::key::flow::FlowName;
use crate::memory::{AllocError, Allocator};
use crate::raw::index::OptIndex;
use crate::raw::slab::ChunkedSlab;
use crate::trash::TrashMap;

/// Pending expected flows of a parent, at most.
pub(super) const MAX_EXPECTED: usize = 32;

/// Which packets begin an expected flow, by their source.
///
/// The keys of this crate have sources. A [`FlowName`] of the caller has them if it implements
/// [`with_any_port`](FlowName::with_any_port) and [`with_any_source`](FlowName::with_any_source);
/// if not, all sources are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Source {
    /// Packets from the address and port of the key.
    #[default]
    Exact,
    /// Packets from the address of the key, any port.
    AnyPort,
    /// Packets from any address and port.
    Any,
}

impl Source {
    pub(super) const ALL: [Self; 3] = [Self::Exact, Self::AnyPort, Self::Any];

    /// The key under which a packet with this key is expected.
    pub(super) fn pattern<K: FlowName>(self, key: &K) -> (Self, K) {
        let key = match self {
            Self::Exact => key.clone(),
            Self::AnyPort => key.with_any_port(),
            Self::Any => key.with_any_source(),
        };
        (self, key)
    }
}

/// The extra of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extra {
    /// The flow's own idle timeout, in nanoseconds.
    pub(super) timeout: Option<u64>,
    /// The flow that expected it.
    pub(super) parent: Option<Handle>,
    /// The neighbours in the ring of the parent's children, or of orphans; none of other flows.
    ring: Option<[u32; 2]>,
    /// One of the children that end with it.
    child: OptIndex,
    /// The newest expected flow.
    expected: OptIndex,
}

impl Extra {
    const NONE: Self = Self {
        timeout: None,
        parent: None,
        ring: None,
        child: OptIndex::NONE,
        expected: OptIndex::NONE,
    };
}

/// An expected flow.
#[derive(Clone, Debug)]
pub(super) struct Pending<K> {
    pub(super) pattern: (Source, K),
    pub(super) parent: Handle,
    /// The time from which on it is not expected any more.
    pub(super) deadline: u64,
    pub(super) ends_with_parent: bool,
    /// The next older one of the parent.
    next: OptIndex,
}

/// The extras of a cache.
#[derive(Clone, Debug)]
pub(super) struct Extras<K, A: Allocator + Clone> {
    /// The numbers of extras.
    by_slot: TrashMap<u32, u32, DefaultHashBuilder, A>,
    extras: ChunkedSlab<Extra, A, BITS>,
    pending: ChunkedSlab<Pending<K>, A, BITS>,
    by_pattern: TrashMap<(Source, K), u32, DefaultHashBuilder, A>,
    /// One of the flows whose parent has ended.
    orphan: OptIndex,
}

/// Entries of a map that are allocated together when it grows, at most, with a margin.
const STEP: usize = 2 * 1024;

/// log2 of the extras, and of the expected flows, that are allocated together.
const BITS: u32 = 6;

/// An upper bound of the bytes that an insertion into a map allocates: its entries move to twice as
/// many slots, or a segment splits.
pub(super) fn map_growth<A, B>(bytes: usize) -> usize {
    let segments = STEP * (size_of::<(A, B)>() + 2) + bytes / 8;
    segments.min(3 * bytes + 4 * size_of::<(A, B)>()) + 256
}

impl<K, A: Allocator + Clone> Extras<K, A> {
    /// No extras, whose memory will be from `memory`.
    pub(super) fn new_in(memory: A) -> Self {
        let hasher = DefaultHashBuilder::new();
        Self {
            by_slot: TrashMap::with_hasher_in(hasher.clone(), memory.clone()),
            extras: ChunkedSlab::chunked_in(usize::MAX, memory.clone()),
            pending: ChunkedSlab::chunked_in(usize::MAX, memory.clone()),
            by_pattern: TrashMap::with_hasher_in(hasher, memory),
            orphan: OptIndex::NONE,
        }
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Extra> {
        self.extras.get(*self.by_slot.get(&slot)?)
    }

    /// Inserts an extra for a flow that has none. The caller sets the mark of the flow.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn insert(&mut self, slot: u32) -> Result<(), AllocError> {
        self.extras.try_reserve_one()?;
        let is_inserted = self.by_slot.try_insert(slot, self.extras.next_index());
        is_inserted.map_err(|_| AllocError)?;
        self.extras.insert(Extra::NONE);
        Ok(())
    }

    /// Allocates memory for another extra, even if others are removed before.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn try_reserve(&mut self) -> Result<(), AllocError> {
        self.extras.try_reserve_one()?;
        self.by_slot.try_reserve(1).map_err(|_| AllocError)
    }

    /// Changes the extra of a flow that has one.
    pub(super) fn change(&mut self, slot: u32, change: impl FnMut(&mut Extra)) {
        self.get_mut(slot).into_iter().for_each(change);
    }

    fn get_mut(&mut self, slot: u32) -> Option<&mut Extra> {
        self.extras.get_mut(*self.by_slot.get(&slot)?)
    }

    /// Returns a flow whose parent has ended.
    pub(super) fn orphan(&self) -> Option<u32> {
        self.orphan.get()
    }

    /// An upper bound of the bytes that an extra allocates.
    pub(super) fn growth(&self) -> usize {
        map_growth::<u32, u32>(self.by_slot.allocation_size()) + self.extras.growth()
    }

    /// An upper bound of the bytes that an expected flow allocates, with the extra of its parent.
    pub(super) fn pending_growth(&self) -> usize
    where
        K: FlowName,
    {
        let by_pattern = map_growth::<(Source, K), u32>(self.by_pattern.allocation_size());
        self.growth() + by_pattern + self.pending.growth()
    }

    pub(super) fn allocation_size(&self) -> usize {
        self.by_slot.allocation_size()
            + self.extras.allocation_size()
            + self.by_pattern.allocation_size()
            + self.pending.allocation_size()
    }

    /// Makes a flow a child that ends with the flow in the slot `parent`; or, without one, an
    /// orphan.
    pub(super) fn join(&mut self, parent: Option<u32>, slot: u32) {
        let child = |parent| self.get(parent).map_or(OptIndex::NONE, |extra| extra.child);
        let head = parent.map_or(self.orphan, child);
        let ring = match head.get() {
            None => [slot; 2],
            Some(head) => {
                let last = self.neighbours(head)[0];
                self.set_neighbour(last, 1, slot);
                self.set_neighbour(head, 0, slot);
                [last, head]
            }
        };
        self.change(slot, |extra| extra.ring = Some(ring));
        if head.is_none() {
            self.set_head(parent, OptIndex::some(slot));
        }
    }

    /// The slots before and after one in its ring.
    fn neighbours(&self, slot: u32) -> [u32; 2] {
        self.get(slot).and_then(|extra| extra.ring).unwrap_or([slot; 2])
    }

    fn set_neighbour(&mut self, slot: u32, side: usize, neighbour: u32) {
        if let Some(ring) = self.get_mut(slot).and_then(|extra| extra.ring.as_mut()) {
            ring[side] = neighbour;
        }
    }

    fn set_head(&mut self, parent: Option<u32>, head: OptIndex) {
        match parent {
            Some(parent) => self.change(parent, |extra| extra.child = head),
            None => self.orphan = head,
        }
    }
}

impl<K: FlowName, A: Allocator + Clone> Extras<K, A> {
    /// Removes the extra of a flow that is removed: it leaves its ring, its children become
    /// orphans, and what it expected is not expected any more. `parent` is the slot of its parent,
    /// if that exists.
    pub(super) fn remove(&mut self, slot: u32, parent: Option<u32>) {
        // First: methods of keys may panic.
        while let Some(at) = self.first_pending(slot) {
            self.forget(slot, at);
        }
        self.leave(slot, parent);
        let Some(at) = self.by_slot.remove(&slot) else { return };
        let Some(extra) = self.extras.try_remove(at) else { return };
        if let Some(child) = extra.child.get() {
            self.adopt_orphans(child);
        }
    }

    /// Takes a flow out of its ring.
    fn leave(&mut self, slot: u32, parent: Option<u32>) {
        let Some([before, after]) = self.get(slot).and_then(|extra| extra.ring) else { return };
        self.set_neighbour(before, 1, after);
        self.set_neighbour(after, 0, before);
        let rest = if after == slot { OptIndex::NONE } else { OptIndex::some(after) };
        let is_child = parent.and_then(|parent| self.get(parent)).map(|parent| parent.child);
        if self.orphan == OptIndex::some(slot) {
            self.orphan = rest;
        } else if is_child == Some(OptIndex::some(slot)) {
            self.set_head(parent, rest);
        }
    }

    /// Joins a ring to that of orphans.
    fn adopt_orphans(&mut self, child: u32) {
        if let Some(orphan) = self.orphan.get() {
            let [last, last_orphan] = [child, orphan].map(|head| self.neighbours(head)[0]);
            self.set_neighbour(last_orphan, 1, child);
            self.set_neighbour(last, 1, orphan);
            self.set_neighbour(child, 0, last_orphan);
            self.set_neighbour(orphan, 0, last);
        }
        self.orphan = OptIndex::some(child);
    }

    /// Iterates over the pending expected flows of the flow in a slot, with their indices.
    pub(super) fn pending_of(&self, slot: u32) -> impl Iterator<Item = (u32, &Pending<K>)> {
        let first = self.get(slot).map_or(OptIndex::NONE, |extra| extra.expected);
        let next = |at| self.pending.get(at).map_or(OptIndex::NONE, |pending| pending.next);
        first.list(next).filter_map(|at| Some((at, self.pending.get(at)?)))
    }

    fn first_pending(&self, slot: u32) -> Option<u32> {
        self.get(slot)?.expected.get()
    }

    /// Iterates over the children of a flow that end with it, or over all orphans.
    pub(super) fn children(&self, parent: Option<u32>) -> impl Iterator<Item = u32> {
        let head = match parent {
            Some(parent) => self.get(parent).map_or(OptIndex::NONE, |extra| extra.child),
            None => self.orphan,
        };
        let next = move |slot: &u32| {
            let after = self.neighbours(*slot)[1];
            (Some(after) != head.get()).then_some(after)
        };
        core::iter::successors(head.get(), next)
    }

    /// Returns the pending expected flow of a packet with this key, in its direction, and its
    /// index.
    #[cold]
    #[inline(never)]
    pub(super) fn expected(&self, key: &K, now: u64) -> Option<(u32, &Pending<K>)> {
        Source::ALL.into_iter().find_map(|source| {
            let found = self.find(&source.pattern(key))?;
            (now < found.1.deadline).then_some(found)
        })
    }

    /// Returns the pending expected flow of a pattern.
    pub(super) fn find(&self, pattern: &(Source, K)) -> Option<(u32, &Pending<K>)> {
        let at = *self.by_pattern.get(pattern)?;
        let pending = self.pending.get(at)?;
        // A pattern that violates the contract of `Hash` and `Eq` may have left its number behind.
        (pending.pattern == *pattern).then_some((at, pending))
    }

    /// Whether any flow is expected.
    #[inline]
    pub(super) const fn expects(&self) -> bool {
        self.pending.len() > 0
    }

    /// Changes an expected flow.
    pub(super) fn renew(&mut self, at: u32, deadline: u64, ends_with_parent: bool) {
        if let Some(pending) = self.pending.get_mut(at) {
            (pending.deadline, pending.ends_with_parent) = (deadline, ends_with_parent);
        }
    }

    /// Allocates memory for another expected flow.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn reserve_pending(&mut self) -> Result<(), AllocError> {
        self.pending.try_reserve_one()?;
        self.by_pattern.try_reserve(1).map_err(|_| AllocError)
    }

    /// Adds an expected flow, for which there is [memory](Self::reserve_pending), to those of the
    /// parent in a slot, which has an extra.
    ///
    /// # Errors
    ///
    /// If patterns violate the contract of `Hash`, and memory cannot be allocated. Nothing more is
    /// expected then.
    pub(super) fn expect(&mut self, slot: u32, pending: Pending<K>) -> Result<(), AllocError> {
        let next = self.get(slot).map_or(OptIndex::NONE, |extra| extra.expected);
        let (pattern, at) = (pending.pattern.clone(), self.pending.next_index());
        self.by_pattern.try_insert(pattern, at).map_err(|_| AllocError)?;
        self.pending.insert(Pending { next, ..pending });
        self.change(slot, |extra| extra.expected = OptIndex::some(at));
        Ok(())
    }

    /// Removes an expected flow of the flow in a slot: it has begun, or is not expected any more.
    pub(super) fn forget(&mut self, slot: u32, at: u32) {
        let before = self.pending_of(slot).find(|(_, pending)| pending.next == OptIndex::some(at));
        let before = before.map(|(before, _)| before);
        let next = self.pending.get(at).map_or(OptIndex::NONE, |pending| pending.next);
        match before.and_then(|before| self.pending.get_mut(before)) {
            Some(before) => before.next = next,
            None => self.change(slot, |extra| extra.expected = next),
        }
        let Some(pending) = self.pending.try_remove(at) else { return };
        self.by_pattern.remove(&pending.pattern);
    }

    /// Checks the extra of the flow in a slot, given whether it is marked to have one, and a
    /// function from a slot to the handle of its flow. Returns the number of its expected flows.
    pub(super) fn check(
        &self,
        slot: u32,
        is_marked: bool,
        handle: impl Fn(u32) -> Option<Handle>,
    ) -> Result<usize, InvariantError> {
        let extra = self.get(slot);
        ensure(extra.is_some() == is_marked, || "the mark of an extra is wrong")?;
        for child in self.children(Some(slot)).take(self.by_slot.len() + 1) {
            let parent = self.get(child).and_then(|extra| extra.parent);
            ensure(parent.is_some() && parent == handle(slot), || "a child of another flow")?;
            let [before, after] = self.neighbours(child);
            let is_ring = self.neighbours(before)[1] == child && self.neighbours(after)[0] == child;
            ensure(is_ring, || "the ring of children is broken")?;
        }
        let of = |pending: &Pending<K>| Some(pending.parent) == handle(slot);
        let is_own = self.pending_of(slot).all(|(_, pending)| of(pending));
        ensure(is_own, || "an expected flow of another parent")?;
        Ok(self.pending_of(slot).count())
    }

    /// Checks the orphans, and the numbers of extras and expected flows, given those of all flows.
    pub(super) fn check_all(
        &self,
        (marked, expected): (usize, usize),
        is_live: impl Fn(Handle) -> bool,
    ) -> Result<(), InvariantError> {
        let extras = [self.by_slot.len(), self.extras.len()];
        ensure(extras == [marked; 2], || "an extra without a flow")?;
        ensure(self.pending.len() == expected, || "an expected flow without a parent")?;
        let mut orphans = self.children(None).take(self.by_slot.len() + 1);
        let is_orphan = |slot: u32| {
            let parent = self.get(slot).and_then(|extra| extra.parent);
            parent.is_some_and(|parent| !is_live(parent))
        };
        ensure(orphans.all(is_orphan), || "an orphan has a parent")
    }
}

impl<K> Pending<K> {
    pub(super) const fn new(
        pattern: (Source, K),
        parent: Handle,
        deadline: u64,
        ends_with_parent: bool,
    ) -> Self {
        Self { pattern, parent, deadline, ends_with_parent, next: OptIndex::NONE }
    }
}
