//! Byte orders.

/// The byte order of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

impl Order {
    /// Reads the 16-bit integer at `at`, if `bytes` are long enough.
    #[inline]
    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => u16::from_be_bytes(field),
            Self::Little => u16::from_le_bytes(field),
        })
    }

    /// Reads the 32-bit integer at `at`, if `bytes` are long enough.
    #[inline]
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => u32::from_be_bytes(field),
            Self::Little => u32::from_le_bytes(field),
        })
    }

    /// Returns the bytes of a 32-bit integer.
    pub(crate) const fn bytes(self, number: u32) -> [u8; 4] {
        match self {
            Self::Big => number.to_be_bytes(),
            Self::Little => number.to_le_bytes(),
        }
    }

    /// Reads the signed 64-bit integer at `at`, if `bytes` are long enough.
    pub(crate) fn i64(self, bytes: &[u8], at: usize) -> Option<i64> {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => i64::from_be_bytes(field),
            Self::Little => i64::from_le_bytes(field),
        })
    }
}
