//! The one hint that the compiler cannot give: this line of memory will be needed soon.
//!
//! A burst of look-ups asks for all its lines first and reads them afterwards, so that their misses
//! overlap. On a machine for which there is no hint here, and in Miri, it does nothing.
#![allow(unsafe_code)]

/// Asks for the cache line of `address`, to read it. Any address will do: it is not accessed.
#[inline]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of SSE, and takes any address without a fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: the instruction takes any address without a fault, and changes nothing that Rust sees.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    // Where there is no hint, nothing is done with it.
    let _ = address;
}

/// Bytes of a cache line, nearly everywhere.
const LINE: usize = 64;

/// Asks for all lines of a value. It is not accessed.
#[inline]
pub(crate) fn prefetch_value<T>(value: &T) {
    let value: *const T = value;
    (0..size_of::<T>()).step_by(LINE).for_each(|line| prefetch(value.wrapping_byte_add(line)));
    // It need not begin where a line does.
    prefetch(value.wrapping_byte_add(size_of::<T>().saturating_sub(1)));
}
