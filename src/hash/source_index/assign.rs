//! Where a source has its indices from.

use alloc::boxed::Box;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use core::num::NonZeroUsize;

use super::SourceIndex;
use crate::raw::splitmix::{STEP, mixed};

/// Random indices, made at boot and handed out in turn: a new flow costs a load.
///
/// Two sources must not have the same list, or their flows meet everywhere; so what is unique in each source
/// is part of the seed. After as many flows as the list is long an index comes again. That is no harm: names are
/// compared. The numbers are those of splitmix64, which an observer can continue: see
/// [the module](super) for what that means.
///
/// Paper: Chandranmenon and Varghese, section 3.1.
///
/// # Example
///
/// ```
/// use core::num::NonZeroUsize;
/// use flowtable::hash::source_index::RandomIndices;
///
/// let list_len = NonZeroUsize::new(1000).unwrap();
/// let [mut ours, theirs] = [0x0200_5e00_0001, 0x0200_5e00_0002].map(|hardware_address| {
///     let boot_time = 1_795_331_400;
///     RandomIndices::new(hardware_address, boot_time, list_len)
/// });
/// let first = ours.as_mut().unwrap().next();
/// assert_ne!(first, theirs.unwrap().next());
/// assert_eq!(first, ours.unwrap().nth(999), "the list is handed out in turn");
/// ```
#[derive(Clone, Debug)]
pub struct RandomIndices {
    list: Box<[SourceIndex]>,
    next: usize,
}

impl RandomIndices {
    /// A list of so many indices, of a source that is called so, as no other one is. `entropy` differs from boot
    /// to boot: random bits, or the time.
    ///
    /// # Errors
    ///
    /// If there is no memory for the list.
    pub fn new(source: u64, entropy: u64, len: NonZeroUsize) -> Result<Self, TryReserveError> {
        let mut list = Vec::new();
        list.try_reserve_exact(len.get())?;
        let mut state = mixed(source).wrapping_add(entropy);
        list.extend((0..len.get()).map(|_| {
            state = state.wrapping_add(STEP);
            SourceIndex::new((mixed(state) >> 32) as u32)
        }));
        Ok(Self { list: list.into_boxed_slice(), next: 0 })
    }
}

/// Never ends.
impl Iterator for RandomIndices {
    type Item = SourceIndex;

    #[inline]
    fn next(&mut self) -> Option<SourceIndex> {
        let index = self.list[self.next];
        self.next += 1;
        if self.next == self.list.len() {
            self.next = 0;
        }
        Some(index)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

/// An address of 8 bytes: the six that manufacturers assign, and two that are random, burnt in with them.
///
/// A receiver whose table is by station takes the two as index. They are as good as any random ones, cost nobody
/// anything, and are the same whoever sends; but there is one for each station, not for each flow.
///
/// Paper: Chandranmenon and Varghese, section 3.1.
///
/// # Example
///
/// ```
/// use flowtable::hash::source_index::HardwareAddress;
///
/// let station = HardwareAddress::new([0x02, 0, 0x5e, 0, 0, 1], 0xbeef);
/// assert_eq!((station.index().get(), station.octets()[..6].to_vec()), (0xbeef, vec![2, 0, 0x5e, 0, 0, 1]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HardwareAddress([u8; 8]);

impl HardwareAddress {
    /// An address as it is assigned, and the random bits.
    #[must_use]
    pub const fn new(assigned: [u8; 6], random: u16) -> Self {
        let [a, b, c, d, e, f] = assigned;
        let [g, h] = random.to_be_bytes();
        Self([a, b, c, d, e, f, g, h])
    }

    /// The address as it is sent, the random bytes last.
    #[must_use]
    pub const fn octets(self) -> [u8; 8] {
        self.0
    }

    /// The random bits: 16 of them.
    #[inline]
    #[must_use]
    pub const fn index(self) -> SourceIndex {
        let [.., high, low] = self.0;
        SourceIndex::new(u16::from_be_bytes([high, low]) as u32)
    }
}

impl From<[u8; 8]> for HardwareAddress {
    fn from(octets: [u8; 8]) -> Self {
        Self(octets)
    }
}
