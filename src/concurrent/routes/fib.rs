//! The forwarding table: what readers access.
//!
//! ```text
//!     slot   ▕ node │ route, length │ word    ▏ inner │ outer │ branches ▏    32 bytes
//!                                      └ changing?      └ a copy of the header of the node
//! ```
//!
//! What a lookup answers depends on one word that changes, besides pointers to tables: the word of
//! a slot. The blocks that it refers to never change. So the answer is that of the routes at the
//! moment at which the lookup reads the word, or at which the table that has the word was replaced
//! by another one, which is later than the beginning of the lookup.
//!
//! *The copy of the header* saves the cache miss between the word and the value. Another word is
//! published in three steps: the new word with the flag [`CHANGING`], the copy, the word without
//! the flag. A reader that has read the word, the copy, and the same word again without the flag,
//! has the copy that belongs to the word:
//!
//! 1. It has observed at least the copy that was stored before the word, since the store of the word
//!    is Release and its first load is Acquire.
//! 2. If it had observed a part of a later copy, the fence between that copy and the later word, and
//!    that of the reader, would have made the later word visible to its second load.
//! 3. The later word is another one: it has another node, whose number is not reused while the
//!    reader is pinned. Only a word without a node may come again, whose header is known.
//!
//! Otherwise it reads the header in the block of its word, which is as good, and farther away.
#![allow(unsafe_code)]

use core::marker::PhantomData;

use super::arena::{Arena, ID_BITS, NONE};
use super::block::{BlockRef, Header, RouteHeader};
use crate::concurrent::sync::{AtomicPtr, AtomicU64, IS_CHECKED, Ordering, fence};
use crate::key::bits::Address;
use crate::raw::bit_ops::{detect, select};
use crate::raw::prefetch::{BURST, prefetch};
use crate::routes::{COVERS, STRIDE, first_slot};

/// Regions, by the first six bits of an address.
pub(super) const REGIONS: usize = 1 << STRIDE;

/// Bits of a wide region after the first six.
const WIDE_BITS: u32 = if IS_CHECKED { STRIDE } else { 2 * STRIDE };

/// Words of a wide region.
pub(super) const WIDTH: usize = 1 << WIDE_BITS;

/// The position of the nodes in the words of a wide region.
pub(super) const WIDE_END: u32 = STRIDE + WIDE_BITS;

/// The slots of a wide region.
pub(super) type Wide = [Slot; WIDTH];

/// A word: a node, and the longest route above it, with its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) node: u32,
    pub(super) route: u32,
    pub(super) len: u32,
}

/// Bits of a length in a word: of up to 18.
const LEN_BITS: u32 = 5;

/// The bit of a word whose copy of a header is not complete.
const CHANGING: u64 = 1 << (LEN_BITS + ID_BITS);

const _: () = assert!(LEN_BITS + 2 * ID_BITS + 1 == u64::BITS);

/// A word, with a copy of the header of its node.
#[repr(C, align(32))]
pub(super) struct Slot {
    word: AtomicU64,
    inner: AtomicU64,
    outer: AtomicU64,
    branches: AtomicU64,
}

impl Slot {
    pub(super) fn new(word: Word, Header { inner, outer, branches }: Header) -> Self {
        Self {
            word: AtomicU64::new(word.bits()),
            inner: AtomicU64::new(inner),
            outer: AtomicU64::new(outer),
            branches: AtomicU64::new(branches),
        }
    }

    /// Loads the word.
    #[inline(always)]
    pub(super) fn load(&self) -> Word {
        // Acquire: pairs with the Release of a writer; the blocks are complete.
        Word::from_bits(self.word.load(Ordering::Acquire))
    }

    /// Publishes a word with the same node.
    pub(super) fn set_route(&self, word: Word) {
        // Release: pairs with the Acquire of readers; publishes the route.
        self.word.store(word.bits(), Ordering::Release);
    }

    /// Publishes a word with another node, which has this header.
    pub(super) fn set_node(&self, word: Word, Header { inner, outer, branches }: Header) {
        // Release: pairs with the Acquire of readers; publishes the node.
        self.word.store(word.bits() | CHANGING, Ordering::Release);
        // Release: pairs with the fence of readers, step 2 above.
        fence(Ordering::Release);
        self.inner.store(inner, Ordering::Relaxed);
        self.outer.store(outer, Ordering::Relaxed);
        self.branches.store(branches, Ordering::Relaxed);
        // Release: pairs with the Acquire of readers, step 1 above.
        self.word.store(word.bits(), Ordering::Release);
    }

    /// Loads the word, and the copy of the header, if that belongs to it.
    #[inline(always)]
    fn read(&self) -> (Word, Option<Header>) {
        // Acquire: pairs with the Release of a writer; the blocks are complete.
        let bits = self.word.load(Ordering::Acquire);
        let inner = self.inner.load(Ordering::Relaxed);
        let outer = self.outer.load(Ordering::Relaxed);
        let branches = self.branches.load(Ordering::Relaxed);
        // Acquire: pairs with the fence of a writer, step 2 above.
        fence(Ordering::Acquire);
        let again = self.word.load(Ordering::Relaxed);
        let is_copy = (bits ^ again) | bits & CHANGING == 0;
        let word = Word::from_bits(bits);
        // Step 3 above: the copy may be of a node that was there meanwhile.
        let mask = select(word.node.into(), u64::MAX, 0);
        let [inner, outer, branches] = [inner, outer, branches].map(|bits| bits & mask);
        (word, is_copy.then_some(Header { inner, outer, branches }))
    }
}

impl Word {
    pub(super) const EMPTY: Self = Self { node: NONE, route: NONE, len: 0 };

    #[inline(always)]
    const fn from_bits(bits: u64) -> Self {
        let (ids, lens) = ((1 << ID_BITS) - 1, (1 << LEN_BITS) - 1);
        Self {
            node: (bits >> (u64::BITS - ID_BITS)) as u32,
            route: (bits >> LEN_BITS & ids) as u32,
            len: (bits & lens) as u32,
        }
    }

    const fn bits(self) -> u64 {
        (self.node as u64) << (u64::BITS - ID_BITS)
            | (self.route as u64) << LEN_BITS
            | self.len as u64
    }
}

/// The addresses with the same first six bits: a word at bit 6, or many of them at bit 18.
///
/// While there is a wide table, the narrow word does not change. So a reader that has found no wide
/// table may read it at any later time.
pub(super) struct Region {
    pub(super) wide: AtomicPtr<Wide>,
    pub(super) narrow: Slot,
}

/// The forwarding table.
pub(super) struct Fib<V> {
    pub(super) regions: [Region; REGIONS],
    pub(super) arena: Arena,
    is_fast: bool,
    values: PhantomData<V>,
}

/// The longest match: its length, and its value.
pub(super) type Found<'f, V> = Option<(u32, &'f V)>;

/// The slot of these bits in a wide region.
#[inline(always)]
pub(super) const fn slot_in_wide(word: u64) -> usize {
    (word >> (u64::BITS - WIDE_END)) as usize % WIDTH
}

impl<V> Fib<V> {
    /// Creates a table without routes.
    pub(super) fn new() -> Self {
        let region = |_| Region {
            wide: AtomicPtr::new(core::ptr::null_mut()),
            narrow: Slot::new(Word::EMPTY, Header::EMPTY),
        };
        Self {
            regions: core::array::from_fn(region),
            arena: Arena::new(),
            is_fast: detect(),
            values: PhantomData,
        }
    }

    /// Returns the wide table of a region.
    #[inline(always)]
    pub(super) fn wide(&self, region: usize) -> Option<&Wide> {
        // Acquire: pairs with the Release of the writer; the words are complete.
        let wide = self.regions[region].wide.load(Ordering::Acquire);
        // SAFETY: null, or a table that is freed after all pins of its readers, or with `self`.
        unsafe { wide.as_ref() }
    }

    /// Returns the word of an address with these first bits, and its position.
    #[inline(always)]
    pub(super) fn cell(&self, word: u64) -> (&Slot, u32) {
        let region = first_slot(word) as usize;
        match self.wide(region) {
            Some(wide) => (&wide[slot_in_wide(word)], WIDE_END),
            None => (&self.regions[region].narrow, STRIDE),
        }
    }

    /// Returns a block.
    #[inline(always)]
    pub(super) fn block(&self, id: u32) -> BlockRef<'_, V> {
        // SAFETY: numbers in words and blocks are of blocks of this arena, which are freed after
        // all pins of their readers.
        unsafe { BlockRef::new(&self.arena, id) }
    }

    /// Returns a block, as [`block`](Self::block).
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    unsafe fn block_by<const FAST: bool>(&self, id: u32) -> BlockRef<'_, V> {
        // SAFETY: as for `block`, and by the contract of this function.
        unsafe { BlockRef::new_by::<FAST>(&self.arena, id) }
    }

    /// Returns the header of a node or a path.
    pub(super) fn header(&self, id: u32) -> Header {
        // SAFETY: words have nodes and paths, of which `NONE` is one.
        *unsafe { self.block(id).header() }
    }

    /// Returns a route of a word.
    #[inline(always)]
    pub(super) fn route(&self, id: u32) -> (RouteHeader, &V) {
        // SAFETY: words have routes there.
        unsafe { self.block(id).route() }
    }

    /// Returns the longest route of an address.
    #[inline(always)]
    pub(super) fn longest(&self, address: &impl Address) -> Found<'_, V> {
        let word = address.window(0);
        let (cell, pos) = self.cell(word);
        if self.is_fast {
            // SAFETY: the CPU has the instructions.
            unsafe { self.longest_by_slot::<true>(cell, pos, word, address) }
        } else {
            self.longest_without_instructions(cell, pos, word, address)
        }
    }

    /// [`longest_by_slot`](Self::longest_by_slot) on a CPU without the instructions of `bit_ops`.
    #[inline(never)]
    fn longest_without_instructions(
        &self,
        slot: &Slot,
        pos: u32,
        word: u64,
        address: &impl Address,
    ) -> Found<'_, V> {
        // SAFETY: this copy needs no instructions.
        unsafe { self.longest_by_slot::<false>(slot, pos, word, address) }
    }

    /// Returns the longest route of an address with these first bits, whose slot is at `pos`.
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    unsafe fn longest_by_slot<const FAST: bool>(
        &self,
        slot: &Slot,
        pos: u32,
        word: u64,
        address: &impl Address,
    ) -> Found<'_, V> {
        let (Word { node, route, len }, header) = slot.read();
        // SAFETY: by the contract of this function.
        let block = unsafe { self.block_by::<FAST>(node) };
        // SAFETY: words have nodes and paths, of which `NONE` is one.
        let header = header.unwrap_or_else(|| unsafe { far_header(block) });
        // SAFETY: by the contract of this function.
        let above = unsafe { self.block_by::<FAST>(route) }.route_value();
        let slot = first_slot(word << pos);
        if header.has_child(slot) {
            if let Some(found) = self.descend(node, pos, address) {
                return Some(found);
            }
            // SAFETY: a value that exists, if the route does.
            return (route != NONE).then(|| (len, unsafe { &*above }));
        }
        let inherited = (len, above);
        // SAFETY: it is the header of a node, since paths have all children; and by the contract.
        let (len, value, is_here) =
            unsafe { block.longest_or::<FAST>(header, pos, slot, inherited) };
        if is_here | u64::from(route) == 0 {
            return None;
        }
        // SAFETY: the value of a route of the node, or of the one above it, which exists.
        Some((len, unsafe { &*value }))
    }

    /// Returns the longest route in a node at `pos` or below it.
    #[inline(never)]
    fn descend(&self, mut node: u32, mut pos: u32, address: &impl Address) -> Found<'_, V> {
        let mut best = None;
        loop {
            let (block, window) = (self.block(node), address.window(pos));
            // SAFETY: children are nodes and paths.
            let header = unsafe { block.header() };
            if header.is_path() {
                // SAFETY: it is a path.
                let path = unsafe { block.path() };
                if !path.agrees(window) {
                    break;
                }
                (node, pos) = (path.child, pos + path.strides * STRIDE);
                continue;
            }
            let slot = first_slot(window);
            if header.outer >> slot & 1 | header.inner & COVERS[slot as usize] != 0 {
                best = Some((block, pos, slot));
            }
            if !header.has_child(slot) {
                break;
            }
            // SAFETY: it has a child there.
            (node, pos) = (unsafe { block.child(slot) }, pos + STRIDE);
        }
        let (block, pos, slot) = best?;
        if self.is_fast {
            // SAFETY: it is a node, and the CPU has the instructions.
            unsafe { block.longest::<true>(pos, slot) }
        } else {
            // SAFETY: it is a node, and this copy needs no instructions.
            unsafe { block.longest::<false>(pos, slot) }
        }
    }

    /// Looks up addresses in bursts, and writes to `found` what `result` returns for each of them.
    #[inline(always)]
    pub(super) fn bursts<'f, A: Address, R>(
        &'f self,
        addresses: &[A],
        found: &mut [R],
        result: impl Fn(&A, Found<'f, V>) -> R,
    ) {
        let bursts = addresses.chunks(BURST).zip(found.chunks_mut(BURST));
        if self.is_fast {
            for (addresses, found) in bursts {
                // SAFETY: the CPU has the instructions.
                unsafe { self.burst::<true, _, _>(addresses, found, &result) };
            }
        } else {
            for (addresses, found) in bursts {
                // SAFETY: this copy needs no instructions.
                unsafe { self.burst::<false, _, _>(addresses, found, &result) };
            }
        }
    }

    /// Looks up a burst: first all slots, then all values are prefetched.
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    unsafe fn burst<'f, const FAST: bool, A: Address, R>(
        &'f self,
        addresses: &[A],
        found: &mut [R],
        result: impl Fn(&A, Found<'f, V>) -> R,
    ) {
        let mut slots = [(&self.regions[0].narrow, STRIDE); BURST];
        for (slot, address) in slots.iter_mut().zip(addresses) {
            *slot = self.cell(address.window(0));
            prefetch(slot.0);
        }
        for ((address, &(slot, pos)), found) in addresses.iter().zip(&slots).zip(found) {
            let word = address.window(0);
            // SAFETY: by the contract of this function.
            let longest = unsafe { self.longest_by_slot::<FAST>(slot, pos, word, address) };
            if let Some((_, value)) = longest {
                prefetch(value);
            }
            *found = result(address, longest);
        }
    }

    /// Returns the bytes of the table, of its wide regions and of its arena.
    pub(super) fn allocation_size(&self) -> usize {
        let wide = (0..REGIONS).filter(|&region| self.wide(region).is_some()).count();
        size_of::<Self>() + wide * size_of::<Wide>() + self.arena.allocation_size()
    }
}

impl<V> Drop for Fib<V> {
    fn drop(&mut self) {
        for region in &self.regions {
            let wide = region.wide.load(Ordering::Relaxed);
            if !wide.is_null() {
                // SAFETY: from a box; readers have ended, and it is freed once.
                drop(unsafe { alloc::boxed::Box::from_raw(wide) });
            }
        }
    }
}

/// Reads the header of a node or a path in its block, as that in the slot is changing.
///
/// # Safety
///
/// It is one of these.
#[cold]
#[inline(never)]
unsafe fn far_header<V>(block: BlockRef<'_, V>) -> Header {
    // SAFETY: by the contract.
    *unsafe { block.header() }
}
