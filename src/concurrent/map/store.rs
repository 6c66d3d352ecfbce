//! Where the entries of a shard are: in chunks that never move, under numbers of four bytes.
//!
//! ```text
//!     number    chunk │ slot             table  ┌───┬───┬───┬──
//!               ──────┴─────                    │ ● │ ● │ ● │  …      never moves, grows by another one
//!                                               └─┼─┴───┴───┴──
//!                                                 ▼ ┌───┬───┬───┬───┐
//!                                                   │ e │ e │   │ e │ never moves
//!                                                   └───┴───┴───┴───┘
//! ```
//!
//! So a value keeps its address for as long as it lives, and a value that changes from within, such as an
//! atomic number, is the same for all who see it. The buckets need four bytes for an entry instead of a
//! pointer's eight, so that more of them are in the cache.
//!
//! - **E1** The number of an entry is *taken* from when it is put in until the pins have ended that may have
//!   seen it. Only then is it free, and may get another entry.
//! - **E2** A chunk and a table stay until the store is dropped.
#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::marker::PhantomData;
use core::mem::{self, MaybeUninit};
use core::panic::AssertUnwindSafe;
use core::ptr;
use std::panic::catch_unwind;
use std::sync::PoisonError;

use crate::concurrent::sync::{AtomicBool, AtomicPtr, AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::raw::prefetch::prefetch;

/// Entries of a chunk, at most: a small map has one chunk for each shard.
const CHUNK: usize = 64;

/// Bytes of a chunk, at most, unless four entries have more.
const CHUNK_BYTES: usize = 4096;

/// As many entries as a shard may have.
const MOST: usize = 1 << 31;

/// Places of the first table.
const FIRST_TABLE: usize = 4;

/// A chunk: the address of its first entry.
type Chunk<T> = AtomicPtr<T>;

pub(super) struct Store<T> {
    /// The first place of the table in use.
    table: AtomicPtr<Chunk<T>>,
    /// Elsewhere: readers do not look at it, and should not see it change.
    behind: Box<Behind<T>>,
}

struct Behind<T> {
    /// All tables, that in use at the end. A place without a chunk is null.
    tables: Mutex<Vec<*mut [Chunk<T>]>>,
    /// Numbers that have become free, and have not been fetched yet.
    returned: Mutex<Vec<u32>>,
    /// Whether there are some. A hint, so that who fills a map does not lock for nothing.
    has_returned: AtomicBool,
    /// Bytes that the shard has retired, and that have not been given back.
    retired: AtomicUsize,
}

/// What the writer who has the lock knows of a store.
pub(super) struct Numbers<T> {
    free: Vec<u32>,
    /// Numbers from here on have never been taken.
    next: usize,
    /// Places of the table in use.
    places: usize,
    entries: PhantomData<T>,
}

/// What became of a drop: the panic, if there was one.
pub(super) type Dropped = Result<(), Box<dyn Any + Send>>;

/// A lock under which no code runs but ours, which does not panic.
fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

// SAFETY: it owns its entries, like a vector.
unsafe impl<T: Send> Send for Store<T> {}
// SAFETY: entries are seen by several threads, and dropped by one that has nothing else of them.
unsafe impl<T: Send + Sync> Sync for Store<T> {}

impl<T> Store<T> {
    /// A number is that of a chunk, and so many bits of the place in it.
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

    /// Entries of a chunk.
    const LEN: usize = 1 << Self::BITS;

    /// Without chunks.
    pub(super) fn new() -> Self {
        let table = AtomicPtr::new(ptr::null_mut());
        let behind = Behind {
            tables: Mutex::new(Vec::new()),
            returned: Mutex::new(Vec::new()),
            has_returned: AtomicBool::new(false),
            retired: AtomicUsize::new(0),
        };
        Self { table, behind: Box::new(behind) }
    }

    /// The address of an entry.
    ///
    /// # Safety
    ///
    /// The number has been taken, and this thread knows of that: from a bucket, or as it did it itself.
    #[inline]
    unsafe fn place(&self, number: u32) -> *mut T {
        // Acquire: pairs with the Release in `add_table`: it may be a later one than that of the number.
        let table = self.table.load(Ordering::Acquire);
        // SAFETY: there is a table with this place, or the number would not have been taken (E2).
        let chunk = unsafe { table.add((number >> Self::BITS) as usize) };
        // SAFETY: tables stay (E2).
        let chunk = unsafe { &*chunk };
        // Relaxed: it was stored before the number was (Release, in `bucket.rs`), which was seen with Acquire.
        let first = chunk.load(Ordering::Relaxed);
        // SAFETY: a chunk has so many places.
        unsafe { first.add(number as usize % Self::LEN) }
    }

    /// An entry.
    ///
    /// # Safety
    ///
    /// Its number has been seen in a bucket of this shard under a pin that lasts for `'p`.
    #[inline]
    pub(super) unsafe fn get<'p>(&self, number: u32) -> &'p T {
        // SAFETY: it was taken, as it was in a bucket.
        let entry = unsafe { self.place(number) };
        // SAFETY: it was there when the pin began or later, and is not dropped before that ends (E1).
        unsafe { &*entry }
    }

    /// Asks for the lines of an entry, to read it.
    ///
    /// # Safety
    ///
    /// As for [`get`](Self::get).
    #[inline]
    pub(super) unsafe fn prefetch(&self, number: u32) {
        // SAFETY: it was taken, as it was in a bucket.
        let entry = unsafe { self.place(number) }.cast_const();
        prefetch(entry);
        prefetch(entry.wrapping_byte_add(size_of::<T>().saturating_sub(1)));
    }

    /// Drops an entry in its place, and catches its panic. The number stays taken.
    ///
    /// # Safety
    ///
    /// It was in a bucket, nobody can see it any more, and it is dropped once.
    pub(super) unsafe fn drop_entry(&self, number: u32) -> Dropped {
        if !mem::needs_drop::<T>() {
            return Ok(());
        }
        // SAFETY: it was in a bucket, so it was taken.
        let entry = unsafe { self.place(number) };
        // SAFETY: as asked for.
        catch_unwind(AssertUnwindSafe(|| unsafe { entry.drop_in_place() }))
    }

    /// Bytes that the shard has retired, and that have not been given back.
    pub(super) fn retired(&self) -> usize {
        // Relaxed, here and below: a number to compare with a limit, which publishes nothing.
        self.behind.retired.load(Ordering::Relaxed)
    }

    pub(super) fn count_retired(&self, bytes: usize) {
        self.behind.retired.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn count_off(&self, bytes: usize) {
        self.behind.retired.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Makes numbers free whose entries have been dropped.
    pub(super) fn give_back(&self, numbers: &mut Vec<u32>) {
        let mut returned = locked(&self.behind.returned);
        returned.append(numbers);
        // Relaxed, here and where it is read: it only says whether it is worth to lock.
        self.behind.has_returned.store(!returned.is_empty(), Ordering::Relaxed);
    }
}

impl<T> Numbers<T> {
    pub(super) const fn new() -> Self {
        Self { free: Vec::new(), next: 0, places: 0, entries: PhantomData }
    }

    /// Entries that there is memory for.
    fn capacity(&self) -> usize {
        self.next.next_multiple_of(Store::<T>::LEN)
    }

    /// Bytes of chunks and tables, and of what else a store has allocated.
    pub(super) fn allocation_size(&self) -> usize {
        // Each table is twice as large as the one before.
        let tables = 2 * self.places * size_of::<Chunk<T>>();
        self.capacity() * size_of::<T>() + tables + size_of::<Behind<T>>()
    }

    /// Takes a number.
    ///
    /// # Panics
    ///
    /// If the shard has 2^31 entries.
    pub(super) fn take(&mut self, store: &Store<T>) -> u32 {
        if self.free.is_empty() && store.behind.has_returned.load(Ordering::Relaxed) {
            mem::swap(&mut self.free, &mut locked(&store.behind.returned));
            store.behind.has_returned.store(false, Ordering::Relaxed);
        }
        self.free.pop().unwrap_or_else(|| self.bump(store))
    }

    /// Puts an entry where nobody sees it yet.
    ///
    /// # Safety
    ///
    /// The number has just been taken.
    pub(super) unsafe fn put(&self, store: &Store<T>, number: u32, entry: T) {
        // SAFETY: it has been taken.
        let place = unsafe { store.place(number) };
        // SAFETY: nobody sees what is there (E1).
        unsafe { place.write(entry) };
    }

    /// Takes a number that has never been taken.
    fn bump(&mut self, store: &Store<T>) -> u32 {
        assert!(self.next < MOST, "a shard has 2^31 entries");
        if self.next % Store::<T>::LEN == 0 {
            self.add_chunk(store);
        }
        self.next += 1;
        (self.next - 1) as u32
    }

    fn add_chunk(&mut self, store: &Store<T>) {
        let nth = self.next >> Store::<T>::BITS;
        if nth == self.places {
            self.add_table(store);
        }
        let chunk: Box<[MaybeUninit<T>]> = Box::new_uninit_slice(Store::<T>::LEN);
        // Relaxed: this thread has the lock under which it was stored.
        let table = store.table.load(Ordering::Relaxed);
        // SAFETY: the table in use has more places than there are chunks.
        let place = unsafe { table.add(nth) };
        // SAFETY: tables stay (E2).
        let place = unsafe { &*place };
        // Relaxed: see `Store::place`.
        place.store(Box::into_raw(chunk).cast(), Ordering::Relaxed);
    }

    /// Makes a table twice as large, with the chunks that there are. The one from before stays, as readers
    /// may be in it.
    fn add_table(&mut self, store: &Store<T>) {
        // Relaxed: this thread has the lock under which it was stored.
        let old = store.table.load(Ordering::Relaxed);
        let chunk = |nth| {
            if nth >= self.places {
                return AtomicPtr::new(ptr::null_mut());
            }
            // SAFETY: the table in use has so many places.
            let place = unsafe { old.add(nth) };
            // SAFETY: tables stay (E2).
            let place = unsafe { &*place };
            AtomicPtr::new(place.load(Ordering::Relaxed))
        };
        let places = (2 * self.places).max(FIRST_TABLE);
        let table: Box<[Chunk<T>]> = (0..places).map(chunk).collect();
        self.places = places;
        let table = Box::into_raw(table);
        locked(&store.behind.tables).push(table);
        // Release: pairs with the Acquire in `Store::place`.
        store.table.store(table.cast(), Ordering::Release);
    }
}

impl<T> Drop for Store<T> {
    /// Frees chunks and tables. Entries have been dropped before.
    fn drop(&mut self) {
        let tables = mem::take(&mut *locked(&self.behind.tables));
        let last = tables.len().saturating_sub(1);
        for (nth, table) in tables.into_iter().enumerate() {
            // SAFETY: made in `add_table` from a box; nobody uses the store any more.
            let table = unsafe { Box::from_raw(table) };
            if nth < last {
                continue;
            }
            for chunk in table {
                let first = chunk.load(Ordering::Relaxed);
                if !first.is_null() {
                    let chunk = ptr::slice_from_raw_parts_mut(first, Self::LEN);
                    // SAFETY: made in `add_chunk` from a box of so many places, and in the last table once. What
                    // is in them is not dropped.
                    drop(unsafe { Box::from_raw(chunk as *mut [MaybeUninit<T>]) });
                }
            }
        }
    }
}
