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
//! A record of an impossible length, or of zeros, is damaged. The next record is then searched for
//! byte by byte: two headers in a row whose times and lengths are plausible.
//!
//! Format: draft-ietf-opsawg-pcap.

use super::damage::{DamageKind, Damages, Search};
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
    /// The maximum plausible length of a captured packet.
    longest: u32,
    /// Seconds of the last record.
    last_s: Option<u32>,
    search: Option<Search>,
}

/// The header of a record.
#[derive(Clone, Copy)]
struct Header {
    seconds: u32,
    fraction: u32,
    captured: u32,
    wire_len: u32,
}

impl Pcap {
    /// Length of the file's header.
    pub(crate) const HEADER: usize = 24;

    /// The maximum snap length of tcpdump and Wireshark.
    const SNAP_LEN: u32 = 262_144;

    /// The maximum difference in seconds of successive records after a damage.
    const NEAR: u32 = 7 * 24 * 3600;

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
        let snap_len = order.u32(header, 16)?;
        let longest = if snap_len <= Window::MAX as u32 / 2 { snap_len } else { 0 };
        // The upper half describes frame check sequences, which are after the data.
        let link = (order.u32(header, 20)? & 0xffff) as u16;
        let (longest, last_s, search) = (longest.max(Self::SNAP_LEN), None, None);
        Some(Self { order, unit_ns, record_header, link, longest, last_s, search })
    }

    /// Returns the record at the beginning of the window. Its packet may have fewer bytes than its
    /// header states: the file is truncated, or the record is damaged.
    pub(crate) fn next(
        &mut self,
        window: &mut Window,
        damages: &mut Damages,
    ) -> Result<Located, End> {
        loop {
            if let Some(search) = self.search {
                let is_found = self.find_record(window, search)?;
                search.end(window.offset(), is_found, damages);
                self.search = None;
            }
            let bytes = window.fill_to(self.record_header)?;
            if bytes.is_empty() {
                return Err(End::Whole);
            }
            let header = self.header(bytes).ok_or(End::Cut)?;
            if header.is_zero() || header.captured > self.longest {
                if let Some(located) = self.begin_search(header, window)? {
                    return Ok(located);
                }
                continue;
            }
            self.last_s = Some(header.seconds);
            return Ok(self.located(header, window, header.captured)?);
        }
    }

    fn header(&self, bytes: &[u8]) -> Option<Header> {
        if bytes.len() < self.record_header {
            return None;
        }
        Some(Header {
            seconds: self.order.u32(bytes, 0)?,
            fraction: self.order.u32(bytes, 4)?,
            captured: self.order.u32(bytes, 8)?,
            wire_len: self.order.u32(bytes, 12)?,
        })
    }

    /// Returns the record with this header, and up to `captured` bytes of its packet.
    fn located(
        &self,
        header: Header,
        window: &mut Window,
        captured: u32,
    ) -> std::io::Result<Located> {
        let wanted = self.record_header + captured as usize;
        let there = window.fill_to(wanted)?.len().min(wanted);
        let (seconds, fraction) = (u64::from(header.seconds), u64::from(header.fraction));
        Ok(Located {
            time_ns: seconds * 1_000_000_000 + fraction * self.unit_ns,
            link: self.link,
            wire_len: header.wire_len,
            data: self.record_header..there,
            record_len: wanted as u64,
        })
    }

    /// Begins the search for the record after a damaged one. Returns the latter if only its length
    /// is damaged.
    fn begin_search(
        &mut self,
        header: Header,
        window: &mut Window,
    ) -> std::io::Result<Option<Located>> {
        let is_packet = !header.is_zero() && self.is_timely(header);
        let captured = header.captured.min(header.wire_len).min(self.longest);
        let located = if is_packet { Some(self.located(header, window, captured)?) } else { None };
        let offset = window.offset();
        let length = self.record_header as u64 + u64::from(header.captured);
        self.search = Some(match header.is_zero() {
            true => Search { offset, kind: DamageKind::Zeros, claimed_end: None },
            false => Search {
                offset,
                kind: DamageKind::Length(u64::from(header.captured)),
                claimed_end: Some(offset + length),
            },
        });
        if located.is_none() {
            window.consume(1);
        }
        // The search begins right after the header.
        let searched_from = self.record_header as u64;
        Ok(located.map(|located| Located { record_len: searched_from, ..located }))
    }

    /// Advances the window to the next plausible record. Returns whether there is one.
    fn find_record(&self, window: &mut Window, search: Search) -> std::io::Result<bool> {
        loop {
            if !window.settle()? {
                return Ok(false);
            }
            let length = window.fill_to(self.record_header)?.len();
            if length < self.record_header {
                window.consume(length as u64);
                window.settle()?;
                return Ok(false);
            }
            let bytes = window.data();
            let headers = bytes.len() - self.record_header + 1;
            let Some(at) = (0..headers).find(|at| self.is_record(&bytes[*at..])) else {
                window.consume(headers as u64);
                continue;
            };
            window.consume(at as u64);
            window.settle()?;
            if self.is_confirmed(window, search)? {
                return Ok(true);
            }
            window.consume(1);
        }
    }

    /// Returns whether another record, or the end of the file, is behind the plausible one at the
    /// beginning of the window.
    fn is_confirmed(&self, window: &mut Window, search: Search) -> std::io::Result<bool> {
        let Some(header) = self.header(window.data()) else { return Ok(false) };
        if search.claimed_end == Some(window.offset()) {
            return Ok(true);
        }
        let length = self.record_header + header.captured as usize;
        let bytes = window.fill_to(length + self.record_header)?;
        Ok(bytes.len() == length || bytes.get(length..).is_some_and(|next| self.is_record(next)))
    }

    /// Returns whether a plausible header is at the beginning of these bytes.
    fn is_record(&self, bytes: &[u8]) -> bool {
        let Some(header) = self.header(bytes) else { return false };
        (1..=self.longest).contains(&header.captured)
            && (header.captured..=Window::MAX as u32).contains(&header.wire_len)
            && self.is_timely(header)
    }

    /// Returns whether the time of a record is plausible.
    fn is_timely(&self, header: Header) -> bool {
        let is_near = self.last_s.is_none_or(|last| last.abs_diff(header.seconds) <= Self::NEAR);
        is_near && u64::from(header.fraction) * self.unit_ns < 1_000_000_000
    }
}

impl Header {
    const fn is_zero(self) -> bool {
        self.seconds == 0 && self.fraction == 0 && self.captured == 0 && self.wire_len == 0
    }
}
