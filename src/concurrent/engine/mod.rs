//! The engine of the concurrent hash tables: shards, directories, segments and groups of slots.
//!
//! ```text
//!     mixed hash      upper bits                              6 bits: root of a shard
//!
//!     directory       [ A  A  B  C ]                          `directory.rs`   D1, D2
//!                             │
//!     segment         [ group  group  group … counts ]        `segment.rs`     S1 to S4
//!                               │
//!     group           [ tags │ overflow │ slot  slot  … ]     `group.rs`
//!
//!     storage         words of an entry, or its id            `storage.rs`
//! ```
//!
//! Readers are wait-free; writers take the lock of a shard (`shard.rs`). Growth copies one segment
//! at a time (`growth.rs`, `plan.rs`); traversals copy numbers of entries (`iter.rs`); replaced
//! memory is retired (`retired.rs`).
//!
//! | | words of an entry | ids |
//! |---|---|---|
//! | slots of a group | 3 to 7 in 128 bytes and more | 12 in 64 bytes |
//! | header | one word | two words, loaded one after the other |
//! | tags | a byte of the hash for each slot: 7 bits | one for all slots: 8 bits |
//! | the slot of a removed entry | is dead, as readers may still copy from it | is reused |
//! | a replaced value | a word in place; more in another slot | in place |
//! | hashes for a copy | of the keys, which are in the lines that are copied | notes of 16 bits |
//! | sizes of segments | by thirds: less memory | powers of two: a home is a shift |
//!
//! # Memory ordering
//!
//! All words are atomic, so nothing is a data race; the orderings make words belong together.
//!
//! | word | store | load | the load makes visible |
//! |---|---|---|---|
//! | root of a shard | Release, `Root::publish` | Acquire, `Root::directory` | the entries of the directory |
//! | directory entry | Release, `Directory::set` | Acquire, `Directory::at` | the groups of the segment |
//! | word of a header | Release, `Group::set` | Acquire, `Group::header` | the words of the entry, and the entries that the overflow count counts |
//! | words of a key | Relaxed, `Group::write` | Relaxed, `Group::key_word` | nothing: ordered by the header, or by the lock under which a traversal has noted the slot |
//! | value of one word | Release in `Group::replace`, and in `Group::write` of an id; else Relaxed | Acquire, `Group::value` | the entry of an id; the target of the new value |
//! | value of several words | Relaxed, `Group::write` | Relaxed, `Group::value` | nothing: as for a key |
//! | notes and counts | Relaxed | Relaxed | nothing: for lock holders, ordered by the lock |
//! | counts of a shard | Release, `Writer::add_to_len` | Acquire, `Shard::counts` | the removals that they count |
//! | bytes of a shard | Relaxed | Relaxed | nothing |
//! | table of chunks of a map | Release, `Store::add_table` | Acquire, `Store::address` | the pointers to chunks |
//! | count of retired bytes | Release, `Garbage::defer` | Acquire, `Garbage::retired` | the effects of destructors |
//!
//! For a reader that has loaded a segment under its pin:
//!
//! 1. The words of an entry are stored before its tag, and the tag is loaded before the words: it
//!    reads the words of this entry, or later ones.
//! 2. Of several words there are no later ones: their slot is not reused while the segment exists,
//!    and the segment exists while the pin lasts. Each state of one word is complete. The word of a
//!    slot that is reused is an id, of an entry that is compared by its key.
//! 3. An entry in a later group is counted in all groups on the way to it before its insertion
//!    returns, and while it is there: a probe continues.
//! 4. A segment that was replaced is not written any more: a reader that has loaded the pointer to
//!    it before finds its state of the moment when it was replaced, or an earlier one that the
//!    pointer made visible. So a read takes effect within its call.
//! 5. A thread that has loaded a newer root, entry or header loads no older one later: so reads of
//!    a key are monotonic.
//! 6. An id is retired after it is removed from its slot, and the entry is dropped, and the id
//!    reused, when all earlier pins have ended: a reader that has loaded it may use the entry.

mod check;
mod directory;
mod group;
mod growth;
mod iter;
#[cfg(all(test, crossbeam_loom))]
mod loom_models;
pub(super) mod plain;
mod plan;
mod retired;
mod segment;
mod shard;
pub(super) mod storage;

use alloc::boxed::Box;
use core::array;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crossbeam_epoch::Guard;

use super::error::Refused;
use super::garbage::{Garbage, forget_panic};
use super::policy::{SHARDS, shard_of};
use super::sync::IS_CHECKED;
use crate::raw::prefetch::SMALL;
use crate::table::error::TryReserveError;

use directory::{Directory, Root};
use retired::Retired;
use shard::{Room, Shard};
use storage::{Entries, Storage};

pub(super) use group::Group;
pub(super) use iter::Walk;
pub(super) use plan::Sizes;
pub(super) use segment::{Segment, Slot};
pub(super) use shard::{Expected, Place, Writer};

/// The roots and the shards of a table. Nothing in its cache lines is written often.
#[repr(align(128))]
pub(super) struct Engine<C: Storage> {
    /// The readers' part of each shard.
    roots: [Root<C>; SHARDS],
    /// The writers' part of each shard.
    shards: Box<[Shard<C>]>,
    pub(super) garbage: Garbage,
}

/// A place, and the shard that is locked; or the present value, if it is not as expected.
pub(super) type Placed<'p, C> =
    Result<(Writer<'p, C>, Place<'p, C>), Option<<C as Entries>::Value>>;

impl<C: Storage> Engine<C> {
    pub(super) fn new(state: impl Fn(usize) -> C::State) -> Self {
        let roots =
            array::from_fn(|_| Root::new().unwrap_or_else(|error: TryReserveError| error.raise()));
        let bytes = Root::<C>::EMPTY_BYTES;
        Self {
            roots,
            shards: (0..SHARDS).map(|nth| Shard::new(bytes, state(nth))).collect(),
            garbage: Garbage::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(Shard::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.len() == 0)
    }

    pub(super) fn allocation_size(&self) -> usize {
        let own = size_of::<Self>() + size_of_val(&*self.shards);
        own + self.shards.iter().map(Shard::allocation_size).sum::<usize>()
    }

    /// Returns the contents of the lock of a shard.
    pub(super) fn state(&mut self, shard: usize) -> &mut C::State {
        self.shards[shard].state()
    }

    /// Iterates over the entries of a shard.
    #[allow(unsafe_code)]
    pub(super) fn entries(&mut self, shard: usize) -> impl Iterator<Item = Slot<'_, C>> {
        // SAFETY: no other thread retires it: the reference is exclusive.
        let directory = unsafe { self.roots[shard].directory() };
        directory.segments().flat_map(Segment::entries)
    }

    /// Reserves capacity for `entries` entries, below which the shards do not shrink.
    pub(super) fn reserve(
        &self,
        entries: usize,
        hash_of: impl Fn(Slot<'_, C>) -> u64,
        pin: &Guard,
    ) -> Result<(), TryReserveError> {
        for nth in 0..SHARDS {
            let mut position = Some(0);
            while let Some(prefix) = position {
                let mixed = prefix | nth as u64;
                let writer = Writer::new(self, nth, pin);
                let retired = writer.reserve(mixed, entries.div_ceil(SHARDS), &hash_of)?;
                if retired.is_none() {
                    position = writer.end(mixed);
                }
                drop(writer);
                self.retire(retired.unwrap_or(Retired::NOTHING), pin);
            }
            Writer::new(self, nth, pin).set_reserved(true);
        }
        Ok(())
    }

    #[inline]
    #[allow(unsafe_code)]
    fn directory<'p>(&'p self, shard: usize, _pin: &'p Guard) -> Directory<'p, C> {
        // SAFETY: the pin lasts for 'p.
        unsafe { self.roots[shard].directory() }
    }

    /// Returns the segment of a mixed hash.
    #[inline]
    pub(super) fn segment<'p>(&'p self, mixed: u64, pin: &'p Guard) -> Segment<'p, C> {
        self.directory(shard_of(mixed), pin).segment(mixed)
    }

    /// Returns whether bursts do not prefetch, as the table is small: see [`SMALL`]. `entry` is the
    /// number of bytes of an entry outside of the segments. Of the first shard, as the others are
    /// alike: half as many segments as its directory has entries. They are whole, unless entries
    /// are so large that a whole segment of each shard is too much: then as large as its first one.
    /// Checkers run the bursts of all tables.
    #[inline]
    pub(super) fn is_small(&self, entry: usize, pin: &Guard) -> bool {
        let directory = self.directory(0, pin);
        let segments = (SHARDS << directory.depth()) / 2;
        let is_checked = IS_CHECKED || cfg!(any(miri, fuzzing));
        let most = |groups: usize| {
            SMALL / (segment::SegmentPtr::bytes::<C>(groups) + groups * C::SLOTS * entry / 2)
        };
        let whole = most(C::SIZES.whole() as usize);
        let most = if whole < SHARDS { most(directory.segment(0).len()) } else { whole };
        !is_checked && segments <= most
    }

    /// Locks the shard of a hash. Prefetches its segment before.
    pub(super) fn writer<'p>(&'p self, hash: u64, pin: &'p Guard) -> Writer<'p, C> {
        let mixed = C::mix(hash);
        self.segment(mixed, pin).prefetch_for_write(mixed);
        Writer::new(self, shard_of(mixed), pin)
    }

    /// Defers replaced memory to the collector. No lock is held.
    #[allow(unsafe_code)]
    fn retire(&self, retired: Retired<C>, pin: &Guard) {
        // SAFETY: replaced under this pin.
        unsafe { retired.defer(&self.garbage, pin) };
    }

    /// Makes room in a segment, by one step of growth.
    #[cold]
    #[inline(never)]
    fn make_room(
        &self,
        mixed: u64,
        full: segment::SegmentPtr,
        hash_of: impl Fn(Slot<'_, C>) -> u64,
        pin: &Guard,
    ) -> Result<(), Refused> {
        let garbage = &self.garbage;
        if garbage.is_above_limit() && !garbage.reduce(pin, || garbage.is_above_limit()) {
            return Err(Refused::Garbage { retired: garbage.retired(), limit: garbage.limit });
        }
        let grown = Writer::new(self, shard_of(mixed), pin).grow(mixed, full, hash_of);
        self.retire(grown?, pin);
        Ok(())
    }

    /// Runs `work` on each segment under the lock of its shard, shrinks it, and calls `then`
    /// without the lock.
    pub(super) fn for_segments<R>(
        &self,
        mut work: impl FnMut(&mut Writer<'_, C>, u64) -> R,
        mut then: impl FnMut(R),
        hash_of: impl Fn(Slot<'_, C>) -> u64,
        pin: &Guard,
    ) {
        for nth in 0..SHARDS {
            let mut position = Some(0);
            while let Some(prefix) = position {
                // The lowest bits of a mixed hash are the shard.
                let mixed = prefix | nth as u64;
                let mut writer = Writer::new(self, nth, pin);
                let result = work(&mut writer, mixed);
                let may_shrink = !self.garbage.is_above_limit();
                let retired = may_shrink.then(|| writer.shrink(mixed, true, &hash_of)).flatten();
                if retired.is_none() {
                    position = writer.end(mixed);
                }
                drop(writer);
                then(result);
                self.retire(retired.unwrap_or(Retired::NOTHING), pin);
            }
            let may_fit = !self.garbage.is_above_limit();
            let fit = || Writer::new(self, nth, pin).fit_directory();
            let fitted = may_fit.then(fit).flatten();
            self.retire(fitted.unwrap_or(Retired::NOTHING), pin);
        }
    }
}

impl<C: Entries> Engine<C> {
    /// Finds the place of an entry and locks its shard, if the present one is as expected. Makes
    /// room first, if there is none.
    pub(super) fn place<'p>(
        &'p self,
        hash: u64,
        is: impl Fn(Group<'p, C>, usize) -> bool,
        expected: Expected<C::Value>,
        hash_of: impl Fn(Slot<'_, C>) -> u64,
        pin: &'p Guard,
    ) -> Result<Placed<'p, C>, Refused> {
        loop {
            let writer = self.writer(hash, pin);
            match writer.place(hash, &is, expected) {
                Room::Here(place) => return Ok(Ok((writer, place))),
                Room::Unexpected(present) => return Ok(Err(present)),
                Room::Full(segment) => {
                    drop(writer);
                    self.make_room(C::mix(hash), segment, &hash_of, pin)?;
                }
            }
        }
    }

    /// Removes an entry if its value is as expected, and calls `removed` under the lock. Returns
    /// its value, or the present one. Shrinks its segment if the load is low.
    pub(super) fn remove<'p>(
        &'p self,
        hash: u64,
        is: impl Fn(Group<'p, C>, usize) -> bool,
        expected: Expected<C::Value>,
        hash_of: impl Fn(Slot<'_, C>) -> u64,
        removed: impl FnOnce(&mut C::State, C::Value),
        pin: &'p Guard,
    ) -> Result<C::Value, Option<C::Value>> {
        let may_shrink = !self.garbage.is_above_limit();
        let mut writer = self.writer(hash, pin);
        let value = writer.remove(hash, is, expected)?;
        removed(&mut writer.state, value);
        let mixed = C::mix(hash);
        if may_shrink && writer.segment(mixed).load().is_low() {
            // The entry is removed. If a hash panics, the segment keeps its size.
            let shrink = || writer.shrink(mixed, false, hash_of);
            let shrunk = catch_unwind(AssertUnwindSafe(shrink));
            // The payload of a panic is dropped without the lock: it may have a destructor.
            drop(writer);
            let shrunk = shrunk.unwrap_or_else(|panic| {
                forget_panic(Err(panic));
                None
            });
            self.retire(shrunk.unwrap_or(Retired::NOTHING), pin);
        }
        Ok(value)
    }
}

impl<C: Storage> Drop for Engine<C> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        for root in &self.roots {
            // SAFETY: no pin of the table exists any more, and the table is not used again.
            unsafe { root.free() };
        }
        self.garbage.reduce_at_drop();
    }
}
