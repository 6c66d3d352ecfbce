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
//! pointer's eight, so that more of them fit into the cache. A shard allocates ids in runs of 16.
//!
//! - **E1** The id of an entry is *allocated* from its insertion until all pins have ended that may
//!   have observed it. Only then is it free, and may be reused.
//! - **E2** Chunks and tables are freed when the store is dropped, and not before.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::hint;
use core::mem::{self, MaybeUninit};
use core::ops::Range;
use core::panic::AssertUnwindSafe;
use core::ptr;
use std::panic::catch_unwind;
use std::sync::PoisonError;

use crate::concurrent::error::Refused;
use crate::concurrent::garbage::Dropped;
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

/// A chunk: the address that an entry with id 0 would have in it. So an id is added to it without
/// being reduced to the index in the chunk.
type Chunk<T> = AtomicPtr<T>;

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
}

/// The chunks and tables of a store.
struct Growth<T> {
    /// All tables, the one in use last.
    tables: Vec<*mut [Chunk<T>]>,
    /// The first entries of all chunks. All chunks are in the table in use.
    chunks: Vec<*mut MaybeUninit<T>>,
    /// Ids from here on were never allocated.
    next: usize,
}

/// The part of a store for one shard.
#[repr(align(64))]
struct ShardPart {
    /// Ids that were freed, and not fetched by the lock holder yet.
    returned: Mutex<Vec<u32>>,
    /// Whether there are some. A hint, which saves the lock while a map is filled.
    has_returned: AtomicBool,
    /// Bytes that the shard has retired, and that are not freed yet.
    retired: AtomicUsize,
}

/// The ids that a shard has, for the lock holder.
pub(super) struct IdAllocator {
    shard: usize,
    free: Vec<u32>,
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
        let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
        let fitting = CHUNK_BYTES / size;
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
            returned: Mutex::new(Vec::new()),
            has_returned: AtomicBool::new(false),
            retired: AtomicUsize::new(0),
        });
        let growth = Mutex::new(Growth { tables: Vec::new(), chunks: Vec::new(), next: 0 });
        let [table, same] = [(); 2].map(|()| AtomicPtr::new(ptr::null_mut()));
        let entries = Arc::new(Entries { table, growth, shards, bytes: AtomicUsize::new(0) });
        Self { table: same, entries }
    }

    pub(super) const fn entries(&self) -> &Arc<Entries<T>> {
        &self.entries
    }

    /// Returns the address of an entry.
    ///
    /// # Safety
    ///
    /// The table is of a store. The id is allocated there, and this thread has loaded it from a
    /// segment or has allocated it.
    #[inline(always)]
    unsafe fn address(table: &AtomicPtr<Chunk<T>>, id: u32) -> *mut T {
        // Acquire: pairs with the Release in `add_table`: the table may be later than the table in
        // which the id was allocated.
        let table = table.load(Ordering::Acquire);
        // SAFETY: the table has this element, or the id would not be allocated (E2).
        let chunk = unsafe { table.add((id >> Self::BITS) as usize) };
        // SAFETY: tables are not freed (E2).
        let chunk = unsafe { &*chunk };
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
    #[inline(always)]
    pub(super) unsafe fn get<'p>(&self, id: u32) -> &'p T {
        // SAFETY: it is allocated, as it was in a line.
        let entry = unsafe { Self::address(&self.table, id) };
        // So that `Some` of a reference is not compared with null.
        // SAFETY: it is in a chunk.
        unsafe { hint::assert_unchecked(!entry.is_null()) };
        // SAFETY: the entry was live when the pin began or later, and is not dropped before that
        // ends (E1).
        unsafe { &*entry }
    }

    /// Prefetches the cache lines of an entry.
    #[inline(always)]
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
        unsafe { element.write(entry) };
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
        let chunk = boxed(Self::LEN, |_| MaybeUninit::<T>::uninit())?;
        self.add_bytes(Self::LEN * size_of::<T>());
        // Relaxed: it was stored under the lock that this thread holds.
        let table = self.table.load(Ordering::Relaxed);
        // SAFETY: the table in use is longer than the number of chunks.
        let element = unsafe { table.add(nth) };
        // SAFETY: tables are not freed (E2).
        let element = unsafe { &*element };
        let first = Box::into_raw(chunk).cast::<MaybeUninit<T>>();
        growth.chunks.push(first);
        // Relaxed: see `address`.
        element.store(first.cast::<T>().wrapping_sub(nth << Self::BITS), Ordering::Relaxed);
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
            // SAFETY: the index is less than the length of the table in use.
            let element = unsafe { old.add(nth) };
            // SAFETY: tables are not freed (E2).
            let element = unsafe { &*element };
            AtomicPtr::new(element.load(Ordering::Relaxed))
        };
        let len = (2 * growth.chunks.len()).max(FIRST_TABLE);
        let table = boxed(len, chunk)?;
        let before = growth.chunks.capacity();
        growth.chunks.try_reserve_exact(len - growth.chunks.len()).map_err(|_| no_memory(len))?;
        growth.tables.try_reserve(1).map_err(|_| no_memory(1))?;
        let more = growth.chunks.capacity() - before;
        self.add_bytes(size_of_val(&*table) + more * size_of::<*mut T>());
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
        let entry = unsafe { Store::address(&self.table, id) };
        // SAFETY: by the contract.
        catch_unwind(AssertUnwindSafe(|| unsafe { entry.drop_in_place() }))
    }

    pub(super) fn subtract_retired(&self, shard: usize, bytes: usize) {
        self.shards[shard].retired.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Frees ids of a shard whose entries have been dropped.
    pub(super) fn release(&self, shard: usize, ids: &mut Vec<u32>) {
        let shard = &self.shards[shard];
        let mut returned = locked(&shard.returned);
        returned.append(ids);
        // Relaxed, here and where it is loaded: a hint only.
        shard.has_returned.store(!returned.is_empty(), Ordering::Relaxed);
    }
}

impl IdAllocator {
    pub(super) const fn new(shard: usize) -> Self {
        Self { shard, free: Vec::new(), run: 0..0 }
    }

    /// Allocates an id, unless all are, or there is no memory for its entry.
    pub(super) fn allocate<T>(&mut self, store: &Store<T>) -> Result<u32, Refused> {
        let shard = &store.entries.shards[self.shard];
        if self.free.is_empty() && shard.has_returned.load(Ordering::Relaxed) {
            let mut returned = locked(&shard.returned);
            mem::swap(&mut self.free, &mut returned);
            shard.has_returned.store(false, Ordering::Relaxed);
        }
        if let Some(id) = self.free.pop() {
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
        for &first in &growth.chunks {
            let chunk = ptr::slice_from_raw_parts_mut(first, Store::<T>::LEN);
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
