//! Software prefetch.
//!
//! A burst of lookups prefetches all of its cache lines before it reads the first one, so that the
//! cache misses overlap. On targets without a prefetch instruction here, and in Miri, it is a
//! no-op.
#![allow(unsafe_code)]

/// Keys that are looked up together: about twice the cache misses that a CPU has in flight, which
/// keeps it busy while the first ones are being compared.
pub(crate) const BURST: usize = 32;

/// The bytes of records up to which these are not prefetched: the L2 cache of most CPUs has them,
/// and the instructions cost more than the misses.
pub(crate) const SMALL: usize = 2 << 20;

/// Prefetches the cache line of `address` for reading. Any address is allowed: it is not accessed.
#[inline]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of SSE, and does not fault for any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: the instruction does not fault for any address, and has no effect visible to Rust.
    unsafe {
        core::arch::asm!(
            "prfm pldl1keep, [{}]",
            in(reg) address,
            options(nostack, preserves_flags, readonly),
        );
    }
    // Other targets do not use it.
    let _ = address;
}

/// Bytes of a cache line on nearly all CPUs.
pub(crate) const CACHE_LINE: usize = 64;

/// Prefetches all cache lines of a value, without accessing it.
#[inline]
pub(crate) fn prefetch_value<T>(value: &T) {
    let value: *const T = value;
    let offsets = (0..size_of::<T>()).step_by(CACHE_LINE);
    offsets.for_each(|offset| prefetch(value.wrapping_byte_add(offset)));
    // A value that does not begin at a cache line may end in one more.
    prefetch(value.wrapping_byte_add(size_of::<T>().saturating_sub(1)));
}
