//! The system calls of Linux.

use core::ffi::{c_int, c_ulong};
use core::ptr::{self, NonNull};
use std::{fs, io};

use super::{HugePagesError, PAGE, PageSource};

/// Words of a set of NUMA nodes: more than a kernel has nodes.
const WORDS: usize = 16;

/// The error of a system call that has just failed.
fn failed(call: &'static str) -> HugePagesError {
    HugePagesError::System(call, io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Maps memory in pages of 2 MiB, a multiple of which `bytes` is.
pub(super) fn map(
    bytes: usize,
    source: PageSource,
    node: Option<u32>,
) -> Result<NonNull<u8>, HugePagesError> {
    let memory = match source {
        PageSource::Reserved => map_anonymous(bytes, libc::MAP_HUGETLB | libc::MAP_HUGE_2MB)?,
        PageSource::Transparent => map_transparent(bytes)?,
    };
    let bound = node.map_or(Ok(()), |node| {
        bind(memory, bytes, node)?;
        // Reserved pages are counted for all nodes together: those of one may be used up.
        if source == PageSource::Reserved { populate(memory, bytes) } else { Ok(()) }
    });
    bound.map(|()| memory).inspect_err(|_| {
        // SAFETY: it has been mapped above, and nothing uses it.
        unsafe { unmap(memory, bytes) };
    })
}

fn map_anonymous(bytes: usize, flags: c_int) -> Result<NonNull<u8>, HugePagesError> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the kernel chooses the address, so no memory in use is replaced.
    let memory = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if memory == libc::MAP_FAILED {
        return Err(failed("mmap"));
    }
    NonNull::new(memory.cast()).ok_or(HugePagesError::System("mmap", 0))
}

/// Maps a page more, and unmaps what is before and after the aligned part.
fn map_transparent(bytes: usize) -> Result<NonNull<u8>, HugePagesError> {
    let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if enabled.map_or(true, |modes| modes.contains("[never]")) {
        return Err(HugePagesError::Disabled);
    }
    let all = bytes.checked_add(PAGE).ok_or(HugePagesError::System("mmap", libc::ENOMEM))?;
    let start = map_anonymous(all, 0)?;
    let before = start.addr().get().next_multiple_of(PAGE) - start.addr().get();
    // SAFETY: less than a page, so it is in the mapping.
    let memory = unsafe { start.add(before) };
    // SAFETY: as above.
    let end = unsafe { memory.add(bytes) };
    // SAFETY: it is a part of the mapping that nothing uses.
    unsafe { unmap(start, before) };
    // SAFETY: as above.
    unsafe { unmap(end, PAGE - before) };
    // SAFETY: it changes nothing but the size of pages.
    if unsafe { libc::madvise(memory.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) } != 0 {
        let error = failed("madvise");
        // SAFETY: it has been mapped above, and nothing uses it.
        unsafe { unmap(memory, bytes) };
        return Err(error);
    }
    Ok(memory)
}

/// Binds memory to a NUMA node: pages are of that node or of none.
fn bind(memory: NonNull<u8>, bytes: usize, node: u32) -> Result<(), HugePagesError> {
    let bits = c_ulong::BITS;
    let mut nodes = [0 as c_ulong; WORDS];
    let word = nodes.get_mut((node / bits) as usize).ok_or(HugePagesError::NoSuchNode(node))?;
    *word = 1 << (node % bits);
    // The kernel counts one bit more than it reads.
    let count = nodes.len() as c_ulong * c_ulong::from(bits);
    let (address, mode) = (memory.as_ptr(), libc::MPOL_BIND as c_ulong);
    // SAFETY: the set of nodes has that number of bits; the mapping is not changed otherwise.
    let result =
        unsafe { libc::syscall(libc::SYS_mbind, address, bytes, mode, nodes.as_ptr(), count, 0) };
    match result {
        0 => Ok(()),
        _ if io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) => {
            Err(HugePagesError::NoSuchNode(node))
        }
        _ => Err(failed("mbind")),
    }
}

/// Allocates all pages of a mapping, where the first access to a page would end the program if
/// there is none.
fn populate(memory: NonNull<u8>, bytes: usize) -> Result<(), HugePagesError> {
    // SAFETY: it writes to no byte that is in use: the mapping is new.
    match unsafe { libc::madvise(memory.as_ptr().cast(), bytes, libc::MADV_POPULATE_WRITE) } {
        0 => Ok(()),
        _ => Err(failed("madvise")),
    }
}

/// Unmaps memory.
///
/// # Safety
///
/// It is mapped, and is not used any more.
pub(super) unsafe fn unmap(memory: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: see above. If it fails, the memory stays mapped.
        unsafe { libc::munmap(memory.as_ptr().cast(), bytes) };
    }
}

/// The bytes in huge pages of all mappings that have one of these ranges.
pub(super) fn huge_bytes(ranges: &[(NonNull<u8>, usize)]) -> io::Result<usize> {
    let maps = fs::read_to_string("/proc/self/smaps")?;
    let (mut is_ours, mut kilobytes) = (false, 0);
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let huge = ["AnonHugePages:", "Private_Hugetlb:"].contains(&first);
        if is_ours && huge {
            kilobytes += words.next().and_then(|size| size.parse().ok()).unwrap_or(0);
        } else if let Some((start, end)) = range_of(first) {
            let is_in = |&(memory, bytes): &(NonNull<u8>, usize)| {
                memory.addr().get() < end && start < memory.addr().get() + bytes
            };
            is_ours = ranges.iter().any(is_in);
        }
    }
    Ok(kilobytes * 1024)
}

/// The addresses of a mapping, `start-end` in hexadecimal digits.
fn range_of(word: &str) -> Option<(usize, usize)> {
    let (start, end) = word.split_once('-')?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}
