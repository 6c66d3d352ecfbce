//! Hashers as bad as they come.
#![allow(dead_code, reason = "not every test needs all")]

use core::hash::{BuildHasher, Hasher};

/// What a hash is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Weak {
    /// All of the key, well mixed: the only good one.
    #[default]
    Mixed,
    /// The key itself.
    Identity,
    /// One of three numbers.
    Three,
    /// Nothing.
    Constant,
    /// Well mixed, but only the upper 16 bits.
    Top,
    /// Well mixed, but only the lower 16 bits.
    Low,
    /// Well mixed, but only the upper half.
    TopHalf,
}

impl Weak {
    /// All of them.
    pub(crate) const ALL: [Self; 7] = [
        Self::Mixed,
        Self::Identity,
        Self::Three,
        Self::Constant,
        Self::Top,
        Self::Low,
        Self::TopHalf,
    ];
}

/// Counts up what it is fed.
pub(crate) struct Fold(Weak, u64);

impl BuildHasher for Weak {
    type Hasher = Fold;

    fn build_hasher(&self) -> Fold {
        Fold(*self, 0)
    }
}

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.1 = self.1.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte);
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.1 = self.1.wrapping_mul(0x0100_0000_01b3) ^ number;
    }

    fn finish(&self) -> u64 {
        let mixed = mix(self.1);
        match self.0 {
            Weak::Mixed => mixed,
            Weak::Identity => self.1,
            Weak::Three => self.1 % 3,
            Weak::Constant => 7,
            Weak::Top => mixed & 0xffff << 48,
            Weak::Low => mixed & 0xffff,
            Weak::TopHalf => mixed & 0xffff_ffff << 32,
        }
    }
}

/// Each bit of the result depends on each bit of the number.
pub(crate) fn mix(number: u64) -> u64 {
    let mut mixed = number ^ number >> 33;
    mixed = mixed.wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^= mixed >> 33;
    mixed = mixed.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ mixed >> 33
}
