//! An allocator that fails at chosen requests, and checks that blocks are freed as allocated.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flowtable::memory::{AllocError, Allocator, Global};

/// Memory of the program, of which each `n`th request fails. Threads may share it.
///
/// # Panics
///
/// If a block is freed that is not allocated, or with another layout; and when it is dropped with
/// blocks that have not been freed.
#[derive(Debug, Default)]
pub struct Limited {
    /// Layouts by address.
    blocks: Mutex<HashMap<usize, Layout>>,
    /// Blocks without bytes, which may have the same address.
    empty: AtomicUsize,
    /// Requests so far.
    requests: AtomicUsize,
    /// Which requests fail: multiples of it; none if it is 0.
    period: AtomicUsize,
    failures: AtomicUsize,
}

impl Limited {
    /// An allocator of which each `period`th request fails; none if it is 0.
    pub fn failing_each(period: usize) -> Self {
        let limited = Self::default();
        limited.fail_each(period);
        limited
    }

    /// Lets each `period`th request fail from now on; none if it is 0.
    pub fn fail_each(&self, period: usize) {
        self.period.store(period, Relaxed);
    }

    /// Calls a function whose requests do not fail.
    pub fn without_failures<R>(&self, act: impl FnOnce() -> R) -> R {
        let period = self.period.swap(0, Relaxed);
        let result = act();
        self.period.store(period, Relaxed);
        result
    }

    fn blocks(&self) -> MutexGuard<'_, HashMap<usize, Layout>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of all blocks.
    pub fn bytes(&self) -> usize {
        self.blocks().values().map(Layout::size).sum()
    }

    /// Requests that have failed.
    pub fn failures(&self) -> usize {
        self.failures.load(Relaxed)
    }
}

// SAFETY: the blocks are those of `Global`. Clones are references to the same allocator.
unsafe impl Allocator for Limited {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let request = self.requests.fetch_add(1, Relaxed) + 1;
        let period = self.period.load(Relaxed);
        if period > 0 && request % period == 0 {
            self.failures.fetch_add(1, Relaxed);
            return Err(AllocError);
        }
        let block = Global.allocate(layout)?;
        if layout.size() > 0 {
            self.blocks().insert(block.cast::<u8>().addr().get(), layout);
        } else {
            self.empty.fetch_add(1, Relaxed);
        }
        Ok(block)
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() > 0 {
            let allocated = self.blocks().remove(&block.addr().get());
            assert_eq!(allocated, Some(layout), "a block is freed as it was allocated");
        } else {
            let before = self.empty.fetch_sub(1, Relaxed);
            assert!(before > 0, "a block without bytes is freed as it was allocated");
        }
        // SAFETY: it is from `Global`, with this layout.
        unsafe { Global.deallocate(block, layout) };
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let blocks = self.blocks().len() + self.empty.load(Relaxed);
        assert!(blocks == 0 || std::thread::panicking(), "{blocks} blocks have not been freed");
    }
}
