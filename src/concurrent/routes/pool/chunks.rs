//! Chunks of blocks of one size, by size.
#![allow(unsafe_code)]

use alloc::alloc::{alloc, dealloc, handle_alloc_error};
use alloc::vec;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::iter;
use core::mem::replace;
use core::ptr::{self, NonNull};

use crate::invariant::{InvariantError, ensure};

/// The alignment of chunks: four pages, for which some CPUs have one entry in their TLB.
const ALIGN: usize = 16 << 10;

/// The bytes of a chunk: a heap has room for its own header between two of them.
pub(super) const BYTES: usize = ALIGN - 64;

/// Blocks have a multiple of this size: with twice as much, the blocks of the Internet's routes are
/// on 7 % more pages.
const STEP: usize = 8;

/// The number of sizes.
const CLASSES: usize = 64;

/// Larger blocks are from the heap.
const LARGEST: usize = CLASSES * STEP;

/// A freed block.
pub(super) struct Link {
    pub(super) next: *mut Link,
    pub(super) size: usize,
}

/// A list of freed blocks, which belong to it.
#[derive(Clone, Copy)]
pub(super) struct List(pub(super) *mut Link);

impl List {
    pub(super) const EMPTY: Self = Self(ptr::null_mut());

    fn push(&mut self, block: NonNull<Link>, size: usize) {
        let next = replace(&mut self.0, block.as_ptr());
        // SAFETY: it is freed, and belongs to the list from now on.
        unsafe { block.write(Link { next, size }) };
    }

    pub(super) fn pop(&mut self) -> Option<NonNull<Link>> {
        let block = NonNull::new(self.0)?;
        // SAFETY: a block of the list has the link to the next one.
        self.0 = unsafe { block.read() }.next;
        Some(block)
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0.is_null()
    }

    fn len(mut self) -> usize {
        iter::from_fn(|| self.pop()).count()
    }
}

/// The header of a chunk.
#[repr(align(64))]
struct Chunk {
    /// Neighbours in the ring of a size.
    next: NonNull<Chunk>,
    prev: NonNull<Chunk>,
    free: List,
    /// The offset of the first block that was never allocated.
    end: usize,
    size: usize,
    /// The number of blocks that are not free here.
    used: usize,
}

impl Chunk {
    const fn is_full(&self) -> bool {
        self.free.is_empty() && self.end + self.size > BYTES
    }
}

/// The blocks of one size.
#[derive(Clone, Copy)]
struct Class {
    /// A chunk. The ring has those that are not full first.
    ring: Option<NonNull<Chunk>>,
    /// Free blocks of any chunk: an allocation that finds one here does not access the headers of
    /// chunks, which are in no cache. At most an eighth of the used ones.
    cached: List,
    cached_count: usize,
    used: usize,
}

impl Class {
    fn push(&mut self, block: NonNull<Link>, size: usize) {
        self.cached.push(block, size);
        self.cached_count += 1;
    }

    fn pop(&mut self) -> Option<NonNull<Link>> {
        let block = self.cached.pop()?;
        self.cached_count -= 1;
        Some(block)
    }
}

/// All chunks of a pool.
#[derive(Default)]
pub(super) struct Chunks {
    /// By size: all of them, or none by default.
    classes: Vec<Class>,
    /// A chunk without blocks, if there are others.
    spare: Option<NonNull<Chunk>>,
    /// The number of all chunks.
    count: usize,
    /// The bytes of blocks that are used.
    used: usize,
}

// SAFETY: chunks belong to it alone.
unsafe impl Send for Chunks {}

// SAFETY: shared references only read.
unsafe impl Sync for Chunks {}

/// Returns the size that blocks of a layout have in chunks; nothing if they are from the heap.
pub(super) const fn pooled(layout: Layout) -> Option<usize> {
    let size = layout.pad_to_align().size();
    if size > LARGEST || layout.align() > align_of::<Chunk>() {
        return None;
    }
    Some(size.next_multiple_of(STEP))
}

/// Returns the chunk of a block.
///
/// # Safety
///
/// The block is in a chunk, which exists.
unsafe fn chunk_of(block: NonNull<u8>) -> NonNull<Chunk> {
    let offset = block.addr().get() % ALIGN;
    // SAFETY: chunks are aligned, so this is where the allocation begins that the block is in.
    unsafe { block.sub(offset) }.cast()
}

impl Chunks {
    /// The layout of a chunk.
    const LAYOUT: Layout = match Layout::from_size_align(BYTES, ALIGN) {
        Ok(layout) => layout,
        Err(_) => panic!("a chunk has a layout"),
    };

    pub(super) fn new() -> Self {
        let class = Class { ring: None, cached: List::EMPTY, cached_count: 0, used: 0 };
        Self { classes: vec![class; CLASSES], spare: None, count: 0, used: 0 }
    }

    const fn class(size: usize) -> usize {
        size / STEP - 1
    }

    /// Returns the header of a chunk, which is one of these.
    fn header(&mut self, chunk: NonNull<Chunk>) -> &mut Chunk {
        // SAFETY: it exists, and only this uses the headers of its chunks.
        unsafe { &mut *chunk.as_ptr() }
    }

    /// Returns the bytes of all chunks that no used block takes.
    pub(super) const fn unused_bytes(&self) -> usize {
        self.count * BYTES - self.used
    }

    /// Allocates a block of a size, if there is a free one.
    pub(super) fn allocate(&mut self, size: usize) -> Option<NonNull<u8>> {
        let class = Self::class(size);
        let block = match self.classes[class].pop() {
            Some(cached) => cached.cast(),
            None => self.allocate_in_chunk(size)?,
        };
        self.used += size;
        self.classes[class].used += 1;
        Some(block)
    }

    fn allocate_in_chunk(&mut self, size: usize) -> Option<NonNull<u8>> {
        let class = Self::class(size);
        let first = self.classes[class].ring?;
        let chunk = self.header(first);
        if chunk.is_full() {
            return None;
        }
        let block = match chunk.free.pop() {
            Some(free) => free.cast(),
            None => {
                let offset = chunk.end;
                chunk.end += size;
                // SAFETY: the chunk is not full, so the block is in its allocation.
                unsafe { first.cast::<u8>().add(offset) }
            }
        };
        chunk.used += 1;
        if chunk.is_full() {
            // It becomes the last one of the ring.
            let next = chunk.next;
            self.classes[class].ring = Some(next);
        }
        Some(block)
    }

    /// Returns a freed block.
    ///
    /// # Safety
    ///
    /// It is from [`allocate`](Self::allocate), is not used any more, and is freed once.
    pub(super) unsafe fn free(&mut self, block: NonNull<Link>) {
        // SAFETY: by the contract.
        let size = unsafe { block.read() }.size;
        let class = Self::class(size);
        self.used -= size;
        self.classes[class].used -= 1;
        self.classes[class].push(block, size);
        // Twice at most: one is new, and the limit may be one less.
        while self.classes[class].cached_count > self.classes[class].used / 8 {
            let Some(block) = self.classes[class].pop() else { break };
            self.free_in_chunk(block, size);
        }
    }

    /// Returns a free block to its chunk.
    fn free_in_chunk(&mut self, block: NonNull<Link>, size: usize) {
        // SAFETY: blocks are in chunks.
        let at = unsafe { chunk_of(block.cast()) };
        let chunk = self.header(at);
        let was_full = chunk.is_full();
        chunk.free.push(block, size);
        chunk.used -= 1;
        let is_empty = chunk.used == 0;
        if is_empty || was_full {
            self.remove(at, size);
            if is_empty { self.release(at) } else { self.insert(at, size) }
        }
    }

    /// Adds a chunk without blocks.
    pub(super) fn add(&mut self, size: usize) {
        let chunk = self.spare.take().unwrap_or_else(|| {
            self.count += 1;
            // SAFETY: the size is greater than zero.
            let chunk = unsafe { alloc(Self::LAYOUT) };
            NonNull::new(chunk.cast()).unwrap_or_else(|| handle_alloc_error(Self::LAYOUT))
        });
        let (free, end) = (List::EMPTY, size_of::<Chunk>());
        let header = Chunk { next: chunk, prev: chunk, free, end, size, used: 0 };
        // SAFETY: it is allocated, and has no blocks.
        unsafe { chunk.write(header) };
        self.insert(chunk, size);
    }

    /// Removes a chunk without blocks, which becomes the spare one if there are others.
    fn release(&mut self, chunk: NonNull<Chunk>) {
        let former = self.spare.replace(chunk);
        let spare = if self.used == 0 { self.spare.take() } else { None };
        for chunk in former.into_iter().chain(spare) {
            self.count -= 1;
            // SAFETY: allocated with this layout, without blocks, and in no ring.
            unsafe { dealloc(chunk.as_ptr().cast(), Self::LAYOUT) };
        }
    }

    /// Inserts a chunk as the first one of a ring.
    fn insert(&mut self, chunk: NonNull<Chunk>, size: usize) {
        if let Some(first) = self.classes[Self::class(size)].ring.replace(chunk) {
            let last = replace(&mut self.header(first).prev, chunk);
            self.header(last).next = chunk;
            let header = self.header(chunk);
            (header.next, header.prev) = (first, last);
        }
    }

    /// Removes a chunk from its ring.
    fn remove(&mut self, chunk: NonNull<Chunk>, size: usize) {
        let &mut Chunk { next, prev, .. } = self.header(chunk);
        self.header(next).prev = prev;
        self.header(prev).next = next;
        self.header(chunk).next = chunk;
        self.header(chunk).prev = chunk;
        let first = &mut self.classes[Self::class(size)].ring;
        if *first == Some(chunk) {
            *first = (next != chunk).then_some(next);
        }
    }
}

/// Invariants.
impl Chunks {
    /// Returns the chunks of a ring.
    fn ring(&self, class: usize) -> impl Iterator<Item = &Chunk> {
        let first = self.classes[class].ring;
        // SAFETY: all chunks of a ring exist, and are borrowed.
        let header = |chunk: NonNull<Chunk>| unsafe { &*chunk.as_ptr() };
        let next = move |chunk: &&Chunk| Some(chunk.next).filter(|&next| Some(next) != first);
        iter::successors(first.map(header), move |now| next(now).map(header))
    }

    pub(super) fn validate(&self) -> Result<(), InvariantError> {
        let (mut count, mut used) = (usize::from(self.spare.is_some()), 0);
        for (at, class) in self.classes.iter().enumerate() {
            let (size, mut blocks, mut is_full) = ((at + 1) * STEP, 0, false);
            for chunk in self.ring(at) {
                let cut = (chunk.end - size_of::<Chunk>()) / size;
                ensure(chunk.size == size, || "the size of a ring of chunks")?;
                ensure(chunk.used > 0, || "a chunk in a ring has blocks")?;
                ensure(chunk.used + chunk.free.len() == cut, || "the blocks of a chunk")?;
                ensure(chunk.is_full() || !is_full, || "chunks that are not full come first")?;
                is_full = chunk.is_full();
                count += 1;
                blocks += chunk.used;
            }
            ensure(class.cached.len() == class.cached_count, || "the number of cached blocks")?;
            ensure(class.cached_count <= class.used / 8, || "the limit of cached blocks")?;
            ensure(class.used + class.cached_count == blocks, || "the number of blocks")?;
            used += class.used * size;
        }
        ensure(count == self.count, || "the number of chunks")?;
        ensure(used == self.used, || "the bytes of used blocks")?;
        ensure(self.spare.is_none() || used > 0, || "a spare chunk is not the only one")
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        self.used = 0;
        for class in 0..self.classes.len() {
            while let Some(chunk) = self.classes[class].ring {
                self.remove(chunk, (class + 1) * STEP);
                self.release(chunk);
            }
        }
    }
}
