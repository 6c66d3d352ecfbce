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
//! at a time (`growth.rs`, `plan.rs`), and retires replaced memory; traversals copy numbers of
//! entries (`iter.rs`).
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
//! | open shards | Release, `Writer::open` | Acquire, `Engine::open` | the directories of their roots |
//! | shard of a root | Release, `Writer::open` | Acquire, `Engine::shard_of` | the directory of the root, and that the shard is open |
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
mod plan;
mod segment;
mod shard;
pub(super) mod storage;

use alloc::boxed::Box;
use core::array;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crossbeam_epoch::Guard;

use super::collector::{Garbage, forget_panic};
use super::error::Refused;
use super::policy::{SHARD_BITS, SHARDS, mixed_of, root_of};
use super::sync::{AtomicU8, AtomicU64, IS_CHECKED, Ordering};
use crate::raw::prefetch::SMALL;
use crate::table::error::TryReserveError;

use directory::{Directory, DirectoryBox, Root};
use growth::Retired;
use segment::SegmentBox;
use shard::{Room, Shard};
use storage::{Bits, Entries, Storage};

pub(super) use group::Group;
pub(super) use iter::Walk;
pub(super) use plan::Sizes;
pub(super) use segment::{Segment, Slot};
pub(super) use shard::{Expected, Place, Writer};

/// The roots and the shards of a table. Nothing in its cache lines is written often.
#[repr(align(128))]
pub(super) struct Engine<C: Storage> {
    /// The readers' part of each shard. A shard that is not split yet has several.
    roots: [Root<C>; SHARDS],
    /// The shard of each root, for writers.
    owners: [AtomicU8; SHARDS],
    /// The writers' part of each shard.
    shards: Box<[Shard<C>; SHARDS]>,
    /// A bit for each open shard. A shard that is not open has no entries: its root refers to the
    /// directory of the shard from which it will be split.
    open: AtomicU64,
    pub(super) garbage: Garbage,
}

/// A place, and the shard that is locked; or the present value, if it is not as expected.
pub(super) type Placed<'p, C> =
    Result<(Writer<'p, C>, Place<'p, C>), Option<<C as Entries>::Value>>;

impl<C: Storage> Engine<C> {
    /// Creates a table of one shard.
    pub(super) fn new(state: impl Fn(usize) -> C::State) -> Self {
        fn raise<T>(error: TryReserveError) -> T {
            error.raise()
        }
        let segment = SegmentBox::<C>::new(C::SIZES.first(), 0, 0).unwrap_or_else(raise);
        let directory = DirectoryBox::of(&segment).unwrap_or_else(raise);
        let shards: Box<[_]> = (0..SHARDS).map(|nth| Shard::new(state(nth))).collect();
        let shards: Box<[_; SHARDS]> = shards.try_into().ok().expect("as many as roots");
        let (segment, directory) = (segment.into_ptr(), directory.into_ptr());
        shards[0].add_to_bytes(segment.allocation_size::<C>() + directory.allocation_size(), 0);
        Self {
            roots: array::from_fn(|_| Root::new(directory)),
            owners: array::from_fn(|_| AtomicU8::new(0)),
            shards,
            open: AtomicU64::new(1),
            garbage: Garbage::new(),
        }
    }

    /// Returns a bit for each open shard.
    #[inline]
    fn open(&self) -> u64 {
        // Acquire: pairs with the Release in `Writer::open`: the directories of the shards are
        // visible.
        self.open.load(Ordering::Acquire)
    }

    /// Iterates over the open shards.
    pub(super) fn open_shards(&self) -> impl Iterator<Item = usize> + use<C> {
        let mut open = self.open();
        core::iter::from_fn(move || {
            let nth = open.trailing_zeros() as usize;
            open &= open.wrapping_sub(1);
            (nth < SHARDS).then_some(nth)
        })
    }

    /// Returns the shard of a mixed hash. It may be split at any time.
    #[inline]
    pub(super) fn shard_of(&self, mixed: u64) -> usize {
        // Acquire: pairs with the Release in `Writer::open`: the lock holder finds the directory.
        usize::from(self.owners[root_of(mixed)].load(Ordering::Acquire))
    }

    pub(super) fn len(&self) -> usize {
        // Of the shards that are open now: those of later splits may have counted a removal whose
        // insertion another shard counted after it was read here.
        let len = |nth: usize| i64::from(self.shards[nth].counts().len);
        self.open_shards().map(len).sum::<i64>().max(0) as usize
    }

    pub(super) fn allocation_size(&self) -> usize {
        let own = size_of::<Self>() + size_of_val(&*self.shards);
        own + self.shards.iter().map(Shard::allocation_size).sum::<usize>()
    }

    /// Returns the contents of the lock of a shard.
    pub(super) fn state(&mut self, shard: usize) -> &mut C::State {
        self.shards[shard].state()
    }

    /// Iterates over the entries of an open shard.
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
        hash_of: impl Fn(Slot<'_, C>, Bits) -> u64,
        pin: &Guard,
    ) -> Result<(), TryReserveError> {
        let mut position = Some(0);
        while let Some(path) = position {
            let mixed = mixed_of(path);
            let writer = self.lock(mixed, pin);
            let retired = writer.reserve(mixed, entries, &hash_of)?;
            if retired.is_none() {
                position = writer.end(path);
            }
            drop(writer);
            self.retire(retired.unwrap_or(Retired::NOTHING), pin);
        }
        for nth in self.open_shards() {
            Writer::new(self, nth, pin).set_reserved(true);
        }
        Ok(())
    }

    #[inline]
    #[allow(unsafe_code)]
    fn directory<'p>(&'p self, root: usize, _pin: &'p Guard) -> Directory<'p, C> {
        // SAFETY: the pin lasts for 'p.
        unsafe { self.roots[root].directory() }
    }

    /// Returns the segment of a mixed hash.
    #[inline]
    pub(super) fn segment<'p>(&'p self, mixed: u64, pin: &'p Guard) -> Segment<'p, C> {
        self.directory(root_of(mixed), pin).segment(mixed)
    }

    /// Returns whether bursts do not prefetch, as the table is small: see [`SMALL`]. `entry` is the
    /// number of bytes of an entry outside of the segments. Of the first shard, as the others are
    /// alike: half as many segments as its directory has entries, in each. They are whole, unless
    /// entries are so large that a whole segment of each shard is too much: then there are as many
    /// as the depth of the first one implies, and as large. Checkers run the bursts of all tables.
    #[inline]
    pub(super) fn is_small(&self, entry: usize, pin: &Guard) -> bool {
        let directory = self.directory(0, pin);
        let is_checked = IS_CHECKED || cfg!(any(miri, fuzzing));
        let most = |groups: usize| {
            SMALL / (segment::SegmentPtr::bytes::<C>(groups) + groups * C::SLOTS * entry / 2)
        };
        let whole = most(C::SIZES.whole() as usize);
        if is_checked || whole >= SHARDS {
            // The greatest depth of the directories of `whole` segments is a constant.
            return !is_checked && directory.depth() <= (2 * whole / SHARDS).ilog2();
        }
        let first = directory.segment(0);
        1 << first.depth() <= most(first.len())
    }

    /// Locks the shard of a mixed hash.
    pub(super) fn lock<'p>(&'p self, mixed: u64, pin: &'p Guard) -> Writer<'p, C> {
        loop {
            let writer = Writer::new(self, self.shard_of(mixed), pin);
            // It may have been split before it was locked.
            if self.shard_of(mixed) == writer.nth {
                return writer;
            }
        }
    }

    /// Locks the shard of a mixed hash, unless another thread has the lock, or splits the shard.
    #[inline(always)]
    fn try_lock<'p>(&'p self, mixed: u64, pin: &'p Guard) -> Option<Writer<'p, C>> {
        let nth = self.shard_of(mixed);
        let state = self.shards[nth % SHARDS].lock.try_lock()?;
        // Another thread may have split the shard before it was locked.
        (self.shard_of(mixed) == nth).then_some(Writer { engine: self, nth, pin, state })
    }

    /// Locks the shard of a mixed hash. Splits it if another thread has the lock, unless the shard
    /// is seen to be split while this thread waits: so it is hardly ever split twice for one wait.
    #[inline(never)]
    fn lock_or_split<'p>(
        &'p self,
        mixed: u64,
        hash_of: impl Fn(Slot<'_, C>, Bits) -> u64,
        pin: &'p Guard,
    ) -> Writer<'p, C> {
        let depth = self.segment(mixed, pin).depth();
        if let Some(writer) = self.try_lock(mixed, pin) {
            return writer;
        }
        let writer = self.lock(mixed, pin);
        let segment = writer.segment(mixed);
        let is_divisible = depth < SHARD_BITS && !self.garbage.is_above_limit();
        if segment.depth() > depth || !is_divisible {
            return writer;
        }
        // Without memory it is not split.
        let split = writer.split(segment, mixed, hash_of);
        drop(writer);
        self.retire(split.unwrap_or(Retired::NOTHING), pin);
        self.lock(mixed, pin)
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
        hash_of: impl Fn(Slot<'_, C>, Bits) -> u64,
        pin: &Guard,
    ) -> Result<(), Refused> {
        let garbage = &self.garbage;
        if garbage.is_above_limit() && !garbage.reduce(pin, || garbage.is_above_limit()) {
            return Err(Refused::Garbage { retired: garbage.retired(), limit: garbage.limit });
        }
        let grown = self.lock(mixed, pin).grow(mixed, full, hash_of);
        self.retire(grown?, pin);
        Ok(())
    }

    /// Runs `work` on each segment under the lock of its shard, shrinks it, and calls `then`
    /// without the lock.
    pub(super) fn for_segments<R>(
        &self,
        mut work: impl FnMut(&mut Writer<'_, C>, u64) -> R,
        mut then: impl FnMut(R),
        hash_of: impl Fn(Slot<'_, C>, Bits) -> u64,
        pin: &Guard,
    ) {
        let mut position = Some(0);
        while let Some(path) = position {
            let mixed = mixed_of(path);
            let mut writer = self.lock(mixed, pin);
            let result = work(&mut writer, mixed);
            let may_shrink = !self.garbage.is_above_limit();
            let retired = may_shrink.then(|| writer.shrink(mixed, true, &hash_of)).flatten();
            if retired.is_none() {
                position = writer.end(path);
            }
            drop(writer);
            then(result);
            self.retire(retired.unwrap_or(Retired::NOTHING), pin);
        }
        for nth in self.open_shards() {
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
        hash_of: impl Fn(Slot<'_, C>, Bits) -> u64,
        pin: &'p Guard,
    ) -> Result<Placed<'p, C>, Refused> {
        let mixed = C::mix(hash);
        loop {
            self.segment(mixed, pin).prefetch_for_write(mixed);
            let writer = self.try_lock(mixed, pin);
            let writer = writer.unwrap_or_else(|| self.lock_or_split(mixed, &hash_of, pin));
            match writer.place(hash, &is, expected) {
                Room::Here(place) => return Ok(Ok((writer, place))),
                Room::Unexpected(present) => return Ok(Err(present)),
                Room::Full(segment) => {
                    drop(writer);
                    self.make_room(mixed, segment, &hash_of, pin)?;
                }
            }
        }
    }

    /// Replaces a value of at most one word by the result of `change`, which is of this crate, as
    /// a word. Returns the former value.
    pub(super) fn change<'p>(
        &'p self,
        hash: u64,
        is: impl Fn(Group<'p, C>, usize) -> bool,
        change: impl FnOnce(C::Value) -> u64,
        hash_of: impl Fn(Slot<'_, C>, Bits) -> u64,
        pin: &'p Guard,
    ) -> Option<C::Value> {
        let mixed = C::mix(hash);
        let home = self.segment(mixed, pin).home(mixed);
        home.prefetch();
        home.prefetch_second();
        match self.try_lock(mixed, pin) {
            Some(writer) => writer.change(hash, is, change),
            None => self.change_later(hash, is, change, hash_of, pin),
        }
    }

    /// Replaces a value if the lock is not at hand. A function of its own, so that
    /// [`change`](Self::change) stays short.
    #[inline(never)]
    fn change_later<'p>(
        &'p self,
        hash: u64,
        is: impl Fn(Group<'p, C>, usize) -> bool,
        change: impl FnOnce(C::Value) -> u64,
        hash_of: impl Fn(Slot<'_, C>, Bits) -> u64,
        pin: &'p Guard,
    ) -> Option<C::Value> {
        self.lock_or_split(C::mix(hash), hash_of, pin).change(hash, is, change)
    }

    /// Removes an entry if its value is as expected, and calls `removed` under the lock. Returns
    /// its value, or the present one. Shrinks its segment if the load is low.
    pub(super) fn remove<'p>(
        &'p self,
        hash: u64,
        is: impl Fn(Group<'p, C>, usize) -> bool,
        expected: Expected<C::Value>,
        hash_of: impl Fn(Slot<'_, C>, Bits) -> u64,
        removed: impl FnOnce(&mut C::State, C::Value),
        pin: &'p Guard,
    ) -> Result<C::Value, Option<C::Value>> {
        let may_shrink = !self.garbage.is_above_limit();
        let mixed = C::mix(hash);
        self.segment(mixed, pin).prefetch_for_write(mixed);
        let mut writer = self.lock(mixed, pin);
        let value = writer.remove(hash, is, expected)?;
        removed(&mut writer.state, value);
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
        for nth in self.open_shards() {
            // SAFETY: no pin of the table exists any more, and the table is not used again; each
            // open shard has a directory of its own.
            unsafe { self.roots[nth].free() };
        }
        self.garbage.reduce_at_drop();
    }
}
