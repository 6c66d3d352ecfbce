//! Weak hashers.

use core::hash::{BuildHasher, Hasher};

/// A hasher that keeps a part of a good hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weak {
    /// All of the mixed key: the only good hash.
    #[default]
    Mixed,
    /// The key itself.
    Identity,
    /// One of three numbers.
    Three,
    /// A constant.
    Constant,
    /// Only the upper 16 bits of the mixed key.
    Top,
    /// Only the lower 16 bits of the mixed key.
    Low,
    /// Only the upper half of the mixed key.
    TopHalf,
    /// The mixed key, shifted right.
    Shr(u8),
    /// The mixed key, shifted left.
    Shl(u8),
    /// The remainder of the mixed key.
    Modulo(u8),
}

impl Weak {
    /// All without parameters.
    pub const ALL: [Self; 7] = [
        Self::Mixed,
        Self::Identity,
        Self::Three,
        Self::Constant,
        Self::Top,
        Self::Low,
        Self::TopHalf,
    ];

    /// The hasher of a byte: the lower two bits are the kind, the upper six its parameter.
    pub fn from_byte(byte: u8) -> Self {
        let parameter = byte >> 2;
        match byte % 4 {
            0 => Self::Mixed,
            1 => Self::Shr(parameter),
            2 => Self::Shl(parameter),
            _ => Self::Modulo(1 + parameter),
        }
    }
}

/// The [`Hasher`] of [`Weak`].
pub struct Fold(Weak, u64);

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
            Weak::Shr(bits) => mixed >> bits,
            Weak::Shl(bits) => mixed << bits,
            Weak::Modulo(divisor) => mixed % u64::from(divisor),
        }
    }
}

/// Mixes a number: each bit of the result depends on each bit of it.
pub fn mix(number: u64) -> u64 {
    let mut mixed = number ^ number >> 33;
    mixed = mixed.wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^= mixed >> 33;
    mixed = mixed.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ mixed >> 33
}
