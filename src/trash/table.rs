//! How a table grows and shrinks: a segment at a time, in a fixed order.
//!
//! The number of slots follows the number of entries, between two loads. An insertion that finds the
//! table too full, and a removal that finds it too empty, takes one *step*:
//!
//! ```text
//! buckets of      128                      181                     2 × 128
//! a segment
//!             ┌ sweep ──────────────────► ┌ sweep ──────────────────►
//! step:       0 1 2 … cursor …            0 1 2 …   each one splits
//! ```
//!
//! A sweep gives one segment after the other 1.41 times as many buckets; the next one splits them. A
//! removal steps backwards on the same way. So the memory of an entry is the same at every size, no
//! step touches more than a segment or two, and a table of constant size never takes one, whatever
//! comes and goes.
//!
//! More sweeps for a doubling would allow a higher load, and move entries more often: with four of them
//! 40 bytes for an entry of 24, not 43, but 5.5 moves instead of three.
//!
//! Entries are spread by chance. A segment that gets more than its share before its turn grows on its
//! own (`relieve`); when that does not help, the hashes are not random and the table says that it is
//! *flooded*.

use alloc::vec::Vec;

use super::bucket::{SLOTS, path};
use super::directory::{Directory, IntoSegments, Segments, SegmentsMut};
use super::error::{TryReserveError, reserve};
use super::segment::{Glance, Segment};
use super::shell::Shell;
use super::slot::SlotId;
use crate::probes::Observer;

/// A step is taken when the load would get above this, in 64ths.
///
/// A higher one makes more entries miss their home. It is the load of the whole table: segments that a
/// sweep has just left are at 26 64ths, those that it is about to reach at 52.
const GROW_ABOVE: usize = 37;

/// A step back is taken when the load would be below this behind it, in 64ths.
const SHRINK_BELOW: usize = 28;

/// An entry that would be further from its home than this many buckets makes its segment grow. If
/// the segment has room nevertheless, hashes are not random: at a load of one half, buckets are full in
/// such a row by chance once in some 10^10 insertions.
pub(super) const REACH: usize = 16;

/// A segment has room at this load, in 64ths: to grow would be a waste.
const ROOMY: usize = 32;

/// Bytes of a segment that has just been split, at most. Twice that much is moved by one step.
const SEGMENT: usize = 32 << 10;

pub(super) struct Table<T> {
    pub(super) directory: Directory<T>,
    /// Buckets of the segments that the sweep has not reached yet.
    size: usize,
    /// The segment that the sweep comes to next, counted without those that split in it.
    cursor: usize,
    /// Entries.
    len: usize,
    /// Slots of all segments.
    slots: usize,
    /// The table does not get smaller than for so many entries.
    reserved: usize,
    /// Hashes have been found that are not random.
    flooded: bool,
}

/// Where an entry is: the place in the directory, and the spot in the segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    index: u32,
    spot: SlotId,
}

/// Room for an entry: a segment with a free slot, and a box if it needs one.
pub(super) struct Room<T> {
    index: usize,
    hash: u64,
    path: u64,
    shell: Shell<T>,
}

/// How many entries so many slots have at a load, in 64ths.
const fn entries_at(slots: usize, load: usize) -> usize {
    (slots / SLOTS).saturating_mul(load) / (64 / SLOTS)
}

/// The next number of buckets above: one between two powers of two, in the middle of their ratio.
const fn larger(buckets: usize) -> usize {
    if buckets.is_power_of_two() { between(buckets) } else { buckets.next_power_of_two() }
}

/// The next number of buckets below.
const fn smaller(buckets: usize) -> usize {
    match buckets {
        2 => 1,
        _ if buckets.is_power_of_two() => between(buckets / 2),
        _ => buckets.next_power_of_two() / 2,
    }
}

/// Times the square root of two.
const fn between(buckets: usize) -> usize {
    buckets + (buckets * 53).div_ceil(128)
}

impl<T> Table<T> {
    /// Buckets of a segment that has just been split: a power of two.
    const SPLIT: usize = {
        let buckets = SEGMENT / Segment::<T>::BUCKET;
        1 << (if buckets > 256 { 256 } else { buckets }).ilog2()
    };

    /// A table without segments.
    pub(super) const fn new() -> Self {
        Self {
            directory: Directory::new(),
            size: 0,
            cursor: 0,
            len: 0,
            slots: 0,
            reserved: 0,
            flooded: false,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Whether an insertion has found that hashes are not random.
    #[inline]
    pub(super) const fn is_flooded(&self) -> bool {
        self.flooded
    }

    /// What is found from here on counts anew.
    pub(super) const fn forget_flood(&mut self) {
        self.flooded = false;
    }

    /// Slots of all segments.
    pub(super) const fn slots(&self) -> usize {
        self.slots
    }

    /// Every segment once.
    pub(super) fn iter(&self) -> Segments<'_, T> {
        self.directory.segments()
    }

    /// Every segment once, as its entries, to change.
    pub(super) fn iter_mut(&mut self) -> SegmentsMut<'_, T> {
        self.directory.iter_mut()
    }

    /// Every segment once.
    pub(super) fn into_segments(self) -> IntoSegments<T> {
        self.directory.into_segments()
    }

    /// A table with clones of the entries, of the same shape.
    pub(super) fn try_clone(&self) -> Result<Self, TryReserveError>
    where
        T: Clone,
    {
        Ok(Self { directory: self.directory.try_clone()?, ..*self })
    }

    /// Entries that fit before the next step.
    pub(super) const fn capacity(&self) -> usize {
        entries_at(self.slots, GROW_ABOVE)
    }

    /// Bytes allocated.
    pub(super) fn allocation_size(&self) -> usize {
        self.slots / SLOTS * Segment::<T>::BUCKET
            + self.directory.allocation_size()
            + self.len * Segment::<T>::BOX
    }

    /// The segment of this path.
    #[inline]
    pub(super) fn segment(&self, path: u64) -> Option<&Segment<T>> {
        self.directory.get(self.directory.index(path))
    }

    /// What the home of this hash says of it.
    #[inline]
    pub(super) fn glance(&self, hash: u64) -> Glance<'_, T> {
        let path = path(hash);
        self.segment(path).map_or(Glance::Absent, |segment| segment.glance(hash, path))
    }

    /// The entry of this hash for which `is` says so.
    pub(super) fn find(
        &self,
        hash: u64,
        is: impl FnMut(&T) -> bool,
        observer: &mut impl Observer,
    ) -> Option<&T> {
        let path = path(hash);
        self.segment(path)?.find(hash, path, is, observer)
    }

    /// Where the entry of this hash is for which `is` says so.
    #[inline]
    pub(super) fn locate(&self, hash: u64, is: impl Fn(&T) -> bool) -> Option<Position> {
        let path = path(hash);
        let index = self.directory.index(path);
        let segment = self.directory.get(index)?;
        let spot = match segment.glance(hash, path) {
            Glance::Perhaps(spot, entry) if is(entry) => spot,
            Glance::Absent => return None,
            _ => segment.locate(hash, path, is)?,
        };
        Some(Position { index: index as u32, spot })
    }

    /// The first entry in the home of this hash that may have it, to change.
    #[inline]
    pub(super) fn first_mut(&mut self, hash: u64) -> Option<&mut T> {
        self.directory.first_mut(hash, path(hash))
    }

    /// The entry at a position.
    #[inline]
    pub(super) fn get(&self, at: Position) -> Option<&T> {
        self.directory.get(at.index as usize)?.get(at.spot)
    }

    /// The entry at a position, to change.
    #[inline]
    pub(super) fn get_mut(&mut self, at: Position) -> Option<&mut T> {
        self.directory.get_mut(at.index as usize, at.spot)
    }

    /// Takes out the entry at a position. The table does not get smaller yet: see [`Self::tidy`].
    #[inline]
    pub(super) fn take(&mut self, at: Position) -> Option<T> {
        let entry = self.directory.take(at.index as usize, at.spot)?;
        self.len -= 1;
        Some(entry)
    }

    /// Makes room for an entry of this hash, which will go to the segment at the place returned.
    /// `hasher` is asked for the hashes of entries that have to move; no other code of the user's
    /// runs, and none at all when the entry is then put in.
    ///
    /// # Errors
    ///
    /// If memory is needed and cannot be had. While there is a free slot, none is needed.
    #[inline]
    pub(super) fn make_room(
        &mut self,
        hash: u64,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<Room<T>, TryReserveError> {
        let path = path(hash);
        let mut index = self.directory.index(path);
        let has_free = self.directory.get(index).is_some_and(|segment| segment.has_free(path));
        if self.len >= self.capacity() || !has_free {
            self.widen(path, hasher)?;
            index = self.directory.index(path);
        }
        Ok(Room { index, hash, path, shell: Segment::shell()? })
    }

    /// Takes a step if one is due, and sees to it that the segment of this path has a free slot.
    #[cold]
    #[inline(never)]
    fn widen(&mut self, path: u64, hasher: &impl Fn(&T) -> u64) -> Result<(), TryReserveError> {
        if self.len >= self.capacity() {
            match self.grow(hasher) {
                Err(error) if self.slots == 0 => return Err(error),
                _ => {}
            }
        }
        let index = self.directory.index(path);
        let free = self.distance_to_free(index, path);
        if free.is_none_or(|distance| distance > REACH) {
            match self.relieve(index, hasher) {
                Err(error) if free.is_none() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    #[inline]
    fn distance_to_free(&self, index: usize, path: u64) -> Option<usize> {
        self.directory.get(index)?.distance_to_free(path)
    }

    /// Puts in an entry where room has just been made for it.
    #[inline]
    pub(super) fn put(&mut self, room: Room<T>, entry: T) -> Position {
        let Room { index, hash, path, shell } = room;
        let spot = self.directory.insert(index, hash, path, shell, entry);
        self.len += 1;
        Position { index: index as u32, spot }
    }

    /// Gives a segment more buckets out of turn, where an entry would be far from home. If the segment
    /// has room as it is, or has got far more than its share, hashes are not random.
    fn relieve(
        &mut self,
        index: usize,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<(), TryReserveError> {
        let Some(segment) = self.directory.get(index) else { return Ok(()) };
        let (buckets, count) = (segment.buckets(), segment.count());
        let is_roomy = count <= entries_at(buckets * SLOTS, ROOMY);
        self.flooded |= is_roomy || buckets > 4 * Self::SPLIT;
        if is_roomy { Ok(()) } else { self.resize(index, larger(buckets), hasher) }
    }

    /// Entries to change, several at once.
    ///
    /// # Panics
    ///
    /// If one is asked for twice.
    pub(super) fn get_many_mut<const N: usize>(
        &mut self,
        at: [Option<Position>; N],
    ) -> [Option<&mut T>; N] {
        self.directory.get_many_mut(at.map(|at| at.map(|at| (at.index as usize, at.spot))))
    }

    /// Drops the entries for which `keep` does not say so. Leaves the holes, and does not get smaller.
    pub(super) fn retain(&mut self, keep: impl FnMut(&mut T) -> bool, hasher: &impl Fn(&T) -> u64) {
        self.directory.retain(&mut self.len, keep, hasher);
    }

    /// Lets entries into the free slots where one has been taken out, if they have passed it.
    #[inline]
    pub(super) fn fill_hole(&mut self, at: Position, hasher: &impl Fn(&T) -> u64) {
        if self.directory.is_passed(at.index as usize, at.spot) {
            self.directory.fill_hole(at.index as usize, at.spot, hasher);
        }
    }

    /// Lets entries into free slots that they have passed. O(slots).
    pub(super) fn fill_all_holes(&mut self, hasher: &impl Fn(&T) -> u64) {
        self.directory.fill_all_holes(hasher);
    }

    /// Takes steps back, at most `steps`, while the table is too large for what is in it.
    pub(super) fn tidy(&mut self, steps: usize, hasher: &impl Fn(&T) -> u64) {
        for _ in 0..steps {
            // Without memory for a smaller one, the larger one will do.
            if !self.is_too_large(SHRINK_BELOW) || self.shrink(hasher).is_err() {
                return;
            }
        }
    }

    /// Whether the load would be below this, in 64ths, after another step back.
    #[inline]
    fn is_too_large(&self, load: usize) -> bool {
        if self.size <= 1 {
            return false;
        }
        let last = if self.directory.len() == 2 { self.size - smaller(self.size) } else { 0 };
        self.len.max(self.reserved) < entries_at(self.slots - last * SLOTS, load)
    }

    /// Makes room for `additional` entries more.
    pub(super) fn reserve(
        &mut self,
        additional: usize,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<(), TryReserveError> {
        let wanted = self.len.checked_add(additional).ok_or(TryReserveError::OVERFLOW)?;
        if wanted > self.capacity() + SLOTS * Self::SPLIT {
            self.probe(wanted)?;
        }
        while self.capacity() < wanted {
            self.grow(hasher)?;
        }
        Ok(())
    }

    /// From now on the table does not get smaller than it must be for so many entries.
    pub(super) fn keep(&mut self, entries: usize) {
        self.reserved = self.reserved.max(entries);
    }

    /// What it keeps room for.
    pub(super) const fn kept(&self) -> usize {
        self.reserved
    }

    /// Asks for as much memory as so many entries take, and gives it back at once: what cannot be had
    /// is not begun with.
    fn probe(&self, wanted: usize) -> Result<(), TryReserveError> {
        let slots = (wanted / GROW_ABOVE).checked_mul(64).ok_or(TryReserveError::OVERFLOW)?;
        let buckets = slots.saturating_sub(self.slots) / SLOTS;
        let bytes = buckets.checked_mul(Segment::<T>::BUCKET).ok_or(TryReserveError::OVERFLOW)?;
        reserve(&mut Vec::<u8>::new(), bytes)
    }

    /// Gives back what was reserved, and what is free beyond the load at which the table grows.
    pub(super) fn shrink_to_fit(&mut self, hasher: &impl Fn(&T) -> u64) {
        self.reserved = 0;
        if self.len == 0 {
            *self = Self::new();
        }
        while self.is_too_large(GROW_ABOVE) && self.shrink(hasher).is_ok() {}
    }

    /// Whether the segments that the sweep has not reached are at two places of the directory: the
    /// segments of the last pair are those that split last, and are merged first.
    fn is_paired(&self) -> bool {
        self.directory.is_twice(self.directory.len() - 1)
    }

    /// One step forwards.
    fn grow(&mut self, hasher: &impl Fn(&T) -> u64) -> Result<(), TryReserveError> {
        if self.directory.len() == 0 {
            self.directory = Directory::with(Segment::with_buckets(1)?)?;
            (self.size, self.slots) = (1, SLOTS);
            return Ok(());
        }
        let buckets = larger(self.size);
        let paired = self.is_paired();
        let splits = buckets >= 2 * Self::SPLIT;
        if splits && !paired {
            return self.directory.double();
        }
        if splits {
            self.split(self.cursor, hasher)?;
        } else {
            let index = if paired { 2 * self.cursor } else { self.cursor };
            if self.buckets_at(index) < buckets {
                self.resize(index, buckets, hasher)?;
            }
            if !paired && larger(buckets) >= 2 * Self::SPLIT {
                // Without memory, doubling will ask again.
                let _ = self.directory.prepare(self.cursor + 1);
            }
        }
        self.cursor += 1;
        if self.cursor == self.directory.len() >> usize::from(paired) {
            self.cursor = 0;
            self.size = if splits { Self::SPLIT } else { buckets };
        }
        Ok(())
    }

    /// One step backwards.
    fn shrink(&mut self, hasher: &impl Fn(&T) -> u64) -> Result<(), TryReserveError> {
        let (mut size, mut cursor) = (self.size, self.cursor);
        if cursor == 0 {
            let merged = self.is_paired() && larger(size) >= 2 * Self::SPLIT;
            if merged && self.directory.len() > 2 {
                self.directory.halve();
            }
            let merges = size == Self::SPLIT && !self.is_paired();
            size = smaller(if merges { 2 * size } else { size });
            let halved = merges || self.is_paired();
            cursor = self.directory.len() >> usize::from(halved);
        }
        cursor -= 1;
        if larger(size) >= 2 * Self::SPLIT && !self.directory.is_twice(2 * cursor) {
            self.merge(cursor, size, hasher)?;
        } else {
            let index = if self.is_paired() { 2 * cursor } else { cursor };
            if self.buckets_at(index) > size {
                self.resize(index, size, hasher)?;
            }
            if !self.is_paired() && larger(larger(size)) >= 2 * Self::SPLIT {
                self.directory.prepare(cursor)?;
            }
        }
        (self.size, self.cursor) = (size, cursor);
        Ok(())
    }

    fn buckets_at(&self, index: usize) -> usize {
        self.directory.get(index).map_or(0, Segment::buckets)
    }

    /// The hashes of all entries of a segment. Code of the user's runs here, and nothing has changed
    /// yet.
    fn hashes(
        &self,
        index: usize,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<Vec<u64>, TryReserveError> {
        let mut hashes = Vec::new();
        if let Some(segment) = self.directory.get(index) {
            reserve(&mut hashes, segment.count())?;
            hashes.extend(segment.into_iter().map(hasher));
        }
        Ok(hashes)
    }

    /// A segment with `buckets` buckets, or more if so many entries do not fit into them well.
    fn segment_for(entries: usize, buckets: usize) -> Result<Segment<T>, TryReserveError> {
        Segment::with_buckets(buckets.max(entries.div_ceil(SLOTS - 1)))
    }

    /// Gives a segment another number of buckets.
    fn resize(
        &mut self,
        index: usize,
        buckets: usize,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<(), TryReserveError> {
        let hashes = self.hashes(index, hasher)?;
        let mut to = Self::segment_for(hashes.len(), buckets)?;
        let from = self.directory.replace(index, Segment::new());
        self.slots = self.slots + to.buckets() * SLOTS - from.buckets() * SLOTS;
        from.pour(&hashes, [&mut to], |_| 0);
        self.directory.replace(index, to);
        Ok(())
    }

    /// Splits the segment of a pair.
    fn split(&mut self, pair: usize, hasher: &impl Fn(&T) -> u64) -> Result<(), TryReserveError> {
        let hashes = self.hashes(2 * pair, hasher)?;
        let choose = |path| self.directory.index(path) % 2;
        let high = hashes.iter().filter(|&&hash| choose(path(hash)) == 1).count();
        let mut low = Self::segment_for(hashes.len() - high, Self::SPLIT)?;
        let mut high = Self::segment_for(high, Self::SPLIT)?;
        let from = self.directory.replace(2 * pair, Segment::new());
        self.slots += (low.buckets() + high.buckets()) * SLOTS;
        self.slots -= from.buckets() * SLOTS;
        let choose = |path| self.directory.index(path) % 2;
        from.pour(&hashes, [&mut low, &mut high], choose);
        self.directory.split(pair, [low, high]);
        Ok(())
    }

    /// Merges the segments of a pair into one of so many buckets.
    fn merge(
        &mut self,
        pair: usize,
        buckets: usize,
        hasher: &impl Fn(&T) -> u64,
    ) -> Result<(), TryReserveError> {
        let hashes = [self.hashes(2 * pair, hasher)?, self.hashes(2 * pair + 1, hasher)?];
        let mut to = Self::segment_for(hashes[0].len() + hashes[1].len(), buckets)?;
        let from = self.directory.merge(pair, Segment::new());
        self.slots += to.buckets() * SLOTS;
        for (from, hashes) in from.into_iter().zip(hashes) {
            self.slots -= from.buckets() * SLOTS;
            from.pour(&hashes, [&mut to], |_| 0);
        }
        self.directory.replace(2 * pair, to);
        Ok(())
    }
}

/// Where an emptying of a table has come to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Emptied {
    index: usize,
    bucket: usize,
}

impl<T> Table<T> {
    /// Where the next entry of a table is that is being emptied. Looks into `buckets` buckets
    /// at most, and counts them down. Gives back the memory of segments that are empty.
    pub(super) fn next_to_empty(
        &mut self,
        emptied: &mut Emptied,
        buckets: &mut usize,
    ) -> Option<Position> {
        while *buckets > 0 && emptied.index < self.directory.len() {
            let Emptied { index, bucket } = *emptied;
            if bucket >= self.buckets_at(index) {
                self.slots -= self.directory.replace(index, Segment::new()).buckets() * SLOTS;
                *emptied = Emptied { index: index + 1, bucket: 0 };
                continue;
            }
            let spot = self.directory.get(index).and_then(|segment| segment.first_in(bucket));
            if let Some(spot) = spot {
                return Some(Position { index: index as u32, spot });
            }
            emptied.bucket += 1;
            *buckets -= 1;
        }
        None
    }
}
