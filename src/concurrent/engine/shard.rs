//! Shards: the writers' part, each with a lock.

use crossbeam_epoch::Guard;

use super::Engine;
use super::directory::Directory;
use super::group::Group;
use super::segment::{Position, Segment, SegmentPtr};
use super::storage::{Entries, Storage, is_same};
use crate::concurrent::policy::{may_split, roots_of};
use crate::concurrent::sync::{AtomicU64, AtomicUsize, Lock, LockGuard, Ordering};
use bytemuck::NoUninit;

/// The writers' part of a shard. Apart from the roots, so that readers do not share its cache
/// lines; aligned to two of them, as CPUs prefetch them in pairs.
#[repr(align(128))]
pub(super) struct Shard<C: Storage> {
    pub(super) lock: Lock<C::State>,
    /// The number of entries, and in the upper half that of removals. Written under the lock.
    counts: AtomicU64,
    /// Allocated bytes. Written under the lock; of a shard that is not open, under the lock of the
    /// shard that is split.
    bytes: AtomicUsize,
    /// The bytes of a reserved capacity, below which it does not shrink. Written as `bytes` are.
    reserved: AtomicUsize,
}

/// The counts of a shard.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    /// Insertions without removals. The count may be negative after a split: the former shard has
    /// counted the first entries. The sum of all shards is the number of entries, and never less
    /// than other threads find. Below 2^31, which would take 32 GiB.
    pub(super) len: i32,
    /// Removals so far, of an entry or of all entries of a segment. It wraps around: a traversal
    /// may visit a key twice if 2^32 removals take place while it copies a segment.
    pub(super) removals: u32,
}

impl<C: Storage> Shard<C> {
    pub(super) fn new(state: C::State) -> Self {
        let [bytes, reserved] = [0; 2].map(AtomicUsize::new);
        Self { lock: Lock::new(state), counts: AtomicU64::new(0), bytes, reserved }
    }

    /// Returns the counts.
    #[inline]
    pub(super) fn counts(&self) -> Counts {
        // Acquire: pairs with the Release in `add_to_len`: the removals are visible.
        let word = self.counts.load(Ordering::Acquire);
        Counts { len: word as i32, removals: (word >> 32) as u32 }
    }

    /// Returns the allocated bytes.
    pub(super) fn allocation_size(&self) -> usize {
        // Relaxed: a statistic that publishes nothing.
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adjusts the count of bytes.
    pub(super) fn add_to_bytes(&self, added: usize, removed: usize) {
        let bytes = self.allocation_size() + added - removed;
        // Relaxed: a statistic that publishes nothing.
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns the state of the lock.
    pub(super) fn state(&mut self) -> &mut C::State {
        self.lock.get_mut()
    }
}

/// The precondition of a write.
#[derive(Clone, Copy)]
pub(in crate::concurrent) enum Expected<V> {
    Anything,
    /// The key must be absent.
    Nothing,
    /// The key must be present.
    Something,
    /// The key must have this value.
    Value(V),
}

impl<V: NoUninit> Expected<V> {
    fn is(self, found: Option<&V>) -> bool {
        match (self, found) {
            (Self::Anything, _) | (Self::Nothing, None) | (Self::Something, Some(_)) => true,
            (Self::Value(expected), Some(found)) => is_same(&expected, found),
            _ => false,
        }
    }
}

/// Whether an entry can be inserted.
pub(super) enum Room<'p, C: Entries> {
    /// At this place.
    Here(Place<'p, C>),
    /// The precondition was false; the present value.
    Unexpected(Option<C::Value>),
    /// There is no room in this segment: it has to grow first.
    Full(SegmentPtr),
}

/// The position of an entry, and its value.
type Present<'p, C> = (Position<'p, C>, <C as Entries>::Value);

/// The place of an entry that is to be inserted, or whose value is to be replaced.
pub(in crate::concurrent) enum Place<'p, C: Entries> {
    /// The value is replaced where it is.
    InPlace(Present<'p, C>),
    /// The entry is written to a free slot, and the present one is removed.
    Free { segment: Segment<'p, C>, old: Option<Present<'p, C>>, free: Position<'p, C> },
}

/// A locked shard.
pub(in crate::concurrent) struct Writer<'p, C: Storage> {
    pub(super) engine: &'p Engine<C>,
    pub(in crate::concurrent) nth: usize,
    pub(super) pin: &'p Guard,
    pub(in crate::concurrent) state: LockGuard<'p, C::State>,
}

impl<'p, C: Storage> Writer<'p, C> {
    /// Locks a shard.
    pub(in crate::concurrent) fn new(engine: &'p Engine<C>, nth: usize, pin: &'p Guard) -> Self {
        Self { engine, nth, pin, state: engine.shards[nth].lock.lock() }
    }

    pub(super) fn shard(&self) -> &'p Shard<C> {
        &self.engine.shards[self.nth]
    }

    pub(super) fn directory(&self) -> Directory<'p, C> {
        self.engine.directory(self.nth, self.pin)
    }

    /// Returns the segment of a mixed hash.
    pub(in crate::concurrent) fn segment(&self, mixed: u64) -> Segment<'p, C> {
        self.engine.segment(mixed, self.pin)
    }

    pub(in crate::concurrent) fn add_to_len(&self, difference: i32) {
        let shard = self.shard();
        let Counts { len, removals } = shard.counts();
        let removals = removals.wrapping_add(u32::from(difference < 0));
        let len = len.wrapping_add(difference) as u32;
        // Release: pairs with the Acquire in `counts`.
        shard.counts.store(u64::from(removals) << 32 | u64::from(len), Ordering::Release);
    }

    /// Opens a shard into which this one was split, with the same reserved capacity, for the roots
    /// that share `depth` bits with its number.
    pub(super) fn open(&self, nth: usize, depth: u32) {
        // Relaxed, here and below: for lock holders.
        let reserved = self.shard().reserved.load(Ordering::Relaxed);
        self.engine.shards[nth].reserved.store(reserved, Ordering::Relaxed);
        // Release: pairs with the Acquire in `Engine::open`: its directory is visible. Before it
        // has owned a root, so that its entries are counted.
        self.engine.open.fetch_or(1 << nth, Ordering::Release);
        for root in roots_of(nth as u64, depth) {
            // Release: pairs with the Acquire in `Engine::shard_of`.
            self.engine.owners[root].store(nth as u8, Ordering::Release);
        }
    }

    /// Returns whether the shard may give this number of bytes back.
    pub(super) fn may_shrink_by(&self, bytes: usize) -> bool {
        let shard = self.shard();
        // Relaxed: for the lock holder.
        shard.allocation_size() >= shard.reserved.load(Ordering::Relaxed) + bytes
    }

    /// Sets the bytes below which the shard does not shrink: those that it has, or none.
    pub(in crate::concurrent) fn set_reserved(&self, is_reserved: bool) {
        let bytes = if is_reserved { self.shard().allocation_size() } else { 0 };
        // Relaxed: for the lock holder.
        self.shard().reserved.store(bytes, Ordering::Relaxed);
    }

    /// Returns whether a segment of this shard may split.
    pub(super) fn may_split(&self, segment: Segment<'_, C>) -> bool {
        let slots = super::plan::SPLIT as usize * C::SLOTS;
        may_split(segment.depth(), self.shard().counts().len.max(0) as usize, slots)
    }

    /// Returns the free slot in which an entry would be inserted, from a distance on, unless the
    /// segment should grow first.
    fn room(&self, segment: Segment<'p, C>, mixed: u64, from: usize) -> Option<Position<'p, C>> {
        let free = segment.vacancy(mixed, from)?;
        let load = segment.load();
        let is_last = || load.growth(self.may_split(segment)).is_none();
        (load.has_room(free.distance) || is_last()).then_some(free)
    }
}

impl<'p, C: Entries> Writer<'p, C> {
    fn find(
        &self,
        hash: u64,
        is: impl Fn(Group<'p, C>, usize) -> bool,
    ) -> (Segment<'p, C>, Option<Present<'p, C>>) {
        let mixed = C::mix(hash);
        debug_assert_eq!(self.engine.shard_of(mixed), self.nth);
        let segment = self.segment(mixed);
        let found = segment.locate(hash, mixed, is);
        (segment, found.map(|at| (at, at.slot.value())))
    }

    /// Finds the place of an entry, if the present one is as expected.
    pub(super) fn place(
        &self,
        hash: u64,
        is: impl Fn(Group<'p, C>, usize) -> bool,
        expected: Expected<C::Value>,
    ) -> Room<'p, C> {
        let (segment, old) = self.find(hash, is);
        let value = old.map(|(_, value)| value);
        if !expected.is(value.as_ref()) {
            return Room::Unexpected(value);
        }
        let free = match old {
            Some(old) if C::VALUE <= 1 => return Room::Here(Place::InPlace(old)),
            Some((at, _)) => self.room(segment, C::mix(hash), at.distance),
            None => self.room(segment, C::mix(hash), 0),
        };
        match free {
            Some(free) => Room::Here(Place::Free { segment, old, free }),
            None => Room::Full(segment.ptr()),
        }
    }

    /// Stores an entry at its place, by these words. Returns the former value.
    pub(in crate::concurrent) fn store(
        &self,
        hash: u64,
        place: Place<'p, C>,
        words: impl Fn(usize) -> u64,
    ) -> Option<C::Value> {
        match place {
            Place::InPlace((at, old)) => {
                let (group, slot) = at.slot.place();
                group.replace(slot, words);
                Some(old)
            }
            Place::Free { segment, old: None, free } => {
                // Counted first: a thread that finds the entry counts it.
                self.add_to_len(1);
                segment.insert(hash, free, words);
                None
            }
            Place::Free { segment, old: Some((at, old)), free } => {
                segment.exchange(hash, [at, free], words);
                Some(old)
            }
        }
    }

    /// Removes an entry if its value is as expected. Returns its value, or the present one.
    pub(super) fn remove(
        &self,
        hash: u64,
        is: impl Fn(Group<'p, C>, usize) -> bool,
        expected: Expected<C::Value>,
    ) -> Result<C::Value, Option<C::Value>> {
        let (segment, found) = self.find(hash, is);
        let Some((at, old)) = found.filter(|(_, old)| expected.is(Some(old))) else {
            return Err(found.map(|(_, old)| old));
        };
        segment.remove(at);
        self.add_to_len(-1);
        Ok(old)
    }

    /// Replaces a value: see [`Engine::change`].
    #[inline(always)]
    pub(super) fn change(
        &self,
        hash: u64,
        is: impl Fn(Group<'p, C>, usize) -> bool,
        change: impl FnOnce(C::Value) -> u64,
    ) -> Option<C::Value> {
        let mixed = C::mix(hash);
        let segment = self.segment(mixed);
        let home = segment.home(mixed);
        let (group, slot) = match home.first(hash).filter(|&slot| is(home, slot)) {
            Some(slot) => (home, slot),
            None => {
                let is = |group, slot| is(group, slot).then_some((group, slot));
                segment.find_further(hash, mixed, is)?
            }
        };
        let old = group.value(slot);
        let word = change(old);
        group.replace(slot, |_| word);
        Some(old)
    }
}
