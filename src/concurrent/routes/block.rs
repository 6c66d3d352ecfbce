//! Blocks: nodes of the trie and routes above it, which never change.
//!
//! ```text
//!     node     ▕ inner │ outer │ branches ▏ values … ▏ children …      numbers of blocks
//!     path     ▕ 1     │ bits  │ all ones ▏ strides │ child ▏
//!     route    ▕ bits │ length ▏ value ▏                               of up to 6 or 18 bits
//! ```
//!
//! A node has the routes of one stride, as in [`RouteTable`](crate::RouteTable): two bitmaps, by
//! prefix index and by slot, and the values in the order of that table.
#![allow(unsafe_code)]

use core::marker::PhantomData;
use core::ptr;

use super::arena::{Arena, Unit, units};
use super::space::Space;
use crate::raw::bit_ops::{count_ones, ones};
use crate::routes::{RouteMatch, STRIDE, search};

/// The first three words of a block.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Header {
    /// Inner routes, by prefix index. Bit 0 is set in a path.
    pub(super) inner: u64,
    /// Outer routes, by slot; the bits of a path.
    pub(super) outer: u64,
    /// Slots with children; all ones in a path.
    pub(super) branches: u64,
}

impl Header {
    /// That of a node without routes and children.
    pub(super) const EMPTY: Self = Self { inner: 0, outer: 0, branches: 0 };

    #[inline(always)]
    pub(super) const fn is_path(&self) -> bool {
        self.inner & 1 != 0
    }

    #[inline(always)]
    pub(super) const fn has_child(&self, slot: u32) -> bool {
        self.branches >> slot & 1 != 0
    }

    /// Returns the longest route of a node with this header that covers a slot, or else
    /// `inherited`: its length, and the index of its value; and a word whose top bit is set if it
    /// is the inherited one. Branch-free, since that is unpredictable.
    ///
    /// # Safety
    ///
    /// If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    pub(super) unsafe fn longest_or<const FAST: bool>(
        &self,
        pos: u32,
        slot: u32,
        inherited: (u32, u32),
    ) -> (u32, u32, u64) {
        // SAFETY: by the contract.
        let first_outer = unsafe { ones::<FAST>(self.inner) };
        let bits = (self.inner, self.outer, first_outer);
        let inherited = RouteMatch::new(INHERITED | inherited.1, inherited.0);
        // SAFETY: by the contract.
        let found = unsafe { search::<FAST>(bits, 0, pos, slot, inherited) };
        let index = found.value() & !INHERITED;
        (found.len(), index, u64::from(found.value()) << 32)
    }

    /// Returns the number of routes of a node.
    fn routes(&self) -> usize {
        (count_ones(self.inner) + count_ones(self.outer)) as usize
    }
}

/// The first bits of a route, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct RouteHeader {
    pub(super) bits: u64,
    pub(super) len: u32,
}

impl RouteHeader {
    /// Returns whether it is shorter than another one, or the same, and covers it.
    pub(super) const fn covers(self, other: Self) -> bool {
        self.len <= other.len && (self.len == 0 || (self.bits ^ other.bits) >> (64 - self.len) == 0)
    }
}

/// The strides of a path, left-aligned, and the block at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) bits: u64,
    pub(super) strides: u32,
    pub(super) child: u32,
}

impl Path {
    /// Returns whether a window begins with the path.
    #[inline(always)]
    pub(super) const fn agrees(&self, window: u64) -> bool {
        (self.bits ^ window) >> (u64::BITS - self.strides * STRIDE) == 0
    }

    /// Returns the path without its first strides.
    pub(super) const fn skip(self, strides: u32) -> Self {
        let bits = self.bits << (strides * STRIDE);
        Self { bits, strides: self.strides - strides, child: self.child }
    }
}

/// A block of an arena, and the type of its values.
pub(super) struct BlockRef<'a, V> {
    start: *const Unit,
    arena: PhantomData<&'a V>,
}

impl<V> Clone for BlockRef<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for BlockRef<'_, V> {}

/// Returns where the values of a block begin, after `bytes` of other data.
const fn values_at<V>(bytes: usize) -> usize {
    const { assert!(align_of::<V>() <= align_of::<Unit>(), "a value is aligned to 32 bytes") };
    bytes.next_multiple_of(align_of::<V>())
}

/// Returns where the children of a node with this number of routes begin.
const fn children_at<V>(routes: usize) -> usize {
    let end = values_at::<V>(size_of::<Header>()) + routes * size_of::<V>();
    end.next_multiple_of(align_of::<u32>())
}

/// The bytes of a path: the header, strides, child.
const PATH_BYTES: usize = size_of::<Header>() + 2 * size_of::<u32>();

/// The bytes of a route without its value: as many as those of a node.
const ROUTE_BYTES: usize = size_of::<Header>();

/// The index of the value of a route, as if it were a node.
pub(super) const ROUTE_INDEX: u32 = 0;

const _: () = assert!(size_of::<RouteHeader>() <= ROUTE_BYTES);

/// The flag of an index that is inherited.
const INHERITED: u32 = 1 << 31;

impl<'a, V> BlockRef<'a, V> {
    /// Returns a block by its number.
    ///
    /// # Safety
    ///
    /// The block was allocated in this arena with this type of values, and is not freed during
    /// `'a`.
    #[inline(always)]
    pub(super) unsafe fn new(arena: &'a Arena, id: u32) -> Self {
        Self { start: arena.at(id), arena: PhantomData }
    }

    /// Returns a block by its number, as [`new`](Self::new).
    ///
    /// # Safety
    ///
    /// As for `new`. If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    pub(super) unsafe fn new_by<const FAST: bool>(arena: &'a Arena, id: u32) -> Self {
        // SAFETY: by the contract of this function.
        Self { start: unsafe { arena.at_by::<FAST>(id) }, arena: PhantomData }
    }

    /// Reads something at an offset.
    ///
    /// # Safety
    ///
    /// The block has a `T` there.
    #[inline(always)]
    unsafe fn at<T>(self, offset: usize) -> &'a T {
        let pointer = self.start.wrapping_byte_add(offset).cast::<T>();
        // SAFETY: by the contract; blocks never change.
        unsafe { &*pointer }
    }

    /// Returns the header of a node or a path.
    ///
    /// # Safety
    ///
    /// It is not a route.
    #[inline(always)]
    pub(super) unsafe fn header(self) -> &'a Header {
        // SAFETY: by the contract, it begins with a header.
        unsafe { self.at(0) }
    }

    /// Returns a path.
    ///
    /// # Safety
    ///
    /// It is a path.
    #[inline(always)]
    pub(super) unsafe fn path(self) -> Path {
        // SAFETY: by the contract.
        let header = unsafe { self.header() };
        // SAFETY: by the contract, two words follow the header.
        let [strides, child] = *unsafe { self.at::<[u32; 2]>(size_of::<Header>()) };
        Path { bits: header.outer, strides, child }
    }

    /// Returns the child of a node in a slot.
    ///
    /// # Safety
    ///
    /// It is a node with a child there.
    #[inline(always)]
    pub(super) unsafe fn child(self, slot: u32) -> u32 {
        // SAFETY: by the contract.
        let header = unsafe { self.header() };
        let nth = count_ones(header.branches & ((1 << slot) - 1)) as usize;
        // SAFETY: by the contract, there is a child for each bit.
        *unsafe { self.at(children_at::<V>(header.routes()) + nth * size_of::<u32>()) }
    }

    /// Returns the value of a node by its index.
    ///
    /// # Safety
    ///
    /// It is a node with that many routes and one more.
    #[inline(always)]
    pub(super) unsafe fn value(self, index: u32) -> &'a V {
        // SAFETY: by the contract; blocks never change.
        unsafe { &*self.value_ptr(index) }
    }

    /// Returns a pointer to the value of a node by its index, which may not exist.
    #[inline(always)]
    const fn value_ptr(self, index: u32) -> *const V {
        let offset = values_at::<V>(size_of::<Header>()) + index as usize * size_of::<V>();
        self.start.wrapping_byte_add(offset).cast()
    }

    /// Returns the longest route of a node that covers a slot: its length, and its value.
    ///
    /// # Safety
    ///
    /// It is a node. If `FAST`, the CPU has the instructions of `bit_ops`.
    #[inline(always)]
    pub(super) unsafe fn longest<const FAST: bool>(
        self,
        pos: u32,
        slot: u32,
    ) -> Option<(u32, &'a V)> {
        // SAFETY: by the contract.
        let Header { inner, outer, .. } = *unsafe { self.header() };
        // SAFETY: by the contract.
        let first_outer = unsafe { ones::<FAST>(inner) };
        let bits = (inner, outer, first_outer);
        // SAFETY: by the contract.
        let found = unsafe { search::<FAST>(bits, 0, pos, slot, RouteMatch::NONE) }.exists()?;
        // SAFETY: the index of a route of this node.
        Some((found.len(), unsafe { self.value(found.value()) }))
    }

    /// Returns a route.
    ///
    /// # Safety
    ///
    /// It is a route.
    #[inline(always)]
    pub(super) unsafe fn route(self) -> (RouteHeader, &'a V) {
        // SAFETY: by the contract.
        let header = *unsafe { self.at(0) };
        // SAFETY: by the contract.
        (header, unsafe { self.at(values_at::<V>(ROUTE_BYTES)) })
    }

    /// Returns the units of a node or path.
    ///
    /// # Safety
    ///
    /// It is not a route.
    pub(super) unsafe fn units(self) -> u32 {
        // SAFETY: by the contract.
        let header = *unsafe { self.header() };
        units(if header.is_path() { PATH_BYTES } else { node_bytes::<V>(&header) })
    }
}

fn node_bytes<V>(header: &Header) -> usize {
    let children = count_ones(header.branches) as usize * size_of::<u32>();
    children_at::<V>(header.routes()) + children
}

/// Returns the units of a route.
pub(super) const fn route_units<V>() -> u32 {
    units(values_at::<V>(ROUTE_BYTES) + size_of::<V>())
}

/// Blocks being written: an arena and its space.
pub(super) struct Blocks<'s> {
    pub(super) arena: &'s Arena,
    pub(super) space: &'s mut Space,
}

impl Blocks<'_> {
    /// Allocates a block of this number of bytes.
    fn alloc(&mut self, bytes: usize) -> (u32, *mut u8) {
        let id = self.space.alloc(self.arena, units(bytes));
        (id, self.arena.at(id).cast())
    }

    /// Creates a node.
    pub(super) fn node<V: Copy>(&mut self, header: Header, values: &[V], children: &[u32]) -> u32 {
        assert!(
            values.len() == header.routes()
                && children.len() == count_ones(header.branches) as usize
        );
        let (id, block) = self.alloc(node_bytes::<V>(&header));
        // SAFETY: the block is new, and begins with the header.
        unsafe { block.cast::<Header>().write(header) };
        let to = block.wrapping_add(values_at::<V>(size_of::<Header>())).cast();
        // SAFETY: the block has room for the values, by its size.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), to, values.len()) };
        let to = block.wrapping_add(children_at::<V>(values.len())).cast();
        // SAFETY: as for the values.
        unsafe { ptr::copy_nonoverlapping(children.as_ptr(), to, children.len()) };
        id
    }

    /// Creates a path.
    pub(super) fn path(&mut self, Path { bits, strides, child }: Path) -> u32 {
        let (id, block) = self.alloc(PATH_BYTES);
        let header = Header { inner: 1, outer: bits, branches: u64::MAX };
        // SAFETY: the block is new, and begins with the header.
        unsafe { block.cast::<Header>().write(header) };
        let rest = block.wrapping_add(size_of::<Header>()).cast::<[u32; 2]>();
        // SAFETY: two words follow it.
        unsafe { rest.write([strides, child]) };
        id
    }

    /// Creates a route.
    pub(super) fn route<V: Copy>(&mut self, header: RouteHeader, value: V) -> u32 {
        let (id, block) = self.alloc(values_at::<V>(ROUTE_BYTES) + size_of::<V>());
        // SAFETY: the block is new, and begins with the header.
        unsafe { block.cast::<RouteHeader>().write(header) };
        let to = block.wrapping_add(values_at::<V>(ROUTE_BYTES)).cast::<V>();
        // SAFETY: the value follows it.
        unsafe { to.write(value) };
        id
    }

    /// Retires a node or path, which readers do not find any more.
    pub(super) fn retire_node<V>(&mut self, id: u32) {
        // SAFETY: it is retired once, and not freed before.
        let block = unsafe { BlockRef::<V>::new(self.arena, id) };
        // SAFETY: a node or path.
        let units = unsafe { block.units() };
        self.space.retire((id, units));
    }

    /// Retires a route.
    pub(super) fn retire_route<V>(&mut self, id: u32) {
        self.space.retire((id, route_units::<V>()));
    }
}
