//! Growing and shrinking: one segment at a time.
//!
//! A split, in place:
//!
//! ```text
//!                group 0       group 1       group 2
//!     before   │ a B c D …   │ e F G h …   │ I j b …    upper case: the next hash bit is 1
//!     1        │ a · c · …   │ e · · h …   │ · j b …        b: not in its home, group 0
//!              │ B D …       │ F G …       │ I …            the new segment
//!     2        │ a b c · …   │ e · · h …   │ · j · …
//! ```
//!
//! 1. Of each group, the entries that are at home and have the bit move into the same group of the
//!    new segment.
//! 2. Displaced entries are placed again, from a group on that none has passed: those before are
//!    reinserted then, so nothing that has been placed has to move once more.
//!
//! All hashes are computed before anything moves: a hasher that panics leaves the table as it was.

use core::alloc::Layout;
use core::hint;

use super::directory::Directory;
use super::error::TryReserveError;
use super::policy;
use super::segment::Segment;
use super::tags::{GROUP, tag};
use super::{FLOODED, Table};
use crate::memory::{Allocator, Vec};

/// The home group of each entry of a segment, and which entries move to the other segment.
struct Plan {
    homes: [u8; policy::SLOTS],
    /// A bit for each slot of a group: half of the bits are set, at random, so a branch on each of
    /// them would be mispredicted.
    moves: [u16; policy::SLOTS / GROUP],
}

impl Plan {
    fn new() -> Self {
        Self { homes: [0; policy::SLOTS], moves: [0; policy::SLOTS / GROUP] }
    }

    #[inline]
    fn home(&self, slot: usize) -> usize {
        usize::from(self.homes[slot]) * GROUP
    }

    #[inline]
    fn moves(&self, slot: usize) -> bool {
        self.moves[slot / GROUP] >> (slot % GROUP) & 1 == 1
    }
}

/// Frees an unfinished copy of a segment if user code panics. The old segment still has the
/// entries.
struct Unfinished<'m, T, A: Allocator>(Segment<T>, usize, &'m A);

impl<T, A: Allocator> Drop for Unfinished<'_, T, A> {
    fn drop(&mut self) {
        free(self.0, self.1, self.2);
    }
}

/// Frees a segment that no directory has any more, or one whose table is being dropped.
#[allow(unsafe_code)]
pub(super) fn free<T>(segment: Segment<T>, mask: usize, memory: &impl Allocator) {
    // SAFETY: it is found nowhere, and the callers drop their pointers. M5.
    unsafe { segment.free(mask, memory) };
}

/// The mask of segments with that number of slots.
fn mask_for(slots: usize) -> usize {
    (slots.div_ceil(GROUP) - 1) * GROUP
}

impl<T, A: Allocator + Clone> Table<T, A> {
    /// Grows until the segment of this hash has room. Returns whether it has: if hashes do not
    /// separate the entries, it has none.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated and there is no free slot.
    #[cold]
    #[inline(never)]
    pub(super) fn grow_for(
        &mut self,
        hash: u64,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<bool, TryReserveError> {
        while self.directory.segment(hash).header(self.mask).is_at_limit() {
            match self.grow(hash, hasher) {
                Ok(true) => {}
                Ok(false) => return Ok(self.use_free_slot(hash)),
                Err(_) if self.use_free_slot(hash) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Raises the limit of a segment by one, if it has a slot to spare.
    fn use_free_slot(&mut self, hash: u64) -> bool {
        let segment = self.directory.segment(hash);
        let (slots, len) = (segment.header(self.mask).slots as usize, segment.len(self.mask));
        let has_slot = len < policy::most(slots);
        if has_slot {
            segment.set_len(self.mask, len, len + 1);
        }
        has_slot
    }

    /// Takes one step of growth for the segment of this hash. Returns whether there was one to
    /// take.
    fn grow(&mut self, hash: u64, hasher: &impl Fn(&T) -> u64) -> Result<bool, TryReserveError> {
        let segment = self.directory.segment(hash);
        let header = segment.header(self.mask);
        if self.segments == 0 {
            return self.rebuild(policy::FEWEST, hasher).map(|()| true);
        }
        if self.segments == 1 && self.mask >= 3 * GROUP && !self.is_varied(segment) {
            self.extras |= FLOODED;
        }
        if (header.slots as usize) < policy::SLOTS {
            return self.rebuild(2 * header.slots as usize, hasher).map(|()| true);
        }
        let len = segment.len(self.mask);
        if self.len < self.reserved && len < policy::FULLEST {
            segment.set_len(self.mask, len, policy::FULLEST);
            return Ok(true);
        }
        if !policy::can_split(self.len, header.depth) {
            self.extras |= FLOODED;
            return Ok(false);
        }
        if !self.is_varied(segment) {
            self.extras |= FLOODED;
        }
        let number = hash as usize & ((1 << header.depth) - 1);
        self.split(number, hasher).map(|()| true)
    }

    /// Whether the tags of a segment are as varied as tags of random hashes.
    fn is_varied(&self, segment: Segment<T>) -> bool {
        let mut slots = segment.slots(self.mask).map(|(_, slot)| segment.tag(slot));
        let Some(first) = slots.next() else { return true };
        policy::is_varied(slots.fold(0, |different, tag| different | (tag ^ first)))
    }

    /// Moves all entries of a table of one segment, or of none, to one of `slots`, which are
    /// enough.
    pub(super) fn rebuild(
        &mut self,
        slots: usize,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<(), TryReserveError> {
        let (old, old_mask, mask) = (self.only(), self.mask, mask_for(slots));
        let len = self.len - self.stash.len();
        let new = Segment::allocate(slots, 0, policy::limit(slots, 0), self.allocator())?;
        let guard = Unfinished(new, mask, self.stash.allocator());
        for (_, slot) in old.slots(old_mask) {
            let hash = hasher(old.get(slot));
            let to = new.claim(mask, (hash >> 28) as usize & mask);
            old.copy(slot, new, to);
            // The entry keeps its tag from the insertion, even if the hasher is inconsistent.
            new.set_tag(to, old.tag(slot));
        }
        if !self.directory.is_allocated() {
            // The one that it replaces has no block.
            self.directory = Directory::allocate(1, self.stash.allocator())?;
        }
        core::mem::forget(guard);
        new.set_len(mask, len, policy::limit(slots, 0));
        // The directory is larger if there was no memory to halve it.
        self.directory.set_all(0, 0, new);
        self.directory.halve(self.stash.allocator());
        (self.mask, self.segments) = (mask, 1);
        free(old, old_mask, self.allocator());
        Ok(())
    }

    /// Splits the segment of this number.
    fn split(&mut self, number: usize, hasher: &impl Fn(&T) -> u64) -> Result<(), TryReserveError> {
        let mask = self.mask;
        let low = self.directory.segment(number as u64);
        let depth = low.header(mask).depth;
        let plan = self.plan(low, depth, hasher);
        // T1, T2: no entry has passed a group with a free slot.
        let first = low.first_with_room(mask).unwrap_or(0);
        if depth == self.directory.depth() {
            self.directory.double(self.stash.allocator())?;
        }
        let high = Segment::allocate(policy::SLOTS, depth + 1, 0, self.allocator())?;
        let before = low.len(mask);
        let moved = self.move_from_home(low, high, &plan)
            + self.reinsert_displaced(low, high, &plan, first);
        let upper = number | 1 << depth;
        low.set_len(mask, before - moved, policy::limit(policy::SLOTS, number));
        high.set_len(mask, moved, policy::limit(policy::SLOTS, upper));
        low.header_mut(mask).depth = depth + 1;
        self.directory.set_all(upper, depth + 1, high);
        self.segments += 1;
        if !self.stash.is_empty() {
            // It may have held entries of this segment only.
            self.unstash_all();
        }
        Ok(())
    }

    /// Hashes all entries of a segment.
    fn plan(&self, segment: Segment<T>, depth: u32, hasher: &impl Fn(&T) -> u64) -> Plan {
        let mut plan = Plan::new();
        for offset in (0..=self.mask).step_by(GROUP) {
            let mut moves = 0;
            // The hashes of a group overlap.
            for slot in segment.group(offset).full() {
                let hash = hasher(segment.get(offset + slot));
                plan.homes[offset + slot] = (self.home(hash) / GROUP) as u8;
                moves |= ((hash >> depth & 1) as u16) << slot;
            }
            plan.moves[offset / GROUP] = moves;
        }
        plan
    }

    /// The first step of a split. Returns how many entries have moved.
    fn move_from_home(&self, low: Segment<T>, high: Segment<T>, plan: &Plan) -> usize {
        let mut moved = 0;
        for offset in (0..=self.mask).step_by(GROUP) {
            let mut moves = plan.moves[offset / GROUP] & !low.displaced(self.mask, offset);
            let mut to = offset;
            while moves > 0 {
                low.relocate(offset + moves.trailing_zeros() as usize, high, to);
                moves &= moves - 1;
                to += 1;
            }
            moved += to - offset;
        }
        moved
    }

    /// The second step of a split, which begins after the group `first`. Returns how many entries
    /// have moved to the upper segment.
    fn reinsert_displaced(
        &self,
        low: Segment<T>,
        high: Segment<T>,
        plan: &Plan,
        first: usize,
    ) -> usize {
        let mask = self.mask;
        let (mut moved, mut offset) = (0, first);
        loop {
            offset = self.next(offset);
            for slot in low.displaced_slots(mask, offset) {
                let home = plan.home(slot);
                if plan.moves(slot) {
                    let to = high.claim(mask, home);
                    low.mark_displaced(mask, slot, false);
                    low.relocate(slot, high, to);
                    moved += 1;
                } else {
                    self.reinsert_one(low, slot, home);
                }
            }
            if offset == first {
                return moved;
            }
        }
    }

    /// Moves a displaced entry to the first group with a free slot between its home and the one
    /// that it is in.
    fn reinsert_one(&self, segment: Segment<T>, slot: usize, home: usize) {
        let (group, mut offset) = (slot & !(GROUP - 1), home);
        while offset != group {
            let free = segment.group(offset).free();
            if !free.is_empty() {
                let to = offset + free.lowest();
                segment.mark_displaced(self.mask, slot, false);
                segment.mark_displaced(self.mask, to, offset != home);
                segment.relocate(slot, segment, to);
                return;
            }
            offset = self.next(offset);
        }
    }

    /// Moves entries of the stash to their segments, as far as those have room.
    fn unstash_all(&mut self) {
        let mut at = 0;
        while at < self.stash.len() {
            let segment = self.directory.segment(self.stash[at].0);
            if segment.header(self.mask).is_at_limit() {
                at += 1;
                continue;
            }
            let (hash, entry) = self.stash.swap_remove(at);
            segment.header_mut(self.mask).len += 1;
            let slot = segment.claim(self.mask, self.home(hash));
            segment.write_boxed(slot, tag(hash), entry, self.allocator());
        }
        self.free_stash();
    }

    /// Makes the table smaller after a removal from the segment of a hash, if it is due. Without
    /// memory for a smaller segment, the larger one stays.
    #[inline]
    pub(crate) fn shrink_around(&mut self, hash: u64, hasher: &impl Fn(&T) -> u64) {
        self.shrink_around_in(self.directory.segment(hash), hash, hasher);
    }

    /// [`Self::shrink_around`], given the segment of the hash.
    #[inline]
    pub(super) fn shrink_around_in(
        &mut self,
        segment: Segment<T>,
        hash: u64,
        hasher: &impl Fn(&T) -> u64,
    ) {
        let len = segment.len(self.mask);
        // Each sixteenth removal from a segment of 64 groups, each one from the smallest.
        if len & (self.mask >> 6) == 0 {
            self.shrink_sparse(hash, len, hasher);
        }
    }

    #[cold]
    #[inline(never)]
    fn shrink_sparse(&mut self, hash: u64, len: usize, hasher: &impl Fn(&T) -> u64) {
        if len < policy::EXAMINE_BELOW {
            self.shrink_step(hash as usize, hasher, policy::should_merge);
        }
    }

    /// Halves the only segment, or merges the segment at an index with its buddy, as often as that
    /// is due. Returns whether the table has become smaller.
    fn shrink_step(
        &mut self,
        index: usize,
        hasher: &impl Fn(&T) -> u64,
        should_merge: fn(usize, usize) -> bool,
    ) -> bool {
        let mut has_shrunk = false;
        while self.segments > 1
            && self.merge(index & (self.directory.len() - 1), hasher, should_merge)
        {
            has_shrunk = true;
        }
        while self.segments == 1 {
            let (slots, len) = (self.slots(), self.len - self.stash.len());
            let is_due = policy::should_halve(slots, len)
                && policy::slots_for(self.reserved).is_some_and(|needed| needed < slots);
            if !is_due || self.rebuild(slots / 2, hasher).is_err() {
                break;
            }
            has_shrunk = true;
        }
        has_shrunk
    }

    /// Merges the segment at an index with its other half, if both have the same depth and few
    /// entries.
    fn merge(
        &mut self,
        index: usize,
        hasher: &impl Fn(&T) -> u64,
        should_merge: fn(usize, usize) -> bool,
    ) -> bool {
        let mask = self.mask;
        let depth = self.directory.segment(index as u64).header(mask).depth;
        if depth == 0 || self.reserved > policy::RESERVED << (depth - 1) {
            return false;
        }
        let number = index & ((1 << (depth - 1)) - 1);
        let upper = number | 1 << (depth - 1);
        let (low, high) =
            (self.directory.segment(number as u64), self.directory.segment(upper as u64));
        let (len, moving) = (low.len(mask), high.len(mask));
        let is_due = low.header(mask).depth == depth
            && high.header(mask).depth == depth
            && should_merge(len + moving, number);
        if !is_due {
            return false;
        }
        let plan = self.plan(high, 0, hasher);
        for (_, slot) in high.slots(mask) {
            let to = low.claim(mask, plan.home(slot));
            high.copy(slot, low, to);
        }
        low.set_len(mask, len + moving, policy::limit(policy::SLOTS, number));
        low.header_mut(mask).depth = depth - 1;
        self.directory.set_all(upper, depth, low);
        self.segments -= 1;
        free(high, mask, self.allocator());
        if depth == self.directory.depth() {
            self.directory.halve(self.stash.allocator());
        }
        true
    }

    /// Makes the table as small as its policy has it, after many removals.
    pub(crate) fn shrink_all(&mut self, hasher: &impl Fn(&T) -> u64) {
        self.shrink_while(hasher, policy::should_merge);
    }

    fn shrink_while(
        &mut self,
        hasher: &impl Fn(&T) -> u64,
        should_merge: fn(usize, usize) -> bool,
    ) {
        let mut index = self.directory.len();
        while index > 0 && self.segments > 0 {
            index -= 1;
            if index < self.directory.len() {
                self.shrink_step(index, hasher, should_merge);
            }
        }
    }

    /// Makes the table as small as it can be for its entries and `reserved` ones.
    pub(crate) fn shrink_to(&mut self, reserved: usize, hasher: &impl Fn(&T) -> u64) {
        self.reserved = reserved;
        if self.len == 0 && reserved == 0 {
            drop(self.replace_by_empty());
            return;
        }
        let fits = |entries, number| entries <= policy::limit(policy::SLOTS, number);
        self.shrink_while(hasher, fits);
        if self.segments == 1 && self.stash.is_empty() {
            let slots = policy::slots_for(self.len.max(reserved));
            if slots.is_some_and(|slots| slots < self.slots()) {
                // Without memory the larger one stays.
                let _ = self.rebuild(slots.unwrap_or(policy::SLOTS), hasher);
            }
        }
    }

    /// Makes the table as small as it can be for its entries and `reserved` ones; never larger.
    pub(crate) fn shrink_to_at_most(&mut self, reserved: usize, hasher: &impl Fn(&T) -> u64) {
        self.shrink_to(reserved.min(self.reserved.max(self.capacity())), hasher);
    }

    /// Makes room for `additional` entries more.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. It is allocated in one piece first, so that an attempt that
    /// must fail takes nothing.
    pub(crate) fn reserve(
        &mut self,
        additional: usize,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<(), TryReserveError> {
        let wanted = self.len.checked_add(additional).ok_or(TryReserveError::OVERFLOW)?;
        // Of several segments some may not have split yet: such a segment receives twice the
        // entries of a segment that has split.
        let sure = if self.segments > 1 { self.capacity() / 2 } else { self.capacity() };
        if wanted <= sure || wanted == 0 {
            return Ok(());
        }
        self.probe_memory(wanted)?;
        if self.segments <= 1 {
            let slots = policy::slots_for(wanted).unwrap_or(policy::SLOTS);
            if slots > self.slots() {
                self.rebuild(slots, hasher)?;
            }
            if wanted <= self.capacity() {
                return Ok(());
            }
        }
        // One segment does not suffice.
        let depth = policy::depth_for(wanted).max(1);
        let mut number = 0;
        while number < self.directory.len() {
            // A segment splits until its depth suffices. The loop reaches its upper halves later.
            while self.directory.segment(number as u64).header(self.mask).depth < depth {
                self.split(self.number(number), hasher)?;
            }
            number += 1;
        }
        Ok(())
    }

    /// The number of the segment at an index.
    fn number(&self, index: usize) -> usize {
        let depth = self.directory.segment(index as u64).header(self.mask).depth;
        index & ((1 << depth) - 1)
    }

    /// Allocates as much memory as `wanted` entries take, and frees it at once.
    fn probe_memory(&self, wanted: usize) -> Result<(), TryReserveError> {
        let slots = wanted.checked_mul(4).ok_or(TryReserveError::OVERFLOW)? / 3;
        let bytes = slots
            .saturating_sub(self.slots())
            .checked_mul(Segment::<T>::bytes(policy::SLOTS) / policy::SLOTS)
            .ok_or(TryReserveError::OVERFLOW)?;
        if bytes > 64 << 10 {
            let layout = Layout::array::<u8>(bytes).map_err(|_| TryReserveError::OVERFLOW)?;
            let mut block: Vec<u8, &A> = Vec::new_in(self.allocator());
            block.try_reserve_exact(bytes).map_err(|_| TryReserveError::memory(layout))?;
            // The compiler may leave out an allocation that is not used, as if it succeeded.
            hint::black_box(block.as_ptr());
        }
        Ok(())
    }
}
