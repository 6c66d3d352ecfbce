//! Runs of units in chunks, without gaps inside of a run.
//!
//! ```text
//!     chunk 0  ▕aaa▏bbbbbbb▏··▏ccc▏d▏····▏eeee▏      chunk 1  ▕ffffff▏·········
//!     free      000 0000000 11 000 0 1111 0000                       └ end
//!     hints    2: [10]   4: [14]   …                 gaps, by the class of their room
//! ```
//!
//! A run is some units side by side, found by the index of the first. Who has a run knows how many
//! units are in use; from that follows how much room it takes, which is one of [`ROOMS`]. A run that
//! goes leaves a gap, which is remembered for the next run of the same room; without one, a run is cut
//! from the end. Of the Internet's table, put in in random order, nine tenths of the units are in use.
//!
//! Where all runs grow together, nobody comes to want the gaps of shorter ones. So which units are free
//! is in a bitmap, too, in which gaps that meet are one without anybody joining them; and when a quarter
//! of all units is free, chunks are looked through for gaps of any length before the end is touched.
//! The lists are hints then: a gap that is taken from one is asked whether it still is one.
//!
//! ChunkedVec never move, except for the first one while it is small, and are not given back before all is.
//! So what a run costs does not depend on how many there are: at the most, two chunks are looked through.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::iter;
use core::mem;

/// What is in a unit that is not in use.
pub(super) trait Blank {
    const BLANK: Self;

    /// How many units there may be in a pool: indices stay below.
    const MOST: u64;
}

/// How many units a run can take: it grows by an eighth to a quarter when it moves.
const ROOMS: [u8; 24] =
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128];

/// Units of the longest run.
const LONGEST: usize = ROOMS[ROOMS.len() - 1] as usize;

/// The class of each length from 1 on: the first room that it fits in.
const CLASSES: [u8; LONGEST + 1] = {
    let mut classes = [0; LONGEST + 1];
    let mut len = 1;
    while len < classes.len() {
        let class = classes[len - 1];
        classes[len] = if len > ROOMS[class as usize] as usize { class + 1 } else { class };
        len += 1;
    }
    classes
};

/// So many hints at what is no gap any more are put up with for a run.
const STALE: usize = 16;

/// So many chunks are looked through for a run, and so many asked whether that is worth it.
const PATIENCE: (usize, usize) = (2, 16);

/// Hints of a class: more are not remembered, so that no update has to move a long list to a longer one.
const MOST_HINTS: usize = 1 << 12;

/// One route makes fewer runs than fit in so many chunks.
const FRESH: u64 = 64;

fn class_of(len: u32) -> usize {
    usize::from(CLASSES[len as usize])
}

/// Units that a run of `len` takes.
pub(super) fn room(len: u32) -> u32 {
    if len == 0 { 0 } else { u32::from(ROOMS[class_of(len)]) }
}

/// Which units of a chunk are gaps.
#[derive(Debug)]
struct Gaps {
    /// A one for each.
    map: Box<[u64]>,
    free: usize,
}

/// Runs of units of type `T`.
#[derive(Debug)]
pub(super) struct Pool<T> {
    chunks: Vec<Box<[T]>>,
    gaps: Vec<Gaps>,
    /// Where there have been gaps, by the class of their room; and how many hints that are.
    hints: Vec<Vec<u32>>,
    hinted: usize,
    /// The chunk to be looked through next.
    next: usize,
    /// The first unit that has never been in a run.
    end: u32,
    /// Units in gaps, and in runs.
    free: usize,
    used: usize,
}

impl<T: Blank> Pool<T> {
    /// Bits of the index of a unit in its chunk: a chunk of units of up to 64 bytes has up to 32 KiB.
    const SHIFT: u32 = match mem::size_of::<T>() {
        0..=8 => 12,
        9..=16 => 11,
        17..=32 => 10,
        33..=64 => 9,
        65.. => 8,
    };

    /// Units of a chunk; of the first one, after it has grown.
    const UNITS: usize = 1 << Self::SHIFT;

    pub(super) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            gaps: Vec::new(),
            hints: Vec::new(),
            hinted: 0,
            next: 0,
            end: 0,
            free: 0,
            used: 0,
        }
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> &T {
        &self.chunks[(index >> Self::SHIFT) as usize][index as usize % Self::UNITS]
    }

    /// [`get`](Self::get) without asking whether there is such a unit.
    ///
    /// # Safety
    ///
    /// `index` is of a unit of a run, or was at some time.
    #[inline]
    pub(super) unsafe fn get_unchecked(&self, index: u32) -> &T {
        // SAFETY: the run is in a chunk that there is, since chunks are not given back.
        let chunk = unsafe { self.chunks.get_unchecked((index >> Self::SHIFT) as usize) };
        // SAFETY: a run does not go beyond its chunk.
        unsafe { chunk.get_unchecked(index as usize % Self::UNITS) }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: u32) -> &mut T {
        &mut self.chunks[(index >> Self::SHIFT) as usize][index as usize % Self::UNITS]
    }

    /// A run of one unit.
    pub(super) fn single(&mut self, unit: T) -> u32 {
        let run = self.take(class_of(1));
        *self.get_mut(run) = unit;
        run
    }

    /// Puts a unit into a run of `len`, in front of its unit `at`. Returns where the run is now.
    pub(super) fn insert(&mut self, run: u32, len: u32, at: u32, unit: T) -> u32 {
        let run = self.resize(run, len, len + 1);
        let units = &mut self.run_mut(run, len + 1)[at as usize..];
        units.rotate_right(1);
        units[0] = unit;
        run
    }

    /// Takes the unit `at` out of a run of `len`. Returns where the run is now.
    pub(super) fn remove(&mut self, run: u32, len: u32, at: u32) -> (T, u32) {
        let units = &mut self.run_mut(run, len)[at as usize..];
        let unit = mem::replace(&mut units[0], T::BLANK);
        units.rotate_left(1);
        (unit, self.resize(run, len, len - 1))
    }

    /// A run of `len` blank units.
    pub(super) fn run(&mut self, len: u32) -> u32 {
        if len == 0 { 0 } else { self.take(class_of(len)) }
    }

    /// Bytes that are allocated.
    pub(super) fn allocation_size(&self) -> usize {
        let units: usize = self.chunks.iter().map(|chunk| chunk.len()).sum();
        let hints: usize = self.hints.iter().map(Vec::capacity).sum();
        units * mem::size_of::<T>()
            + self.gaps.len() * (Self::UNITS / 8)
            + hints * mem::size_of::<u32>()
            + self.hints.capacity() * mem::size_of::<Vec<u32>>()
            + self.chunks.capacity() * mem::size_of::<Box<[T]>>()
            + self.gaps.capacity() * mem::size_of::<Gaps>()
    }

    /// Whether some more runs can be made for sure.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        ((self.chunks.len() as u64 + FRESH) << Self::SHIFT) <= T::MOST
    }

    /// Whether there never has been a run.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Units in runs, with the room that they have.
    pub(super) const fn used(&self) -> usize {
        self.used
    }

    fn run_mut(&mut self, run: u32, len: u32) -> &mut [T] {
        &mut self.chunks[(run >> Self::SHIFT) as usize][run as usize % Self::UNITS..]
            [..len as usize]
    }

    /// Gives a run the room for another number of units, of which the smaller one is in use.
    fn resize(&mut self, run: u32, len: u32, new_len: u32) -> u32 {
        if room(len) == room(new_len) {
            return run;
        }
        let resized = if new_len > 0 { self.take(class_of(new_len)) } else { run };
        // Nobody takes the gap before the units in it have moved.
        if len > 0 {
            self.used -= room(len) as usize;
            self.leave(run, room(len) as usize);
        }
        self.exchange(run, resized, len.min(new_len) as usize);
        resized
    }

    /// Exchanges the units of two runs, which have none in common.
    fn exchange(&mut self, one: u32, other: u32, len: usize) {
        let chunk_of = |run| (run >> Self::SHIFT) as usize;
        let (at, to) = (one as usize % Self::UNITS, other as usize % Self::UNITS);
        let mut chunk = mem::take(&mut self.chunks[chunk_of(one)]);
        if chunk_of(one) == chunk_of(other) {
            let (low, high) = chunk.split_at_mut(at.max(to));
            low[at.min(to)..][..len].swap_with_slice(&mut high[..len]);
        } else {
            let others = &mut self.chunks[chunk_of(other)][to..][..len];
            chunk[at..][..len].swap_with_slice(others);
        }
        self.chunks[chunk_of(one)] = chunk;
    }

    /// Takes a run of a class. Somebody has asked whether the pool [`has_room`](Self::has_room).
    fn take(&mut self, class: usize) -> u32 {
        self.used += usize::from(ROOMS[class]);
        if let Some(gap) = self.reuse(class) {
            return gap;
        }
        if self.free > (self.free + self.used) / 4 {
            self.look_through();
            if let Some(gap) = (class..ROOMS.len()).find_map(|larger| self.part(larger, class)) {
                return gap;
            }
        }
        self.cut(usize::from(ROOMS[class]))
    }

    /// Takes a gap of a class that is hinted at.
    fn reuse(&mut self, class: usize) -> Option<u32> {
        for _ in 0..STALE {
            let gap = self.hints.get_mut(class)?.pop()?;
            self.hinted -= 1;
            let (at, room) = (gap as usize % Self::UNITS, usize::from(ROOMS[class]));
            let gaps = &mut self.gaps[(gap >> Self::SHIFT) as usize];
            if gaps.are_free(at, room) {
                gaps.set(at, room, false);
                self.free -= room;
                return Some(gap);
            }
        }
        None
    }

    /// Takes a run of a class out of a gap of another one, which is as large or larger.
    fn part(&mut self, larger: usize, class: usize) -> Option<u32> {
        let gap = self.reuse(larger)?;
        let rest = usize::from(ROOMS[larger] - ROOMS[class]);
        if rest > 0 {
            self.leave(gap + u32::from(ROOMS[class]), rest);
        }
        Some(gap)
    }

    /// Remembers the gaps of the next chunks that have some, at their full lengths.
    fn look_through(&mut self) {
        if self.hinted > self.free {
            // More hints than units: most are of what is no more.
            self.hints.iter_mut().for_each(Vec::clear);
            self.hinted = 0;
        }
        let mut looked = 0;
        for _ in 0..PATIENCE.1.min(self.gaps.len()) {
            self.next = (self.next + 1) % self.gaps.len();
            if self.gaps[self.next].free < Self::UNITS / 8 {
                continue;
            }
            let (mut at, first) = (0, (self.next << Self::SHIFT) as u32);
            while let Some((gap, length)) = self.gaps[self.next].next_gap(at) {
                self.hint(first + gap as u32, length);
                at = gap + length;
            }
            looked += 1;
            if looked == PATIENCE.0 {
                return;
            }
        }
    }

    /// Remembers the parts of a gap.
    fn hint(&mut self, mut from: u32, mut length: usize) {
        while length > 0 {
            let class = ROOMS.iter().rposition(|&room| usize::from(room) <= length);
            let class = class.expect("there is a room of one unit");
            if self.hints[class].len() < MOST_HINTS {
                self.hints[class].push(from);
                self.hinted += 1;
            }
            from += u32::from(ROOMS[class]);
            length -= usize::from(ROOMS[class]);
        }
    }

    /// Makes a gap of some units.
    fn leave(&mut self, from: u32, length: usize) {
        let gaps = &mut self.gaps[(from >> Self::SHIFT) as usize];
        gaps.set(from as usize % Self::UNITS, length, true);
        self.free += length;
        self.hint(from, length);
    }

    /// Cuts a run of `room` units from the end.
    fn cut(&mut self, room: usize) -> u32 {
        let mut left = self.units() - self.end as usize;
        while left < room {
            if !self.grow_first() {
                if left > 0 {
                    self.leave(self.end, left);
                    self.end += left as u32;
                }
                self.chunks.push(blank(Self::UNITS));
                self.gaps.push(Gaps::new(Self::UNITS));
            }
            left = self.units() - self.end as usize;
        }
        let run = self.end;
        self.end += room as u32;
        run
    }

    /// The index behind the last unit.
    fn units(&self) -> usize {
        match self.chunks.as_slice() {
            [] => 0,
            [only] => only.len(),
            [..] => self.chunks.len() << Self::SHIFT,
        }
    }

    /// Makes the first chunk, or doubles it while it is small.
    fn grow_first(&mut self) -> bool {
        if self.gaps.is_empty() {
            self.gaps.push(Gaps::new(Self::UNITS));
            self.hints.resize(ROOMS.len(), Vec::new());
        }
        let units = match self.chunks.as_slice() {
            [] => LONGEST / 4,
            [first] if first.len() < Self::UNITS => 2 * first.len(),
            [..] => return false,
        };
        let old = self.chunks.pop().unwrap_or_default().into_vec();
        let more = units - old.len();
        let grown = old.into_iter().chain(iter::repeat_with(|| T::BLANK).take(more));
        self.chunks.push(grown.collect());
        true
    }
}

fn blank<T: Blank>(units: usize) -> Box<[T]> {
    iter::repeat_with(|| T::BLANK).take(units).collect()
}

impl Gaps {
    fn new(units: usize) -> Self {
        Self { map: iter::repeat_n(0, units / 64).collect(), free: 0 }
    }

    /// Makes units free, or not.
    fn set(&mut self, at: usize, count: usize, free: bool) {
        for (word, mask) in masks(at, count) {
            match free {
                true => self.map[word] |= mask,
                false => self.map[word] &= !mask,
            }
        }
        self.free = if free { self.free + count } else { self.free - count };
    }

    fn are_free(&self, at: usize, count: usize) -> bool {
        masks(at, count).all(|(word, mask)| self.map[word] & mask == mask)
    }

    /// The first gap at or behind a unit, and its length.
    fn next_gap(&self, from: usize) -> Option<(usize, usize)> {
        let gap = self.first(from, 0)?;
        let end = self.first(gap, u64::MAX).unwrap_or(64 * self.map.len());
        Some((gap, end - gap))
    }

    /// The first one at or behind a unit, in the map with its bits flipped by `flip`.
    fn first(&self, from: usize, flip: u64) -> Option<usize> {
        let words = self.map.get(from / 64..)?.iter().enumerate();
        let mut ones = words.map(|(nth, word)| (from / 64 * 64 + 64 * nth, word ^ flip));
        let (first, word) = ones.next()?;
        let rest = word >> (from % 64) << (from % 64);
        iter::once((first, rest))
            .chain(ones)
            .find(|&(_, word)| word != 0)
            .map(|(first, word)| first + word.trailing_zeros() as usize)
    }
}

/// The words that some bits are in, each with a mask of them.
fn masks(at: usize, count: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = at + count;
    (at / 64..end.div_ceil(64)).map(move |word| {
        let (from, to) = (at.max(64 * word) - 64 * word, end.min(64 * word + 64) - 64 * word);
        (word, u64::MAX >> (64 - (to - from)) << from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_has_the_least_room_that_it_fits_in() {
        for len in 1..=LONGEST as u32 {
            let fits = |&&room: &&u8| u32::from(room) >= len;
            assert_eq!(ROOMS.iter().find(fits).copied().map(u32::from), Some(room(len)));
        }
    }
}
