//! Blocks: the nodes of the trie, which never change.
//!
//! ```text
//!               ┌───────┬───────┬───────┬───────┬──────────┬─────────┬─────────┬─────
//!     … child 1 │child 0│ inner │ outer │ child │ values,  │inherited│ inner   │ outer …
//!               │       │ bits  │ bits  │ bits  │ inherited│ value   │ values ←│ values →
//!               └───────┴───────┴───────┴───────┴──────────┴─────────┴─────────┴─────
//!                       ↑ a pointer to a block, to the header of 32 bytes
//! ```
//!
//! The bitmaps are those of a node of a [`RouteTable`](crate::RouteTable). The values follow them,
//! so that most often a lookup reads one or two adjacent cache lines: those of inner routes from
//! right to left, then those of outer ones. The first value is that of the longest route above the
//! node, if the block is the one of a slot. Children precede the header, so that the offset of a
//! value does not depend on their number.
#![allow(unsafe_code)]

use alloc::alloc::{alloc, dealloc, handle_alloc_error};
use core::alloc::Layout;
use core::marker::PhantomData;
use core::panic::AssertUnwindSafe;
use core::ptr::{self, NonNull};
use std::panic::catch_unwind;

use crate::concurrent::garbage::{Dropped, first_panic};
use crate::raw::bit_ops::{count_ones, each_one, ones, rank};
use crate::raw::prefetch::prefetch;
use crate::routes::search::{RouteMatch, search};
use crate::routes::stride::{COVERS, PrefixIndex, SLOTS};

/// The `inherited` of a block without an inherited route.
const NONE: u32 = u32::MAX;

/// What all blocks begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub(super) struct Header {
    /// Routes of levels 1 to 5: bit `n` for prefix index `n`.
    inner: u64,
    /// Routes of level 6: bit `n` for slot `n`.
    outer: u64,
    /// Children: bit `n` for slot `n`.
    branches: u64,
    /// The index of the value of the first outer route.
    values: u32,
    /// The length of the inherited route, or [`NONE`].
    inherited: u32,
}

/// The block without routes, of slots without routes. It is not freed.
static EMPTY: Header = Header { inner: 0, outer: 0, branches: 0, values: 0, inherited: NONE };

/// A change of one item of a sequence: `removed` ones, 0 or 1, are replaced by an inserted one.
struct Splice<T> {
    at: usize,
    removed: usize,
    inserted: Option<T>,
}

impl<T> Splice<T> {
    const NONE: Self = Self { at: 0, removed: 0, inserted: None };

    /// Returns the number of items, given the number of old ones.
    fn count(&self, old: usize) -> usize {
        old - self.removed + usize::from(self.inserted.is_some())
    }

    /// Calls a function with each item in order, given the old ones.
    fn each(self, old: usize, get: impl Fn(usize) -> T, mut each: impl FnMut(T)) {
        (0..self.at).for_each(|index| each(get(index)));
        self.inserted.into_iter().for_each(&mut each);
        (self.at + self.removed..old).for_each(|index| each(get(index)));
    }
}

/// A block that is valid for `'p`: the duration of a pin, or of the writers' lock.
pub(super) struct Block<'p, V> {
    header: NonNull<Header>,
    value: PhantomData<&'p V>,
}

impl<V> Clone for Block<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Block<'_, V> {}

impl<V> PartialEq for Block<'_, V> {
    fn eq(&self, other: &Self) -> bool {
        self.header == other.header
    }
}

impl<'p, V> Block<'p, V> {
    /// Offset of the values.
    const VALUES: usize = size_of::<Header>().next_multiple_of(align_of::<V>());

    const ALIGN: usize =
        if align_of::<V>() > align_of::<Header>() { align_of::<V>() } else { align_of::<Header>() };

    /// The block without routes.
    pub(super) const EMPTY: Self = {
        // SAFETY: a reference is not null.
        let header = unsafe { NonNull::new_unchecked(ptr::from_ref(&EMPTY).cast_mut()) };
        Self { header, value: PhantomData }
    };

    /// Wraps a pointer to a block.
    ///
    /// # Safety
    ///
    /// It is from [`NewBlock::into_block`] or [`Block::EMPTY`], with this type of values, and is
    /// not freed during `'p`.
    #[inline(always)]
    pub(super) const unsafe fn from_ptr(header: NonNull<Header>) -> Self {
        Self { header, value: PhantomData }
    }

    /// Returns the pointer.
    pub(super) const fn as_ptr(self) -> NonNull<Header> {
        self.header
    }

    #[inline(always)]
    fn header(self) -> &'p Header {
        // SAFETY: it is valid for `'p`, and blocks never change.
        unsafe { self.header.as_ref() }
    }

    /// Returns whether it is the one without routes, which is not allocated.
    pub(super) fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// Returns whether it has routes or children: then it belongs to one slot or parent. Others are
    /// shared between slots.
    pub(super) fn is_own(self) -> bool {
        let Header { inner, outer, branches, .. } = *self.header();
        inner | outer | branches != 0
    }

    /// Returns the length of the inherited route.
    pub(super) fn inherited(self) -> Option<u32> {
        Some(self.header().inherited).filter(|&len| len != NONE)
    }

    /// Returns the value of the inherited route.
    pub(super) fn inherited_value(self) -> Option<&'p V> {
        // SAFETY: it is the first one.
        self.inherited().map(|_| unsafe { self.value(0) })
    }

    /// Returns the number of values.
    pub(super) fn values(self) -> usize {
        let Header { outer, values, .. } = *self.header();
        (values + count_ones(outer)) as usize
    }

    /// Returns the value with an index.
    ///
    /// # Safety
    ///
    /// The index is less than the number of values.
    #[inline(always)]
    pub(super) unsafe fn value(self, index: u32) -> &'p V {
        debug_assert!((index as usize) < self.values());
        // SAFETY: the values begin at that offset of the allocation.
        let first = unsafe { Self::first_value(self.header) };
        // SAFETY: by the contract, within the allocation.
        let value = unsafe { first.add(index as usize) };
        // SAFETY: they are initialised, and valid for `'p`.
        unsafe { value.as_ref() }
    }

    #[inline(always)]
    unsafe fn first_value(header: NonNull<Header>) -> NonNull<V> {
        // SAFETY: within the allocation, or at its end: by the contract of the caller.
        unsafe { header.byte_add(Self::VALUES) }.cast()
    }

    /// Returns the longest route for a slot, which may be the inherited one or not exist; its
    /// length only if `LEN`. The value has this index.
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    pub(super) unsafe fn longest<const FAST: bool, const LEN: bool>(
        self,
        slot: u32,
        pos: u32,
    ) -> RouteMatch {
        let Header { inner, outer, values, inherited, .. } = *self.header();
        // The index of none has all bits set, as its length; that of a route is 0.
        let inherited = RouteMatch::new((inherited as i32 >> 31) as u32, inherited);
        // SAFETY: by the contract of this function. There are no flags.
        unsafe { search::<FAST, LEN>((inner, outer, values), 0, pos, slot, Some(inherited)) }
    }

    /// Returns whether a route of the block itself covers a slot.
    #[inline(always)]
    pub(super) fn covers(self, slot: u32) -> bool {
        let Header { inner, outer, .. } = *self.header();
        outer >> slot & 1 | inner & COVERS[slot as usize] != 0
    }

    /// Returns the child in a slot.
    pub(super) fn child(self, slot: u32) -> Option<Self> {
        // SAFETY: nothing is required of the CPU.
        unsafe { self.child_by::<false>(slot) }
    }

    /// Returns the child in a slot.
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    pub(super) unsafe fn child_by<const FAST: bool>(self, slot: u32) -> Option<Self> {
        let branches = self.header().branches;
        if branches >> slot & 1 == 0 {
            return None;
        }
        // SAFETY: by the contract of this function.
        let below = unsafe { ones::<FAST>(branches & ((1 << slot) - 1)) };
        // SAFETY: the child exists.
        Some(unsafe { self.nth_child(below) })
    }

    /// Prefetches the header.
    #[inline(always)]
    pub(super) fn prefetch(self) {
        prefetch(self.header.as_ptr());
    }

    /// Returns a child by its index.
    ///
    /// # Safety
    ///
    /// The index is less than the number of children.
    #[inline(always)]
    unsafe fn nth_child(self, index: u32) -> Self {
        // SAFETY: the pointers to the children precede the header, in its allocation.
        let child = unsafe { self.header.cast::<NonNull<Header>>().sub(index as usize + 1) };
        // SAFETY: they are initialised.
        let child = unsafe { child.read() };
        // SAFETY: a child is freed no earlier than the last of its parents.
        unsafe { Self::from_ptr(child) }
    }

    /// Returns the number of children.
    fn children_count(self) -> usize {
        count_ones(self.header().branches) as usize
    }

    /// Returns the children, with their slots.
    pub(super) fn children(self) -> impl Iterator<Item = (u32, Self)> {
        // SAFETY: there are as many of them.
        each_one(self.header().branches)
            .zip((0..).map(move |index| unsafe { self.nth_child(index) }))
    }

    /// Returns the routes of the block itself, in any order.
    pub(super) fn routes(self) -> impl Iterator<Item = (PrefixIndex, &'p V)> {
        let inner = each_one(self.header().inner).map(u64::from);
        let outer = each_one(self.header().outer).map(|slot| u64::from(SLOTS | slot));
        inner.chain(outer).map(move |index| {
            let index = PrefixIndex::new(index);
            // SAFETY: the route exists.
            (index, unsafe { self.value(self.position(index)) })
        })
    }

    /// Returns whether the block has a route.
    pub(super) fn has(self, index: PrefixIndex) -> bool {
        match index.slot() {
            Some(slot) => self.header().outer >> slot & 1 != 0,
            None => self.header().inner >> index.get() & 1 != 0,
        }
    }

    /// Returns the value of a route.
    pub(super) fn get(self, index: PrefixIndex) -> Option<&'p V> {
        // SAFETY: the route exists.
        self.has(index).then(|| unsafe { self.value(self.position(index)) })
    }

    /// Returns whether the index of the first outer route agrees with the bitmaps.
    pub(super) fn has_consistent_values(self) -> bool {
        let Header { inner, values, inherited, .. } = *self.header();
        values == count_ones(inner) + u32::from(inherited != NONE)
    }

    /// Returns where the value of a route is, or belongs.
    fn position(self, index: PrefixIndex) -> u32 {
        let Header { inner, outer, values, .. } = *self.header();
        match index.slot() {
            Some(slot) => values + rank(outer, slot),
            // Those with greater indices precede it.
            None => values - rank(inner, index.get()) - u32::from(self.has(index)),
        }
    }

    /// Returns the bytes of its allocation.
    pub(super) fn bytes(self) -> usize {
        if self.is_empty() {
            0
        } else {
            Self::layout(self.children_count(), self.values()).0.size()
        }
    }

    /// Returns the layout of a block, and the offset of the header.
    fn layout(children: usize, values: usize) -> (Layout, usize) {
        let header = (children * size_of::<NonNull<Header>>()).next_multiple_of(Self::ALIGN);
        // At most 64 children and 127 values; an array of values of that size is not addressable
        // only if a value is not.
        let bytes = size_of::<V>().checked_mul(values).map(|values| header + Self::VALUES + values);
        // Allocators add a word, and then round up: so sizes are full units less a word.
        let size = bytes.map(|bytes| (bytes + 8).next_multiple_of(Self::ALIGN) - 8);
        let layout = size.and_then(|size| Layout::from_size_align(size, Self::ALIGN).ok());
        (layout.expect("127 values fit into the memory"), header)
    }
}

/// A block that is not published yet. It owns its values, but not its children.
pub(super) struct NewBlock<V> {
    header: NonNull<Header>,
    /// The number of values that are initialised.
    filled: usize,
    value: PhantomData<V>,
}

impl<V> NewBlock<V> {
    /// Creates a block with an inherited route only, which slots share.
    pub(super) fn shared(len: u32, value: V) -> Self {
        let header = Header { values: 1, inherited: len, ..EMPTY };
        let mut block = Self::allocate(header);
        block.push(value);
        block
    }

    /// Allocates a block whose values and children are not initialised.
    fn allocate(header: Header) -> Self {
        let values = (header.values + count_ones(header.outer)) as usize;
        let (layout, offset) = Block::<V>::layout(count_ones(header.branches) as usize, values);
        // SAFETY: the layout has the size of the header at least.
        let Some(base) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        // SAFETY: within the allocation.
        let at = unsafe { base.add(offset) }.cast::<Header>();
        // SAFETY: aligned, and of this allocation.
        unsafe { at.write(header) };
        Self { header: at, filled: 0, value: PhantomData }
    }

    /// Initialises the next value.
    fn push(&mut self, value: V) {
        let block = self.as_block();
        assert!(self.filled < block.values(), "the bitmaps have the number of values");
        // SAFETY: within the allocation, which has memory for all values.
        let first = unsafe { Block::<V>::first_value(self.header) };
        // SAFETY: as above.
        let at = unsafe { first.add(self.filled) };
        // SAFETY: as above, and aligned.
        unsafe { at.write(value) };
        self.filled += 1;
    }

    /// Initialises the children.
    fn set_children(&mut self, old: Block<'_, V>, splice: Splice<NonNull<Header>>) {
        let mut next = self.header.cast::<NonNull<Header>>();
        // SAFETY: there are as many.
        let get = |index| unsafe { old.nth_child(index as u32) }.as_ptr();
        splice.each(old.children_count(), get, |child| {
            // SAFETY: the allocation has memory for all children before the header.
            next = unsafe { next.sub(1) };
            // SAFETY: as above.
            unsafe { next.write(child) };
        });
    }

    /// Returns the block as it is.
    pub(super) fn as_block(&self) -> Block<'_, V> {
        // SAFETY: it is borrowed.
        unsafe { Block::from_ptr(self.header) }
    }

    /// Returns the pointer to the block, which the caller frees.
    pub(super) fn into_block<'p>(self) -> Block<'p, V> {
        let header = self.header;
        core::mem::forget(self);
        Block { header, value: PhantomData }
    }

    /// Drops the values and frees the memory. Returns the first panic after all are dropped: a
    /// second one while the first one unwinds would abort.
    pub(super) fn free(mut self) -> Dropped {
        let mut result = Ok(());
        while core::mem::needs_drop::<V>() && self.filled > 0 {
            self.filled -= 1;
            // SAFETY: within the allocation.
            let first = unsafe { Block::<V>::first_value(self.header) };
            // SAFETY: as above.
            let last = unsafe { first.add(self.filled) };
            // SAFETY: it is initialised, belongs to this, and is not counted any more.
            let drop = || unsafe { last.drop_in_place() };
            result = first_panic(result, catch_unwind(AssertUnwindSafe(drop)));
        }
        result
    }

    /// Takes ownership of a block and its values.
    ///
    /// # Safety
    ///
    /// It is allocated, and not used any more, except by this.
    pub(super) unsafe fn from_block(block: Block<'_, V>) -> Self {
        Self { header: block.header, filled: block.values(), value: PhantomData }
    }
}

impl<V: Clone> NewBlock<V> {
    /// Copies a block with other bitmaps, which agree with the changes of values and children.
    fn copy(
        old: Block<'_, V>,
        header: Header,
        values: Splice<V>,
        children: Splice<NonNull<Header>>,
    ) -> Self {
        let mut new = Self::allocate(header);
        debug_assert_eq!(values.count(old.values()), new.as_block().values());
        debug_assert_eq!(children.count(old.children_count()), new.as_block().children_count());
        new.set_children(old, children);
        // SAFETY: there are as many values.
        let get = |index| unsafe { old.value(index as u32) }.clone();
        values.each(old.values(), get, |value| new.push(value));
        new
    }

    /// Copies a block with or without a value for a route.
    pub(super) fn with_route(old: Block<'_, V>, index: PrefixIndex, value: Option<V>) -> Self {
        let mut header = *old.header();
        let (was, is) = (old.has(index), value.is_some());
        if was != is {
            match index.slot() {
                Some(slot) => header.outer ^= 1 << slot,
                None => {
                    header.inner ^= 1 << index.get();
                    header.values = if is { header.values + 1 } else { header.values - 1 };
                }
            }
        }
        let at = old.position(index) as usize;
        let values = Splice { at, removed: usize::from(was), inserted: value };
        Self::copy(old, header, values, Splice::NONE)
    }

    /// Copies a block with or without a child in a slot.
    pub(super) fn with_child(old: Block<'_, V>, slot: u32, child: Option<Block<'_, V>>) -> Self {
        let mut header = *old.header();
        let removed = usize::from(old.child(slot).is_some());
        header.branches = header.branches & !(1 << slot) | u64::from(child.is_some()) << slot;
        let at = rank(old.header().branches, slot) as usize;
        let children = Splice { at, removed, inserted: child.map(Block::as_ptr) };
        Self::copy(old, header, Splice::NONE, children)
    }

    /// Copies a block with the inherited route of another one.
    pub(super) fn with_inherited(old: Block<'_, V>, from: Block<'_, V>) -> Self {
        let mut header = *old.header();
        let removed = usize::from(old.inherited().is_some());
        header.inherited = from.header().inherited;
        header.values = header.values - removed as u32 + u32::from(from.inherited().is_some());
        let inserted = from.inherited_value().cloned();
        Self::copy(old, header, Splice { at: 0, removed, inserted }, Splice::NONE)
    }
}

impl<V> Drop for NewBlock<V> {
    fn drop(&mut self) {
        /// Frees the memory, also if the drop of a value panics.
        struct Free<V>(NonNull<Header>, PhantomData<V>);

        impl<V> Drop for Free<V> {
            fn drop(&mut self) {
                // SAFETY: the header is valid until it is freed here.
                let block = unsafe { Block::<V>::from_ptr(self.0) };
                let (layout, offset) = Block::<V>::layout(block.children_count(), block.values());
                // SAFETY: the offset of the header in its allocation.
                let base = unsafe { self.0.cast::<u8>().sub(offset) };
                // SAFETY: allocated with this layout, and not used any more.
                unsafe { dealloc(base.as_ptr(), layout) };
            }
        }

        let _free = Free::<V>(self.header, PhantomData);
        // SAFETY: within the allocation.
        let first = unsafe { Block::<V>::first_value(self.header) };
        let values = ptr::slice_from_raw_parts_mut(first.as_ptr(), self.filled);
        // SAFETY: these are initialised, and belong to this.
        unsafe { values.drop_in_place() };
    }
}
