//! Runs of units in chunks, without gaps inside of a run.
//!
//! ```text
//!     chunk 0  ▕aaa▏bbbbbbb▏··▏ccc▏d▏····▏eeee▏      chunk 1  ▕ffffff▏·········
//!                            2        4                               └ end
//!     free     2: [10]   4: [14]   …                 the gaps, by the class of their room
//! ```
//!
//! A run is some units side by side, found by the index of the first. Who has a run knows how many
//! units are in use; from that follows how much room it takes, which is one of [`ROOMS`]. A run that
//! goes leaves a gap that is good for the next run of the same room; without one, a run is cut from the
//! end. Gaps are not joined: most runs of a growing table that leave one class enter it elsewhere. Of
//! the real Internet table, put in in random order, nine tenths of the units are in use.
//!
//! Chunks never move, except for the first one while it is small. So what a run costs does not depend
//! on how many there are.
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

/// One route makes fewer runs than fit in so many chunks.
const FRESH: u64 = 64;

fn class_of(len: u32) -> usize {
    usize::from(CLASSES[len as usize])
}

/// Units that a run of `len` takes.
pub(super) fn room(len: u32) -> u32 {
    if len == 0 { 0 } else { u32::from(ROOMS[class_of(len)]) }
}

/// Runs of units of type `T`.
#[derive(Debug)]
pub(super) struct Pool<T> {
    chunks: Vec<Box<[T]>>,
    /// Gaps by class.
    free: [Vec<u32>; ROOMS.len()],
    /// The first unit that has never been in a run.
    end: u32,
    /// Units in runs.
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
        Self { chunks: Vec::new(), free: [const { Vec::new() }; ROOMS.len()], end: 0, used: 0 }
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
        let gaps: usize = self.free.iter().map(Vec::capacity).sum();
        let chunks = self.chunks.capacity();
        units * mem::size_of::<T>()
            + gaps * mem::size_of::<u32>()
            + chunks * mem::size_of::<Box<[T]>>()
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
        for at in 0..len.min(new_len) {
            let unit = mem::replace(self.get_mut(run + at), T::BLANK);
            *self.get_mut(resized + at) = unit;
        }
        if len > 0 {
            self.used -= room(len) as usize;
            self.free[class_of(len)].push(run);
        }
        resized
    }

    /// Takes a run of a class. Somebody has asked whether the pool [`has_room`](Self::has_room).
    fn take(&mut self, class: usize) -> u32 {
        let room = usize::from(ROOMS[class]);
        self.used += room;
        self.free[class].pop().unwrap_or_else(|| self.cut(room))
    }

    /// Cuts a run of `room` units from the end.
    fn cut(&mut self, room: usize) -> u32 {
        let mut left = self.units() - self.end as usize;
        while left < room {
            if !self.grow_first() {
                self.leave(left);
                self.chunks.push(blank(Self::UNITS));
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

    /// Makes gaps of the units that are left at the end.
    fn leave(&mut self, mut left: usize) {
        while left > 0 {
            let class = ROOMS.iter().rposition(|&room| usize::from(room) <= left);
            let class = class.expect("there is a room of one unit");
            self.free[class].push(self.end);
            self.end += u32::from(ROOMS[class]);
            left -= usize::from(ROOMS[class]);
        }
    }

    /// Makes the first chunk, or doubles it while it is small.
    fn grow_first(&mut self) -> bool {
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
