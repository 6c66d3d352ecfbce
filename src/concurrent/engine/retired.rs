//! Retired memory: segments and directories that were replaced.
#![allow(unsafe_code)]

use core::marker::PhantomData;

use crossbeam_epoch::Guard;

use super::directory::DirectoryPtr;
use super::segment::SegmentPtr;
use super::storage::Storage;
use crate::concurrent::garbage::{Garbage, OVERHEAD};

/// The segments and the directory that a step of growth has replaced.
#[must_use]
pub(super) struct Retired<C> {
    segments: [Option<SegmentPtr>; 2],
    directory: Option<DirectoryPtr>,
    types: PhantomData<C>,
}

impl<C: Storage> Retired<C> {
    pub(super) const NOTHING: Self =
        Self { segments: [None; 2], directory: None, types: PhantomData };

    pub(super) const fn of(first: SegmentPtr, second: Option<SegmentPtr>) -> Self {
        Self { segments: [Some(first), second], ..Self::NOTHING }
    }

    /// Adds a directory.
    pub(super) const fn with(mut self, directory: DirectoryPtr) -> Self {
        self.directory = Some(directory);
        self
    }

    /// Defers everything to the collector. Without a lock: it runs destructors of others.
    ///
    /// # Safety
    ///
    /// It was replaced under this pin, or under an earlier one.
    pub(super) unsafe fn defer(self, garbage: &Garbage, pin: &Guard) {
        for segment in self.segments.into_iter().flatten() {
            let bytes = segment.allocation_size::<C>() + OVERHEAD;
            // SAFETY: the collector calls this when no pin exists any more that may have loaded the
            // pointer; it is retired once.
            let free = move || unsafe { segment.free::<C>() };
            // SAFETY: the memory is of no thread, and holds no value that is dropped.
            unsafe { garbage.defer(bytes, pin, free) };
        }
        if let Some(directory) = self.directory {
            let bytes = directory.allocation_size() + OVERHEAD;
            // SAFETY: as for a segment.
            let free = move || unsafe { directory.free() };
            // SAFETY: as for a segment.
            unsafe { garbage.defer(bytes, pin, free) };
        }
    }
}
