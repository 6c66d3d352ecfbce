//! Changes of one route, by the lock holder.
//!
//! ```text
//!     more than 18 bits    slot ──→ block ──→ block ──→ block     the path is copied from below,
//!                          slot ─┐  block'──→ block'──→ block'    and published by the slot's word
//!                                └──↑
//!     up to 18 bits        slots  ● ● ● ● ● ●                     the words of slots, or those in
//!                          blocks   ●   ● ●                       their blocks, one by one
//! ```
//!
//! All new blocks are made before the first one is published: a clone of a value, or a method of an
//! address, may panic until then, and nothing has changed.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::block::{Block, NewBlock};
use super::header::{Cell, Header};
use super::pool::{Freed, Pool};
use super::slots::{END, Group, Slots, load, store};
use crate::concurrent::collector::{Dropped, OVERHEAD, first_panic};
use crate::concurrent::sync::Arc;
use crate::key::bits::Address;
use crate::key::prefix::Prefix;
use crate::routes::RouteTable;
use crate::routes::stride::{PrefixIndex, SLOTS, STRIDE, first_slot, node_pos, slot_of};

/// The state of the writers, under their lock.
pub(super) struct State<V> {
    /// The routes of up to [`END`] bits: the block that slots share which have no longer route.
    pub(super) short: RouteTable<u32, Shared<V>>,
    /// Numbers of routes of more than six bits, by the first six bits.
    pub(super) counts: [usize; SLOTS as usize],
    pub(super) len: usize,
    /// The bytes of all blocks and groups that are not retired.
    pub(super) bytes: usize,
    /// The memory of the blocks.
    pub(super) pool: Pool,
}

/// The shared block of a short route, which is freed when no slot has it any more.
pub(super) struct Shared<V>(NonNull<Header>, PhantomData<V>);

impl<V> Clone for Shared<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Shared<V> {}

// SAFETY: a block belongs to its table, whose `Send` and `Sync` are for the values.
unsafe impl<V: Send + Sync> Send for Shared<V> {}

// SAFETY: as above.
unsafe impl<V: Send + Sync> Sync for Shared<V> {}

impl<V> Shared<V> {
    /// Returns the block.
    ///
    /// # Safety
    ///
    /// A pin, the lock of the writers or the only reference to the table is held during `'p`.
    pub(super) unsafe fn block<'p>(self) -> Block<'p, V> {
        // SAFETY: the block is freed when no route and no slot has it any more, and all pins have
        // ended that existed then.
        unsafe { Block::from_ptr(self.0) }
    }
}

/// A table that can be changed: the lock of the writers is held, or there is no other reference.
pub(super) struct Editor<'t, V> {
    slots: &'t Slots<V>,
    pub(super) state: &'t mut State<V>,
}

/// A change that is made.
#[must_use = "what is replaced is freed by `finish`"]
pub(in crate::concurrent) struct Changed<V> {
    /// Whether the route existed before.
    pub(in crate::concurrent) existed: bool,
    pub(super) retired: Retired<V>,
}

impl<V> State<V> {
    pub(super) fn new() -> Self {
        let (short, counts, pool) = (RouteTable::new(), [0; SLOTS as usize], Pool::new());
        Self { short, counts, len: 0, bytes: 0, pool }
    }
}

/// Returns the first bits of an address as an address of its own: no code of the caller runs when
/// it is read.
pub(super) fn short_prefix(word: u64, len: u32) -> Prefix<u32> {
    Prefix::of(&((word >> 32) as u32), len)
}

impl<'t, V> Editor<'t, V> {
    /// # Safety
    ///
    /// The lock of the writers of the slots is held during `'t`, or this is the only reference; and
    /// the state belongs to the slots.
    pub(super) const unsafe fn new(slots: &'t Slots<V>, state: &'t mut State<V>) -> Self {
        Self { slots, state }
    }

    /// Returns the block of an address with these first bits.
    pub(super) fn block(&self, word: u64) -> Block<'t, V> {
        // SAFETY: by the contract of `new`.
        unsafe { self.slots.block(word) }
    }

    fn cell(&self, word: u64) -> &'t Cell {
        // SAFETY: by the contract of `new`.
        unsafe { self.slots.cell(word) }
    }

    /// Returns the words of the slots of a group.
    fn group_slots(group: Group) -> &'t [Cell] {
        // SAFETY: by the contract of `new`; groups are freed by the writers.
        unsafe { group.slots() }
    }

    /// Returns the words of the slots of a part.
    fn part_cells(&self, part: usize) -> &'t [Cell] {
        match self.slots.group(part) {
            Some(group) => Self::group_slots(group),
            None => core::slice::from_ref(self.slots.part(part)),
        }
    }

    /// Calls a function with the word of each slot that a short route covers. There is a group if
    /// it is needed.
    fn each_cell(&self, word: u64, len: u32, each: impl FnMut(&'t Cell)) {
        let first = first_slot(word) as usize;
        if len <= STRIDE {
            let parts = first..first + (1 << (STRIDE - len));
            return parts.flat_map(|part| self.part_cells(part)).for_each(each);
        }
        let slots = self.part_cells(first);
        let at = (word >> (64 - END)) as usize % slots.len();
        slots[at..at + (1 << (END - len))].iter().for_each(each);
    }

    /// Returns the shared block of the longest short route of at most `len` bits that covers an
    /// address.
    fn shared(&self, word: u64, len: u32) -> Block<'t, V> {
        let covering = self.state.short.covering(&short_prefix(word, len));
        // SAFETY: by the contract of `new`.
        covering.last().map_or(Block::empty(), |(_, shared)| unsafe { shared.block() })
    }

    /// Counts a route that is new or removed.
    fn count(&mut self, word: u64, len: u32, is_new: bool) {
        let count = &mut self.state.counts[first_slot(word) as usize];
        if is_new {
            self.state.len += 1;
            *count += usize::from(len > STRIDE);
        } else {
            self.state.len -= 1;
            *count -= usize::from(len > STRIDE);
        }
    }

    /// Makes the group for a route, if it needs one that does not exist.
    fn ensure_group(&mut self, word: u64, len: u32) {
        let part = first_slot(word) as usize;
        if len > STRIDE && self.slots.group(part).is_none() {
            self.slots.make_group(part);
            self.state.bytes += Group::BYTES;
        }
    }

    /// Replaces a group that is not needed any more by the block that all of its slots have.
    fn release_group(&mut self, word: u64, retired: &mut Retired<V>) {
        let part = first_slot(word) as usize;
        let Some(group) = self.slots.group(part).filter(|_| self.state.counts[part] == 0) else {
            return;
        };
        store(self.slots.part(part), self.block(word));
        self.state.bytes -= Group::BYTES;
        retired.group(group);
    }

    /// Adds a block to those that are retired, if it belongs to the slot or parent that had it.
    fn retire(&mut self, block: Block<'_, V>, retired: &mut Retired<V>) {
        if block.is_own() {
            self.retire_any(block, retired);
        }
    }

    /// Adds a block to those that are retired. Freed blocks are returned to the pool: two for each
    /// one that is retired, so none stay.
    fn retire_any(&mut self, block: Block<'_, V>, retired: &mut Retired<V>) {
        self.state.bytes -= block.bytes();
        self.state.pool.return_freed(2);
        retired.block(block);
    }

    /// Removes everything.
    pub(super) fn take_all(&mut self) -> Retired<V> {
        let mut retired = Retired::new(&self.state.pool);
        for part in Slots::<V>::parts() {
            for cell in self.part_cells(part) {
                // SAFETY: by the contract of `new`.
                let block = unsafe { load::<V>(cell) };
                if block.is_own() {
                    retired.tree(block);
                }
            }
            retired.groups.extend(self.slots.group(part));
            store(self.slots.part(part), Block::<V>::empty());
        }
        let old = core::mem::replace(self.state, State::new());
        retired.blocks.extend(old.short.values().map(|shared| shared.0));
        retired.bytes = old.bytes;
        retired
    }
}

impl<V: Clone> Editor<'_, V> {
    /// Inserts, replaces or removes (no value) a route.
    pub(super) fn change<A: Address>(
        &mut self,
        prefix: &Prefix<A>,
        value: Option<V>,
    ) -> Changed<V> {
        let (address, len) = (prefix.address(), prefix.len());
        // The bits past the prefix are zero, unless the address is inconsistent. The slots that
        // have a shared block must follow from the key of its route in any case.
        let word = address.window(0) & !u64::MAX.checked_shr(len).unwrap_or(0);
        if len <= END {
            return self.change_short(word, len, value);
        }
        // Read before anything changes, since an address may panic.
        let path = (END..node_pos(len)).step_by(STRIDE as usize);
        let path: Vec<u32> = path.map(|pos| slot_of(&address, pos)).collect();
        let index = PrefixIndex::of(prefix, node_pos(len));
        self.change_long(word, len, (&path, index), value)
    }

    /// Changes the route with this index in the node at the end of a path of slots.
    fn change_long(
        &mut self,
        word: u64,
        len: u32,
        (path, index): (&[u32], PrefixIndex),
        value: Option<V>,
    ) -> Changed<V> {
        let mut retired = Retired::new(&self.state.pool);
        let root = self.block(word);
        let below = path.iter().scan(root, |block, &slot| {
            *block = block.child(slot).unwrap_or(Block::empty());
            Some(*block)
        });
        let old: Vec<_> = core::iter::once(root).chain(below).collect();
        let (is_new, existed) = (value.is_some(), old[path.len()].has(index));
        if !is_new && !existed {
            return Changed { existed, retired };
        }
        // From below.
        let mut new: Vec<NewBlock<V>> = Vec::with_capacity(old.len());
        let pool = &mut self.state.pool;
        let mut last = NewBlock::with_route(pool, old[path.len()], index, value);
        for (&parent, &slot) in old.iter().zip(path).rev() {
            let child = last.as_ref().map(NewBlock::as_block);
            let copy = NewBlock::with_child(pool, parent, slot, child);
            new.extend(core::mem::replace(&mut last, copy));
        }
        // No code of the caller runs any more: if a clone has panicked, there is no new group.
        if is_new {
            self.ensure_group(word, len);
        }
        let mut own = |block: NewBlock<V>| {
            let block = block.into_block();
            self.state.bytes += block.bytes();
            block
        };
        new.into_iter().for_each(|block| _ = own(block));
        let published = last.map(own).unwrap_or_else(|| self.shared(word, END));
        store(self.cell(word), published);
        old.into_iter().for_each(|block| self.retire(block, &mut retired));
        if is_new != existed {
            self.count(word, len, is_new);
            self.release_group(word, &mut retired);
        }
        Changed { existed, retired }
    }

    /// Changes a route of up to [`END`] bits.
    fn change_short(&mut self, word: u64, len: u32, value: Option<V>) -> Changed<V> {
        let mut retired = Retired::new(&self.state.pool);
        let at = short_prefix(word, len);
        let old = self.state.short.get(&at).copied();
        let (is_new, existed) = (value.is_some(), old.is_some());
        if !is_new && !existed {
            return Changed { existed, retired };
        }
        if is_new {
            self.ensure_group(word, len);
        }
        let next = match value {
            Some(value) => {
                let shared = NewBlock::shared(&mut self.state.pool, len, value).into_block();
                self.state.bytes += shared.bytes();
                self.state.short.insert(at, Shared(shared.as_ptr(), PhantomData));
                shared
            }
            None => {
                self.state.short.remove(&at);
                self.shared(word, len)
            }
        };
        self.each_cell(word, len, |cell| {
            // SAFETY: by the contract of `new`.
            let block = unsafe { load::<V>(cell) };
            if block.inherited().is_none_or(|inherited| inherited <= len) {
                if block.is_own() {
                    block.inherit(next);
                } else {
                    store(cell, next);
                }
            }
        });
        if let Some(old) = old {
            // SAFETY: by the contract of `new`.
            let old = unsafe { old.block() };
            self.retire_any(old, &mut retired);
        }
        if is_new != existed {
            self.count(word, len, is_new);
            self.release_group(word, &mut retired);
        }
        Changed { existed, retired }
    }
}

/// Blocks and groups that a change has replaced: no slot names them any more.
pub(super) struct Retired<V> {
    pub(super) blocks: Vec<NonNull<Header>>,
    pub(super) groups: Vec<Group>,
    pub(super) bytes: usize,
    /// The memory of the blocks.
    memory: Arc<Freed>,
    values: PhantomData<V>,
}

impl<V> Retired<V> {
    pub(super) fn new(pool: &Pool) -> Self {
        let (blocks, groups, memory) = (Vec::new(), Vec::new(), Arc::clone(pool.memory()));
        Self { blocks, groups, bytes: 0, memory, values: PhantomData }
    }

    pub(super) fn block(&mut self, block: Block<'_, V>) {
        self.bytes += block.bytes();
        self.blocks.push(block.as_ptr());
    }

    pub(super) fn group(&mut self, group: Group) {
        self.bytes += Group::BYTES;
        self.groups.push(group);
    }

    /// Adds a block and all blocks below it.
    pub(super) fn tree(&mut self, root: Block<'_, V>) {
        let mut open = Vec::from([root]);
        while let Some(block) = open.pop() {
            self.block(block);
            open.extend(block.children().map(|(_, child)| child));
        }
    }

    /// Returns whether nothing was replaced.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.groups.is_empty()
    }

    /// Returns the bytes that are counted as garbage.
    pub(super) fn cost(&self) -> usize {
        self.bytes + self.blocks.capacity() * size_of::<NonNull<Header>>() + OVERHEAD
    }

    /// Drops the values and frees the memory. Returns the first panic after all are dropped.
    ///
    /// # Safety
    ///
    /// No pin exists from the time before this was replaced.
    pub(super) unsafe fn free(self) -> Dropped {
        let mut result = Ok(());
        for group in self.groups {
            // SAFETY: by the contract.
            unsafe { group.free() };
        }
        for header in self.blocks {
            // SAFETY: it is one of this table, and is freed here, once.
            let block = unsafe { Block::<V>::from_ptr(header) };
            // SAFETY: by the contract.
            let block = unsafe { NewBlock::from_block(block, &self.memory) };
            result = first_panic(result, block.free());
        }
        result
    }
}
