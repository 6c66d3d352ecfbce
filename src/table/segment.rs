//! The memory of a segment: entries, tags, header and bits of displaced entries in one block.
//!
//! ```text
//!     │ … entry 1 │ entry 0 │ 16 tags │ 16 tags │ … │ len, limit, slots, depth │ displaced │
//!     ◄──────── downwards   ▲ tags, upwards              a bit for each slot ──┘
//!                           └ a Segment points here: aligned to 64 bytes from 4 groups on
//! ```
//!
//! This file has no policy and runs no code of users but `T`'s `Drop`, in functions named for it. A
//! [`Segment`] is a pointer that is copied freely; the [`Table`](super::Table) upholds:
//!
//! - **M1** A segment of a table is allocated, or is [`Segment::EMPTY`], to which nothing is
//!   written: it has no entry and is at its limit.
//! - **M2** Offsets are multiples of 16 and at most the mask of the table, with which the segment
//!   has been allocated; slots are below the number of tags. A debug build checks both.
//! - **M3** A slot has an entry if and only if its tag is not [`FREE`]; only the lowest `slots`
//!   slots have.
//! - **M4** References to entries live no longer than a borrow of the table.
//! - **M5** The allocator that a method receives is the allocator of the table, or a clone of it:
//!   blocks and boxes are freed by the allocator that they are from.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use super::error::TryReserveError;
use super::tags::{FREE, GROUP, Group, Mask};
use crate::memory::{Allocator, Box};
use crate::raw::prefetch::prefetch;

/// Bytes of an entry in a slot, at most. Larger ones are in boxes.
const INLINE: usize = 64;

/// An uninitialised box for an entry; none where entries are in slots.
pub(crate) type UninitBox<T, A> = Option<Box<MaybeUninit<T>, A>>;

/// A box without a value.
pub(crate) fn uninit_box<T, A: Allocator + Clone>(
    memory: &A,
) -> Result<Box<MaybeUninit<T>, A>, TryReserveError> {
    // `Box` would not allocate values without a size, and yet deallocate them.
    let layout = Layout::new::<T>();
    let block = memory.allocate(layout).map_err(|_| TryReserveError::memory(layout))?;
    // SAFETY: the block has the layout, and a value may be uninitialised.
    Ok(unsafe { Box::from_raw_in(block.cast().as_ptr(), memory.clone()) })
}

/// An entry in a box, without the allocator, which the table has: M5. The box is not freed on
/// drop.
pub(crate) struct Boxed<T>(NonNull<T>);

impl<T> Boxed<T> {
    /// The entry of a box.
    #[inline]
    pub(crate) fn new<A: Allocator>(entry: Box<T, A>) -> Self {
        Self(Box::into_non_null(entry).0)
    }

    /// Frees the box.
    #[inline]
    pub(crate) fn into_entry(self, memory: &(impl Allocator + Clone)) -> T {
        // SAFETY: the pointer comes from a box; M5.
        let boxed = unsafe { Box::from_raw_in(self.0.as_ptr(), memory.clone()) };
        Box::into_inner(boxed)
    }
}

impl<T> Deref for Boxed<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: it points to an entry, and is the only pointer to it.
        unsafe { self.0.as_ref() }
    }
}

impl<T> DerefMut for Boxed<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: it points to an entry, and is the only pointer to it.
        unsafe { self.0.as_mut() }
    }
}

/// The counts of a segment.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Header {
    /// Entries.
    pub(crate) len: u32,
    /// The number of entries at which the segment grows or splits before the next insertion.
    pub(crate) limit: u32,
    /// Slots that entries may be in.
    pub(crate) slots: u32,
    /// Low bits of a hash that all entries of the segment share.
    pub(crate) depth: u32,
}

impl Header {
    /// Whether the segment has to grow or split before an insertion.
    #[inline]
    pub(crate) fn is_at_limit(self) -> bool {
        self.len >= self.limit
    }
}

/// The segment of tables without memory.
#[repr(C, align(64))]
struct Nothing {
    tags: [u8; GROUP],
    header: Header,
    displaced: [u16; 1],
}

static NOTHING: Nothing = Nothing {
    tags: [FREE; GROUP],
    header: Header { len: 0, limit: 0, slots: 0, depth: 0 },
    displaced: [0],
};

/// A segment: a pointer to its tags.
#[repr(transparent)]
pub(crate) struct Segment<T> {
    tags: NonNull<u8>,
    /// Covariant, and neither `Send` nor `Sync`.
    entries: PhantomData<*const T>,
}

impl<T> Clone for Segment<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Segment<T> {}

impl<T> PartialEq for Segment<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.tags == other.tags
    }
}

impl<T> Segment<T> {
    /// Whether entries are in their slots.
    pub(crate) const IS_INLINE: bool = size_of::<T>() <= INLINE && align_of::<T>() <= INLINE;

    /// Bytes of a slot.
    const SLOT: usize = if Self::IS_INLINE { size_of::<T>() } else { size_of::<Boxed<T>>() };

    /// Bytes of the box of an entry.
    pub(crate) const BOX: usize = if Self::IS_INLINE { 0 } else { size_of::<T>() };

    /// Whether an entry may be in two cache lines.
    const IS_SPLIT: bool = Self::SLOT > 0 && 64 % Self::SLOT > 0;

    /// The segment of tables without memory, with a mask of 0.
    pub(crate) const EMPTY: Self = {
        // SAFETY: a static has an address.
        let tags = unsafe { NonNull::new_unchecked((&raw const NOTHING).cast::<u8>().cast_mut()) };
        Self { tags, entries: PhantomData }
    };

    /// The layout of a segment, and the offset of its tags.
    fn layout(slots: usize) -> Result<(Layout, usize), TryReserveError> {
        let groups = slots.div_ceil(GROUP);
        let align = (groups * GROUP).min(64);
        let entry_align = if Self::IS_INLINE { align_of::<T>() } else { align_of::<Boxed<T>>() };
        let align = align.max(entry_align);
        let entries = (slots * Self::SLOT).next_multiple_of(align);
        let bytes = entries + groups * (GROUP + size_of::<u16>()) + size_of::<Header>();
        let layout = Layout::from_size_align(bytes, align);
        Ok((layout.map_err(|_| TryReserveError::OVERFLOW)?, entries))
    }

    /// Bytes of a segment with `slots`.
    pub(crate) fn bytes(slots: usize) -> usize {
        Self::layout(slots).map_or(usize::MAX, |(layout, _)| layout.size())
    }

    /// Allocates a segment without entries, for a table with a mask for `slots`.
    pub(crate) fn allocate(
        slots: usize,
        depth: u32,
        limit: usize,
        memory: &impl Allocator,
    ) -> Result<Self, TryReserveError> {
        let (layout, entries) = Self::layout(slots)?;
        let block = memory.allocate(layout).map_err(|_| TryReserveError::memory(layout))?;
        let block: NonNull<u8> = block.cast();
        // SAFETY: the tags are in the block.
        let tags = unsafe { block.add(entries) };
        let segment = Self { tags, entries: PhantomData };
        let mask = (slots.div_ceil(GROUP) - 1) * GROUP;
        segment.clear_tags(mask);
        let header = Header { len: 0, limit: limit as u32, slots: slots as u32, depth };
        // SAFETY: the header is in the block, and aligned as groups are.
        unsafe { segment.header_at(mask).write(header) };
        segment.clear_displaced(mask);
        Ok(segment)
    }

    /// Frees the block. Entries are not dropped, and boxes leak.
    ///
    /// # Safety
    ///
    /// The segment is not used any more. `memory` is the allocator of its table (M5).
    pub(crate) unsafe fn free(self, mask: usize, memory: &impl Allocator) {
        if self == Self::EMPTY {
            return;
        }
        let slots = self.header(mask).slots as usize;
        let Ok((layout, entries)) = Self::layout(slots) else { return };
        // SAFETY: the entries are below the tags in the block.
        let block = unsafe { self.tags.sub(entries) };
        // SAFETY: allocated with this layout; M1, M5.
        unsafe { memory.deallocate(block, layout) };
    }

    /// The 16 tags at an offset.
    #[inline]
    pub(crate) fn group(self, offset: usize) -> Group {
        debug_assert!(offset % GROUP == 0, "M2");
        // SAFETY: M2.
        let tags = unsafe { self.tags.add(offset) };
        // SAFETY: M2; the tags are aligned to 16 bytes and initialised.
        unsafe { Group::load(tags.as_ptr()) }
    }

    /// The tag of a slot.
    #[inline]
    pub(crate) fn tag(self, slot: usize) -> u8 {
        // SAFETY: M2.
        let tag = unsafe { self.tags.add(slot) };
        // SAFETY: the tags are initialised.
        unsafe { tag.read() }
    }

    /// Sets the tag of a slot.
    #[inline]
    pub(crate) fn set_tag(self, slot: usize, tag: u8) {
        debug_assert!(self != Self::EMPTY, "M1");
        // SAFETY: M2.
        let place = unsafe { self.tags.add(slot) };
        // SAFETY: M1, M2.
        unsafe { place.write(tag) };
    }

    /// The address of a slot.
    #[inline]
    fn slot(self, slot: usize) -> NonNull<u8> {
        // In elements of a type, not bytes: the address takes fewer instructions then.
        if Self::IS_INLINE {
            // SAFETY: M2: slots are below the tags, which are aligned for entries.
            return unsafe { self.tags.cast::<T>().sub(slot + 1) }.cast();
        }
        // SAFETY: as above.
        unsafe { self.tags.cast::<Boxed<T>>().sub(slot + 1) }.cast()
    }

    /// The entry in an occupied slot.
    #[inline]
    pub(crate) fn entry(self, slot: usize) -> NonNull<T> {
        let place = self.slot(slot);
        if Self::IS_INLINE {
            return place.cast();
        }
        // SAFETY: M3: the slot has a pointer.
        unsafe { place.cast::<NonNull<T>>().read() }
    }

    /// Returns a shared reference to the entry in an occupied slot.
    #[inline]
    pub(crate) fn get<'t>(self, slot: usize) -> &'t T {
        // SAFETY: M3; M4.
        unsafe { self.entry(slot).as_ref() }
    }

    /// Returns a mutable reference to the entry in an occupied slot.
    #[inline]
    pub(crate) fn get_mut<'t>(self, slot: usize) -> &'t mut T {
        // SAFETY: M3; M4: the table is borrowed mutably, and no slot is visited twice in a borrow.
        unsafe { self.entry(slot).as_mut() }
    }

    /// Writes an entry and its tag to a free slot.
    #[inline]
    pub(crate) fn write<A: Allocator>(
        self,
        slot: usize,
        tag: u8,
        uninit: UninitBox<T, A>,
        entry: T,
    ) {
        let place = self.slot(slot);
        if Self::IS_INLINE {
            // SAFETY: M1, M2: the slot is in the block, which is aligned for entries.
            unsafe { place.cast::<T>().write(entry) };
        } else if let Some(uninit) = uninit {
            let boxed = Boxed::new(Box::write(uninit, entry));
            // SAFETY: M1, M2.
            unsafe { place.cast::<Boxed<T>>().write(boxed) };
        }
        self.set_tag(slot, tag);
    }

    /// Writes a boxed entry and its tag to a free slot. Allocates nothing.
    pub(crate) fn write_boxed<A: Allocator + Clone>(
        self,
        slot: usize,
        tag: u8,
        entry: Boxed<T>,
        memory: &A,
    ) {
        if Self::IS_INLINE {
            self.write::<A>(slot, tag, None, entry.into_entry(memory));
            return;
        }
        // SAFETY: M1, M2.
        unsafe { self.slot(slot).cast::<Boxed<T>>().write(entry) };
        self.set_tag(slot, tag);
    }

    /// Removes the entry from an occupied slot, and returns it.
    #[inline]
    pub(crate) fn take(self, slot: usize, memory: &(impl Allocator + Clone)) -> T {
        let entry = self.entry(slot);
        self.set_tag(slot, FREE);
        if Self::IS_INLINE {
            // SAFETY: M3: the entry existed, and its tag is free now.
            return unsafe { entry.read() };
        }
        // M3: written from a box, and taken once.
        Boxed(entry).into_entry(memory)
    }

    /// Moves an entry and its tag to a free slot.
    #[inline]
    pub(crate) fn relocate(self, slot: usize, target: Self, to: usize) {
        self.copy(slot, target, to);
        self.set_tag(slot, FREE);
    }

    /// Copies an entry and its tag to a free slot. The caller uses only one of both copies
    /// afterwards.
    #[inline]
    pub(crate) fn copy(self, slot: usize, target: Self, to: usize) {
        let (from, place) = (self.slot(slot), target.slot(to));
        // SAFETY: M2; the slots are different ones, as one has an entry and one has none.
        unsafe { place.copy_from_nonoverlapping(from, Self::SLOT) };
        target.set_tag(to, self.tag(slot));
    }

    /// Exchanges two entries and their tags.
    pub(crate) fn swap(self, one: usize, other: usize) {
        debug_assert!(one != other, "the slots are different ones");
        let (a, b) = (self.slot(one).as_ptr(), self.slot(other).as_ptr());
        // SAFETY: M1, M2: two different slots of the block, each of that number of bytes.
        unsafe { core::ptr::swap_nonoverlapping(a, b, Self::SLOT) };
        let (tag_of_one, tag_of_other) = (self.tag(one), self.tag(other));
        self.set_tag(one, tag_of_other);
        self.set_tag(other, tag_of_one);
    }

    #[inline]
    fn header_at(self, mask: usize) -> NonNull<Header> {
        // SAFETY: M2: the header follows the tags.
        unsafe { self.tags.add(mask + GROUP) }.cast()
    }

    #[inline]
    pub(crate) fn header(self, mask: usize) -> Header {
        // SAFETY: written when it was allocated.
        unsafe { self.header_at(mask).read() }
    }

    /// A mutable reference to the header, for the time of one statement.
    #[inline]
    pub(crate) fn header_mut<'t>(self, mask: usize) -> &'t mut Header {
        debug_assert!(self != Self::EMPTY, "M1");
        // SAFETY: M1; M4.
        unsafe { self.header_at(mask).as_mut() }
    }

    /// Number of entries.
    #[inline]
    pub(crate) fn len(self, mask: usize) -> usize {
        self.header(mask).len as usize
    }

    /// Sets the number of entries and how many there may be.
    pub(crate) fn set_len(self, mask: usize, len: usize, limit: usize) {
        let header = self.header_mut(mask);
        (header.len, header.limit) = (len as u32, limit.max(len) as u32);
    }

    #[inline]
    fn displaced_at(self, mask: usize, offset: usize) -> NonNull<u16> {
        debug_assert!(offset <= mask, "M2");
        let at = mask + GROUP + size_of::<Header>() + offset / GROUP * size_of::<u16>();
        // SAFETY: M2: the bits follow the header.
        unsafe { self.tags.add(at) }.cast()
    }

    /// The slots of the group at an offset whose entries have another home group, a bit for each.
    #[inline]
    pub(crate) fn displaced(self, mask: usize, offset: usize) -> u16 {
        // SAFETY: initialised when it was allocated.
        unsafe { self.displaced_at(mask, offset).read() }
    }

    /// The slots of a group whose entries are marked as displaced. A free slot may be marked, too,
    /// if a hasher is inconsistent: see T2.
    pub(crate) fn displaced_slots(self, mask: usize, offset: usize) -> impl Iterator<Item = usize> {
        let mut bits = self.displaced(mask, offset);
        let marked = core::iter::from_fn(move || {
            let slot = offset + bits.trailing_zeros() as usize;
            let is_any = bits > 0;
            bits &= bits.wrapping_sub(1);
            is_any.then_some(slot)
        });
        marked.filter(move |slot| self.tag(*slot) != FREE)
    }

    #[inline]
    fn set_displaced(self, mask: usize, offset: usize, bits: u16) {
        debug_assert!(self != Self::EMPTY, "M1");
        // SAFETY: M1, M2.
        unsafe { self.displaced_at(mask, offset).write(bits) };
    }

    /// Whether the entry in a slot has another home group.
    #[inline]
    pub(crate) fn is_displaced(self, mask: usize, slot: usize) -> bool {
        self.displaced(mask, slot & !(GROUP - 1)) >> (slot % GROUP) & 1 == 1
    }

    /// Sets whether the entry in a slot has another home group.
    #[inline]
    pub(crate) fn mark_displaced(self, mask: usize, slot: usize, is_displaced: bool) {
        let (offset, bit) = (slot & !(GROUP - 1), 1 << (slot % GROUP));
        let others = self.displaced(mask, offset) & !bit;
        self.set_displaced(mask, offset, if is_displaced { others | bit } else { others });
    }

    pub(crate) fn clear_displaced(self, mask: usize) {
        let bits = self.displaced_at(mask, 0);
        // SAFETY: M2: there is a word for each group.
        unsafe { bits.write_bytes(0, mask / GROUP + 1) };
    }

    /// Prefetches the tags at an offset.
    #[inline]
    pub(crate) fn prefetch_group(self, offset: usize) {
        prefetch(self.tags.as_ptr().wrapping_add(offset));
    }

    /// Prefetches the cache lines of a slot.
    #[inline]
    pub(crate) fn prefetch_slot(self, slot: usize) {
        let first = self.slot(slot).as_ptr();
        prefetch(first);
        if Self::IS_SPLIT {
            prefetch(first.wrapping_add(Self::SLOT - 1));
        }
    }

    /// Whether the slot exists and has an entry.
    #[inline]
    pub(crate) fn is_full(self, mask: usize, slot: usize) -> bool {
        slot < mask + GROUP && self.tag(slot) != FREE
    }

    /// Takes a free slot for an entry: in its home group, or in the next one that has some. The
    /// tag is the caller's to write.
    #[inline]
    pub(crate) fn claim(self, mask: usize, home: usize) -> usize {
        let slot = self.first_free(mask, home);
        if slot & !(GROUP - 1) != home {
            self.mark_displaced(mask, slot, true);
        }
        slot
    }

    /// The first free slot from a group on.
    #[inline]
    pub(crate) fn first_free(self, mask: usize, mut offset: usize) -> usize {
        loop {
            let free = self.group(offset).free();
            if !free.is_empty() {
                return offset + free.lowest();
            }
            offset = (offset + GROUP) & mask;
        }
    }

    /// Whether no slot of a group is free.
    #[inline]
    pub(crate) fn is_group_full(self, offset: usize) -> bool {
        self.group(offset).free().is_empty()
    }

    /// The offset of the first group with a free slot; none if T1 does not hold.
    pub(crate) fn first_with_room(self, mask: usize) -> Option<usize> {
        (0..=mask).step_by(GROUP).find(|&offset| !self.is_group_full(offset))
    }

    /// The occupied slots, in their order.
    #[inline]
    pub(crate) fn slots(self, mask: usize) -> Slots<T> {
        Slots { segment: self, next: 0, end: mask + GROUP, bits: Mask::NONE }
    }

    /// Drops the entry in an occupied slot.
    pub(crate) fn drop_entry(self, slot: usize, memory: &(impl Allocator + Clone)) {
        if !Self::IS_INLINE {
            drop(self.take(slot, memory));
            return;
        }
        self.set_tag(slot, FREE);
        // SAFETY: M3: the entry existed, and its tag is free now.
        unsafe { self.slot(slot).cast::<T>().drop_in_place() };
    }

    /// Whether dropping an entry does anything.
    pub(crate) const NEEDS_DROP: bool = core::mem::needs_drop::<T>() || !Self::IS_INLINE;

    /// Marks the slots as displaced that are so in another segment.
    pub(crate) fn copy_displaced(self, other: Self, mask: usize) {
        for offset in (0..=mask).step_by(GROUP) {
            self.set_displaced(mask, offset, other.displaced(mask, offset));
        }
    }

    /// Sets all tags to [`FREE`]. Entries are not dropped, and boxes leak.
    pub(crate) fn clear_tags(self, mask: usize) {
        debug_assert!(self != Self::EMPTY, "M1");
        // SAFETY: M1, M2: the block has that number of tags.
        unsafe { self.tags.write_bytes(FREE, mask + GROUP) };
    }
}

/// The occupied slots of a segment, in their order.
pub(crate) struct Slots<T> {
    segment: Segment<T>,
    /// The next group.
    next: usize,
    end: usize,
    /// The rest of the previous group.
    bits: Mask,
}

impl<T> Clone for Slots<T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<T> Slots<T> {
    /// No slot.
    pub(crate) const NONE: Self =
        Self { segment: Segment::EMPTY, next: 0, end: 0, bits: Mask::NONE };
}

impl<T> Iterator for Slots<T> {
    type Item = (Segment<T>, usize);

    #[inline]
    fn next(&mut self) -> Option<(Segment<T>, usize)> {
        loop {
            if let Some(slot) = self.bits.next() {
                return Some((self.segment, self.next - GROUP + slot));
            }
            if self.next == self.end {
                return None;
            }
            self.bits = self.segment.group(self.next).full();
            self.next += GROUP;
        }
    }
}
