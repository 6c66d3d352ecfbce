//! Cells for readers and a writer.

use alloc::boxed::Box;
use std::sync::OnceLock;

use crate::concurrent::sync::{AtomicU64, Ordering};
use crate::routes::generations::{BLOCKS, Generations, UNCHANGED, cells_of, place};

/// Blocks of cells, which are neither moved nor freed as long as the table exists.
pub(super) struct Cells([OnceLock<Box<[AtomicU64]>>; BLOCKS]);

impl Cells {
    pub(super) const fn new() -> Self {
        Self([const { OnceLock::new() }; BLOCKS])
    }

    /// Returns a cell, if its block exists.
    #[inline]
    fn get(&self, cell: u32) -> Option<&AtomicU64> {
        let (block, index) = place(cell);
        self.0[block].get()?.get(index)
    }

    /// Returns the generation of a cell: one load.
    #[inline]
    pub(super) fn generation(&self, cell: u32) -> u64 {
        // Relaxed: see the module documentation.
        self.get(cell).map_or(UNCHANGED, |changed| changed.load(Ordering::Relaxed))
    }

    /// Returns the number of cells for which there is memory.
    pub(super) fn capacity(&self) -> usize {
        self.0.iter().filter_map(OnceLock::get).map(|cells| cells.len()).sum()
    }
}

/// The cells for a writer, which has the numbers locked.
impl Generations for &Cells {
    fn generation(&self, cell: u32) -> u64 {
        Cells::generation(self, cell)
    }

    fn set(&mut self, cell: u32, generation: u64) {
        let Some(changed) = self.get(cell) else { return };
        // Relaxed: see the module documentation.
        changed.store(generation, Ordering::Relaxed);
    }

    fn add(&mut self, block: usize) -> Option<()> {
        let new = || (0..cells_of(block)).map(|_| AtomicU64::new(UNCHANGED)).collect();
        self.0[block].get_or_init(new);
        Some(())
    }
}
