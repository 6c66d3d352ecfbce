//! Fields of binary records, one after the other.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The fields that have not been read. Errors are reasons why a record is malformed.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    /// Returns the family of a number of the registry of address families.
    pub(super) const fn of(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::V4),
            2 => Some(Self::V6),
            _ => None,
        }
    }

    /// Returns the bytes of an address.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::V4 => 4,
            Self::V6 => 16,
        }
    }

    /// Returns the address with these first bytes, which are at most as many as it has.
    fn address(self, first: &[u8]) -> IpAddr {
        let mut bytes = [0; 16];
        bytes[..first.len()].copy_from_slice(first);
        match self {
            Self::V4 => Ipv4Addr::from(core::array::from_fn(|at| bytes[at])).into(),
            Self::V6 => Ipv6Addr::from(bytes).into(),
        }
    }
}

impl<'a> Fields<'a> {
    pub(super) const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let split = self.0.split_at_checked(count);
        let (taken, rest) = split.ok_or("an MRT record that is too short for its fields")?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads a number of up to four bytes.
    pub(super) fn number(&mut self, bytes: usize) -> Result<u32, String> {
        let bytes = self.take(bytes)?.iter();
        Ok(bytes.fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }

    /// Reads a block of bytes after its length, which has this number of bytes.
    pub(super) fn block(&mut self, length: usize) -> Result<Self, String> {
        let length = self.number(length)? as usize;
        Ok(Self(self.take(length)?))
    }

    /// Reads a whole address.
    pub(super) fn address(&mut self, family: Family) -> Result<IpAddr, String> {
        Ok(family.address(self.take(family.bytes())?))
    }

    /// Reads a length in bits, and the bytes that it requires of an address.
    pub(super) fn prefix(&mut self, family: Family) -> Result<(IpAddr, u32), String> {
        let len = self.number(1)?;
        if len as usize > 8 * family.bytes() {
            return Err(format!("a prefix of {len} bits"));
        }
        Ok((family.address(self.take(len.div_ceil(8) as usize)?), len))
    }
}
