//! Segments: 16 lines with some hundred entries, and notes of the writers about each.
//!
//! ```text
//!     segment ──→ ┌──────┬──────┬──────┬─ … ─┬──────────────────┬──────────────────────────────┐
//!                 │ line │ line │ line │     │ notes, two bytes │ count, limit, depth, next    │
//!                 └──────┴──────┴──────┴─ … ─┴──────────────────┴──────────────────────────────┘
//!     note        12 bits of the mixed hash for the directory │ 4 bits: distance from home
//! ```
//!
//! An entry has a *home*: the line that its mixed hash selects. It is there, or in the first later
//! line that had a free slot, modulo the number of lines; or, if the segment is full of keys that a
//! split does not separate, in the *next link* of the segment, which is searched from the same line
//! on. Every line from its home to the one before its own has counted it in its *overflow count*,
//! and a search continues with the next line while that count is not zero.
//!
//! - **S1** An entry stays in its slot while it is in the segment. So a probe of consecutive lines
//!   cannot miss it.
//! - **S2** A segment that is split or merged is copied, and the copies are published; the old one
//!   is not written any more. So its readers find its entries of that time.
//! - **S3** An insertion writes the slot first and increments the overflow counts then; a removal
//!   clears the slot first and decrements then. So while no writer works, a count is never less
//!   than the number of overflowed entries; meanwhile a reader may miss what is being inserted.
//! - **S4** The note of an entry has its distance from its home, and the bits of its mixed hash
//!   that follow those in which the segment agrees, up to a multiple of 12. So a split hashes no
//!   key, except at these depths, and of entries with a greater distance than a note can store.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use core::array;
use core::iter::successors;
use core::mem::ManuallyDrop;
use core::ptr;
use core::sync::atomic::{AtomicU16, AtomicU32};

use super::line::{Line, SLOTS, tag};
use crate::concurrent::sync::{AtomicPtr, IS_CHECKED, Ordering};
use crate::invariant::{InvariantError, ensure};
use crate::raw::prefetch::prefetch;

/// Lines of a segment: a power of two.
pub(super) const LINES: usize = if IS_CHECKED { 2 } else { 16 };

/// Bits of the mixed hash in a note.
const WINDOW: u32 = if IS_CHECKED { 2 } else { 12 };

/// A greater distance of an entry from its home makes its segment split, if that is half full.
const REACH: usize = 8;

/// Returns the home of a mixed hash. The six bits below are those of the shard.
#[inline(always)]
fn home(mixed: u64) -> usize {
    (mixed >> 6) as usize % LINES
}

/// The part of an entry that a segment stores for the lock holder. Not an atomic of a checker, so
/// that the interleavings of readers are not multiplied.
struct Note(AtomicU16);

impl Note {
    /// This distance, or a greater one.
    const FAR: usize = 15;

    fn set(&self, bits: u16, distance: usize) {
        // Relaxed, here and below: for the lock holder.
        self.0.store(bits << 4 | distance.min(Self::FAR) as u16, Ordering::Relaxed);
    }

    fn bits(&self) -> u16 {
        self.0.load(Ordering::Relaxed) >> 4
    }

    /// Returns the distance of an entry from its home, if it is known.
    fn distance(&self) -> Option<usize> {
        let distance = usize::from(self.0.load(Ordering::Relaxed) & 15);
        (distance < Self::FAR).then_some(distance)
    }
}

/// An insertion: an entry and the parts of its mixed hash that a segment uses.
#[derive(Clone, Copy)]
pub(super) struct Item {
    id: u32,
    tag: u8,
    home: usize,
    /// The bits of a note in a segment of the depth for which this was made.
    bits: u16,
    /// The last bit before these: the half of a segment that was split.
    pub(super) is_high: bool,
}

impl Item {
    /// Returns the item of an entry for a segment of a depth.
    pub(super) fn new(mixed: u64, depth: u32, id: u32) -> Self {
        let is_high = depth > 0 && mixed << (depth - 1) >> 63 != 0;
        Self { id, tag: tag(mixed), home: home(mixed), bits: bits(mixed, depth), is_high }
    }
}

/// Returns the bits of a note in a segment of a depth.
fn bits(mixed: u64, depth: u32) -> u16 {
    (mixed << (depth / WINDOW * WINDOW) >> (64 - WINDOW)) as u16
}

/// A segment, or a further link of one.
#[repr(C, align(64))]
pub(super) struct Segment {
    lines: [Line; LINES],
    notes: [[Note; SLOTS]; LINES],
    /// The number of entries, those of further links included. For the lock holder.
    count: AtomicU32,
    /// The number of entries above which it should split; zero for a segment that stands for none.
    limit: u32,
    /// The number of bits of a mixed hash that all entries share.
    depth: u32,
    /// The next link, or null.
    next: AtomicPtr<Segment>,
}

/// The position of an entry in a segment.
#[derive(Clone, Copy)]
pub(super) struct SlotId<'p> {
    pub(super) id: u32,
    line: &'p Line,
    slot: usize,
    home: usize,
    /// Number of lines after its home.
    distance: usize,
}

impl SlotId<'_> {
    /// Replaces the entry by another one with the same key.
    pub(super) fn replace(self, id: u32) {
        self.line.replace(self.slot, id);
    }
}

/// A segment that is not published yet. Frees it.
pub(super) struct SegmentBox(*mut Segment);

impl Drop for SegmentBox {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, and not published.
        unsafe { free(self.0) };
    }
}

impl SegmentBox {
    /// Allocates a segment without entries.
    pub(super) fn new(depth: u32, limit: usize) -> Self {
        Self(Segment::boxed(depth, limit))
    }

    pub(super) fn segment(&self) -> &Segment {
        // SAFETY: it is freed when it is dropped.
        unsafe { &*self.0 }
    }

    pub(super) fn ptr(&self) -> *mut Segment {
        self.0
    }

    /// Returns the pointer, for publication.
    pub(super) fn into_ptr(self) -> *mut Segment {
        ManuallyDrop::new(self).0
    }
}

/// Frees a segment without its entries.
///
/// # Safety
///
/// It is not used any more, and is freed once.
pub(super) unsafe fn free(first: *mut Segment) {
    let mut link = first;
    while !link.is_null() {
        // SAFETY: allocated in `Segment::boxed`; by the contract.
        let segment = unsafe { Box::from_raw(link) };
        link = segment.next.load(Ordering::Relaxed);
    }
}

impl Segment {
    /// Slots of one link.
    pub(super) const SLOTS: usize = LINES * SLOTS;

    /// The load below which a segment is merged, in entries.
    pub(super) const LOW: usize = Self::SLOTS * 20 / 64;

    /// The maximum load of a merged segment, in entries.
    pub(super) const MERGED: usize = Self::SLOTS / 2;

    fn boxed(depth: u32, limit: usize) -> *mut Self {
        let lines = array::from_fn(|_| Line::new());
        let note = |_| Note(AtomicU16::new(0));
        let notes = array::from_fn(|_| array::from_fn(note));
        let next = AtomicPtr::new(ptr::null_mut());
        let (count, limit) = (AtomicU32::new(0), limit as u32);
        Box::into_raw(Box::new(Self { lines, notes, count, limit, depth, next }))
    }

    /// Returns the number of bits of a mixed hash that all entries share.
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns whether it stands for no segment: it never has entries.
    pub(super) fn is_nothing(&self) -> bool {
        self.limit == 0
    }

    /// Returns the number of entries, for the lock holder.
    pub(super) fn count(&self) -> usize {
        // Relaxed: for the lock holder.
        self.count.load(Ordering::Relaxed) as usize
    }

    fn add_to_count(&self, difference: i32) {
        let count = self.count.load(Ordering::Relaxed).wrapping_add_signed(difference);
        // Relaxed: for the lock holder.
        self.count.store(count, Ordering::Relaxed);
    }

    /// Returns the allocated bytes.
    pub(super) fn allocation_size(&self) -> usize {
        self.links().count() * size_of::<Self>()
    }

    /// Returns the next link.
    pub(super) fn next(&self) -> Option<&Self> {
        // Acquire: pairs with the Release in `add_link`.
        let next = self.next.load(Ordering::Acquire);
        // SAFETY: null, or a link that is freed with the first one.
        unsafe { next.as_ref() }
    }

    /// Iterates over all links.
    fn links(&self) -> impl Iterator<Item = &Self> {
        successors(Some(self), |link| link.next())
    }

    /// Returns the lines of this link.
    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Iterates over all lines from a home on, cyclically in each link: links and indices.
    fn around(&self, home: usize) -> impl Iterator<Item = (&Self, usize)> {
        let lines = move |link| (home..LINES).chain(0..home).map(move |line| (link, line));
        self.links().flat_map(lines)
    }

    /// Returns the line in which a search for this mixed hash begins.
    #[inline(always)]
    pub(super) fn home_line(&self, mixed: u64) -> &Line {
        &self.lines[home(mixed)]
    }

    /// Prefetches the cache lines that a writer needs for a mixed hash: the home, the notes of its
    /// entries, and the count.
    #[inline]
    pub(super) fn prefetch(&self, mixed: u64) {
        let home = home(mixed);
        prefetch(&raw const self.lines[home]);
        prefetch(&raw const self.notes[home]);
        prefetch(&raw const self.count);
    }

    /// Returns the first result of `is` for the ids of candidates for this mixed hash, in all lines
    /// from its home on.
    pub(super) fn find<R>(&self, mixed: u64, is: impl Fn(u32) -> Option<R>) -> Option<R> {
        for (link, line) in self.around(home(mixed)) {
            let line = &link.lines[line];
            let found = line.tags().matches(tag(mixed)).find_map(|slot| is(line.id(slot)));
            if found.is_some() || line.overflow() == 0 {
                return found;
            }
        }
        None
    }

    /// Returns the slot of the candidate for which `is` returns true.
    pub(super) fn locate(&self, mixed: u64, is: impl Fn(u32) -> bool) -> Option<SlotId<'_>> {
        let home = home(mixed);
        for (distance, (link, line)) in self.around(home).enumerate() {
            let line = &link.lines[line];
            let candidates = line.tags().matches(tag(mixed));
            let mut candidates = candidates.map(|slot| (slot, line.id(slot)));
            if let Some((slot, id)) = candidates.find(|&(_, id)| is(id)) {
                return Some(SlotId { id, line, slot, home, distance });
            }
            if line.overflow() == 0 {
                return None;
            }
        }
        None
    }

    /// Returns whether another entry with this mixed hash is acceptable without a split.
    pub(super) fn has_room(&self, mixed: u64) -> bool {
        let count = self.count();
        if count >= self.limit as usize {
            return false;
        }
        let is_near = || self.vacancy(home(mixed)).is_some_and(|found| found.distance <= REACH);
        2 * count < Self::SLOTS || is_near()
    }

    /// Returns the first free slot from a home on.
    fn vacancy(&self, home: usize) -> Option<Vacancy<'_>> {
        let free = |link: &Self, line: usize| link.lines[line].tags().free().next();
        if let Some(slot) = free(self, home) {
            return Some(Vacancy { link: self, line: home, slot, distance: 0 });
        }
        self.around(home).enumerate().find_map(|(distance, (link, line))| {
            free(link, line).map(|slot| Vacancy { link, line, slot, distance })
        })
    }

    /// Adds a link after the last one.
    #[cold]
    fn add_link(&self) {
        if let Some(last) = self.links().last() {
            // Release: pairs with the Acquire in `next`.
            last.next.store(Self::boxed(self.depth, Self::SLOTS), Ordering::Release);
        }
    }

    /// Inserts an entry, whose key must be absent. Adds a link if there is no free slot; returns
    /// the bytes that this has allocated.
    pub(super) fn insert(&self, item: &Item) -> usize {
        let mut added = 0;
        let vacancy = self.vacancy(item.home).or_else(|| {
            self.add_link();
            added = size_of::<Self>();
            self.vacancy(item.home)
        });
        let Vacancy { link, line, slot, distance } = vacancy.expect("a new link has free slots");
        // S4.
        link.notes[line][slot].set(item.bits, distance);
        // S3.
        link.lines[line].write(slot, item.tag, item.id);
        self.passed(item.home, distance).for_each(Line::increment_overflow);
        self.add_to_count(1);
        added
    }

    /// Iterates over the lines that an entry has overflowed.
    fn passed(&self, home: usize, distance: usize) -> impl Iterator<Item = &Line> {
        self.around(home).take(distance).map(|(link, line)| &link.lines[line])
    }

    /// Removes an entry.
    pub(super) fn remove(&self, slot_id: SlotId<'_>) {
        // S3.
        slot_id.line.free(slot_id.slot);
        self.passed(slot_id.home, slot_id.distance).for_each(Line::decrement_overflow);
        self.add_to_count(-1);
    }

    /// Iterates over the ids of all entries.
    pub(super) fn ids(&self) -> impl Iterator<Item = u32> {
        let lines = self.links().flat_map(|link| &link.lines);
        lines.flat_map(|line| line.tags().full().map(|slot| line.id(slot)))
    }

    /// Iterates over the entries, as items for a segment of a depth: that of this one, or one more
    /// or less. Hashes only those whose notes do not suffice.
    pub(super) fn items(
        &self,
        depth: u32,
        mixed: impl Fn(u32) -> u64,
    ) -> impl Iterator<Item = Item> {
        let has_bits = depth / WINDOW == self.depth / WINDOW;
        // The position of the bit in a note that distinguishes the halves of this segment.
        let half = WINDOW - 1 - self.depth % WINDOW;
        let item = move |link: &Self, line: usize, slot: usize, tag| {
            let (id, note) = (link.lines[line].id(slot), &link.notes[line][slot]);
            match note.distance().filter(|_| has_bits) {
                Some(distance) => {
                    // The number of lines is a power of two.
                    let (home, bits) = (line.wrapping_sub(distance) % LINES, note.bits());
                    Item { id, tag, home, bits, is_high: bits >> half & 1 != 0 }
                }
                None => Item::new(mixed(id), depth, id),
            }
        };
        let lines = self.around(0).flat_map(|(link, line)| {
            let tags = link.lines[line].tags();
            tags.full().map(move |slot| (link, line, slot, tags.tag(slot)))
        });
        lines.map(move |(link, line, slot, tag)| item(link, line, slot, tag))
    }

    /// Checks the entries, whose mixed hashes `mixed` returns, and the counts.
    pub(super) fn validate(&self, mixed: impl Fn(u32) -> u64) -> Result<(), InvariantError> {
        let mut overflow = alloc::vec![0_usize; self.links().count() * LINES];
        let links = || self.links().enumerate();
        for (nth, link) in links() {
            for (line, tags) in link.lines.iter().map(Line::tags).enumerate() {
                for slot in tags.full() {
                    let mixed = mixed(link.lines[line].id(slot));
                    let home = home(mixed);
                    let distance = nth * LINES + (line + LINES - home) % LINES;
                    let passed = self.around(home).take(distance).enumerate();
                    passed.for_each(|(at, (_, line))| overflow[at / LINES * LINES + line] += 1);
                    ensure(tags.tag(slot) == tag(mixed), || "a tag is not that of its entry")?;
                    let note = &link.notes[line][slot];
                    let is_noted = note.bits() == bits(mixed, self.depth)
                        && note.distance() == (distance < Note::FAR).then_some(distance);
                    ensure(is_noted, || "a note is not that of its entry")?;
                }
            }
        }
        let counted = links().flat_map(|(_, link)| &link.lines).map(Line::overflow);
        let is_enough = counted
            .zip(&overflow)
            .all(|(counted, passed)| usize::from(counted) >= *passed.min(&255));
        ensure(is_enough, || "an overflow count is too low")?;
        let is_counted =
            self.ids().count() == self.count() && (self.count() == 0 || self.limit > 0);
        ensure(is_counted, || "a segment has miscounted its entries")
    }
}

/// A free slot for an entry.
struct Vacancy<'p> {
    link: &'p Segment,
    line: usize,
    slot: usize,
    /// Number of lines after its home.
    distance: usize,
}
