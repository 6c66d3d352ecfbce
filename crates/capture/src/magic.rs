//! The first bytes of capture files, which tell their formats and byte orders.

use super::order::Order;

/// The type of the block that begins a section of a pcapng: equal in both byte orders.
pub(crate) const SECTION: u32 = 0x0a0d_0d0a;

/// A kind of file.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// The first four bytes, as a number in the byte order of the file.
    magic: u32,
    /// Nanoseconds in one unit of the fraction of a second.
    pub(crate) unit_ns: u64,
    pub(crate) file_header: usize,
    pub(crate) record_header: usize,
}

const KINDS: [Kind; 5] = [
    Kind { magic: 0xa1b2_c3d4, unit_ns: 1000, file_header: 24, record_header: 16 },
    Kind { magic: 0xa1b2_3c4d, unit_ns: 1, file_header: 24, record_header: 16 },
    // The modified format of Linux: index of the interface, protocol, direction.
    Kind { magic: 0xa1b2_cd34, unit_ns: 1000, file_header: 24, record_header: 24 },
    // lcap of Ixia, by hardware and by software: the length of all records is in the file's header.
    Kind { magic: 0x1c00_01ac, unit_ns: 1, file_header: 28, record_header: 16 },
    Kind { magic: 0x1c00_01ab, unit_ns: 1000, file_header: 28, record_header: 16 },
];

/// Returns byte order and kind of a file that begins with these bytes, if it is a pcap.
pub(crate) fn kind(bytes: &[u8]) -> Option<(Order, Kind)> {
    let of = |order: Order| {
        let magic = order.u32(bytes, 0)?;
        Some((order, *KINDS.iter().find(|kind| kind.magic == magic)?))
    };
    of(Order::Little).or_else(|| of(Order::Big))
}

/// Returns the byte order of the section that begins here, if one does.
pub(crate) fn section_order(head: &[u8]) -> Option<Order> {
    if Order::Big.u32(head, 0)? != SECTION {
        return None;
    }
    match head.get(8..12)? {
        [0x1a, 0x2b, 0x3c, 0x4d] => Some(Order::Big),
        [0x4d, 0x3c, 0x2b, 0x1a] => Some(Order::Little),
        _ => None,
    }
}

/// Returns whether these bytes are the beginning of a capture file inside a capture file: the magic
/// of a pcap with a version that was in use, or a section of a pcapng.
#[inline]
pub(crate) fn begins_file(bytes: &[u8]) -> bool {
    may_begin_file(bytes) && has_magic(bytes)
}

/// Returns whether a file may begin with these bytes, by the first one: nearly all are others.
#[inline]
pub(crate) fn may_begin_file(bytes: &[u8]) -> bool {
    let is_first = |byte| matches!(byte, 0x0a | 0x1c | 0x34 | 0x4d | 0xa1 | 0xab..=0xac | 0xd4);
    bytes.first().is_some_and(|byte| is_first(*byte))
}

fn has_magic(bytes: &[u8]) -> bool {
    if section_order(bytes).is_some() {
        return true;
    }
    let Some((order, _)) = kind(bytes) else { return false };
    order.u16(bytes, 4) == Some(2) && order.u16(bytes, 6).is_some_and(|minor| minor <= 4)
}
