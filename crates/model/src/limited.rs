//! An allocator that fails at chosen requests, and checks that blocks are freed as allocated.
#![allow(unsafe_code)]

use core::alloc::Layout;
use core::cell::{Cell, RefCell};
use core::ptr::NonNull;
use std::collections::HashMap;

use flowtable::memory::{AllocError, Allocator, Global};

/// Memory of the program, of which each `n`th request fails.
///
/// # Panics
///
/// If a block is freed that is not allocated, or with another layout; and when it is dropped with
/// blocks that have not been freed.
#[derive(Debug, Default)]
pub struct Limited {
    /// Layouts by address.
    blocks: RefCell<HashMap<usize, Layout>>,
    /// Blocks without bytes, which may have the same address.
    empty: Cell<usize>,
    /// Requests so far.
    requests: Cell<usize>,
    /// Which requests fail: multiples of it; none if it is 0.
    period: Cell<usize>,
    failures: Cell<usize>,
}

impl Limited {
    /// An allocator of which each `period`th request fails; none if it is 0.
    pub fn failing_each(period: usize) -> Self {
        let limited = Self::default();
        limited.period.set(period);
        limited
    }

    /// Lets each `period`th request fail from now on; none if it is 0.
    pub fn fail_each(&self, period: usize) {
        self.period.set(period);
    }

    /// Calls a function whose requests do not fail.
    pub fn without_failures<R>(&self, act: impl FnOnce() -> R) -> R {
        let period = self.period.replace(0);
        let result = act();
        self.period.set(period);
        result
    }

    /// Bytes of all blocks.
    pub fn bytes(&self) -> usize {
        self.blocks.borrow().values().map(Layout::size).sum()
    }

    /// Requests that have failed.
    pub fn failures(&self) -> usize {
        self.failures.get()
    }
}

// SAFETY: the blocks are those of `Global`. Clones are references to the same allocator.
unsafe impl Allocator for Limited {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.requests.set(self.requests.get() + 1);
        if self.period.get() > 0 && self.requests.get() % self.period.get() == 0 {
            self.failures.set(self.failures.get() + 1);
            return Err(AllocError);
        }
        let block = Global.allocate(layout)?;
        if layout.size() > 0 {
            self.blocks.borrow_mut().insert(block.cast::<u8>().addr().get(), layout);
        } else {
            self.empty.set(self.empty.get() + 1);
        }
        Ok(block)
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() > 0 {
            let allocated = self.blocks.borrow_mut().remove(&block.addr().get());
            assert_eq!(allocated, Some(layout), "a block is freed as it was allocated");
        } else {
            let others = self.empty.get().checked_sub(1);
            self.empty.set(others.expect("a block without bytes is freed as it was allocated"));
        }
        // SAFETY: it is from `Global`, with this layout.
        unsafe { Global.deallocate(block, layout) };
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let blocks = self.blocks.get_mut().len() + self.empty.get();
        assert!(blocks == 0 || std::thread::panicking(), "{blocks} blocks have not been freed");
    }
}
