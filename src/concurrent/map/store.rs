//! The store: the entries of a map, in chunks that never move, with ids of four bytes.
//!
//! ```text
//!     id        chunk │ slot             table  ┌───┬───┬───┬──
//!               ──────┴─────                    │ ● │ ● │ ● │  …   never moves
//!                                               └─┼─┴───┴───┴──
//!                                                 ▼ ┌───┬───┬───┬───┐
//!                                                   │ e │ e │   │ e │ never moves
//!                                                   └───┴───┴───┴───┘
//! ```
//!
//! So a value has one address for its lifetime, and a value with interior mutability, such as an
//! atomic counter, is shared by all readers. The lines need four bytes for an entry instead of a
//! pointer's eight, so that more of them fit into the cache. A shard allocates ids in runs of 16,
//! and reuses those that are freed: a list through the elements of the chunks.
//!
//! - **E1** The id of an entry is *allocated* from its insertion until all pins have ended that may
//!   have observed it. Only then is it free, and may be reused.
//! - **E2** Chunks and tables are freed when the store is dropped, and not before.
//! - **E3** An entry *waits* if it was removed without memory for a batch: it is in no batch then,
//!   and not free.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::mem::{self, ManuallyDrop, MaybeUninit};
use core::ops::Range;
use core::panic::AssertUnwindSafe;
use core::{hint, ptr};
use std::panic::catch_unwind;
use std::sync::PoisonError;

use crate::concurrent::collector::{Dropped, forget_panic};
use crate::concurrent::error::Refused;
use crate::concurrent::policy::SHARDS;
use crate::concurrent::sync::{
    Arc, AtomicBool, AtomicPtr, AtomicUsize, Mutex, MutexGuard, Ordering,
};
use crate::raw::prefetch::prefetch;
use crate::table::error::TryReserveError;

/// Maximum number of entries of a chunk: with 24 bytes each, the table of a million entries has 8
/// KiB.
const CHUNK: usize = 1024;

/// Maximum number of bytes of a chunk with several entries.
const CHUNK_BYTES: usize = 32 << 10;

/// Maximum number of ids that a shard allocates at once.
const RUN: usize = 16;

/// Maximum number of ids.
pub(super) const MAX_ENTRIES: usize = 1 << 31;

/// Length of the first table.
const FIRST_TABLE: usize = 16;

/// The end of a list of free ids.
const NONE: u32 = u32::MAX;

/// An element of a chunk: an entry, or the next free id of its shard.
#[repr(C)]
union Element<T> {
    entry: ManuallyDrop<T>,
    next: u32,
}

/// A chunk: the address that an element with id 0 would have in it. So an id is added to it without
/// being reduced to the index in the chunk.
type Chunk<T> = AtomicPtr<Element<T>>;

/// The store of a map.
pub(super) struct Store<T> {
    /// The first element of the table in use. In the map itself, for readers.
    table: AtomicPtr<Chunk<T>>,
    entries: Arc<Entries<T>>,
}

/// The entries of a store, for writers and for threads that free retired entries.
pub(super) struct Entries<T> {
    /// As in the store.
    table: AtomicPtr<Chunk<T>>,
    growth: Mutex<Growth<T>>,
    shards: [ShardPart; SHARDS],
    /// Allocated bytes.
    bytes: AtomicUsize,
    /// Whether entries wait for memory. A hint, which saves the lock.
    has_waiting: AtomicBool,
}

/// The chunks and tables of a store.
struct Growth<T> {
    /// All tables, the one in use last.
    tables: Vec<*mut [Chunk<T>]>,
    /// All chunks. They are in the table in use.
    chunks: Vec<ChunkBox<T>>,
    /// Ids from here on were never allocated.
    next: usize,
    /// The entries of the chunks before this one do not wait.
    first_waiting: usize,
}

/// The memory of a chunk.
struct ChunkBox<T> {
    first: *mut MaybeUninit<Element<T>>,
    /// A bit for each entry: whether it waits (E3).
    waiting: Box<[u64]>,
}

impl<T> ChunkBox<T> {
    /// Returns the index of an entry that waited.
    fn take_waiting(&mut self) -> Option<usize> {
        let (nth, word) = self.waiting.iter_mut().enumerate().find(|(_, word)| **word != 0)?;
        let bit = word.trailing_zeros();
        *word &= *word - 1;
        Some(nth * u64::BITS as usize + bit as usize)
    }
}

/// The part of a store for one shard.
#[repr(align(64))]
struct ShardPart {
    /// The first of the ids that were freed, and not fetched by the lock holder yet.
    returned: Mutex<u32>,
    /// Whether there are some. A hint, which saves the lock while a map is filled.
    has_returned: AtomicBool,
    /// Bytes that the shard has retired, and that are not freed yet.
    retired: AtomicUsize,
}

/// The ids that a shard has, for the lock holder.
pub(super) struct IdAllocator {
    shard: usize,
    /// The first free id.
    free: u32,
    /// A run, of which these were never used.
    run: Range<usize>,
}

/// Returns the error of an allocation of a number of pointers.
fn no_memory(len: usize) -> TryReserveError {
    Layout::array::<*const ()>(len).map_or(TryReserveError::OVERFLOW, TryReserveError::memory)
}

/// Allocates a slice whose items are the results of `new`.
fn boxed<T>(len: usize, new: impl Fn(usize) -> T) -> Result<Box<[T]>, TryReserveError> {
    let mut items = Vec::new();
    let reserved = items.try_reserve_exact(len);
    let layout = Layout::array::<T>(len).map_err(|_| TryReserveError::OVERFLOW)?;
    reserved.map_err(|_| TryReserveError::memory(layout))?;
    items.extend((0..len).map(new));
    Ok(items.into_boxed_slice())
}

/// Locks a mutex under which only code of this crate runs, which does not panic.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

// SAFETY: it owns its entries, like a vector.
unsafe impl<T: Send> Send for Entries<T> {}
// SAFETY: entries are shared by several threads, and dropped by one, after all others.
unsafe impl<T: Send + Sync> Sync for Entries<T> {}

impl<T> Store<T> {
    /// The lowest bits of an id are the index in a chunk; the others are the index of the chunk.
    const BITS: u32 = {
        let fitting = CHUNK_BYTES / size_of::<Element<T>>();
        (if fitting > CHUNK {
            CHUNK
        } else if fitting == 0 {
            1
        } else {
            fitting
        })
        .ilog2()
    };

    /// Number of entries of a chunk.
    const LEN: usize = 1 << Self::BITS;

    /// Number of ids that a shard allocates at once.
    const RUN: usize = if RUN < Self::LEN { RUN } else { Self::LEN };

    /// Creates a store without chunks.
    pub(super) fn new() -> Self {
        let shards = core::array::from_fn(|_| ShardPart {
            returned: Mutex::new(NONE),
            has_returned: AtomicBool::new(false),
            retired: AtomicUsize::new(0),
        });
        let growth = Growth { tables: Vec::new(), chunks: Vec::new(), next: 0, first_waiting: 0 };
        let [table, same] = [(); 2].map(|()| AtomicPtr::new(ptr::null_mut()));
        let entries = Arc::new(Entries {
            table,
            growth: Mutex::new(growth),
            shards,
            bytes: AtomicUsize::new(0),
            has_waiting: AtomicBool::new(false),
        });
        Self { table: same, entries }
    }

    pub(super) const fn entries(&self) -> &Arc<Entries<T>> {
        &self.entries
    }

    /// Returns an element of a table.
    ///
    /// # Safety
    ///
    /// The table has it, and is not freed during `'p`.
    #[inline]
    const unsafe fn chunk<'p>(table: *mut Chunk<T>, nth: usize) -> &'p Chunk<T> {
        // SAFETY: by the contract.
        unsafe { &*table.wrapping_add(nth) }
    }

    /// Returns the address of an element.
    ///
    /// # Safety
    ///
    /// The table is of a store. The id is or was allocated there, and this thread has loaded it
    /// from a segment, has allocated it, or has received it under a lock.
    #[inline]
    unsafe fn address(table: &AtomicPtr<Chunk<T>>, id: u32) -> *mut Element<T> {
        // Acquire: pairs with the Release in `add_table`: the table may be later than the table in
        // which the id was allocated.
        let table = table.load(Ordering::Acquire);
        // SAFETY: the table has this element, or the id would not be allocated; and is not freed
        // (E2).
        let chunk = unsafe { Self::chunk(table, (id >> Self::BITS) as usize) };
        // Relaxed: stored before the id was stored (Release, in `Group::write`) and loaded with
        // Acquire; if another shard has stored it, then before the lock of `growth` was passed on.
        let origin = chunk.load(Ordering::Relaxed);
        // The address is in the chunk, which has the ids that agree in the upper bits.
        origin.wrapping_add(id as usize)
    }

    /// Returns an entry.
    ///
    /// # Safety
    ///
    /// Its id was loaded from a line of this map under a pin that lasts for `'p`.
    #[inline]
    pub(super) unsafe fn get<'p>(&self, id: u32) -> &'p T {
        // SAFETY: it is allocated, as it was in a line.
        let entry = unsafe { Self::address(&self.table, id) }.cast::<T>();
        // So that `Some` of a reference is not compared with null.
        // SAFETY: it is in a chunk.
        unsafe { hint::assert_unchecked(!entry.is_null()) };
        // SAFETY: the entry was live when the pin began or later, and is not dropped before that
        // ends (E1).
        unsafe { &*entry }
    }

    /// Prefetches the cache lines of an entry.
    #[inline]
    pub(super) fn prefetch(entry: &T) {
        let entry = ptr::from_ref(entry);
        prefetch(entry);
        prefetch(entry.wrapping_byte_add(size_of::<T>().saturating_sub(1)));
    }

    /// Writes an entry that is not published yet.
    ///
    /// # Safety
    ///
    /// The id has just been allocated.
    pub(super) unsafe fn write(&self, id: u32, entry: T) {
        // SAFETY: it is allocated.
        let element = unsafe { Self::address(&self.table, id) };
        // SAFETY: no thread accesses the entry (E1).
        unsafe { element.cast::<T>().write(entry) };
    }

    /// Returns whether entries wait for memory (E3).
    pub(super) fn has_waiting(&self) -> bool {
        // Relaxed, here and where it is stored: a hint only.
        self.entries.has_waiting.load(Ordering::Relaxed)
    }

    /// Lets a removed entry wait (E3).
    #[cold]
    pub(super) fn add_waiting(&self, id: u32) {
        let (nth, index) = (id as usize >> Self::BITS, id as usize % Self::LEN);
        let mut growth = locked(&self.entries.growth);
        growth.first_waiting = growth.first_waiting.min(nth);
        growth.chunks[nth].waiting[index / 64] |= 1 << (index % 64);
        self.entries.has_waiting.store(true, Ordering::Relaxed);
    }

    /// Returns an entry that waited.
    pub(super) fn take_waiting(&self) -> Option<u32> {
        let mut growth = locked(&self.entries.growth);
        let Growth { chunks, first_waiting, .. } = &mut *growth;
        while let Some(chunk) = chunks.get_mut(*first_waiting) {
            if let Some(index) = chunk.take_waiting() {
                return Some((*first_waiting * Self::LEN + index) as u32);
            }
            *first_waiting += 1;
        }
        self.entries.has_waiting.store(false, Ordering::Relaxed);
        None
    }

    /// Drops the entries that wait. Their panics are caught.
    ///
    /// # Safety
    ///
    /// No thread can access these entries any more.
    pub(super) unsafe fn drop_waiting(&self) {
        while let Some(id) = self.take_waiting() {
            // SAFETY: by the contract; it was in a segment, and is in no batch.
            forget_panic(unsafe { self.entries.drop_entry(id) });
        }
    }

    /// Returns the bytes that a shard has retired, and that are not freed yet.
    pub(super) fn retired(&self, shard: usize) -> usize {
        // Relaxed, here and below: a statistic that is compared with a limit, which publishes
        // nothing.
        self.entries.shards[shard].retired.load(Ordering::Relaxed)
    }

    pub(super) fn add_retired(&self, shard: usize, bytes: usize) {
        self.entries.shards[shard].retired.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes of chunks and tables, and of the rest of the store.
    pub(super) fn allocation_size(&self) -> usize {
        // Relaxed: a statistic that publishes nothing.
        size_of::<Entries<T>>() + self.entries.bytes.load(Ordering::Relaxed)
    }

    /// Allocates chunks for `entries` entries, and for the runs that the shards have begun.
    pub(super) fn reserve(&self, entries: usize) -> Result<(), TryReserveError> {
        let ids = entries.saturating_add(SHARDS * Self::RUN).min(MAX_ENTRIES);
        let mut growth = locked(&self.entries.growth);
        while growth.chunks.len() * Self::LEN < ids {
            self.add_chunk(&mut growth)?;
        }
        Ok(())
    }

    /// Allocates a run of ids that were never allocated before.
    #[cold]
    fn run(&self) -> Result<Range<usize>, Refused> {
        let mut growth = locked(&self.entries.growth);
        let run = growth.next..growth.next + Self::RUN;
        if run.end > MAX_ENTRIES {
            return Err(Refused::Full);
        }
        if run.start == growth.chunks.len() * Self::LEN {
            self.add_chunk(&mut growth)?;
        }
        growth.next = run.end;
        Ok(run)
    }

    fn add_bytes(&self, bytes: usize) {
        self.entries.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn add_chunk(&self, growth: &mut Growth<T>) -> Result<(), TryReserveError> {
        let nth = growth.chunks.len();
        if nth == growth.tables.last().map_or(0, |table| table.len()) {
            self.add_table(growth)?;
        }
        let chunk = boxed(Self::LEN, |_| MaybeUninit::<Element<T>>::uninit())?;
        let waiting = boxed(Self::LEN.div_ceil(64), |_| 0)?;
        self.add_bytes(size_of_val(&*chunk) + size_of_val(&*waiting));
        // Relaxed: it was stored under the lock that this thread holds.
        let table = self.table.load(Ordering::Relaxed);
        // SAFETY: the table in use is longer than the number of chunks; tables are not freed (E2).
        let element = unsafe { Self::chunk(table, nth) };
        let first = Box::into_raw(chunk).cast::<MaybeUninit<Element<T>>>();
        growth.chunks.push(ChunkBox { first, waiting });
        // Relaxed: see `address`.
        let origin = first.cast::<Element<T>>().wrapping_sub(nth << Self::BITS);
        element.store(origin, Ordering::Relaxed);
        Ok(())
    }

    /// Allocates a table of twice the length with the present chunks. The former one is kept, as
    /// readers may access it.
    fn add_table(&self, growth: &mut Growth<T>) -> Result<(), TryReserveError> {
        // Relaxed: it was stored under the lock that this thread holds.
        let old = self.table.load(Ordering::Relaxed);
        let chunk = |nth| {
            if nth >= growth.chunks.len() {
                return AtomicPtr::new(ptr::null_mut());
            }
            // SAFETY: the index is less than the length of the table in use; as above.
            let element = unsafe { Self::chunk(old, nth) };
            AtomicPtr::new(element.load(Ordering::Relaxed))
        };
        let len = (2 * growth.chunks.len()).max(FIRST_TABLE);
        let table = boxed(len, chunk)?;
        let before = growth.chunks.capacity();
        growth.chunks.try_reserve_exact(len - growth.chunks.len()).map_err(|_| no_memory(len))?;
        growth.tables.try_reserve(1).map_err(|_| no_memory(1))?;
        let more = growth.chunks.capacity() - before;
        self.add_bytes(size_of_val(&*table) + more * size_of::<ChunkBox<T>>());
        let table = Box::into_raw(table);
        growth.tables.push(table);
        // Release: pairs with the Acquire in `address`.
        self.entries.table.store(table.cast(), Ordering::Release);
        self.table.store(table.cast(), Ordering::Release);
        Ok(())
    }
}

impl<T> Entries<T> {
    /// Drops an entry in place, and catches its panic. The id stays allocated.
    ///
    /// # Safety
    ///
    /// It was in a segment, no thread can access it any more, and it is dropped once.
    pub(super) unsafe fn drop_entry(&self, id: u32) -> Dropped {
        if !mem::needs_drop::<T>() {
            return Ok(());
        }
        // SAFETY: it was in a segment, so it is allocated.
        let entry = unsafe { Store::address(&self.table, id) }.cast::<T>();
        // SAFETY: by the contract.
        catch_unwind(AssertUnwindSafe(|| unsafe { entry.drop_in_place() }))
    }

    pub(super) fn subtract_retired(&self, shard: usize, bytes: usize) {
        self.shards[shard].retired.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns the next free id in the element of a free one.
    ///
    /// # Safety
    ///
    /// The entry was dropped, or the id is in a list; no other thread accesses it during `'p`.
    unsafe fn next_of<'p>(&self, id: u32) -> &'p mut MaybeUninit<u32> {
        // SAFETY: it was allocated, and the collector or a lock has passed it on.
        let next = unsafe { Store::address(&self.table, id) };
        // SAFETY: by the contract.
        unsafe { &mut *next.cast() }
    }

    /// Frees ids for a shard.
    ///
    /// # Safety
    ///
    /// Their entries have been dropped, and each of the ids is freed once.
    pub(super) unsafe fn release(&self, shard: usize, ids: &[u32]) {
        let Some((&first, others)) = ids.split_first() else { return };
        let mut last = first;
        for &id in others {
            // SAFETY: its entry was dropped, so no other thread accesses the element.
            unsafe { self.next_of(last) }.write(id);
            last = id;
        }
        // SAFETY: its entry was dropped.
        let next = unsafe { self.next_of(last) };
        let shard = &self.shards[shard];
        let mut returned = locked(&shard.returned);
        next.write(mem::replace(&mut *returned, first));
        // Relaxed, here and where it is loaded: a hint only.
        shard.has_returned.store(true, Ordering::Relaxed);
    }
}

impl IdAllocator {
    pub(super) const fn new(shard: usize) -> Self {
        Self { shard, free: NONE, run: 0..0 }
    }

    /// Allocates an id, unless all are, or there is no memory for its entry.
    pub(super) fn allocate<T>(&mut self, store: &Store<T>) -> Result<u32, Refused> {
        let shard = &store.entries.shards[self.shard];
        if self.free == NONE && shard.has_returned.load(Ordering::Relaxed) {
            let mut returned = locked(&shard.returned);
            self.free = mem::replace(&mut *returned, NONE);
            shard.has_returned.store(false, Ordering::Relaxed);
        }
        if self.free != NONE {
            let id = self.free;
            // SAFETY: the list is of the lock holder.
            let next = unsafe { store.entries.next_of(id) };
            // SAFETY: written by `release`.
            self.free = unsafe { next.assume_init() };
            return Ok(id);
        }
        if self.run.is_empty() {
            self.run = store.run()?;
        }
        self.run.start += 1;
        Ok((self.run.start - 1) as u32)
    }
}

impl<T> Drop for Entries<T> {
    /// Frees chunks and tables. Entries have been dropped before.
    fn drop(&mut self) {
        let growth = locked(&self.growth);
        for &table in &growth.tables {
            // SAFETY: allocated in `add_table` as a box; the store is not used any more.
            drop(unsafe { Box::from_raw(table) });
        }
        for chunk in &growth.chunks {
            let chunk = ptr::slice_from_raw_parts_mut(chunk.first, Store::<T>::LEN);
            // SAFETY: allocated in `add_chunk` as a box of this length. Entries are not dropped.
            drop(unsafe { Box::from_raw(chunk) });
        }
    }
}

#[cfg(all(test, not(any(crossbeam_loom, shuttle))))]
impl<T> Store<T> {
    /// Makes all ids allocated, except the ids of the runs that the shards have begun.
    pub(super) fn exhaust(&self) {
        locked(&self.entries.growth).next = MAX_ENTRIES;
    }

    /// Number of ids of the runs that all shards have begun, at most.
    pub(super) const BEGUN: usize = SHARDS * Self::RUN;
}
