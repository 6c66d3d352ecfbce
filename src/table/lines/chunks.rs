//! Memory of lines, in chunks that do not move.
//!
//! The first chunk has 1, 2, 4, … lines until it has 512; then there are more of 512 lines.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::NonNull;

use super::line::Line;
use crate::memory::{Allocator, Vec};
use crate::table::error::{TryReserveError, reserve_one};

/// log2 of the lines of a chunk.
const BITS: u32 = 9;

/// Lines of a chunk.
const CHUNK: usize = 1 << BITS;

/// The list of a table without chunks: a lookup needs no test for that, and finds nothing.
const NO_CHUNKS: &[&Line; 1] = &[&Line::EMPTY];

/// An array of lines.
#[derive(Debug)]
pub(super) struct Chunks<A: Allocator> {
    /// **C2** Points to the elements of `chunks`, or to [`NO_CHUNKS`] if `chunks` is empty.
    list: NonNull<NonNull<Line>>,
    /// **C1** Each points to its own block of [`CHUNK`] initialised lines; the first one to
    /// `first` lines.
    chunks: Vec<NonNull<Line>, A>,
    /// Lines of the first chunk: a power of two up to [`CHUNK`], or 0 if there is none.
    first: usize,
}

// SAFETY: the chunks are owned, and lines are plain values.
unsafe impl<A: Allocator + Send> Send for Chunks<A> {}

// SAFETY: as for `Send`; a shared reference only reads.
unsafe impl<A: Allocator + Sync> Sync for Chunks<A> {}

fn layout(lines: usize) -> Result<Layout, TryReserveError> {
    Layout::array::<Line>(lines).map_err(|_| TryReserveError::OVERFLOW)
}

/// Allocates a chunk of empty lines, at least one.
fn allocate(lines: usize, memory: &impl Allocator) -> Result<NonNull<Line>, TryReserveError> {
    let layout = layout(lines)?;
    let block = memory.allocate(layout).map_err(|_| TryReserveError::memory(layout))?;
    let chunk: NonNull<Line> = block.cast();
    for line in 0..lines {
        // SAFETY: the block has that number of lines.
        let line = unsafe { chunk.add(line) };
        // SAFETY: as above.
        unsafe { line.write(Line::EMPTY) };
    }
    Ok(chunk)
}

/// Frees a chunk that was allocated from `memory` with this number of lines, and is not used any
/// more.
fn free(chunk: NonNull<Line>, lines: usize, memory: &impl Allocator) {
    if let Ok(layout) = layout(lines) {
        // SAFETY: allocated with this layout, and not used after this.
        unsafe { memory.deallocate(chunk.cast(), layout) };
    }
}

/// Lines of the first of the chunks for `lines`.
const fn first_of(lines: usize) -> usize {
    if lines >= CHUNK { CHUNK } else { lines.next_power_of_two() }
}

impl<A: Allocator> Chunks<A> {
    /// References have the representation of pointers.
    const NO_LIST: NonNull<NonNull<Line>> =
        NonNull::new(NO_CHUNKS.as_ptr().cast_mut()).expect("a reference is not null").cast();

    /// Chunks for no line.
    pub(super) const fn new_in(memory: A) -> Self {
        Self { list: Self::NO_LIST, chunks: Vec::new_in(memory), first: 0 }
    }

    /// Lines for which there is memory.
    fn capacity(&self) -> usize {
        match self.chunks.len() {
            0 => 0,
            chunks => self.first + (chunks - 1) * CHUNK,
        }
    }

    /// Restores C2 after a change of `chunks`.
    fn update_list(&mut self) {
        let chunks = NonNull::new(self.chunks.as_mut_ptr()).filter(|_| !self.chunks.is_empty());
        self.list = chunks.unwrap_or(Self::NO_LIST);
    }

    /// The pointer to a line for which there is memory. Without chunks, line 0 is an empty static
    /// one.
    #[inline]
    fn pointer(&self, line: usize) -> NonNull<Line> {
        debug_assert!(line < self.capacity().max(1), "L1");
        // SAFETY: C2 and L1: there is memory for all lines in use, and without chunks `NO_CHUNKS`
        // has one line, so this chunk exists.
        let chunk = unsafe { self.list.add(line >> BITS) };
        // SAFETY: as above.
        let chunk = unsafe { chunk.read() };
        // SAFETY: C1 and L1: the chunk has this line.
        unsafe { chunk.add(line & (CHUNK - 1)) }
    }

    /// A line that is in use. Without chunks, line 0 is an empty static one.
    #[inline]
    pub(super) fn line(&self, line: usize) -> &Line {
        // SAFETY: C1: initialised, and borrowed as `self` is.
        unsafe { self.pointer(line).as_ref() }
    }

    /// A line that is in use.
    #[inline]
    pub(super) fn line_mut(&mut self, line: usize) -> &mut Line {
        debug_assert!(line < self.capacity(), "L1");
        // SAFETY: C1: initialised, and borrowed as `self` is. It is in use, so it is not the static
        // one: a table without lines has no entries to remove, and grows before it inserts one.
        unsafe { self.pointer(line).as_mut() }
    }

    /// The lines from `count` on, which are not in use.
    pub(super) fn spare(&self, count: usize) -> impl Iterator<Item = &Line> {
        (count..self.capacity()).map(|line| self.line(line))
    }
}

impl<A: Allocator + Clone> Chunks<A> {
    /// Makes the memory fit `lines`; those that are there in both cases keep their entries. More
    /// of them are empty.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated. The entries are unchanged; some memory may be allocated.
    pub(super) fn resize(&mut self, lines: usize) -> Result<(), TryReserveError> {
        if lines == 0 {
            *self = Self::new_in(self.chunks.allocator().clone());
            return Ok(());
        }
        if self.first != first_of(lines) {
            self.replace_first(first_of(lines), lines)?;
        }
        while self.capacity() < lines {
            self.reserve_chunk()?;
            let chunk = allocate(CHUNK, self.chunks.allocator())?;
            self.chunks.push(chunk);
        }
        while self.capacity() - CHUNK.min(self.capacity()) >= lines {
            if let Some(chunk) = self.chunks.pop() {
                free(chunk, CHUNK, self.chunks.allocator());
            }
        }
        Ok(())
    }

    /// Replaces the first chunk by one of another size, with the first `lines`. There are no
    /// others, unless it has [`CHUNK`] lines.
    fn replace_first(&mut self, first: usize, lines: usize) -> Result<(), TryReserveError> {
        self.reserve_chunk()?;
        let (chunk, copied) =
            (allocate(first, self.chunks.allocator())?, self.first.min(first).min(lines));
        for line in 0..copied {
            // SAFETY: the new chunk has at least as many lines.
            let to = unsafe { chunk.add(line) };
            // SAFETY: as above.
            unsafe { to.write(*self.line(line)) };
        }
        let before = core::mem::replace(&mut self.first, first);
        match self.chunks.first_mut().map(|place| core::mem::replace(place, chunk)) {
            Some(replaced) => free(replaced, before, self.chunks.allocator()),
            None => self.chunks.push(chunk),
        }
        self.update_list();
        Ok(())
    }

    /// Allocates memory for another chunk in the list.
    fn reserve_chunk(&mut self) -> Result<(), TryReserveError> {
        reserve_one(&mut self.chunks)?;
        self.update_list();
        Ok(())
    }

    /// An upper bound of the bytes that [`resize`](Self::resize) to more lines allocates, before
    /// it frees anything.
    pub(super) fn growth(&self, lines: usize) -> usize {
        let first = if self.first == first_of(lines) { 0 } else { first_of(lines) };
        let others = lines.saturating_sub(self.capacity().max(first)).div_ceil(CHUNK) * CHUNK;
        let is_full = self.chunks.len() == self.chunks.capacity();
        let list = if is_full { (2 * self.chunks.capacity()).max(4) } else { 0 };
        (first + others) * size_of::<Line>() + list * size_of::<NonNull<Line>>()
    }

    /// Bytes allocated.
    pub(super) fn allocation_size(&self) -> usize {
        self.capacity() * size_of::<Line>() + self.chunks.capacity() * size_of::<NonNull<Line>>()
    }
}

impl<A: Allocator + Clone> Clone for Chunks<A> {
    fn clone(&self) -> Self {
        let mut clone = Self::new_in(self.chunks.allocator().clone());
        clone.resize(self.capacity()).unwrap_or_else(|error| error.raise());
        (0..self.capacity()).for_each(|line| *clone.line_mut(line) = *self.line(line));
        clone
    }
}

impl<A: Allocator> Drop for Chunks<A> {
    fn drop(&mut self) {
        let sizes = core::iter::once(self.first).chain(core::iter::repeat(CHUNK));
        for (chunk, lines) in self.chunks.iter().zip(sizes) {
            free(*chunk, lines, self.chunks.allocator());
        }
    }
}
