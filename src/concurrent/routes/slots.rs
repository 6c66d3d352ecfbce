//! Slots: the words that readers load, by the first 18 bits of an address.
//!
//! ```text
//!     bits    0        6                  18
//!             │ 001010 │   000001 000000  │ …
//!     parts  ▕ ● │ ● │ ● │ … ▏ 64 words
//!              │   └──→ group ▕ ● │ ● │ ● │ … ▏ 4096 words, if there are routes above 6 bits
//!              ▼                └──→ block
//!            block
//! ```
//!
//! The word of a slot is the pointer to its block. The word of a part is the pointer to its block,
//! or that to its group with the lowest bit set.
//!
//! A group that is made has the block of the part in all of its slots, and one whose slots have all
//! the same block is replaced by that: neither changes any answer. A group that has been replaced
//! is not changed any more, so a reader that still loads from it finds the blocks at the
//! replacement of the group. The replacement is later than the reader's load of the word of the
//! part.
#![allow(unsafe_code)]

use alloc::alloc::handle_alloc_error;
use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::block::Block;
use super::header::{Cell, Header};
use crate::concurrent::memory::{allocate, free};
use crate::concurrent::sync::{IS_CHECKED, Ordering};
use crate::raw::prefetch::prefetch;
use crate::routes::stride::{SLOTS, STRIDE, first_slot};

/// The bits that select a slot. Fewer for checkers.
pub(super) const END: u32 = match (IS_CHECKED, cfg!(miri)) {
    (true, _) => STRIDE,
    (_, true) => 2 * STRIDE,
    _ => 3 * STRIDE,
};

/// Slots of a group.
const WIDTH: usize = 1 << (END - STRIDE);

/// The number of parts.
const PARTS: usize = SLOTS as usize;

/// The slots of a group, which are freed by the owner.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Group(NonNull<Cell>);

impl Group {
    /// The bytes of a group.
    pub(super) const BYTES: usize = WIDTH * size_of::<Cell>();

    /// Frees it.
    ///
    /// # Safety
    ///
    /// It is not used any more.
    pub(super) unsafe fn free(self) {
        // SAFETY: by the contract; allocated with this length.
        unsafe { free(self.0.as_ptr(), WIDTH) };
    }

    /// Returns the slots.
    ///
    /// # Safety
    ///
    /// It is not freed during `'p`.
    #[inline(always)]
    unsafe fn slot<'p>(self, word: u64) -> &'p Cell {
        let index = (word >> (64 - END)) as usize % WIDTH;
        let slot = self.0.as_ptr().wrapping_add(index);
        // SAFETY: it has that many slots; by the contract.
        unsafe { &*slot }
    }

    /// Returns all slots.
    ///
    /// # Safety
    ///
    /// It is not freed during `'p`.
    pub(super) unsafe fn slots<'p>(self) -> &'p [Cell] {
        // SAFETY: by the contract; it has that many slots.
        unsafe { NonNull::slice_from_raw_parts(self.0, WIDTH).as_ref() }
    }
}

/// The target of the word of a part.
enum Part {
    Block(NonNull<Header>),
    Group(Group),
}

impl Part {
    #[inline(always)]
    fn of(word: *mut Header) -> Self {
        let is_group = word.addr() & 1 != 0;
        let at = if is_group { word.wrapping_byte_sub(1) } else { word };
        // SAFETY: words are never null.
        let at = unsafe { NonNull::new_unchecked(at) };
        if is_group { Self::Group(Group(at.cast())) } else { Self::Block(at) }
    }

    fn word(self) -> *mut Header {
        match self {
            Self::Block(block) => block.as_ptr(),
            Self::Group(group) => group.0.as_ptr().cast::<Header>().wrapping_byte_add(1),
        }
    }
}

/// All slots. The owner of blocks and groups frees them.
///
/// # Invariant
///
/// The blocks have values of type `V`, and each word refers to a block or to a group. A block or
/// group to which a word has referred is freed when all pins have ended that existed then, or when
/// the slots are dropped.
pub(super) struct Slots<V> {
    parts: [Cell; PARTS],
    values: PhantomData<V>,
}

impl<V> Slots<V> {
    pub(super) fn new() -> Self {
        let empty = || Cell::new(Block::<V>::empty().as_ptr().as_ptr());
        Self { parts: core::array::from_fn(|_| empty()), values: PhantomData }
    }

    /// Returns the word that names the block of an address with these first bits.
    ///
    /// # Safety
    ///
    /// The lock of the writers or the only reference is held as long as the result is used: a
    /// reader may find that it has become the word of a group.
    pub(super) unsafe fn cell(&self, word: u64) -> &Cell {
        let part = first_slot(word) as usize;
        match self.group(part) {
            None => &self.parts[part],
            // SAFETY: by the contract.
            Some(group) => unsafe { group.slot(word) },
        }
    }

    /// Prefetches the word of a slot, if the part has a group.
    #[inline(always)]
    pub(super) fn prefetch(&self, word: u64) {
        // Acquire: pairs with the Release in `store`, as does each load of it.
        let named = self.parts[first_slot(word) as usize].load(Ordering::Acquire);
        // A block, which is prefetched later, has no slots.
        let index = (word >> (64 - END)) as usize % WIDTH;
        prefetch(named.cast::<Cell>().wrapping_add(index));
    }

    /// Returns the block of an address with these first bits.
    ///
    /// # Safety
    ///
    /// A pin, the lock of the writers or the only reference is held as long as the result is used.
    #[inline(always)]
    pub(super) unsafe fn block(&self, word: u64) -> Block<'_, V> {
        // Acquire: pairs with the Release in `store`; the slots of the group are visible.
        let named = self.parts[first_slot(word) as usize].load(Ordering::Acquire);
        match Part::of(named) {
            // SAFETY: by the invariant, and the contract.
            Part::Block(block) => unsafe { Block::from_ptr(block) },
            Part::Group(group) => {
                // SAFETY: by the contract.
                let slot = unsafe { group.slot(word) };
                // SAFETY: by the invariant, and the contract.
                unsafe { load(slot) }
            }
        }
    }

    /// Returns the group of a part, if it has one.
    pub(super) fn group(&self, part: usize) -> Option<Group> {
        // Relaxed: only writers call this, under their lock.
        match Part::of(self.parts[part].load(Ordering::Relaxed)) {
            Part::Block(_) => None,
            Part::Group(group) => Some(group),
        }
    }

    /// Returns the word of a part. It is the word of all its slots if the part has no group.
    pub(super) const fn part(&self, part: usize) -> &Cell {
        &self.parts[part]
    }

    /// Returns the numbers of all parts.
    pub(super) const fn parts() -> core::ops::Range<usize> {
        0..PARTS
    }

    /// Makes the group of a part without one, whose slots have the block of the part.
    pub(super) fn make_group(&self, part: usize) {
        let word = self.parts[part].load(Ordering::Relaxed);
        let slots = allocate(WIDTH, |_| Cell::new(word));
        let group =
            Group(slots.unwrap_or_else(|_| handle_alloc_error(Layout::new::<[Cell; WIDTH]>())));
        // Release: pairs with the Acquire in `block`.
        self.parts[part].store(Part::Group(group).word(), Ordering::Release);
    }

    /// Exchanges the contents of two tables, part by part. The other one is not shared.
    pub(super) fn exchange(&self, other: &mut Self) {
        for (one, other) in self.parts.iter().zip(&mut other.parts) {
            let word = other.load(Ordering::Relaxed);
            let old = one.load(Ordering::Relaxed);
            // Release: pairs with the Acquire in `block`.
            one.store(word, Ordering::Release);
            other.store(old, Ordering::Relaxed);
        }
    }
}

/// Returns the block that a word names.
///
/// # Safety
///
/// It is the word of a slot, of blocks with values of this type, and a pin, the lock of the writers
/// or the only reference to the table is held during `'p`.
#[inline(always)]
pub(super) unsafe fn load<'p, V>(cell: &Cell) -> Block<'p, V> {
    // Acquire: pairs with the Release in `store`; the contents of the block are visible.
    let word = cell.load(Ordering::Acquire);
    // SAFETY: words are never null.
    let block = unsafe { NonNull::new_unchecked(word) };
    // SAFETY: by the contract.
    unsafe { Block::from_ptr(block) }
}

/// Publishes a block in the slots of a word.
pub(super) fn store<V>(cell: &Cell, block: Block<'_, V>) {
    // Release: pairs with the Acquire in `load`; publishes the contents of the block.
    cell.store(block.as_ptr().as_ptr(), Ordering::Release);
}
