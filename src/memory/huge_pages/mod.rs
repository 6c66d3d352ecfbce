//! `HugePages`: memory in pages of 2 MiB, with few misses of the TLB.
//!
//! ```text
//!     area of 2 MiB or more, aligned     │ segment │ segment │ free │ directory │ …
//!     pages of 2 MiB                     │                   one                │
//! ```
//!
//! Areas are mapped one after the other, each at least an eighth of what there is, and each is a
//! [`StaticArea`]: blocks that are freed are merged and used again. All areas are unmapped when the
//! last clone is dropped.
//!
//! # Fallbacks are not silent
//!
//! - *Reserved* pages are those of `vm.nr_hugepages`: a request fails if none is left.
//! - *Transparent* pages: [`HugePages::new`] fails if the system has disabled them. The kernel may
//!   still use small pages where it has no free huge one; [`HugePages::huge_bytes`] returns how
//!   much is in huge pages.
//! - A NUMA node that does not exist is an error; memory is from no other node.
//!
//! On systems other than Linux [`HugePages::new`] returns [`HugePagesError::Unsupported`].
#![allow(unsafe_code)]

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::slice;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use allocator_api2::alloc::{AllocError, Allocator};

use super::static_area::StaticArea;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;

/// Bytes of a page.
const PAGE: usize = 2 << 20;

/// The bytes of an area that [`StaticArea`] can allocate blocks of.
const LARGEST_AREA: usize = (u32::MAX as usize).saturating_mul(16);

/// Where huge pages are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSource {
    /// Memory that the kernel puts into huge pages: `madvise` with `MADV_HUGEPAGE`.
    Transparent,
    /// Pages that the administrator has reserved: `mmap` with `MAP_HUGETLB`.
    Reserved,
}

/// Why there are no huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HugePagesError {
    /// The operating system is not Linux.
    Unsupported,
    /// Transparent huge pages are disabled: `/sys/kernel/mm/transparent_hugepage/enabled`.
    Disabled,
    /// There is no such NUMA node.
    NoSuchNode(u32),
    /// A system call has failed: its name, and the number of the error.
    System(&'static str, i32),
}

impl fmt::Display for HugePagesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Unsupported => f.write_str("huge pages are supported on Linux only"),
            Self::Disabled => f.write_str("transparent huge pages are disabled"),
            Self::NoSuchNode(node) => write!(f, "there is no NUMA node {node}"),
            Self::System(call, code) => {
                write!(f, "{call} failed: {}", io::Error::from_raw_os_error(code))
            }
        }
    }
}

impl core::error::Error for HugePagesError {}

/// An allocator whose memory is in pages of 2 MiB. Clones are handles of the same memory.
///
/// Requests of all threads take turns.
///
/// | method | cost |
/// |---|---|
/// | `allocate`, `deallocate` of [`Allocator`] | a lock and O(areas), of which there are some 40 for a GiB; at times a system call, which maps an area |
/// | `mapped_bytes`, `allocated_bytes` | a lock and O(areas) |
/// | `huge_bytes` | reads the list of mappings of the process |
///
/// # Example
///
/// ```
/// use flowtable::TrashMap;
/// use flowtable::memory::{HugePages, PageSource};
///
/// match HugePages::new(PageSource::Transparent, None) {
///     Ok(memory) => {
///         let mut flows = TrashMap::new_in(memory.clone());
///         flows.extend((0..10_000_u32).map(|flow| (flow, 0_u32)));
///         assert!(memory.mapped_bytes() >= flows.allocation_size());
///         println!("{:?} bytes are in huge pages", memory.huge_bytes());
///     }
///     Err(error) => println!("{error}"),
/// }
/// ```
#[derive(Clone, Debug)]
pub struct HugePages {
    areas: Arc<Mutex<Vec<Area>>>,
    source: PageSource,
    node: Option<u32>,
}

/// Memory that is mapped, until it is dropped.
#[derive(Debug)]
struct Area {
    memory: NonNull<u8>,
    bytes: usize,
    blocks: StaticArea<'static>,
}

// SAFETY: the memory is that of the process, and the only other pointer to it is that of `blocks`.
unsafe impl Send for Area {}

impl Area {
    fn map(bytes: usize, source: PageSource, node: Option<u32>) -> Result<Self, HugePagesError> {
        let memory = system::map(bytes, source, node)?;
        // SAFETY: it is mapped, and is unmapped when the blocks are dropped.
        let slice = unsafe { slice::from_raw_parts_mut(memory.cast().as_ptr(), bytes) };
        let slice: &'static mut [MaybeUninit<u8>] = slice;
        Ok(Self { memory, bytes, blocks: StaticArea::new(slice) })
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: mapped with that size. The last handle is being dropped: no block is in use.
        unsafe { system::unmap(self.memory, self.bytes) };
    }
}

impl HugePages {
    /// Maps the first page. With a NUMA node all memory is of that node.
    ///
    /// # Errors
    ///
    /// If there are no huge pages, or not there: nothing else is used in their place.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::memory::{HugePages, HugePagesError, PageSource};
    ///
    /// let absent = HugePages::new(PageSource::Transparent, Some(1 << 20));
    /// assert!(absent.is_err_and(|error| match error {
    ///     HugePagesError::NoSuchNode(node) => node == 1 << 20,
    ///     HugePagesError::Disabled | HugePagesError::Unsupported => true,
    ///     _ => false,
    /// }));
    /// ```
    pub fn new(source: PageSource, node: Option<u32>) -> Result<Self, HugePagesError> {
        let first = Area::map(PAGE, source, node)?;
        Ok(Self { areas: Arc::new(Mutex::new(Vec::from([first]))), source, node })
    }

    /// A panic while the areas are locked would be a bug; they are whole then.
    fn areas(&self) -> MutexGuard<'_, Vec<Area>> {
        self.areas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bytes of all areas, mapped from the system.
    #[must_use]
    pub fn mapped_bytes(&self) -> usize {
        self.areas().iter().map(|area| area.bytes).sum()
    }

    /// Returns the bytes of all blocks in use.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::TrashSet;
    /// use flowtable::memory::{HugePages, PageSource};
    ///
    /// if let Ok(memory) = HugePages::new(PageSource::Reserved, None) {
    ///     let mut set = TrashSet::new_in(memory.clone());
    ///     set.insert(7);
    ///     assert!(memory.allocated_bytes() >= set.allocation_size());
    /// }
    /// ```
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.areas().iter().map(|area| area.blocks.allocated_bytes()).sum()
    }

    /// Returns the bytes that are in huge pages now, as far as they have been written to: those
    /// that `/proc/self/smaps` lists for mappings with areas of this memory. Reads that file, which
    /// takes milliseconds.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn huge_bytes(&self) -> io::Result<usize> {
        let ranges: Vec<_> = self.areas().iter().map(|area| (area.memory, area.bytes)).collect();
        system::huge_bytes(&ranges)
    }

    /// Maps an area for a block; larger than needed if there is memory.
    fn map_for(&self, layout: Layout, mapped: usize) -> Option<Area> {
        // The block, its alignment, and the bits of the area.
        let block = layout.size().checked_add(layout.align())?.checked_add(PAGE / 64)?;
        let needed = block.checked_add(block / 64)?.checked_next_multiple_of(PAGE)?;
        if needed > LARGEST_AREA {
            return None;
        }
        let wanted = needed.max((mapped / 8).next_multiple_of(PAGE));
        let area = Area::map(wanted, self.source, self.node);
        area.or_else(|_| Area::map(needed, self.source, self.node)).ok()
    }
}

// SAFETY: blocks are those of areas, which are unmapped when the last clone is dropped.
unsafe impl Allocator for HugePages {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let mut areas = self.areas();
        if let Some(block) = areas.iter().find_map(|area| area.blocks.allocate(layout).ok()) {
            return Ok(block);
        }
        let mapped = areas.iter().map(|area| area.bytes).sum();
        let area = self.map_for(layout, mapped).ok_or(AllocError)?;
        // Nothing is kept of an area in which even this block has no place.
        let block = area.blocks.allocate(layout)?;
        areas.push(area);
        Ok(block)
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        let areas = self.areas();
        if let Some(area) = areas.iter().find(|area| area.blocks.contains(block)) {
            // SAFETY: allocated from this area with this layout.
            unsafe { area.blocks.deallocate(block, layout) };
        }
    }
}
