//! Index lines: 12 tags and 12 record numbers in one cache line.
//!
//! ```text
//!  hash, 32 bits   │ top 8 bits: tag │        … low bits: home line       │
//!
//!  line, 64 bytes  │ 12 tags │ overflow count │ 3 spare │ 12 numbers of 4 bytes │
//!                    1 byte, 0: free slot
//!
//!  segment         64 lines: an entry is in its home line, or in a later one of the segment,
//!                  around its end        home ──▸ full, 1 ──▸ full, 1 ──▸ free slot
//!
//!  table           │ segment 0 │ segment 1 │ 2 │ 3 │ … │ n │            chunks of 512 lines
//!                   ▲ splits next: half of its entries move behind n
//! ```
//!
//! For structures whose records do not move: the table maps a hash to numbers, and the caller
//! compares the keys in its records. A lookup reads two cache lines that depend on each other, the
//! index line and the record. It has no hashes but those that it is given: `hash_of` closures
//! return the hash of a number, which the record stores.
//!
//! - **A lookup** compares 12 tags at once. The overflow count of a line is the number of entries
//!   that have passed it on their way from home; a lookup goes on while it is not 0.
//! - **A removal** finds the slot by the stored hash and the number: it neither hashes nor compares
//!   a key, and moves nothing. There are no tombstones.
//! - **An entry beyond its home line** stays there, until its owner [moves](Lines::bring_home) it
//!   home, after a lookup: if entries come and go, one insertion in ten finds its home line full,
//!   which has a free slot soon after.
//! - **Growth** is linear hashing by segments: the table grows by one segment, whose entries come
//!   from one other. So an insertion rehashes 768 entries at most, whatever the size of the table,
//!   and there are no two tables side by side. While 2^k lines become 2^(k+1), those that have not
//!   split yet have 9 to 10 entries on average: see [`policy`].
//! - **Small tables** have 1, 2, 4, … lines, and are rebuilt when they grow. An empty one has no
//!   memory.
//! - **[`FixedLines`]** have a capacity, and do not grow. Their lines are in one array, and the
//!   home line takes one multiplication.
//!
//! # Invariants
//!
//! - **L1** There is memory for `count` lines, all of it initialised; lines that are not in use are
//!   empty. `count` is 0, a power of two up to 64, or a multiple of 64.
//! - **L2** Each entry has the tag of its hash, in a line of the segment of its home line; or it is
//!   in the *stash*, if all lines of the segment were full.
//! - **L3** The overflow count of a line is the number of entries that have passed it. An entry in
//!   the stash has passed all lines of its segment. A count of 255 is not decremented any
//!   more: it lasts until its line splits, merges or is cleared.
//! - **L4** `len` is the number of entries in lines and in the stash.
//!
//! # Hashes that are not random
//!
//! Equal hashes fill a segment, and then the stash, a list that lookups go through when they have
//! passed all lines of the segment. It works, and is slow: for the owner to use another hash, see
//! [`Lines::is_flooded`].
//!
//! # Costs
//!
//! 7 to 13 bytes for an entry. A split takes about 10 µs, once for 64 insertions or less often, if
//! the owner [prefetches](Lines::before_split) the hashes that it reads, with the insertions
//! before: twice that, and more, in a large table without. The list of chunks takes 8 bytes for
//! some 4000 entries. In bursts, the stages are
//! [`prefetch`](HomeLine::prefetch) the line, [`candidate`](HomeLine::candidate), whose record the
//! caller prefetches, and [`find`](Lines::find).

mod chunks;
mod growth;
mod line;
mod places;
mod policy;
#[cfg(test)]
mod tests;

use alloc::format;
use alloc::vec;

use crate::invariant::{InvariantError, ensure};
use crate::memory::{Allocator, Global, Vec};
use crate::probes::Observer;
use crate::raw::prefetch::prefetch;
use crate::table::error::{TryReserveError, reserve_one};
use line::Line;
use places::{Fixed, Growing, Places};

/// Numbers by hash, in lines that are growing in number or fixed.
#[derive(Clone, Debug)]
pub(crate) struct LineTable<P, A: Allocator> {
    places: P,
    len: usize,
    /// Hashes and numbers of entries for which there is no slot in their segment.
    stash: Vec<(u32, u32), A>,
}

/// Numbers by hash.
pub(crate) type Lines<A = Global> = LineTable<Growing<A>, A>;

/// Up to a fixed number of numbers by hash.
pub(crate) type FixedLines<A = Global> = LineTable<Fixed<A>, A>;

/// The 32 bits of a hash that an index uses: all 64 bits count, wherever their entropy is.
#[inline(always)]
pub(crate) fn fold(hash: u64) -> u32 {
    // The golden ratio: any odd number without a pattern does.
    let product = u128::from(hash) * 0x9e37_79b9_7f4a_7c15;
    (product >> 64) as u32 ^ product as u32
}

/// The tag of an entry: the upper eight bits of its hash, or 1 if they are the tag of a free slot.
#[inline(always)]
fn tag(hash: u32) -> u8 {
    ((hash >> 24) as u8).max(1)
}

/// The home line of a hash.
#[derive(Clone, Copy)]
pub(crate) struct HomeLine<'a>(&'a Line);

impl<'a> HomeLine<'a> {
    /// Prefetches the line.
    #[inline(always)]
    pub(crate) fn prefetch(self) {
        prefetch(self.0);
    }

    /// Returns what `found` returns for the first of the numbers that may be the one with this hash
    /// for which it is something.
    #[inline(always)]
    pub(crate) fn find_map<T>(
        self,
        hash: u32,
        mut found: impl FnMut(u32) -> Option<T>,
    ) -> Option<T> {
        let mut slots = self.0.matches_hash(hash);
        // Not as an iterator, which would clear the lowest bit before the next slot is needed.
        while !slots.is_empty() {
            let result = found(self.0.number(slots.lowest()));
            if result.is_some() {
                return result;
            }
            slots = slots.without_lowest();
        }
        None
    }

    /// Returns the first number that may be the one with this hash.
    #[inline(always)]
    pub(crate) fn first(self, hash: u32) -> Option<u32> {
        self.0.matches_hash(hash).next().map(|slot| self.0.number(slot))
    }

    /// Returns whether the overflow count is not 0: then the next line may have an entry with this
    /// one as its home.
    #[inline(always)]
    pub(crate) fn has_overflowed(self) -> bool {
        self.0.overflow() > 0
    }

    /// Returns a number that may be the one with this hash. If there is none, but there may be one
    /// in the next line, prefetches that, unless this is the last one of its segment.
    #[inline(always)]
    pub(crate) fn candidate(self, hash: u32) -> Option<u32> {
        let first = self.first(hash);
        if first.is_none() && self.has_overflowed() {
            prefetch((&raw const *self.0).wrapping_add(1));
        }
        first
    }
}

impl<A: Allocator + Clone> FixedLines<A> {
    /// A table for this number of entries. Their insertions do not allocate if their hashes are
    /// random, or if at most four have no slot in their segments.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(crate) fn with_capacity_in(entries: usize, memory: A) -> Result<Self, TryReserveError> {
        let (places, stash) = (Fixed::new_in(entries, memory.clone())?, Vec::new_in(memory));
        let mut table = Self { places, len: 0, stash };
        table.reserve_stash()?;
        Ok(table)
    }

    /// Whether there are as many lines as for this number of entries, or more.
    pub(crate) fn has_room_for(&self, entries: usize) -> bool {
        policy::fixed(entries) <= self.places.count()
    }

    /// Removes all entries, and resets the overflow counts, those of 255 included. O(capacity).
    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.stash.clear();
        self.len = 0;
    }
}

impl<P: Places, A: Allocator + Clone> LineTable<P, A> {
    /// The allocator.
    pub(crate) fn allocator(&self) -> &A {
        self.stash.allocator()
    }

    /// Makes room for a few entries that have no slot in their segments.
    pub(crate) fn reserve_stash(&mut self) -> Result<(), TryReserveError> {
        reserve_one(&mut self.stash)
    }

    /// Returns a number of the stash: its segment had no slot.
    #[inline]
    pub(crate) fn stashed(&self) -> Option<u32> {
        self.stash.last().map(|(_, number)| *number)
    }

    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The home line of a hash.
    #[inline(always)]
    fn home(&self, hash: u32) -> usize {
        self.places.home(hash)
    }

    /// The lines of a segment, less one.
    #[inline(always)]
    fn wrap(&self) -> usize {
        self.places.count().clamp(1, policy::SEGMENT) - 1
    }

    /// The next line of the segment.
    #[inline(always)]
    fn next(&self, line: usize) -> usize {
        let wrap = self.wrap();
        (line & !wrap) | ((line + 1) & wrap)
    }

    #[inline(always)]
    fn line(&self, line: usize) -> &Line {
        self.places.line(line)
    }

    #[inline(always)]
    fn line_mut(&mut self, line: usize) -> &mut Line {
        self.places.line_mut(line)
    }

    /// Returns the number with this hash for which `eq` returns true.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u32, eq: impl FnMut(u32) -> bool) -> Option<u32> {
        self.find_observed(hash, eq, &mut ())
    }

    /// Returns the number with this hash for which `eq` returns true, and reports lines as nodes
    /// and comparisons as entries.
    #[inline(always)]
    pub(crate) fn find_observed(
        &self,
        hash: u32,
        mut eq: impl FnMut(u32) -> bool,
        observer: &mut impl Observer,
    ) -> Option<u32> {
        let home = self.home(hash);
        let line = self.line(home);
        let found = line.find(hash, &mut eq, observer);
        if found.is_some() || line.overflow() == 0 {
            return found;
        }
        self.find_further(hash, home, eq, observer)
    }

    /// Returns the number with this hash for which `eq` returns true, beyond the home line, which
    /// [has overflowed](HomeLine::has_overflowed).
    #[inline]
    pub(crate) fn find_beyond_home(&self, hash: u32, eq: impl FnMut(u32) -> bool) -> Option<u32> {
        self.find_further(hash, self.home(hash), eq, &mut ())
    }

    /// Goes on with the lines after the home line, which entries have passed.
    #[inline(never)]
    fn find_further(
        &self,
        hash: u32,
        home: usize,
        mut eq: impl FnMut(u32) -> bool,
        observer: &mut impl Observer,
    ) -> Option<u32> {
        let mut at = self.next(home);
        while at != home {
            let line = self.line(at);
            let found = line.find(hash, &mut eq, observer);
            if found.is_some() || line.overflow() == 0 {
                return found;
            }
            at = self.next(at);
        }
        self.find_stashed(hash, eq, observer)
    }

    #[cold]
    #[inline(never)]
    fn find_stashed(
        &self,
        hash: u32,
        mut eq: impl FnMut(u32) -> bool,
        observer: &mut impl Observer,
    ) -> Option<u32> {
        let mut with_hash = self.stash.iter().filter(|(other, _)| *other == hash);
        let found = with_hash.find(|(_, number)| {
            observer.entry();
            eq(*number)
        });
        found.map(|(_, number)| *number)
    }

    /// Prefetches the home line of a hash.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u32) {
        prefetch(self.line(self.home(hash)));
    }

    /// Returns the first number in the home line of a hash that may have it.
    #[inline(always)]
    pub(crate) fn first(&self, hash: u32) -> Option<u32> {
        HomeLine(self.line(self.home(hash))).first(hash)
    }

    /// Returns the home line of a hash.
    #[inline(always)]
    pub(crate) fn home_line(&self, hash: u32) -> HomeLine<'_> {
        HomeLine(self.line(self.home(hash)))
    }

    /// Inserts a number that is not in the table, without growing.
    ///
    /// # Errors
    ///
    /// If there is no slot, and memory cannot be allocated. The table is unchanged.
    #[inline]
    pub(crate) fn insert_here(&mut self, hash: u32, number: u32) -> Result<(), TryReserveError> {
        if !self.place(hash, number) {
            self.insert_stashed(hash, number)?;
        }
        self.len += 1;
        Ok(())
    }

    /// Inserts an entry into the first free slot from its home on. Returns false if its segment has
    /// none.
    #[inline(always)]
    fn place(&mut self, hash: u32, number: u32) -> bool {
        let home = self.home(hash);
        self.line_mut(home).try_insert(tag(hash), number) || self.place_further(home, hash, number)
    }

    /// Inserts an entry whose home line is full.
    #[inline(never)]
    fn place_further(&mut self, home: usize, hash: u32, number: u32) -> bool {
        let mut at = self.next(home);
        while at != home {
            if self.line_mut(at).try_insert(tag(hash), number) {
                self.pass(home, at, Line::increment);
                return true;
            }
            at = self.next(at);
        }
        false
    }

    #[cold]
    #[inline(never)]
    fn insert_stashed(&mut self, hash: u32, number: u32) -> Result<(), TryReserveError> {
        reserve_one(&mut self.stash)?;
        self.stash.push((hash, number));
        self.pass_all(self.home(hash), Line::increment);
        Ok(())
    }

    /// Removes a number, given its hash. Returns whether it was in the table.
    pub(crate) fn remove(&mut self, hash: u32, number: u32) -> bool {
        if self.len == 0 {
            return false;
        }
        let home = self.home(hash);
        let line = self.line_mut(home);
        if line.remove(tag(hash), number) {
            self.len -= 1;
            return true;
        }
        line.overflow() > 0 && self.remove_further(home, hash, number)
    }

    /// Removes a number that is not in its home line.
    #[inline(never)]
    fn remove_further(&mut self, home: usize, hash: u32, number: u32) -> bool {
        let mut at = self.next(home);
        while at != home {
            let line = self.line_mut(at);
            if line.remove(tag(hash), number) {
                self.pass(home, at, Line::decrement);
                self.len -= 1;
                return true;
            }
            if line.overflow() == 0 {
                return false;
            }
            at = self.next(at);
        }
        self.remove_stashed(hash, number)
    }

    #[cold]
    #[inline(never)]
    fn remove_stashed(&mut self, hash: u32, number: u32) -> bool {
        let Some(at) = self.stash.iter().position(|entry| *entry == (hash, number)) else {
            return false;
        };
        self.stash.swap_remove(at);
        self.pass_all(self.home(hash), Line::decrement);
        self.len -= 1;
        true
    }

    /// Moves `number` from the hash `before` to `hash`.
    ///
    /// # Errors
    ///
    /// If there is no slot, and memory cannot be allocated. The entries are unchanged.
    #[inline(always)]
    pub(crate) fn rehash(
        &mut self,
        (before, hash): (u32, u32),
        number: u32,
    ) -> Result<(), TryReserveError> {
        let home = self.home(before);
        if !self.line_mut(home).remove(tag(before), number) {
            let was_there = self.remove_missing(home, before, number);
            return self.rehash_removed((before, hash), number, was_there);
        }
        let home = self.home(hash);
        if self.line_mut(home).try_insert(tag(hash), number) {
            return Ok(());
        }
        self.len -= 1;
        self.rehash_removed((before, hash), number, true)
    }

    /// Removes a number that is not in its home line. Returns whether it was in another line.
    #[inline(never)]
    fn remove_missing(&mut self, home: usize, hash: u32, number: u32) -> bool {
        self.line(home).overflow() > 0 && self.remove_further(home, hash, number)
    }

    /// Slow path of [`rehash`](Self::rehash): the number has been removed, or was not there.
    #[inline(never)]
    fn rehash_removed(
        &mut self,
        (before, hash): (u32, u32),
        number: u32,
        was_there: bool,
    ) -> Result<(), TryReserveError> {
        let is_inserted = self.insert_here(hash, number);
        if is_inserted.is_err() && was_there {
            // Its former place is free, be it in the stash.
            self.insert_reserved(before, number);
        }
        is_inserted
    }

    /// Inserts a number that is not in the table, for which there is room: as after
    /// [`reserve_place`](Lines::reserve_place).
    #[inline]
    pub(crate) fn insert_reserved(&mut self, hash: u32, number: u32) {
        self.insert_here(hash, number).unwrap_or_else(|error| error.raise());
    }

    /// Changes the overflow counts of the lines from `home` to the one before `at`.
    #[inline(always)]
    fn pass(&mut self, home: usize, at: usize, change: impl Fn(&mut Line)) {
        let mut passed = home;
        while passed != at {
            change(self.line_mut(passed));
            passed = self.next(passed);
        }
    }

    /// Changes the overflow counts of all lines of the segment of a line.
    fn pass_all(&mut self, line: usize, change: impl Fn(&mut Line)) {
        let first = line & !self.wrap();
        (first..=first + self.wrap()).for_each(|line| change(self.line_mut(line)));
    }

    /// Bytes allocated.
    pub(crate) fn allocation_size(&self) -> usize {
        self.places.allocation_size() + self.stash.capacity() * size_of::<(u32, u32)>()
    }
}

impl<P: Places, A: Allocator + Clone> LineTable<P, A> {
    /// Checks every invariant.
    pub(crate) fn validate(&self, hash_of: impl Fn(u32) -> u32) -> Result<(), InvariantError> {
        let count = self.places.count();
        let is_size = count <= policy::SEGMENT && (count == 0 || count.is_power_of_two());
        ensure(is_size || count % policy::SEGMENT == 0, || format!("there are {count} lines"))?;
        let mut passed = vec![0_usize; count];
        let mut len = self.stash.len();
        for at in 0..count {
            for (with, number) in self.line(at).entries() {
                let hash = hash_of(number);
                let mut home = self.home(hash);
                let is_there = with == tag(hash) && (home ^ at) & !self.wrap() == 0;
                ensure(is_there, || format!("number {number} is not in its segment, but in {at}"))?;
                while home != at {
                    passed[home] += 1;
                    home = self.next(home);
                }
                len += 1;
            }
        }
        for (hash, number) in &self.stash {
            ensure(hash_of(*number) == *hash, || "a hash in the stash is another one")?;
            let first = self.home(*hash) & !self.wrap();
            passed[first..=first + self.wrap()].iter_mut().for_each(|count| *count += 1);
        }
        for (at, passed) in passed.into_iter().enumerate() {
            let overflow = usize::from(self.line(at).overflow());
            let is_counted = overflow == usize::from(u8::MAX) || overflow == passed;
            ensure(is_counted, || format!("line {at} counts {overflow} of {passed}"))?;
        }
        self.places.validate()?;
        ensure(len == self.len, || format!("{len} entries are counted as {}", self.len))
    }
}
