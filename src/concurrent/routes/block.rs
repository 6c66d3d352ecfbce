//! Blocks: the nodes of the trie, of which only one word changes.
//!
//! ```text
//!     ─────────┬───────┬───────┬─────────┬─────────┬─────────┬─────────┬─────────┬─────────
//!      ← inner │child 1│child 0│  inner  │  outer  │  child  │inherited│  outer  │
//!       values │       │       │  bits   │  bits   │  bits   │  word   │ values →│
//!     ─────────┴───────┴───────┴─────────┴─────────┴─────────┴─────────┴─────────┴─────────
//!                              ↑ a pointer to a block, to the header of 32 bytes
//! ```
//!
//! A block has the bitmaps of a node of a [`RouteTable`](crate::RouteTable). The values are on both
//! sides of them, so that a lookup often reads one cache line, and that it finds the value by one
//! count of ones: values of inner routes lie from right to left in the order of their bits, values
//! of outer routes from left to right. Most blocks of IPv4 have no children.
//!
//! The *inherited* word points to the value of the longest route above the block. That value is in
//! the *shared* block of its route, which has no other value; the inherited word of a shared block
//! points to its own value. Slots without longer routes refer to the shared block. The length of
//! the route follows its value. The inherited word is the only one of a block that changes after
//! the block is published, and only while a slot names the block.
//!
//! Blocks are as small as can be, and not aligned to more than their items: with the routes of the
//! Internet they and the slots take most of the entries that the CPU has in its TLB, and a lookup
//! waits for the page tables more often than for the caches. So they are from a pool, too.
//!
//! A shared block is retired when neither a slot nor the block of a slot names it any more, so
//! after all blocks that were replaced while they named it. So it is freed no earlier than the last
//! pin has ended by which a reader may have found one of them.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::marker::PhantomData;
use core::panic::AssertUnwindSafe;
use core::ptr::{self, NonNull};
use std::panic::catch_unwind;

use super::header::{Bits, Header, empty};
use super::pool::{self, Freed, Pool};
use crate::concurrent::collector::{Dropped, first_panic, forget_panic};
use crate::concurrent::sync::{AtomicPtr, Ordering};
use crate::raw::bit_ops::{BitOps, count_ones, each_one, rank, select_ptr};
use crate::raw::prefetch::prefetch;
use crate::routes::stride::{COVERS, PrefixIndex, SLOTS};

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
        if let Some(inserted) = self.inserted {
            each(inserted);
        }
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
    /// The alignment of headers, and so of allocations.
    const ALIGN: usize = match (align_of::<Header>(), align_of::<V>()) {
        (header, value) if header > value => header,
        (_, value) => value,
    };

    /// Offset of the values of outer routes, and of the value of a shared block.
    const VALUES: usize = size_of::<Header>().next_multiple_of(align_of::<V>());

    /// Offset from the value of a shared block to the length of the route.
    const LEN: usize = size_of::<V>().next_multiple_of(align_of::<u32>());

    /// Returns the block without routes.
    pub(super) fn empty() -> Self {
        Self { header: NonNull::from(empty()), value: PhantomData }
    }

    /// Wraps a pointer to a block.
    ///
    /// # Safety
    ///
    /// It is from [`NewBlock::into_block`] or [`Block::empty`], with this type of values, and is
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
        // SAFETY: it is valid for `'p`, and only atomics of blocks change.
        unsafe { self.header.as_ref() }
    }

    #[inline(always)]
    pub(super) fn bits(self) -> Bits {
        self.header().bits
    }

    /// Returns whether it is the one without routes, which is not allocated.
    pub(super) fn is_empty(self) -> bool {
        !self.is_own() && self.inherited_word().is_null()
    }

    /// Returns whether it has routes or children: then it belongs to one slot or parent. Others are
    /// shared between slots.
    pub(super) fn is_own(self) -> bool {
        !self.bits().is_empty()
    }

    /// Returns the pointer to the value of the inherited route, or null.
    #[inline(always)]
    pub(super) fn inherited_word(self) -> *mut u8 {
        // Acquire: pairs with the Release in `inherit`, as does each load of it; the value is
        // visible.
        self.header().inherited.load(Ordering::Acquire)
    }

    /// Copies the inherited route of another block. The caller holds the lock of the writers.
    pub(super) fn inherit(self, other: Self) {
        // Release: publishes the value.
        self.header().inherited.store(other.inherited_word(), Ordering::Release);
    }

    /// Returns the pointer to the length of an inherited route, given that to its value.
    #[inline(always)]
    pub(super) const fn inherited_len(value: *const V) -> *const u32 {
        value.wrapping_byte_add(Self::LEN).cast()
    }

    /// Returns the length of the inherited route.
    pub(super) fn inherited(self) -> Option<u32> {
        let value = NonNull::new(self.inherited_word())?.cast::<V>();
        // SAFETY: it follows the value in the shared block, which is freed no earlier than this.
        Some(unsafe { Self::inherited_len(value.as_ptr()).read() })
    }

    /// Returns the value of the inherited route.
    pub(super) fn inherited_value(self) -> Option<&'p V> {
        let value = NonNull::new(self.inherited_word())?.cast::<V>();
        // SAFETY: the shared block of an inherited route is freed no earlier than this one.
        Some(unsafe { value.as_ref() })
    }

    /// Returns the number of values.
    pub(super) fn values(self) -> usize {
        match self.bits() {
            bits if bits.is_empty() => usize::from(!self.inherited_word().is_null()),
            bits => bits.routes(),
        }
    }

    /// Returns where the inner value of this number is, from 1 on, in the order of their bits,
    /// given the number of children.
    #[inline(always)]
    pub(super) const fn inner_value(self, children: usize, number: usize) -> *const V {
        let end = self.header.as_ptr().wrapping_byte_sub(Self::children_size(children));
        end.cast::<V>().wrapping_sub(number)
    }

    /// Returns where the outer value with an index is, or the value of a shared block.
    #[inline(always)]
    pub(super) const fn outer_value(self, index: usize) -> *const V {
        self.header.as_ptr().wrapping_byte_add(Self::VALUES).cast::<V>().wrapping_add(index)
    }

    /// Returns where the value with an index is: inner ones come first.
    fn place(self, index: usize) -> *const V {
        let inner = count_ones(self.bits().inner) as usize;
        match index.checked_sub(inner) {
            Some(index) => self.outer_value(index),
            None => self.inner_value(self.bits().children(), index + 1),
        }
    }

    /// Returns the value with an index.
    ///
    /// # Safety
    ///
    /// The index is less than the number of values.
    unsafe fn value(self, index: usize) -> &'p V {
        debug_assert!(index < self.values());
        // SAFETY: by the contract, it is initialised, and valid for `'p`.
        unsafe { &*self.place(index) }
    }

    /// Returns whether a route of the block itself covers a slot: then not 0.
    #[inline(always)]
    pub(super) fn covers(self, slot: u32) -> u64 {
        let Bits { inner, outer, .. } = self.bits();
        outer >> slot & 1 | inner & COVERS[slot as usize]
    }

    /// Returns `one` if `condition` is not zero, otherwise `other`, without a branch.
    #[inline(always)]
    pub(super) fn select(condition: u64, one: Self, other: Self) -> Self {
        let header = select_ptr(condition, one.header.as_ptr(), other.header.as_ptr());
        // SAFETY: both are not null.
        let header = unsafe { NonNull::new_unchecked(header.cast_mut()) };
        Self { header, value: PhantomData }
    }

    /// Returns whether there is a child in any slot.
    #[inline(always)]
    pub(super) fn has_children(self) -> bool {
        self.bits().branches != 0
    }

    /// Returns whether there is a child in a slot.
    #[inline(always)]
    pub(super) fn has_child(self, slot: u32) -> bool {
        self.bits().branches >> slot & 1 != 0
    }

    /// Returns the child in a slot.
    pub(super) fn child(self, slot: u32) -> Option<Self> {
        self.child_by(slot, BitOps::PORTABLE)
    }

    /// Returns the child in a slot.
    #[inline(always)]
    pub(super) fn child_by<const FAST: bool>(self, slot: u32, ops: BitOps<FAST>) -> Option<Self> {
        if !self.has_child(slot) {
            return None;
        }
        let below = ops.ones(self.bits().branches & ((1 << slot) - 1)) as u32;
        // SAFETY: the child exists.
        Some(unsafe { self.nth_child(below) })
    }

    /// Returns the child in a slot, or `none` if it does not exist, without a branch.
    #[inline(always)]
    pub(super) fn child_or<const FAST: bool>(
        self,
        slot: u32,
        ops: BitOps<FAST>,
        none: &Self,
    ) -> Self {
        let branches = self.bits().branches;
        let below = ops.ones(branches & ((1 << slot) - 1)) as usize;
        let child = self.header.as_ptr().cast::<NonNull<Header>>().wrapping_sub(below + 1);
        let child = select_ptr(branches >> slot & 1, child.cast_const(), &raw const none.header);
        // SAFETY: the child exists, or it is `none`.
        let child = unsafe { child.read() };
        // SAFETY: a child is freed no earlier than the last of its parents.
        unsafe { Self::from_ptr(child) }
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

    /// Returns the children, with their slots.
    pub(super) fn children(self) -> impl Iterator<Item = (u32, Self)> {
        // SAFETY: there are as many of them.
        each_one(self.bits().branches).zip((0..).map(move |index| unsafe { self.nth_child(index) }))
    }

    /// Returns the routes of the block itself, in any order.
    pub(super) fn routes(self) -> impl Iterator<Item = (PrefixIndex, &'p V)> {
        let inner = each_one(self.bits().inner).map(u64::from);
        let outer = each_one(self.bits().outer).map(|slot| u64::from(SLOTS | slot));
        inner.chain(outer).map(move |index| {
            let index = PrefixIndex::new(index);
            // SAFETY: the route exists.
            (index, unsafe { self.value(self.position(index)) })
        })
    }

    /// Returns whether the block has a route.
    pub(super) fn has(self, index: PrefixIndex) -> bool {
        match index.slot() {
            Some(slot) => self.bits().outer >> slot & 1 != 0,
            None => self.bits().inner >> index.get() & 1 != 0,
        }
    }

    /// Returns the value of a route.
    pub(super) fn get(self, index: PrefixIndex) -> Option<&'p V> {
        // SAFETY: the route exists.
        self.has(index).then(|| unsafe { self.value(self.position(index)) })
    }

    /// Returns the index of the value of a route, or that at which it belongs.
    fn position(self, index: PrefixIndex) -> usize {
        let Bits { inner, outer, .. } = self.bits();
        let position = match index.slot() {
            Some(slot) => count_ones(inner) + rank(outer, slot),
            None => rank(inner, index.get()),
        };
        position as usize
    }

    /// Returns the bytes that it takes.
    pub(super) fn bytes(self) -> usize {
        if self.is_empty() { 0 } else { pool::size_of_block(Self::layout(self.bits()).0) }
    }

    /// Returns the bytes between the header and the inner values.
    const fn children_size(children: usize) -> usize {
        (children * size_of::<NonNull<Header>>()).next_multiple_of(align_of::<V>())
    }

    /// Returns the layout of a block with these bitmaps, and the offset of the header. Without
    /// routes and children it is a shared block.
    fn layout(bits: Bits) -> (Layout, usize) {
        // At most 64 children and 127 values; an array of values of that size is not addressable
        // only if a value is not.
        Self::try_layout(bits).expect("127 values fit into the memory")
    }

    fn try_layout(bits: Bits) -> Option<(Layout, usize)> {
        let values = |ones| size_of::<V>().checked_mul(count_ones(ones) as usize);
        let before = values(bits.inner)?.checked_add(Self::children_size(bits.children()))?;
        let header = before.checked_next_multiple_of(Self::ALIGN)?;
        let after = match bits.is_empty() {
            true => Self::LEN + size_of::<u32>(),
            false => values(bits.outer)?,
        };
        let size = header.checked_add(Self::VALUES)?.checked_add(after)?;
        Some((Layout::from_size_align(size, Self::ALIGN).ok()?, header))
    }
}

/// A block that is not published yet. It owns its values, but not its children.
pub(super) struct NewBlock<V> {
    header: NonNull<Header>,
    /// The number of values that are initialised.
    filled: usize,
    /// The memory of the pool that it is from.
    memory: NonNull<Freed>,
    value: PhantomData<V>,
}

impl<V> NewBlock<V> {
    /// Creates a block with an inherited route only, which slots share.
    pub(super) fn shared(pool: &mut Pool, len: u32, value: V) -> Self {
        let mut block = Self::allocate(pool, Bits::NONE);
        let at = block.as_block().outer_value(0);
        // SAFETY: the allocation has memory for a value and a length.
        unsafe { Block::inherited_len(at).cast_mut().write(len) };
        // Relaxed: published with the block.
        let inherited = &block.as_block().header().inherited;
        inherited.store(at.cast_mut().cast(), Ordering::Relaxed);
        block.push(value);
        block
    }

    /// Allocates a block whose values and children are not initialised.
    fn allocate(pool: &mut Pool, bits: Bits) -> Self {
        let (layout, offset) = Block::<V>::layout(bits);
        // SAFETY: within the allocation.
        let at = unsafe { pool.allocate(layout).add(offset) }.cast::<Header>();
        // SAFETY: aligned, and of this allocation.
        unsafe { at.write(Header { bits, inherited: AtomicPtr::new(ptr::null_mut()) }) };
        Self { header: at, filled: 0, memory: NonNull::from(&**pool.memory()), value: PhantomData }
    }

    /// Initialises the next value.
    fn push(&mut self, value: V) {
        let at = self.as_block().place(self.filled).cast_mut();
        // SAFETY: the allocation has memory for all values; aligned.
        unsafe { at.write(value) };
        self.filled += 1;
    }

    /// Initialises the children.
    fn set_children(&mut self, old: Block<'_, V>, splice: Splice<NonNull<Header>>) {
        let mut next = self.header.cast::<NonNull<Header>>();
        // SAFETY: there are as many.
        let get = |index| unsafe { old.nth_child(index as u32) }.as_ptr();
        splice.each(old.bits().children(), get, |child| {
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
        self.drop_values()
    }

    /// Drops the values. Returns the first panic after all are dropped.
    fn drop_values(&mut self) -> Dropped {
        let mut result = Ok(());
        while core::mem::needs_drop::<V>() && self.filled > 0 {
            self.filled -= 1;
            let last = self.as_block().place(self.filled).cast_mut();
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
    /// The block is allocated, and not used any more, except by this. `memory` belongs to the pool
    /// of the block, and has an owner that is dropped later than this.
    pub(super) unsafe fn from_block(block: Block<'_, V>, memory: &Freed) -> Self {
        let (header, filled) = (block.header, block.values());
        Self { header, filled, memory: NonNull::from(memory), value: PhantomData }
    }
}

impl<V: Clone> NewBlock<V> {
    /// Copies a block with other bitmaps, which agree with the changes of values and children.
    /// Returns nothing if neither routes nor children are left.
    fn copy(
        pool: &mut Pool,
        old: Block<'_, V>,
        bits: Bits,
        values: Splice<V>,
        children: Splice<NonNull<Header>>,
    ) -> Option<Self> {
        let routes = old.bits().routes();
        assert_eq!(values.count(routes), bits.routes(), "a value for each route");
        assert_eq!(children.count(old.bits().children()), bits.children(), "all children");
        if bits.is_empty() {
            return None;
        }
        let mut new = Self::allocate(pool, bits);
        new.as_block().inherit(old);
        new.set_children(old, children);
        // SAFETY: there are as many values.
        let get = |index| unsafe { old.value(index) }.clone();
        values.each(routes, get, |value| new.push(value));
        Some(new)
    }

    /// Copies a block with or without a value for a route.
    pub(super) fn with_route(
        pool: &mut Pool,
        old: Block<'_, V>,
        index: PrefixIndex,
        value: Option<V>,
    ) -> Option<Self> {
        let mut bits = old.bits();
        let (was, is) = (old.has(index), value.is_some());
        if was != is {
            match index.slot() {
                Some(slot) => bits.outer ^= 1 << slot,
                None => bits.inner ^= 1 << index.get(),
            }
        }
        let at = old.position(index);
        let values = Splice { at, removed: usize::from(was), inserted: value };
        Self::copy(pool, old, bits, values, Splice::NONE)
    }

    /// Copies a block with or without a child in a slot.
    pub(super) fn with_child(
        pool: &mut Pool,
        old: Block<'_, V>,
        slot: u32,
        child: Option<Block<'_, V>>,
    ) -> Option<Self> {
        let mut bits = old.bits();
        let removed = usize::from(old.child(slot).is_some());
        bits.branches = bits.branches & !(1 << slot) | u64::from(child.is_some()) << slot;
        let at = rank(old.bits().branches, slot) as usize;
        let children = Splice { at, removed, inserted: child.map(Block::as_ptr) };
        Self::copy(pool, old, bits, Splice::NONE, children)
    }
}

impl<V> Drop for NewBlock<V> {
    fn drop(&mut self) {
        // If there are values left, the clone of one has panicked.
        forget_panic(self.drop_values());
        let block = self.as_block();
        let (layout, offset) = Block::<V>::layout(block.bits());
        // SAFETY: the offset of the header in its allocation.
        let base = unsafe { self.header.cast::<u8>().sub(offset) };
        // SAFETY: allocated with this layout, and not used any more. A new block is dropped or
        // published while its pool exists, and a retired block is dropped while the memory has an
        // owner.
        unsafe { pool::free(self.memory, base, layout) };
    }
}
