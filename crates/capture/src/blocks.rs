//! The blocks of a pcapng file: their types and lengths.

use core::ops::RangeInclusive;

use super::order::Order;

pub(crate) const INTERFACE: u32 = 1;
pub(crate) const OBSOLETE_PACKET: u32 = 2;
pub(crate) const SIMPLE_PACKET: u32 = 3;
pub(crate) const ENHANCED_PACKET: u32 = 6;

/// The types of interfaces, packets, and what describes them.
pub(crate) const KNOWN: RangeInclusive<u32> = INTERFACE..=ENHANCED_PACKET;

/// Length of a block's second length field, after its contents.
pub(crate) const TRAILER: usize = 4;

/// Returns the size of the block at the beginning of these bytes, which states this length at both
/// of its ends; `None` if it does not. Some programs do not count the padding.
pub(crate) fn size(bytes: &[u8], length: u32, order: Order) -> Option<usize> {
    let length_at_end = |size: &usize| order.u32(bytes.get(..*size)?, size.checked_sub(TRAILER)?);
    let mut sizes = [length as usize, (length as usize).next_multiple_of(4)].into_iter();
    sizes.find(|size| length_at_end(size) == Some(length))
}
