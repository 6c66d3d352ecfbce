//! The classic capture format, pcap.
//!
//! ```text
//!     │ magic │ version │ zone │ accuracy │ snap length │ link type │      24 bytes, once
//!     │ seconds │ fraction │ captured │ on the wire │ bytes …       │      16 bytes and the packet
//! ```
//!
//! The magic determines the byte order, and whether the fraction is of micro- or nanoseconds.
//! Records of the "modified" format have 8 bytes more, which are skipped.
//!
//! These fields are parsed here and not by `pcap-parser`: its parsers return complete records only,
//! but this reader also returns the beginning of a record that is truncated or too long for a
//! buffer; and they support the modified format in one byte order only.
//!
//! Format: draft-ietf-opsawg-pcap.

use super::order::Order;
use super::reader::{End, Located};
use super::window::Window;

/// A pcap file after its header.
pub(crate) struct Pcap {
    order: Order,
    /// Nanoseconds in one unit of the fraction of a second.
    unit_ns: u64,
    record_header: usize,
    link: u16,
}

impl Pcap {
    /// Length of the file's header.
    pub(crate) const HEADER: usize = 24;

    /// Parses the header of a file, if it is a pcap.
    pub(crate) fn open(header: &[u8]) -> Option<Self> {
        let (order, unit_ns, record_header) = match *header.first_chunk()? {
            [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, 1000, 16),
            [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, 1000, 16),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, 1, 16),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, 1, 16),
            [0xa1, 0xb2, 0xcd, 0x34] => (Order::Big, 1000, 24),
            [0x34, 0xcd, 0xb2, 0xa1] => (Order::Little, 1000, 24),
            _ => return None,
        };
        // The upper half describes frame check sequences, which are after the data.
        let link = (order.u32(header, 20)? & 0xffff) as u16;
        Some(Self { order, unit_ns, record_header, link })
    }

    /// Returns the record at the beginning of the window. Its packet may have fewer bytes than
    /// `record_len` says: the file is truncated, or the record is longer than the window.
    pub(crate) fn next(&self, window: &mut Window) -> Result<Located, End> {
        let header = window.fill_to(self.record_header)?;
        if header.is_empty() {
            return Err(End::Whole);
        }
        let (Some(seconds), Some(fraction), Some(captured), Some(wire_len), true) = (
            self.order.u32(header, 0),
            self.order.u32(header, 4),
            self.order.u32(header, 8),
            self.order.u32(header, 12),
            header.len() >= self.record_header,
        ) else {
            return Err(End::Cut);
        };
        let record_len = self.record_header as u64 + u64::from(captured);
        let wanted = usize::try_from(record_len).unwrap_or(usize::MAX);
        let there = window.fill_to(wanted)?.len().min(wanted);
        Ok(Located {
            time_ns: u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.unit_ns,
            link: self.link,
            wire_len,
            data: self.record_header..there,
            record_len,
        })
    }
}
