//! The classic capture format, pcap.
//!
//! ```text
//!     │ magic │ version │ zone │ accuracy │ snap length │ link type │      24 bytes, once
//!     │ seconds │ fraction │ captured │ on the wire │ bytes …       │      16 bytes and the packet
//! ```
//!
//! The magic determines the byte order, whether the fraction is of micro- or nanoseconds, and the
//! lengths of the headers. Before version 2.4, the two lengths of a record are exchanged.
//!
//! These fields are parsed here and not by `pcap-parser`: its parsers return complete records only,
//! but this reader also returns the beginning of a record that is truncated or too long for a
//! buffer; and they support the modified format in one byte order only.
//!
//! The header of a file in place of a record begins another file: captures were concatenated, or a
//! capturing program was restarted. If the file before it was cut, its last record covers this
//! header, which is found when no usual record follows.
//!
//! A record of an impossible length, or of zeros, is damaged. The next record is then searched for
//! byte by byte: a header with plausible lengths, and a second header behind its packet. If its
//! time is far from the times of the last records, three more headers have to follow: no single
//! wrong time makes the search reject all records. The search is linear in the bytes that it
//! passes.
//!
//! Format: draft-ietf-opsawg-pcap.

use super::damage::{Damage, DamageKind, Damages, Search};
use super::magic::{Kind, begins_file, kind};
use super::order::Order;
use super::record::{End, Frame, Located, Next};
use super::window::Window;

/// A pcap file after its header.
pub(crate) struct Pcap {
    order: Order,
    kind: Kind,
    lengths: Lengths,
    link: u16,
    /// The maximum plausible length of a captured packet.
    longest: u32,
    /// Seconds of the last records.
    recent: [Option<u32>; 8],
    /// Number of records, of which the last one has this number less one.
    records: usize,
    search: Option<Search>,
}

/// The order of the two lengths of a record.
#[derive(Clone, Copy)]
enum Lengths {
    CapturedFirst,
    WireFirst,
    /// Programs of version 2.3 differ: the shorter length counts the captured bytes.
    Either,
}

/// Usual records that were read together.
#[derive(Clone, Copy, Default)]
pub(crate) struct Usual {
    pub(crate) count: usize,
    /// The length of all.
    pub(crate) length: usize,
    /// The length and the time of the last one.
    pub(crate) last_length: usize,
    pub(crate) last_ns: u64,
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
    /// Length of the longest header of a file.
    pub(crate) const HEADER: usize = 28;

    /// The maximum snap length of tcpdump and Wireshark.
    const SNAP_LEN: u32 = 262_144;

    /// The maximum difference in seconds from one of the last records, of a record that one more
    /// header confirms.
    const NEAR: u32 = 7 * 24 * 3600;

    /// The headers that confirm any other record.
    const CHAIN: usize = 3;

    /// Parses the header of a file, if it is a pcap. Returns it with the length of the header.
    pub(crate) fn open(header: &[u8]) -> Option<(Self, usize)> {
        let (order, kind) = kind(header)?;
        let (major, minor) = (order.u16(header, 4)?, order.u16(header, 6)?);
        let snap_len = order.u32(header, 16)?;
        let longest = if snap_len <= Window::MAX as u32 / 2 { snap_len } else { 0 };
        // The upper half describes frame check sequences, which are after the data.
        let link = (order.u32(header, 20)? & 0xffff) as u16;
        header.get(..kind.file_header)?;
        let pcap = Self {
            order,
            kind,
            lengths: match (major, minor) {
                (2, 3) => Lengths::Either,
                (2, 0..3) | (543, 0) => Lengths::WireFirst,
                _ => Lengths::CapturedFirst,
            },
            link,
            longest: longest.max(Self::SNAP_LEN),
            recent: [None; 8],
            records: 0,
            search: None,
        };
        Some((pcap, kind.file_header))
    }

    /// Returns the record at the beginning of the window. Its packet may have fewer bytes than its
    /// header states: the file is truncated, or the record is damaged.
    pub(crate) fn next(&mut self, window: &mut Window, damages: &mut Damages) -> Result<Next, End> {
        loop {
            if let Some(search) = self.search {
                let is_found = self.find_record(window, search)?;
                search.end(window.offset(), is_found, damages);
                self.search = None;
            }
            let bytes = window.fill_to(self.kind.record_header)?;
            if bytes.is_empty() {
                return Err(End::Whole);
            }
            if begins_file(bytes) {
                return Ok(Next::File);
            }
            let header = self.header(bytes).ok_or(End::Cut)?;
            let is_usual = self.is_record(bytes) && self.is_near(header);
            if !is_usual && self.return_to_file(window, damages) {
                return Ok(Next::File);
            }
            if header.is_zero() || header.captured > self.longest {
                if self.skip_to_file(window, damages)? {
                    return Ok(Next::File);
                }
                if let Some(located) = self.begin_search(header, window)? {
                    return Ok(Next::Frame(located));
                }
                continue;
            }
            let located = self.located(header, window, header.captured)?;
            window.retain(located.data.end);
            self.add_recent(header.seconds);
            return Ok(Next::Frame(located));
        }
    }

    /// Passes the records at the beginning of `bytes` to `each`, as [`next`](Self::next) would
    /// return them, as long as they are complete and usual: before `limit_ns`, and at most `most`.
    pub(crate) fn read_usual(
        &mut self,
        bytes: &[u8],
        limit_ns: u64,
        most: usize,
        mut each: impl FnMut(&Frame<'_>),
    ) -> Usual {
        let mut usual = Usual::default();
        let Some(Some(mut last_s)) = self.records.checked_sub(1).map(|last| self.recent(last))
        else {
            return usual;
        };
        while usual.count < most && self.search.is_none() {
            let rest = &bytes[usual.length..];
            let Some(header) = self.header(rest) else { break };
            let length = self.kind.record_header + header.captured as usize;
            let is_near = last_s.abs_diff(header.seconds) <= Self::NEAR;
            if !is_near || !self.is_plausible(header) || begins_file(rest) {
                break;
            }
            let Some(data) = rest.get(self.kind.record_header..length) else { break };
            let time_ns = self.time_ns(header);
            if time_ns >= limit_ns {
                break;
            }
            each(&Frame { time_ns, link: self.link, wire_len: header.wire_len, data });
            last_s = header.seconds;
            self.add_recent(last_s);
            usual = Usual {
                count: usual.count + 1,
                length: usual.length + length,
                last_length: length,
                last_ns: time_ns,
            };
        }
        usual
    }

    /// Moves the window back to the header of a file that the last record covers: the file before
    /// it was cut. Returns whether there is one.
    pub(crate) fn return_to_file(&self, window: &mut Window, damages: &mut Damages) -> bool {
        let (bytes, record) = window.behind();
        let Some(at) = (1..record).find(|at| begins_file(&bytes[*at..])) else { return false };
        window.rewind(record - at);
        damages.add(Damage::before_file(window.offset(), at));
        true
    }

    /// Moves the window to the header of a file that begins inside a record's header: the file
    /// before it was cut there. Returns whether there is one.
    fn skip_to_file(&self, window: &mut Window, damages: &mut Damages) -> std::io::Result<bool> {
        let header = self.kind.record_header;
        // What begins at its end has to be complete.
        let bytes = window.fill_to(header + 12)?;
        let mut within = 1..header.min(bytes.len());
        let Some(at) = within.find(|at| begins_file(&bytes[*at..])) else { return Ok(false) };
        damages.add(Damage::before_file(window.offset() + at as u64, at));
        window.consume(at as u64);
        window.settle()?;
        Ok(true)
    }

    /// Returns the seconds of the record with this number, which is one of the last ones.
    fn recent(&self, record: usize) -> Option<u32> {
        self.recent[record % self.recent.len()]
    }

    fn add_recent(&mut self, seconds: u32) {
        self.recent[self.records % self.recent.len()] = Some(seconds);
        self.records += 1;
    }

    #[inline]
    fn header(&self, bytes: &[u8]) -> Option<Header> {
        // Of 16 bytes at least.
        let bytes: &[u8; 16] = bytes.get(..self.kind.record_header)?.first_chunk()?;
        let (first, second) = (self.order.u32(bytes, 8)?, self.order.u32(bytes, 12)?);
        let (captured, wire_len) = match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::WireFirst => (second, first),
            Lengths::Either => (first.min(second), first.max(second)),
        };
        Some(Header {
            seconds: self.order.u32(bytes, 0)?,
            fraction: self.order.u32(bytes, 4)?,
            captured,
            wire_len,
        })
    }

    /// Returns the record with this header, and up to `captured` bytes of its packet.
    fn located(
        &self,
        header: Header,
        window: &mut Window,
        captured: u32,
    ) -> std::io::Result<Located> {
        let wanted = self.kind.record_header + captured as usize;
        let there = window.fill_to(wanted)?.len().min(wanted);
        Ok(Located {
            time_ns: Some(self.time_ns(header)),
            link: self.link,
            wire_len: header.wire_len,
            data: self.kind.record_header..there,
            record_len: wanted as u64,
        })
    }

    fn time_ns(&self, header: Header) -> u64 {
        let (seconds, fraction) = (u64::from(header.seconds), u64::from(header.fraction));
        seconds * 1_000_000_000 + fraction * self.kind.unit_ns
    }

    /// Begins the search for the record after a damaged one. Returns the latter if only its length
    /// is damaged.
    fn begin_search(
        &mut self,
        header: Header,
        window: &mut Window,
    ) -> std::io::Result<Option<Located>> {
        let is_packet = !header.is_zero() && self.is_near(header) && self.has_fraction(header);
        let captured = header.captured.min(header.wire_len).min(self.longest);
        let located = if is_packet { Some(self.located(header, window, captured)?) } else { None };
        let offset = window.offset();
        let length = self.kind.record_header as u64 + u64::from(header.captured);
        self.search = Some(match header.is_zero() {
            true => Search { offset, kind: DamageKind::Zeros, claimed_end: None },
            false => Search {
                offset,
                kind: DamageKind::Length(u64::from(header.captured)),
                claimed_end: Some(offset + length),
            },
        });
        window.retain(0);
        if located.is_none() {
            window.consume(1);
        }
        // The search begins right after the header.
        let searched_from = self.kind.record_header as u64;
        Ok(located.map(|located| Located { record_len: searched_from, ..located }))
    }

    /// Advances the window to the next plausible record, or to another file. Returns whether there
    /// is one.
    fn find_record(&self, window: &mut Window, search: Search) -> std::io::Result<bool> {
        loop {
            if !window.settle()? {
                return Ok(false);
            }
            let length = window.fill_to(self.kind.record_header)?.len();
            if length < self.kind.record_header {
                window.consume(length as u64);
                window.settle()?;
                return Ok(false);
            }
            let bytes = window.data();
            let headers = bytes.len() - self.kind.record_header + 1;
            let high = self.high_byte();
            let is_begin = |at: &usize| {
                let bytes = &bytes[*at..];
                bytes[high] == 0 && self.is_record(bytes) || begins_file(bytes)
            };
            let Some(at) = (0..headers).find(is_begin) else {
                window.consume(headers as u64);
                window.spend(headers)?;
                continue;
            };
            window.consume(at as u64);
            window.settle()?;
            window.spend(at)?;
            if begins_file(window.data()) || self.is_confirmed(window, search)? {
                return Ok(true);
            }
            window.consume(1);
        }
    }

    /// Returns the offset of a byte that is 0 in each plausible header: the highest one of the
    /// captured length, which is below 2^24. This is the first test of each byte of a search.
    const fn high_byte(&self) -> usize {
        match (self.lengths, self.order) {
            (Lengths::CapturedFirst | Lengths::Either, Order::Big) => 8,
            (Lengths::CapturedFirst | Lengths::Either, Order::Little) => 11,
            (Lengths::WireFirst, Order::Big) => 12,
            (Lengths::WireFirst, Order::Little) => 15,
        }
    }

    /// Returns whether as many plausible records as necessary, or the end of the source, follow the
    /// one at the beginning of the window.
    fn is_confirmed(&self, window: &mut Window, search: Search) -> std::io::Result<bool> {
        let Some(mut header) = self.header(window.data()) else { return Ok(false) };
        if search.claimed_end == Some(window.offset()) {
            return Ok(true);
        }
        let necessary = if self.is_near(header) { 1 } else { Self::CHAIN };
        let mut at = 0;
        for seen in 0..necessary {
            at += self.kind.record_header + header.captured as usize;
            let bytes = window.fill_to(at + self.kind.record_header)?;
            let Some(next) = bytes.get(at..) else { return Ok(seen > 0) };
            if next.is_empty() || begins_file(next) {
                return Ok(true);
            }
            header = match self.header(next) {
                // The window or the source ends.
                None => return Ok(seen > 0),
                Some(_) if !self.is_record(next) => return Ok(false),
                Some(header) => header,
            };
        }
        Ok(true)
    }

    /// Returns whether a plausible header is at the beginning of these bytes.
    fn is_record(&self, bytes: &[u8]) -> bool {
        self.header(bytes).is_some_and(|header| self.is_plausible(header))
    }

    /// Returns whether a record with a packet may have the lengths and the fraction of this header.
    fn is_plausible(&self, header: Header) -> bool {
        (1..=self.longest).contains(&header.captured)
            && (header.captured..=Window::MAX as u32).contains(&header.wire_len)
            && self.has_fraction(header)
    }

    /// Returns whether the fraction of a second is below one.
    fn has_fraction(&self, header: Header) -> bool {
        u64::from(header.fraction) * self.kind.unit_ns < 1_000_000_000
    }

    /// Returns whether the time of a record is near that of one of the last records, if there are
    /// any.
    fn is_near(&self, header: Header) -> bool {
        let mut recent = self.recent.iter().flatten();
        self.records == 0 || recent.any(|last| last.abs_diff(header.seconds) <= Self::NEAR)
    }
}

impl Header {
    const fn is_zero(self) -> bool {
        self.seconds == 0 && self.fraction == 0 && self.captured == 0 && self.wire_len == 0
    }
}
