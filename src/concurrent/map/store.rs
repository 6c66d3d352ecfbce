//! Stores: the entries of a shard, in chunks that never move, with ids of four bytes.
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
//! atomic counter, is shared by all readers. The buckets need four bytes for an entry instead of a
//! pointer's eight, so that more of them fit into the cache.
//!
//! - **E1** The id of an entry is *allocated* from its insertion until all pins have ended that may
//!   have observed it. Only then is it free, and may be reused.
//! - **E2** Chunks and tables are freed when the store is dropped, and not before.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::mem::{self, MaybeUninit};
use core::panic::AssertUnwindSafe;
use core::ptr;
use std::panic::catch_unwind;
use std::sync::PoisonError;

use crate::concurrent::garbage::Dropped;
use crate::concurrent::sync::{AtomicBool, AtomicPtr, AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::raw::prefetch::prefetch;

/// Maximum number of entries of a chunk: a small map has one chunk per shard.
const CHUNK: usize = 64;

/// Maximum number of bytes of a chunk, unless four entries need more.
const CHUNK_BYTES: usize = 4096;

/// Maximum number of entries of a shard.
const MAX_ENTRIES: usize = 1 << 31;

/// Length of the first table.
const FIRST_TABLE: usize = 4;

/// A chunk: the address of its first entry.
type Chunk<T> = AtomicPtr<T>;

/// The store of a shard.
pub(super) struct Store<T> {
    /// The first element of the table in use.
    table: AtomicPtr<Chunk<T>>,
    /// The writers' part, in its own allocation, so that readers do not share its cache lines.
    writer: Box<WriterPart<T>>,
}

/// The writers' part of a store.
struct WriterPart<T> {
    /// All tables, the one in use last. An element without a chunk is null.
    tables: Mutex<Vec<*mut [Chunk<T>]>>,
    /// Ids that were freed, and not fetched by the lock holder yet.
    returned: Mutex<Vec<u32>>,
    /// Whether there are some. A hint, which saves the lock while a map is filled.
    has_returned: AtomicBool,
    /// Bytes that the shard has retired, and that are not freed yet.
    retired: AtomicUsize,
}

/// The allocator of ids, for the lock holder.
pub(super) struct IdAllocator<T> {
    free: Vec<u32>,
    /// Ids from here on were never allocated.
    next: usize,
    /// Length of the table in use.
    table_len: usize,
    entries: PhantomData<T>,
}

/// Locks a mutex under which only code of this crate runs, which does not panic.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

// SAFETY: it owns its entries, like a vector.
unsafe impl<T: Send> Send for Store<T> {}
// SAFETY: entries are shared by several threads, and dropped by one, after all others.
unsafe impl<T: Send + Sync> Sync for Store<T> {}

impl<T> Store<T> {
    /// The lowest bits of an id are the index in a chunk; the others are the index of the chunk.
    const BITS: u32 = {
        let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
        let fitting = CHUNK_BYTES / size;
        (if fitting > CHUNK {
            CHUNK
        } else if fitting < 4 {
            4
        } else {
            fitting
        })
        .ilog2()
    };

    /// Number of entries of a chunk.
    const LEN: usize = 1 << Self::BITS;

    /// Creates a store without chunks.
    pub(super) fn new() -> Self {
        let table = AtomicPtr::new(ptr::null_mut());
        let writer = WriterPart {
            tables: Mutex::new(Vec::new()),
            returned: Mutex::new(Vec::new()),
            has_returned: AtomicBool::new(false),
            retired: AtomicUsize::new(0),
        };
        Self { table, writer: Box::new(writer) }
    }

    /// Returns the address of an entry.
    ///
    /// # Safety
    ///
    /// The id is allocated, and this thread has loaded it from a bucket or has allocated it.
    #[inline]
    unsafe fn address(&self, id: u32) -> *mut T {
        // Acquire: pairs with the Release in `add_table`: the table may be a later one than that of
        // the id.
        let table = self.table.load(Ordering::Acquire);
        // SAFETY: the table has this element, or the id would not be allocated (E2).
        let chunk = unsafe { table.add((id >> Self::BITS) as usize) };
        // SAFETY: tables are not freed (E2).
        let chunk = unsafe { &*chunk };
        // Relaxed: stored before the id was stored (Release, in `bucket.rs`) and loaded with
        // Acquire.
        let first = chunk.load(Ordering::Relaxed);
        // SAFETY: a chunk has `LEN` elements.
        unsafe { first.add(id as usize % Self::LEN) }
    }

    /// Returns an entry.
    ///
    /// # Safety
    ///
    /// Its id was loaded from a bucket of this shard under a pin that lasts for `'p`.
    #[inline]
    pub(super) unsafe fn get<'p>(&self, id: u32) -> &'p T {
        // SAFETY: it is allocated, as it was in a bucket.
        let entry = unsafe { self.address(id) };
        // SAFETY: the entry was live when the pin began or later, and is not dropped before that
        // ends (E1).
        unsafe { &*entry }
    }

    /// Prefetches the cache lines of an entry.
    ///
    /// # Safety
    ///
    /// As for [`get`](Self::get).
    #[inline]
    pub(super) unsafe fn prefetch(&self, id: u32) {
        // SAFETY: it is allocated, as it was in a bucket.
        let entry = unsafe { self.address(id) }.cast_const();
        prefetch(entry);
        prefetch(entry.wrapping_byte_add(size_of::<T>().saturating_sub(1)));
    }

    /// Drops an entry in place, and catches its panic. The id stays allocated.
    ///
    /// # Safety
    ///
    /// It was in a bucket, no thread can access it any more, and it is dropped once.
    pub(super) unsafe fn drop_entry(&self, id: u32) -> Dropped {
        if !mem::needs_drop::<T>() {
            return Ok(());
        }
        // SAFETY: it was in a bucket, so it is allocated.
        let entry = unsafe { self.address(id) };
        // SAFETY: by the contract.
        catch_unwind(AssertUnwindSafe(|| unsafe { entry.drop_in_place() }))
    }

    /// Returns the bytes that the shard has retired, and that are not freed yet.
    pub(super) fn retired(&self) -> usize {
        // Relaxed, here and below: a statistic that is compared with a limit, which publishes
        // nothing.
        self.writer.retired.load(Ordering::Relaxed)
    }

    pub(super) fn add_retired(&self, bytes: usize) {
        self.writer.retired.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn subtract_retired(&self, bytes: usize) {
        self.writer.retired.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Frees ids whose entries have been dropped.
    pub(super) fn release(&self, ids: &mut Vec<u32>) {
        let mut returned = locked(&self.writer.returned);
        returned.append(ids);
        // Relaxed, here and where it is loaded: a hint only.
        self.writer.has_returned.store(!returned.is_empty(), Ordering::Relaxed);
    }
}

impl<T> IdAllocator<T> {
    pub(super) const fn new() -> Self {
        Self { free: Vec::new(), next: 0, table_len: 0, entries: PhantomData }
    }

    /// Returns the number of entries for which memory is allocated.
    fn capacity(&self) -> usize {
        self.next.next_multiple_of(Store::<T>::LEN)
    }

    /// Returns the bytes of chunks and tables, and of the rest of the store.
    pub(super) fn allocation_size(&self) -> usize {
        // Each table is twice as long as the one before.
        let tables = 2 * self.table_len * size_of::<Chunk<T>>();
        self.capacity() * size_of::<T>() + tables + size_of::<WriterPart<T>>()
    }

    /// Allocates an id.
    ///
    /// # Panics
    ///
    /// If the shard has 2^31 entries.
    pub(super) fn allocate(&mut self, store: &Store<T>) -> u32 {
        if self.free.is_empty() && store.writer.has_returned.load(Ordering::Relaxed) {
            mem::swap(&mut self.free, &mut locked(&store.writer.returned));
            store.writer.has_returned.store(false, Ordering::Relaxed);
        }
        self.free.pop().unwrap_or_else(|| self.bump(store))
    }

    /// Writes an entry that is not published yet.
    ///
    /// # Safety
    ///
    /// The id has just been allocated.
    pub(super) unsafe fn write(&self, store: &Store<T>, id: u32, entry: T) {
        // SAFETY: it is allocated.
        let element = unsafe { store.address(id) };
        // SAFETY: no thread accesses the entry (E1).
        unsafe { element.write(entry) };
    }

    /// Allocates an id that was never allocated before.
    fn bump(&mut self, store: &Store<T>) -> u32 {
        assert!(self.next < MAX_ENTRIES, "a shard has 2^31 entries");
        if self.next % Store::<T>::LEN == 0 {
            self.add_chunk(store);
        }
        self.next += 1;
        (self.next - 1) as u32
    }

    fn add_chunk(&mut self, store: &Store<T>) {
        let nth = self.next >> Store::<T>::BITS;
        if nth == self.table_len {
            self.add_table(store);
        }
        let chunk: Box<[MaybeUninit<T>]> = Box::new_uninit_slice(Store::<T>::LEN);
        // Relaxed: it was stored under the lock that this thread holds.
        let table = store.table.load(Ordering::Relaxed);
        // SAFETY: the table in use is longer than the number of chunks.
        let element = unsafe { table.add(nth) };
        // SAFETY: tables are not freed (E2).
        let element = unsafe { &*element };
        // Relaxed: see `Store::address`.
        element.store(Box::into_raw(chunk).cast(), Ordering::Relaxed);
    }

    /// Allocates a table of twice the length with the present chunks. The former one is kept, as
    /// readers may access it.
    fn add_table(&mut self, store: &Store<T>) {
        // Relaxed: it was stored under the lock that this thread holds.
        let old = store.table.load(Ordering::Relaxed);
        let chunk = |nth| {
            if nth >= self.table_len {
                return AtomicPtr::new(ptr::null_mut());
            }
            // SAFETY: the index is less than the length of the table in use.
            let element = unsafe { old.add(nth) };
            // SAFETY: tables are not freed (E2).
            let element = unsafe { &*element };
            AtomicPtr::new(element.load(Ordering::Relaxed))
        };
        let table_len = (2 * self.table_len).max(FIRST_TABLE);
        let table: Box<[Chunk<T>]> = (0..table_len).map(chunk).collect();
        self.table_len = table_len;
        let table = Box::into_raw(table);
        locked(&store.writer.tables).push(table);
        // Release: pairs with the Acquire in `Store::address`.
        store.table.store(table.cast(), Ordering::Release);
    }
}

impl<T> Drop for Store<T> {
    /// Frees chunks and tables. Entries have been dropped before.
    fn drop(&mut self) {
        let tables = mem::take(&mut *locked(&self.writer.tables));
        let last = tables.len().saturating_sub(1);
        for (nth, table) in tables.into_iter().enumerate() {
            // SAFETY: allocated in `add_table` as a box; the store is not used any more.
            let table = unsafe { Box::from_raw(table) };
            if nth < last {
                continue;
            }
            for chunk in table {
                let first = chunk.load(Ordering::Relaxed);
                if !first.is_null() {
                    let chunk = ptr::slice_from_raw_parts_mut(first, Self::LEN);
                    // SAFETY: allocated in `add_chunk` as a box of this length, and once in the
                    // last table. The entries are not dropped.
                    drop(unsafe { Box::from_raw(chunk as *mut [MaybeUninit<T>]) });
                }
            }
        }
    }
}
