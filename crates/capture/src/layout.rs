//! The records of a pcap file: their headers, as the file's header determines them.

use super::magic::{Kind, kind};
use super::order::Order;
use super::window::Window;

/// The layout of the records of a file.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    order: Order,
    kind: Kind,
    lengths: Lengths,
    /// Link type of all packets.
    pub(crate) link: u16,
    /// The maximum plausible length of a captured packet.
    pub(crate) longest: u32,
}

/// The order of the two lengths of a record.
#[derive(Clone, Copy)]
enum Lengths {
    CapturedFirst,
    WireFirst,
    /// Programs of version 2.3 differ: the shorter length counts the captured bytes.
    Either,
}

/// The header of a record.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub(crate) seconds: u32,
    pub(crate) fraction: u32,
    pub(crate) captured: u32,
    pub(crate) wire_len: u32,
}

impl Layout {
    /// Length of the longest header of a file.
    pub(crate) const FILE_HEADER: usize = 28;

    /// The maximum snap length of tcpdump and Wireshark.
    const SNAP_LEN: u32 = 262_144;

    /// Parses the header of a file, if it is a pcap.
    pub(crate) fn of(file_header: &[u8]) -> Option<Self> {
        let (order, kind) = kind(file_header)?;
        let (major, minor) = (order.u16(file_header, 4)?, order.u16(file_header, 6)?);
        let snap_len = order.u32(file_header, 16)?;
        let longest = if snap_len <= Window::MAX as u32 / 2 { snap_len } else { 0 };
        // The upper half describes frame check sequences, which are after the data.
        let link = (order.u32(file_header, 20)? & 0xffff) as u16;
        file_header.get(..kind.file_header)?;
        Some(Self {
            order,
            kind,
            lengths: match (major, minor) {
                (2, 3) => Lengths::Either,
                (2, 0..3) | (543, 0) => Lengths::WireFirst,
                _ => Lengths::CapturedFirst,
            },
            link,
            longest: longest.max(Self::SNAP_LEN),
        })
    }

    /// Returns the length of the file's header.
    pub(crate) const fn file_header(&self) -> usize {
        self.kind.file_header
    }

    /// Returns the length of a record's header.
    pub(crate) const fn record_header(&self) -> usize {
        self.kind.record_header
    }

    /// Parses the header of the record at the beginning of these bytes, if they have all of it.
    #[inline]
    pub(crate) fn header(&self, bytes: &[u8]) -> Option<Header> {
        // Of 16 bytes at least.
        let bytes: &[u8; 16] = bytes.get(..self.kind.record_header)?.first_chunk()?;
        let is_big = self.order == Order::Big;
        let word = |at: usize| {
            let little = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            let word = u32::from_le_bytes(little);
            if is_big { word.swap_bytes() } else { word }
        };
        let (seconds, fraction, first, second) = (word(0), word(4), word(8), word(12));
        let (captured, wire_len) = match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::WireFirst => (second, first),
            Lengths::Either => (first.min(second), first.max(second)),
        };
        Some(Header { seconds, fraction, captured, wire_len })
    }

    /// Returns the length of the record with this header.
    #[inline]
    pub(crate) const fn length(&self, header: Header) -> usize {
        self.kind.record_header + header.captured as usize
    }

    #[inline]
    pub(crate) fn time_ns(&self, header: Header) -> u64 {
        let (seconds, fraction) = (u64::from(header.seconds), u64::from(header.fraction));
        seconds * 1_000_000_000 + fraction * self.kind.unit_ns
    }

    /// Returns the offset of a byte that is 0 in each plausible header: the highest one of the
    /// captured length, which is below 2^24. This is the first test of each byte of a search.
    pub(crate) const fn high_byte(&self) -> usize {
        match (self.lengths, self.order) {
            (Lengths::CapturedFirst | Lengths::Either, Order::Big) => 8,
            (Lengths::CapturedFirst | Lengths::Either, Order::Little) => 11,
            (Lengths::WireFirst, Order::Big) => 12,
            (Lengths::WireFirst, Order::Little) => 15,
        }
    }

    /// Returns whether a record may have this header, however unusual.
    pub(crate) const fn is_possible(&self, header: Header) -> bool {
        !header.is_zero() && header.captured <= self.longest
    }

    /// Returns whether a plausible header is at the beginning of these bytes.
    pub(crate) fn is_record(&self, bytes: &[u8]) -> bool {
        self.header(bytes).is_some_and(|header| self.is_plausible(header))
    }

    /// Returns whether a record with a packet may have the lengths and the fraction of this header.
    #[inline]
    pub(crate) fn is_plausible(&self, header: Header) -> bool {
        self.has_lengths(header) && self.has_fraction(header)
    }

    /// Returns whether a record with a packet may have these lengths.
    #[inline]
    pub(crate) fn has_lengths(&self, header: Header) -> bool {
        (1..=self.longest).contains(&header.captured)
            && (header.captured..=Window::MAX as u32).contains(&header.wire_len)
    }

    /// Returns whether the fraction of a second is below one.
    #[inline]
    pub(crate) fn has_fraction(&self, header: Header) -> bool {
        u64::from(header.fraction) * self.kind.unit_ns < 1_000_000_000
    }
}

impl Header {
    /// The maximum difference in seconds between two records that are near in time.
    const NEAR: u32 = 7 * 24 * 3600;

    pub(crate) const fn is_zero(self) -> bool {
        self.seconds == 0 && self.fraction == 0 && self.captured == 0 && self.wire_len == 0
    }

    /// Returns whether the time is near that of a record of this second.
    #[inline]
    pub(crate) const fn is_near(self, second: u32) -> bool {
        second.abs_diff(self.seconds) <= Self::NEAR
    }
}
