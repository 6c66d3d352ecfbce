//! The two orders of bytes in a number.

/// Which byte of a number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The most significant one.
    Big,
    /// The least significant one.
    Little,
}

impl Order {
    /// The 16-bit number at `at`, if `bytes` are long enough.
    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => u16::from_be_bytes(field),
            Self::Little => u16::from_le_bytes(field),
        })
    }

    /// The 32-bit number at `at`, if `bytes` are long enough.
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => u32::from_be_bytes(field),
            Self::Little => u32::from_le_bytes(field),
        })
    }

    /// The signed 64-bit number at `at`, if `bytes` are long enough.
    pub(crate) fn i64(self, bytes: &[u8], at: usize) -> Option<i64> {
        let field = *bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => i64::from_be_bytes(field),
            Self::Little => i64::from_le_bytes(field),
        })
    }
}
