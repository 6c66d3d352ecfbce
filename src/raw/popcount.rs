//! Counting bits in one instruction, where the processor can.
//!
//! A bitmap node finds a child by counting the ones before its bit. Code for any 64-bit x86 does that in
//! fifteen instructions, since the first ones of 2003 could not do it in one; all of the last fifteen
//! years can. So a look-up is compiled twice, and which one runs is decided when it is called: a load
//! and a test. Where the answer is known when the crate is compiled (`-C target-cpu=x86-64-v2`, or any
//! other architecture) nothing is decided. Without `std` nobody says what the processor can.

/// Whether to run the copy that is compiled with the target feature `popcnt`: the processor has the
/// instruction, and the rest of the crate is compiled without it.
#[inline(always)]
pub(crate) fn may_count() -> bool {
    #[cfg(all(feature = "std", target_arch = "x86_64", not(target_feature = "popcnt")))]
    return std::is_x86_feature_detected!("popcnt");
    #[cfg(not(all(feature = "std", target_arch = "x86_64", not(target_feature = "popcnt"))))]
    false
}
