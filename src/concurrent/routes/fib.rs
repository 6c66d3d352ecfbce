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
//! 1. It has observed at least the copy that was stored before the word, since the store of the
//!    word is Release and its first load is Acquire.
//! 2. If it had observed a part of a later copy, the fence between the flagged word and that copy,
//!    and that of the reader, would have made a later word visible to its second load.
//! 3. The later word is another one: it has another node, whose number is not reused while the
//!    reader is pinned. Only a word without a node may come again, whose header is known.
//!
//! Otherwise it begins again with a word, without the copy: the header is in the block, too.
#![allow(unsafe_code)]

use core::marker::PhantomData;

use super::arena::{Arena, ID_BITS, NONE};
use super::block::{BlockRef, Header, ROUTE_INDEX, RouteHeader};
use crate::concurrent::sync::{AtomicPtr, AtomicU64, IS_CHECKED, Ordering, fence};
use crate::key::bits::Address;
use crate::raw::bit_ops::{detect, select_by_sign};
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
const CHANGING: u64 = 1;

/// The first bit of the route in a word, after the length.
const ROUTE_AT: u32 = 1 + LEN_BITS;

const _: () = assert!(ROUTE_AT + 2 * ID_BITS == u64::BITS);

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
    fn read(&self) -> (Word, Header, bool) {
        // Acquire: pairs with the Release of a writer; the blocks are complete.
        let bits = self.word.load(Ordering::Acquire);
        let inner = self.inner.load(Ordering::Relaxed);
        let outer = self.outer.load(Ordering::Relaxed);
        let branches = self.branches.load(Ordering::Relaxed);
        // Acquire: pairs with the fence of a writer, step 2 above.
        fence(Ordering::Acquire);
        let is_same = self.word.load(Ordering::Relaxed) == bits;
        let word = Word::from_bits(bits);
        // Step 3 above: without a node, the copy may be of one that was there meanwhile.
        let is_copy = is_same && bits & CHANGING == 0 && word.node != NONE;
        (word, Header { inner, outer, branches }, is_copy)
    }
}

impl Word {
    pub(super) const EMPTY: Self = Self { node: NONE, route: NONE, len: 0 };

    #[inline(always)]
    const fn from_bits(bits: u64) -> Self {
        let (ids, lens) = ((1 << ID_BITS) - 1, (1 << LEN_BITS) - 1);
        Self {
            node: (bits >> (u64::BITS - ID_BITS)) as u32,
            route: (bits >> ROUTE_AT & ids) as u32,
            len: (bits >> 1 & lens) as u32,
        }
    }

    const fn bits(self) -> u64 {
        (self.node as u64) << (u64::BITS - ID_BITS)
            | (self.route as u64) << ROUTE_AT
            | (self.len as u64) << 1
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
        match self.wide(first_slot(word) as usize) {
            Some(wide) if self.is_fast => {
                // SAFETY: the CPU has the instructions.
                unsafe { self.longest_in_slot::<true>(&wide[slot_in_wide(word)], word, address) }
            }
            _ => self.longest_by_block(word, address),
        }
    }

    /// Returns the longest route of an address with these first bits, by the copy in its slot.
    ///
    /// # Safety
    ///
    /// The slot is that of the address in a wide table. If `FAST`, the CPU has the instructions of
    /// `bit_ops`.
    #[inline(always)]
    unsafe fn longest_in_slot<const FAST: bool>(
        &self,
        slot: &Slot,
        word: u64,
        address: &impl Address,
    ) -> Found<'_, V> {
        let (Word { node, route, len }, header, is_copy) = slot.read();
        let child = first_slot(word << WIDE_END);
        if !is_copy || header.has_child(child) {
            return self.longest_by_block(word, address);
        }
        // SAFETY: it is the header of a node, since paths have all children; and by the contract.
        let (len, index, mark) =
            unsafe { header.longest_or::<FAST>(WIDE_END, child, (len, ROUTE_INDEX)) };
        let id = select_by_sign(mark, route.into(), node.into()) as u32;
        if id == NONE {
            return None;
        }
        // SAFETY: by the contract of this function.
        let block = unsafe { self.block_by::<FAST>(id) };
        // SAFETY: the node has a route with this index, or the block is the route above it.
        Some((len, unsafe { block.value(index) }))
    }

    /// Returns the longest route of an address with these first bits, by the blocks alone.
    #[inline(never)]
    fn longest_by_block(&self, word: u64, address: &impl Address) -> Found<'_, V> {
        let (slot, pos) = self.cell(word);
        let Word { node, route, .. } = slot.load();
        let found = if node == NONE { None } else { self.descend(node, pos, address) };
        found.or_else(|| {
            let (header, value) = (route != NONE).then(|| self.route(route))?;
            Some((header.len, value))
        })
    }

    /// Returns the longest route in a node at `pos` or below it.
    #[inline(always)]
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
        let mut slots = [None; BURST];
        for (slot, address) in slots.iter_mut().zip(addresses) {
            let word = address.window(0);
            let wide = self.wide(first_slot(word) as usize);
            *slot = wide.map(|wide| &wide[slot_in_wide(word)]);
            prefetch(slot.unwrap_or(&self.regions[0].narrow));
        }
        for ((address, slot), found) in addresses.iter().zip(&slots).zip(found) {
            let word = address.window(0);
            let longest = match slot {
                // SAFETY: by the contract of this function.
                Some(slot) => unsafe { self.longest_in_slot::<FAST>(slot, word, address) },
                None => self.longest_by_block(word, address),
            };
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
