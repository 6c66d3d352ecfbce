//! Lists of slots in chunks of a cache line: a slot is in at most one list.
//!
//! ```text
//!     lists    │ top 7, 2 slots │ empty │ top 4, 15 slots │ …
//!                    │                        ▼
//!                    ▼                   chunk 4  │ 15 slots │ below: – │
//!              chunk 7  │ 9 │ 3 │ … │ below ──┐
//!                                             ▼
//!                                        chunk 2  │ 15 slots │ below: – │
//!
//!     places   slot 3: chunk 7, index 1                    where its entry is, if it is in a list
//! ```
//!
//! A list is a stack of chunks, of which all but the top one are full. A slot is appended at the
//! top, and removed from anywhere: the last slot of the list takes its place. So there are no
//! vacancies, and no entries that are out of date. The order of a list has no meaning.
//!
//! Slots of a linked list are read one after another, each by the link of another slot, which is a
//! cache miss. Here a cache line has 15 of them, so that the misses of their flows overlap: with
//! [`IntrusiveLists`](crate::raw::intrusive_list) in their place, the expiry of a million flows
//! that were seen in another order than they began takes twice as long.
//!
//! Invariants: the place of a slot in a list is the entry with that slot; a chunk is in a list, not
//! empty, or in the list of free ones.
//!
//! Cost: all operations are O(1). A slot takes 4 bytes, and 4.3 in a list, and a list 4 bytes, and
//! one chunk at most that is not full. An insertion into the list that was used last, and a removal
//! from the top, miss only the place of the slot; other removals miss the chunk, and the place of
//! the slot that moves.

use super::waiting::Places;
use crate::invariant::{InvariantError, ensure};
use crate::memory::{AllocError, Allocator, Global, Vec};
use crate::raw::chunked_vec::ChunkedVec;

/// Slots of a chunk.
const SLOTS: u32 = 15;

/// Places of a chunk: 15, and one that is not used.
const PLACES: u32 = 16;

/// No chunk: there are fewer, as the place of a slot has 32 bits.
const NONE: u32 = u32::MAX / PLACES;

/// log2 of the chunks that are allocated together, of 4096 bytes.
const BITS: u32 = 6;

/// Slots of a list, in a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Chunk {
    slots: [u32; SLOTS as usize],
    /// The next chunk of the list, which is full, or of the free ones, or [`NONE`].
    below: u32,
}

/// The top of a list: the first place behind its last slot. An empty list has the first place of
/// chunk [`NONE`] as its top.
#[derive(Clone, Copy, Debug)]
struct Top(u32);

impl Top {
    const EMPTY: Self = Self::new(NONE, 0);

    /// The top of a list with `len` slots in its last chunk.
    #[inline]
    const fn new(chunk: u32, len: u32) -> Self {
        Self(chunk * PLACES + len)
    }

    /// The top of a list that has this chunk and those below it, all of them full.
    #[inline]
    const fn full(chunk: u32) -> Self {
        if chunk == NONE { Self::EMPTY } else { Self::new(chunk, SLOTS) }
    }

    /// The last chunk, or [`NONE`] if the list is empty.
    #[inline]
    const fn chunk(self) -> u32 {
        self.0 / PLACES
    }

    /// Slots in the last chunk: 1 to 15, or 0 if the list is empty.
    #[inline]
    const fn len(self) -> u32 {
        self.0 % PLACES
    }
}

/// A set of lists over the same slots.
#[derive(Clone, Debug)]
pub(crate) struct ChunkLists<A: Allocator + Clone = Global> {
    /// Empty until there is a slot.
    tops: Vec<Top, A>,
    lists: usize,
    chunks: ChunkedVec<Chunk, BITS, A>,
    /// The first free chunk, or [`NONE`].
    free: u32,
    /// By slot: the place of its entry. Without meaning here if the slot is in no list.
    pub(crate) places: Places<A>,
}

impl ChunkLists {
    /// Bytes for the places of 1024 slots, which are allocated together.
    pub(crate) const GROWTH: usize = <ChunkedVec<u32>>::GROWTH;

    /// An upper bound of the bytes of the chunks of `lists` lists, with `slots` slots in all.
    pub(crate) const fn chunk_bytes(lists: usize, slots: usize) -> usize {
        let lists = if lists < slots { lists } else { slots };
        let chunks = slots / SLOTS as usize + lists;
        let groups = chunks.div_ceil(1 << BITS);
        // The list of groups has four at first, and doubles beside the former one.
        groups * <ChunkedVec<Chunk, BITS>>::GROWTH + (4 * groups + 4) * size_of::<usize>()
    }
}

impl<A: Allocator + Clone> ChunkLists<A> {
    /// Creates empty lists with the indices `0..lists` of at most `limit` slots, whose memory will
    /// be from `memory`, without allocating.
    pub(crate) fn new_in(lists: usize, limit: usize, memory: A) -> Self {
        let chunks = limit.saturating_add(limit / SLOTS as usize + 1);
        Self {
            tops: Vec::new_in(memory.clone()),
            lists,
            chunks: ChunkedVec::new_in(chunks, memory.clone()),
            free: NONE,
            places: ChunkedVec::new_in(limit, memory),
        }
    }

    /// Allocates memory for slots up to this one, so that [covering](Self::cover) it does not
    /// allocate.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. Some may be.
    pub(crate) fn try_reserve(&mut self, slot: u32) -> Result<(), AllocError> {
        let missing = self.lists - self.tops.len();
        self.tops.try_reserve_exact(missing).map_err(|_| AllocError)?;
        self.places.try_reserve(slot)
    }

    /// Allocates the place of a slot.
    pub(crate) fn cover(&mut self, slot: u32) {
        if self.tops.is_empty() {
            self.tops.reserve_exact(self.lists);
            self.tops.resize(self.lists, Top::EMPTY);
        }
        self.places.cover(slot, 0);
    }

    /// Whether a list has no slots.
    #[inline]
    pub(crate) fn is_empty(&self, list: usize) -> bool {
        self.tops.get(list).is_none_or(|top| top.len() == 0)
    }

    /// Adds a slot, which is [covered](Self::cover) and in no list, to a list. Returns whether
    /// there is memory for it.
    #[inline]
    pub(crate) fn insert(&mut self, list: usize, slot: u32) -> bool {
        let mut top = self.tops[list];
        if top.len() == 0 || top.len() == SLOTS {
            let Some(chunk) = self.take_chunk(top.chunk()) else { return false };
            top = Top::new(chunk, 0);
        }
        self.chunks[top.chunk()].slots[top.len() as usize] = slot;
        self.places[slot] = top.0;
        self.tops[list] = Top(top.0 + 1);
        true
    }

    /// Returns a free chunk, linked to the chunk `below`, if there is memory for it.
    #[inline(never)]
    fn take_chunk(&mut self, below: u32) -> Option<u32> {
        let chunk = self.free;
        if chunk == NONE {
            self.chunks.try_reserve(self.chunks.len()).ok()?;
            return Some(self.chunks.push(Chunk { slots: [0; SLOTS as usize], below }));
        }
        self.free = core::mem::replace(&mut self.chunks[chunk].below, below);
        Some(chunk)
    }

    /// Removes a slot from a list, in which it is.
    #[inline]
    pub(crate) fn remove(&mut self, list: usize, slot: u32) {
        let top = &mut self.tops[list];
        let last = Top(top.0 - 1);
        let is_last = self.chunks[last.chunk()].slots[last.len() as usize] == slot;
        if is_last && last.len() > 0 {
            *top = last;
        } else {
            self.remove_further(list, slot);
        }
    }

    /// Removes a slot that is not the last one of its list, or the first one of a chunk.
    #[inline(never)]
    fn remove_further(&mut self, list: usize, slot: u32) {
        let mut top = Top(self.tops[list].0 - 1);
        let chunk = &mut self.chunks[top.chunk()];
        let (last, below) = (chunk.slots[top.len() as usize], chunk.below);
        if last != slot {
            let place = self.places[slot];
            self.chunks[place / PLACES].slots[(place % PLACES) as usize] = last;
            self.places[last] = place;
        }
        if top.len() == 0 {
            self.chunks[top.chunk()].below = core::mem::replace(&mut self.free, top.chunk());
            top = Top::full(below);
        }
        self.tops[list] = top;
    }

    /// Writes slots of a list to `slots`, from its top on. Returns their number.
    pub(crate) fn first(&self, list: usize, slots: &mut [u32]) -> usize {
        let mut top = self.tops[list];
        let mut count = 0;
        while top.len() > 0 && count < slots.len() {
            let chunk = &self.chunks[top.chunk()];
            let own = chunk.slots[..top.len() as usize].iter().rev();
            for (slot, own) in slots[count..].iter_mut().zip(own) {
                *slot = *own;
                count += 1;
            }
            top = Top::full(chunk.below);
        }
        // The next call needs it.
        self.chunks.prefetch(top.chunk());
        count
    }

    /// Empties all lists, and frees the memory of chunks and places.
    pub(crate) fn clear(&mut self) {
        self.tops.fill(Top::EMPTY);
        self.chunks.clear();
        self.places.clear();
        self.free = NONE;
    }

    /// Returns the bytes that the first slot allocates for all lists.
    pub(crate) fn first_growth(&self) -> usize {
        (self.lists - self.tops.capacity().min(self.lists)) * size_of::<Top>()
    }

    /// Returns the bytes allocated for chunks.
    pub(crate) fn chunk_size(&self) -> usize {
        self.chunks.allocation_size()
    }

    /// Returns the allocated bytes.
    pub(crate) fn allocation_size(&self) -> usize {
        self.tops.capacity() * size_of::<Top>() + self.chunk_size() + self.places.allocation_size()
    }

    /// Checks that each entry is at its place, in the list that `list_of` returns for its slot, and
    /// that all chunks are in use or free. Returns the number of entries.
    pub(crate) fn validate(
        &self,
        list_of: impl Fn(u32) -> Option<usize>,
    ) -> Result<usize, InvariantError> {
        let (mut entries, mut chunks) = (0, 0);
        for (list, top) in self.tops.iter().enumerate() {
            let mut top = *top;
            while top.len() > 0 {
                let chunk = &self.chunks[top.chunk()];
                for index in 0..top.len() {
                    let (slot, place) = (chunk.slots[index as usize], top.chunk() * PLACES + index);
                    ensure(self.places.get(slot) == Some(&place), || "an entry has no place")?;
                    ensure(list_of(slot) == Some(list), || "a slot is in another list")?;
                    entries += 1;
                }
                chunks += 1;
                top = Top::full(chunk.below);
            }
        }
        let mut free = self.free;
        while free != NONE {
            free = self.chunks[free].below;
            chunks += 1;
        }
        ensure(chunks == self.chunks.len(), || "a chunk is lost")?;
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::{vec, vec::Vec};

    use super::*;

    /// Lists, and sets as their reference model.
    struct Checked {
        lists: ChunkLists,
        model: Vec<BTreeSet<u32>>,
    }

    impl Checked {
        fn check(&self) {
            let list_of = |slot| self.model.iter().position(|set| set.contains(&slot));
            let entries = self.lists.validate(list_of).unwrap_or_else(|broken| panic!("{broken}"));
            assert_eq!(entries, self.model.iter().map(BTreeSet::len).sum::<usize>());
            for (list, set) in self.model.iter().enumerate() {
                let mut slots = vec![0; set.len() + 1];
                assert_eq!(self.lists.first(list, &mut slots), set.len());
                assert_eq!(self.lists.is_empty(list), set.is_empty());
                slots.truncate(set.len());
                assert_eq!(slots.iter().copied().collect::<BTreeSet<_>>(), *set);
                let mut some = vec![0; set.len() / 2];
                assert_eq!(self.lists.first(list, &mut some), some.len());
                assert_eq!(some, slots[..some.len()]);
            }
            let bytes = self.lists.chunk_size();
            let slots = self.model.iter().map(BTreeSet::len).sum::<usize>().max(SLOTS_OF_MODEL);
            assert!(bytes <= ChunkLists::chunk_bytes(self.model.len(), slots), "{bytes} bytes");
        }
    }

    const SLOTS_OF_MODEL: usize = 100;

    #[test]
    #[cfg_attr(miri, ignore = "slow, and without unsafe code")]
    fn random_operations_match_sets() {
        let (lists, model) = (ChunkLists::new_in(4, 1 << 20, Global), vec![BTreeSet::new(); 4]);
        let mut checked = Checked { lists, model };
        checked.lists.cover(SLOTS_OF_MODEL as u32 - 1);
        let mut random = 1_u64;
        for step in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (list, slot) = ((random >> 60) as usize % 4, (random >> 40) as u32 % 100);
            match checked.model.iter().position(|set| set.contains(&slot)) {
                Some(list) => {
                    checked.lists.remove(list, slot);
                    checked.model[list].remove(&slot);
                }
                // Lists become long and short.
                None if (step / 1000) % 2 == 0 || list == 0 => {
                    assert!(checked.lists.insert(list, slot));
                    checked.model[list].insert(slot);
                }
                None => {}
            }
            checked.check();
        }
        checked.lists.clear();
        checked.model.fill(BTreeSet::new());
        checked.check();
        assert_eq!(checked.lists.allocation_size(), 4 * size_of::<Top>());
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow")]
    fn chunks_of_emptied_lists_are_used_again() {
        let mut lists = ChunkLists::new_in(100, 1000, Global);
        lists.cover(999);
        for list in 0..100 {
            (0..1000).for_each(|slot| assert!(lists.insert(list, slot)));
            (0..1000).for_each(|slot| lists.remove(list, slot));
        }
        assert_eq!(lists.chunks.len(), 67);
        assert_eq!(lists.validate(|_| None), Ok(0));
    }
}
