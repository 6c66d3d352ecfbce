//! Groups of 16 tags, compared at once.
//!
//! ```text
//!     tags     │ 3a │ 00 │ 07 │ 3a │ 00 │ …    a byte for each of 16 slots; 0: free
//!     matches      1    0    0    1    0 …     the slots whose tag is 0x3a
//!     free         0    1    0    0    1 …     the slots whose tag is 0
//! ```
//!
//! Three implementations with one interface: SSE2, which every x86-64 has; NEON, which every
//! AArch64 has; two words of 64 bits elsewhere and in Miri. A [`Mask`] has one bit for each slot;
//! where an instruction set yields more bits for a lane, all but one are cleared.
#![allow(unsafe_code)]

/// Slots of a group.
pub(crate) const GROUP: usize = 16;

/// The tag of a free slot.
pub(crate) const FREE: u8 = 0;

/// The tag of an entry: the highest byte of its hash, or `FREE + 1` if that byte is [`FREE`].
#[inline(always)]
pub(crate) fn tag(hash: u64) -> u8 {
    ((hash >> 56) as u8).max(FREE + 1)
}

#[cfg(all(
    target_arch = "aarch64",
    target_feature = "neon",
    target_endian = "little",
    not(miri)
))]
pub(crate) use neon::Group;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
pub(crate) use sse2::Group;
#[cfg(not(any(
    all(target_arch = "x86_64", target_feature = "sse2", not(miri)),
    all(target_arch = "aarch64", target_feature = "neon", target_endian = "little", not(miri)),
)))]
pub(crate) use words::Group;

impl Group {
    /// The slots without an entry.
    #[inline(always)]
    pub(crate) fn free(self) -> Mask {
        self.matches(FREE)
    }

    /// The slots with an entry.
    #[inline(always)]
    pub(crate) fn full(self) -> Mask {
        Bits(self.free().0 ^ Mask::ALL.0)
    }
}

/// A word with as many bits as a mask needs: to extend it would take an instruction.
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little", not(miri)))]
type Word = u64;
#[cfg(not(all(
    target_arch = "aarch64",
    target_feature = "neon",
    target_endian = "little",
    not(miri)
)))]
type Word = u16;

/// Some of the 16 slots of a group, with `1 << SHIFT` bits for each, of which one may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bits<const SHIFT: u32>(Word);

/// Some of the 16 slots of a group.
pub(crate) type Mask = Bits<{ Group::SHIFT }>;

impl<const SHIFT: u32> Bits<SHIFT> {
    /// No slot.
    pub(crate) const NONE: Self = Self(0);

    /// All slots.
    const ALL: Self = Self(if SHIFT == 0 { 0xffff } else { 0x8888_8888_8888_8888_u64 as Word });

    #[inline(always)]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The lowest slot; 16 if there is none and the mask has 16 bits.
    #[inline(always)]
    pub(crate) fn lowest(self) -> usize {
        (self.0.trailing_zeros() >> SHIFT) as usize
    }
}

impl<const SHIFT: u32> Bits<SHIFT> {
    /// The slots of this mask that are below a number.
    #[inline(always)]
    pub(crate) const fn below(self, slots: usize) -> Self {
        Self(self.0 & ((1 << (slots << SHIFT)) - 1))
    }

    /// These slots without those of another mask.
    #[cfg(feature = "concurrent")]
    #[inline(always)]
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns 1 if a slot is one of these, and 0 otherwise.
    #[cfg(feature = "concurrent")]
    #[inline(always)]
    pub(crate) const fn count_at(self, slot: usize) -> usize {
        (self.0 >> (((slot + 1) << SHIFT) - 1) & 1) as usize
    }

    /// A bit for each slot, the lowest one for the first slot.
    #[inline(always)]
    pub(crate) fn bits(self) -> u32 {
        match SHIFT {
            0 => self.0 as u32,
            _ => self.fold(0, |bits, slot| bits | 1 << slot),
        }
    }

    /// All of these slots but the lowest. There is one.
    #[inline(always)]
    pub(crate) fn without_lowest(self) -> Self {
        Self(self.0 & self.0.wrapping_sub(1))
    }
}

impl<const SHIFT: u32> Iterator for Bits<SHIFT> {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lowest = self.lowest();
        self.0 &= self.0 - 1;
        Some(lowest)
    }
}

/// 16 tags by SSE2.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
mod sse2 {
    use core::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_cvtsi64_si128, _mm_load_si128, _mm_max_epu8,
        _mm_movemask_epi8, _mm_set1_epi8, _mm_shuffle_epi32, _mm_shufflehi_epi16,
        _mm_unpacklo_epi8,
    };

    use super::{Bits, FREE, Word};

    #[derive(Clone, Copy)]
    pub(crate) struct Group(__m128i);

    impl Group {
        pub(crate) const SHIFT: u32 = 0;

        /// Reads the 16 tags at an address.
        ///
        /// # Safety
        ///
        /// The address is divisible by 16 and 16 initialised bytes can be read there.
        #[inline(always)]
        pub(crate) unsafe fn load(tags: *const u8) -> Self {
            // SAFETY: as the caller promises.
            Self(unsafe { _mm_load_si128(tags.cast()) })
        }

        /// The 16 tags in two words, the first one in the lowest byte.
        #[inline(always)]
        pub(crate) fn of_words(words: [u64; 2]) -> Self {
            // SAFETY: the instruction is part of SSE2.
            Self(unsafe { core::arch::x86_64::_mm_set_epi64x(words[1] as i64, words[0] as i64) })
        }

        /// The slots with this tag.
        #[inline(always)]
        pub(crate) fn matches(self, tag: u8) -> Bits<0> {
            // SAFETY: the instruction is part of SSE2.
            self.equal(Self(unsafe { _mm_set1_epi8(tag as i8) }))
        }

        /// The slots with the tag of this hash. The comparison uses vector registers only, and
        /// fewer instructions than the computation of a tag.
        #[inline(always)]
        pub(crate) fn matches_hash(self, hash: u64) -> Bits<0> {
            // SAFETY: the instruction is part of SSE2.
            let word = unsafe { _mm_cvtsi64_si128(hash as i64) };
            // SAFETY: the instruction is part of SSE2.
            let doubled = unsafe { _mm_unpacklo_epi8(word, word) };
            // SAFETY: the instruction is part of SSE2.
            let highest = unsafe { _mm_shufflehi_epi16::<0xff>(doubled) };
            // SAFETY: the instruction is part of SSE2.
            let bytes = unsafe { _mm_shuffle_epi32::<0xff>(highest) };
            // SAFETY: the instruction is part of SSE2.
            let lowest = unsafe { _mm_set1_epi8((FREE + 1) as i8) };
            // SAFETY: the instruction is part of SSE2.
            self.equal(Self(unsafe { _mm_max_epu8(bytes, lowest) }))
        }

        /// The slots whose tags equal the tags of `other` in the same slots.
        #[inline(always)]
        pub(crate) fn equal(self, other: Self) -> Bits<0> {
            // SAFETY: the instruction is part of SSE2.
            let equal = unsafe { _mm_cmpeq_epi8(self.0, other.0) };
            // SAFETY: the instruction is part of SSE2.
            Bits(unsafe { _mm_movemask_epi8(equal) } as Word)
        }
    }
}

/// 16 tags by NEON.
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little", not(miri)))]
mod neon {
    use core::arch::aarch64::{
        uint8x16_t, vceqq_u8, vdupq_n_u8, vget_lane_u64, vld1q_u8, vreinterpret_u64_u8,
        vreinterpretq_u16_u8, vshrn_n_u16,
    };

    use super::Bits;

    #[derive(Clone, Copy)]
    pub(crate) struct Group(uint8x16_t);

    /// A nibble for each byte, which is 0xff or 0.
    #[inline(always)]
    fn nibbles(bytes: uint8x16_t) -> u64 {
        // SAFETY: the instruction is part of NEON.
        let halves = unsafe { vreinterpretq_u16_u8(bytes) };
        // SAFETY: the instruction is part of NEON.
        let narrowed = unsafe { vshrn_n_u16::<4>(halves) };
        // SAFETY: the instruction is part of NEON.
        let word = unsafe { vreinterpret_u64_u8(narrowed) };
        // SAFETY: the instruction is part of NEON.
        unsafe { vget_lane_u64::<0>(word) }
    }

    impl Group {
        pub(crate) const SHIFT: u32 = 2;

        /// Reads the 16 tags at an address.
        ///
        /// # Safety
        ///
        /// 16 initialised bytes can be read there.
        #[inline(always)]
        pub(crate) unsafe fn load(tags: *const u8) -> Self {
            // SAFETY: as the caller promises.
            Self(unsafe { vld1q_u8(tags) })
        }

        /// The 16 tags in two words, the first one in the lowest byte.
        #[inline(always)]
        pub(crate) fn of_words(words: [u64; 2]) -> Self {
            let bytes = words.map(u64::to_le_bytes);
            // SAFETY: an array of 16 bytes.
            unsafe { Self::load(bytes.as_ptr().cast()) }
        }

        /// The slots with this tag.
        #[inline(always)]
        pub(crate) fn matches(self, tag: u8) -> Bits<2> {
            // SAFETY: the instruction is part of NEON.
            self.equal(Self(unsafe { vdupq_n_u8(tag) }))
        }

        /// The slots whose tags equal the tags of `other` in the same slots.
        #[inline(always)]
        pub(crate) fn equal(self, other: Self) -> Bits<2> {
            // SAFETY: the instruction is part of NEON.
            let equal = unsafe { vceqq_u8(self.0, other.0) };
            Bits(nibbles(equal) & Bits::<2>::ALL.0)
        }

        /// The slots with the tag of this hash.
        #[inline(always)]
        pub(crate) fn matches_hash(self, hash: u64) -> Bits<2> {
            self.matches(super::tag(hash))
        }
    }
}

/// 16 tags in two words.
#[cfg(any(
    test,
    not(any(
        all(target_arch = "x86_64", target_feature = "sse2", not(miri)),
        all(target_arch = "aarch64", target_feature = "neon", target_endian = "little", not(miri)),
    ))
))]
mod words {
    use super::{Bits, Word};

    #[derive(Clone, Copy)]
    pub(crate) struct Group([u64; 2]);

    const LOWEST: u64 = 0x0101_0101_0101_0101;
    const HIGHEST: u64 = LOWEST << 7;

    /// The highest bits of eight bytes, side by side. The other bits are zero.
    #[inline(always)]
    const fn gather(highest: u64) -> u64 {
        (highest >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
    }

    impl Group {
        // Tests of another implementation do not read it.
        pub(crate) const SHIFT: u32 = 0;

        /// Reads the 16 tags at an address.
        ///
        /// # Safety
        ///
        /// The address is divisible by 16 and 16 initialised bytes can be read there.
        #[inline(always)]
        pub(crate) unsafe fn load(tags: *const u8) -> Self {
            // SAFETY: as the caller promises.
            let words = unsafe { tags.cast::<[u64; 2]>().read() };
            Self(words.map(u64::from_le))
        }

        /// The 16 tags in two words, the first one in the lowest byte.
        #[inline(always)]
        pub(crate) const fn of_words(words: [u64; 2]) -> Self {
            Self(words)
        }

        /// The slots with this tag.
        #[inline(always)]
        pub(crate) fn matches(self, tag: u8) -> Bits<{ Self::SHIFT }> {
            self.equal(Self([LOWEST * u64::from(tag); 2]))
        }

        /// The slots whose tags equal the tags of `other` in the same slots.
        #[inline(always)]
        pub(crate) fn equal(self, other: Self) -> Bits<{ Self::SHIFT }> {
            let equal = |word: usize| {
                let difference = self.0[word] ^ other.0[word];
                // The highest bit of a byte is set unless the byte is zero; no carry leaves a byte.
                gather(!(((difference & !HIGHEST) + !HIGHEST) | difference) & HIGHEST)
            };
            Bits((equal(0) | equal(1) << 8) as Word)
        }

        /// The slots with the tag of this hash.
        #[inline(always)]
        pub(crate) fn matches_hash(self, hash: u64) -> Bits<{ Self::SHIFT }> {
            self.matches(super::tag(hash))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::splitmix::mix;
    use alloc::vec::Vec;

    #[repr(align(16))]
    struct Tags([u8; GROUP]);

    fn by_byte(tags: &Tags, is: impl Fn(u8) -> bool) -> Vec<usize> {
        (0..GROUP).filter(|&slot| is(tags.0[slot])).collect()
    }

    fn check(tags: &Tags, tag: u8) {
        // SAFETY: the tags are aligned.
        let group = unsafe { Group::load(tags.0.as_ptr()) };
        // SAFETY: the tags are aligned.
        let words = unsafe { words::Group::load(tags.0.as_ptr()) };
        let expected = by_byte(tags, |other| other == tag);
        assert_eq!(group.matches(tag).collect::<Vec<_>>(), expected);
        assert_eq!(words.matches(tag).collect::<Vec<_>>(), expected);
        let in_words = [0, 8].map(|from| {
            u64::from_le_bytes(tags.0[from..from + 8].try_into().expect("eight bytes"))
        });
        assert_eq!(Group::of_words(in_words).matches(tag).collect::<Vec<_>>(), expected);
        assert_eq!(words::Group::of_words(in_words).matches(tag).collect::<Vec<_>>(), expected);
        let hash = u64::from(tag) << 56 | 0xff_ffff_ffff;
        let expected = by_byte(tags, |other| other == super::tag(hash));
        assert_eq!(group.matches_hash(hash).collect::<Vec<_>>(), expected);
        assert_eq!(words.matches_hash(hash).collect::<Vec<_>>(), expected);
        let free = by_byte(tags, |other| other == FREE);
        assert_eq!(group.free().collect::<Vec<_>>(), free);
        assert_eq!(group.full().collect::<Vec<_>>(), by_byte(tags, |other| other != FREE));
    }

    #[test]
    fn all_implementations_agree_with_bytes() {
        for case in 0..if cfg!(miri) { 6 } else { 20_000 } {
            let alike = case % 3;
            let tags = Tags(core::array::from_fn(|slot| {
                let byte = (mix(16 * case + slot as u64) >> 20) as u8;
                match alike {
                    0 => byte,
                    1 => byte & 0x81,
                    _ => [FREE, 1, 0x80, 0xff][byte as usize % 4],
                }
            }));
            for tag in [0, 1, 0x80, 0xff, tags.0[3], tags.0[15]] {
                check(&tags, tag);
            }
        }
    }

    #[test]
    fn masks_are_in_order() {
        let mut tags = Tags([FREE; GROUP]);
        tags.0[9] = 5;
        // SAFETY: the tags are aligned.
        let group = unsafe { Group::load(tags.0.as_ptr()) };
        assert_eq!((group.matches(5).lowest(), group.full().count()), (9, 1));
        assert!(group.matches(6).is_empty());
        assert!(Mask::NONE.is_empty());
    }
}
