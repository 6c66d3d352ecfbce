//! Bit instructions and conditional moves, inlined into code for any x86-64.
//!
//! A search in a bitmap is a few counts and shifts. Code for baseline x86-64 has no instruction
//! for them, since the first CPUs of 2003 lack POPCNT, LZCNT and BMI2; all CPUs of the last ten
//! years have them. A function with a target feature cannot be inlined into one without, and the
//! call fills the reorder buffer of the CPU, which then overlaps fewer lookups. So the functions
//! of [`BitOps`] are one instruction of inline assembly each if its const parameter `FAST` is true.
//! A caller selects the copy by [`BitOps::detected`], once for each lookup or batch.
//!
//! Where the target has the instructions at compile time, on other architectures, and in Miri,
//! both copies are plain Rust. Without `std` the CPU cannot be examined, and `FAST` is never true.
#![allow(unsafe_code)]

/// Bit operations: if `FAST`, by POPCNT, LZCNT and BMI2, else in plain Rust.
///
/// # Invariant
///
/// `BitOps<true>` exists only if the CPU has these instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitOps<const FAST: bool>(());

impl BitOps<false> {
    pub(crate) const PORTABLE: Self = Self(());
}

impl BitOps<true> {
    /// Returns the operations, if the CPU has the instructions. One load and a comparison, after
    /// the first time.
    #[inline]
    pub(crate) fn detected() -> Option<Self> {
        detect().then_some(Self(()))
    }
}

impl<const FAST: bool> BitOps<FAST> {
    /// Returns the number of ones.
    #[inline(always)]
    pub(crate) fn ones(self, word: u64) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(target_feature = "popcnt"), not(miri)))]
        if FAST {
            let count: u64;
            // SAFETY: the CPU has the instruction, by the invariant; it has no other effect.
            unsafe {
                core::arch::asm!(
                    "popcnt {count}, {word}",
                    count = lateout(reg) count,
                    word = in(reg) word,
                    options(pure, nomem, nostack),
                );
            }
            return count;
        }
        word.count_ones().into()
    }

    /// Returns the number of leading zeros: 64 for 0.
    #[inline(always)]
    pub(crate) fn leading_zeros(self, word: u64) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(target_feature = "lzcnt"), not(miri)))]
        if FAST {
            let count: u64;
            // SAFETY: as in `ones`.
            unsafe {
                core::arch::asm!(
                    "lzcnt {count}, {word}",
                    count = lateout(reg) count,
                    word = in(reg) word,
                    options(pure, nomem, nostack),
                );
            }
            return count;
        }
        word.leading_zeros().into()
    }

    /// Shifts to the left by the last six bits of `by`.
    #[inline(always)]
    pub(crate) fn shift_left(self, word: u64, by: u64) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(target_feature = "bmi2"), not(miri)))]
        if FAST {
            let shifted: u64;
            // SAFETY: as in `ones`.
            unsafe {
                core::arch::asm!(
                    "shlx {shifted}, {word}, {by}",
                    shifted = lateout(reg) shifted,
                    word = in(reg) word,
                    by = in(reg) by,
                    options(pure, nomem, nostack, preserves_flags),
                );
            }
            return shifted;
        }
        word.wrapping_shl(by as u32)
    }
}

/// Returns whether copies with `FAST` may run: the CPU has POPCNT, LZCNT and BMI2. One load and a
/// comparison, after the first time.
#[inline]
fn detect() -> bool {
    #[cfg(all(feature = "std", target_arch = "x86_64"))]
    {
        use core::sync::atomic::{AtomicU8, Ordering};

        const YES: u8 = 1;
        const NO: u8 = 2;
        static DETECTED: AtomicU8 = AtomicU8::new(0);

        #[cold]
        fn detect_once() -> u8 {
            let is_fast = std::is_x86_feature_detected!("popcnt")
                && std::is_x86_feature_detected!("lzcnt")
                && std::is_x86_feature_detected!("bmi2");
            let detected = if is_fast { YES } else { NO };
            // Relaxed: each thread stores the same.
            DETECTED.store(detected, Ordering::Relaxed);
            detected
        }
        // Relaxed: the value publishes no other memory.
        match DETECTED.load(Ordering::Relaxed) {
            0 => detect_once() == YES,
            detected => detected == YES,
        }
    }
    #[cfg(not(all(feature = "std", target_arch = "x86_64")))]
    false
}

/// Returns the number of ones, by the instruction if the CPU has it, instead of fifteen.
#[inline(always)]
pub(crate) fn count_ones(word: u64) -> u32 {
    match BitOps::detected() {
        Some(ops) => ops.ones(word) as u32,
        None => word.count_ones(),
    }
}

/// Returns the number of ones below a bit.
#[inline]
pub(crate) fn rank(word: u64, bit: u32) -> u32 {
    count_ones(word & ((1 << bit) - 1))
}

/// Iterates over the ones in a word.
pub(crate) fn each_one(word: u64) -> impl Iterator<Item = u32> {
    let rests = core::iter::successors(Some(word), |rest| Some(rest & rest.checked_sub(1)?));
    rests.take_while(|&rest| rest != 0).map(u64::trailing_zeros)
}

/// Returns `one` if `condition` is not zero, otherwise `other`, without a branch: the compiler may
/// turn an `if` or an arithmetic mask into one, which is mispredicted where the condition depends
/// on the address of a packet.
#[inline(always)]
pub(crate) fn select(condition: u64, one: u64, other: u64) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let mut selected = other;
        // SAFETY: conditional moves are part of x86-64; they have no other effect.
        unsafe {
            core::arch::asm!(
                "test {condition}, {condition}",
                "cmovne {selected}, {one}",
                condition = in(reg) condition,
                selected = inout(reg) selected,
                one = in(reg) one,
                options(pure, nomem, nostack),
            );
        }
        selected
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    if condition != 0 { one } else { other }
}

/// Returns `one` if `condition` is not zero, otherwise `other`, like [`select`].
#[inline(always)]
pub(crate) fn select_ptr<T>(condition: u64, one: *const T, other: *const T) -> *const T {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let mut selected = other;
        // SAFETY: conditional moves are part of x86-64; they have no other effect.
        unsafe {
            core::arch::asm!(
                "test {condition}, {condition}",
                "cmovne {selected}, {one}",
                condition = in(reg) condition,
                selected = inout(reg) selected,
                one = in(reg) one,
                options(pure, readonly, nostack),
            );
        }
        selected
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    if condition != 0 { one } else { other }
}

/// Returns `one` if `condition` is not zero, otherwise `other`, like [`select`].
#[inline(always)]
pub(crate) fn select_ref<'a, T>(condition: u64, one: &'a T, other: &'a T) -> &'a T {
    // SAFETY: it is one of the two references.
    unsafe { &*select_ptr(condition, one, other) }
}

/// Returns `one` if the top bit of `condition` is set, otherwise `other`, like [`select`].
#[inline(always)]
pub(crate) fn select_by_sign(condition: u64, one: u64, other: u64) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let mut selected = other;
        // SAFETY: conditional moves are part of x86-64; they have no other effect.
        unsafe {
            core::arch::asm!(
                "test {condition}, {condition}",
                "cmovs {selected}, {one}",
                condition = in(reg) condition,
                selected = inout(reg) selected,
                one = in(reg) one,
                options(pure, nomem, nostack),
            );
        }
        selected
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    if condition >> 63 != 0 { one } else { other }
}

/// Two pointers that are selected together.
#[cfg(feature = "concurrent")]
type Pointers<T, U> = (*const T, *const U);

/// Returns `one` if `condition` is not zero, otherwise `other`, like [`select`].
#[cfg(feature = "concurrent")]
#[inline(always)]
pub(crate) fn select_ptrs<T, U>(
    condition: u64,
    one: Pointers<T, U>,
    other: Pointers<T, U>,
) -> Pointers<T, U> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let mut selected = other;
        // SAFETY: conditional moves are part of x86-64; they have no other effect.
        unsafe {
            core::arch::asm!(
                "test {condition}, {condition}",
                "cmovne {first}, {one}",
                "cmovne {second}, {another}",
                condition = in(reg) condition,
                first = inout(reg) selected.0,
                second = inout(reg) selected.1,
                one = in(reg) one.0,
                another = in(reg) one.1,
                options(pure, readonly, nostack),
            );
        }
        selected
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    if condition != 0 { one } else { other }
}

/// Returns `one` if the top bit of `condition` is set, otherwise `other`, like [`select`].
#[cfg(feature = "concurrent")]
#[inline(always)]
pub(crate) fn select_ptrs_by_sign<T, U>(
    condition: u64,
    one: Pointers<T, U>,
    other: Pointers<T, U>,
) -> Pointers<T, U> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let mut selected = other;
        // SAFETY: conditional moves are part of x86-64; they have no other effect.
        unsafe {
            core::arch::asm!(
                "test {condition}, {condition}",
                "cmovs {first}, {one}",
                "cmovs {second}, {another}",
                condition = in(reg) condition,
                first = inout(reg) selected.0,
                second = inout(reg) selected.1,
                one = in(reg) one.0,
                another = in(reg) one.1,
                options(pure, readonly, nostack),
            );
        }
        selected
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    if condition >> 63 != 0 { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agree<const FAST: bool>(ops: BitOps<FAST>) {
        let words = (0..64).flat_map(|bit| [1 << bit, u64::MAX >> bit, u64::MAX << bit, !0 / 5]);
        for word in words.chain([0]) {
            let (count, zeros) = (ops.ones(word), ops.leading_zeros(word));
            assert_eq!((count, zeros), (word.count_ones().into(), word.leading_zeros().into()));
            assert_eq!(u64::from(count_ones(word)), count);
            for by in 0..200 {
                assert_eq!(ops.shift_left(word, by), word << (by % 64));
            }
            assert_eq!(select(word, 1, 2), if word != 0 { 1 } else { 2 });
            assert_eq!(select_ref(word, &1, &2), if word != 0 { &1 } else { &2 });
            assert_eq!(select_by_sign(word, 1, 2), if word >> 63 != 0 { 1 } else { 2 });
        }
    }

    #[test]
    fn instructions_agree_with_plain_rust() {
        agree(BitOps::PORTABLE);
        if let Some(ops) = BitOps::detected() {
            agree(ops);
        }
    }

    #[cfg(feature = "concurrent")]
    #[test]
    fn pointers_are_selected_together() {
        let (words, chars) = ([1, 2], ['a', 'b']);
        let [one, other] = [0, 1].map(|at| (&raw const words[at], &raw const chars[at]));
        for word in (0..64).map(|bit| 1 << bit).chain([0, u64::MAX]) {
            assert_eq!(select_ptrs(word, one, other), if word != 0 { one } else { other });
            let selected = select_ptrs_by_sign(word, one, other);
            assert_eq!(selected, if word >> 63 != 0 { one } else { other });
        }
    }
}
