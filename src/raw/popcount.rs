//! Run-time detection of the population count instruction.
//!
//! A bitmap node finds a child by counting the ones before its bit. Code for baseline x86-64 needs
//! fifteen instructions for that, since the first CPUs of 2003 lack `popcnt`; all CPUs of the last
//! fifteen years have it. So a lookup is compiled twice, and each call selects a copy: one load and
//! one test. Where the answer is known at compile time (`-C target-cpu=x86-64-v2`, or any other
//! architecture) there is no selection. Without `std` the CPU's features cannot be detected.

/// Whether to run the copy compiled with the target feature `popcnt`: the CPU has the instruction,
/// and the rest of the crate is compiled without it.
#[inline(always)]
pub(crate) fn use_popcnt() -> bool {
    #[cfg(all(feature = "std", target_arch = "x86_64", not(target_feature = "popcnt")))]
    return std::is_x86_feature_detected!("popcnt");
    #[cfg(not(all(feature = "std", target_arch = "x86_64", not(target_feature = "popcnt"))))]
    false
}
