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
//! If no record of plausible lengths follows one that covers plausible ones, its length is damaged:
//! reading continues with those. No bytes are returned to twice, so this is linear, too; a second
//! damage among covered records ends in a search.
//!
//! A record of an impossible length, or of zeros, is damaged, and so is one of a far time that no
//! others follow. The next record is then searched for byte by byte: a header with plausible
//! lengths, and a second header behind its packet. If its time is far from the times of the last
//! records, three more headers have to follow that are near in time, or sixteen with any times: no
//! wrong times make the search reject all records. The search is linear in the bytes that it
//! passes.
//!
//! Format: draft-ietf-opsawg-pcap.

use std::io;

use super::damage::{Damage, DamageKind, Damages, Search};
use super::layout::{Header, Layout};
use super::magic::{begins_file, may_begin_file};
use super::nested::{are_records, is_file};
use super::record::{End, Frame, Located, Next};
use super::scan::Scan;
use super::window::Window;

/// A pcap file after its header.
pub(crate) struct Pcap {
    layout: Layout,
    /// Seconds of the last records.
    recent: [Option<u32>; 8],
    /// Number of records, of which the last one has this number less one.
    records: usize,
    /// Whether a record had unusual lengths or an unusual fraction: some programs write them.
    has_unusual: bool,
    search: Option<Search>,
    /// The scans for files and for records that other records cover.
    files: Scan,
    covered: Scan,
}

/// The beginning that a record with a damaged length covers.
pub(crate) enum Covered {
    File,
    Record,
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

impl Pcap {
    /// The number of headers, near in time, that confirm a record far from the last ones.
    const CHAIN: usize = 3;

    /// The number of headers with any times that confirm such a record.
    const LONG_CHAIN: usize = 16;

    /// Opens a file with this header, if it is a pcap. Returns it with the length of the header.
    pub(crate) fn open(header: &[u8]) -> Option<(Self, usize)> {
        let layout = Layout::of(header)?;
        let pcap = Self {
            layout,
            recent: [None; 8],
            records: 0,
            has_unusual: false,
            search: None,
            files: Scan::default(),
            covered: Scan::default(),
        };
        Some((pcap, layout.file_header()))
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
            let bytes = window.fill_to(self.layout.record_header())?;
            if bytes.is_empty() {
                return Err(End::Whole);
            }
            if begins_file(bytes) {
                return Ok(Next::File);
            }
            let Some(header) = self.layout.header(bytes) else {
                if self.return_to_record(window, damages)? {
                    continue;
                }
                return Err(End::Cut);
            };
            let is_usual = self.layout.is_plausible(header) && self.is_near(header);
            if !is_usual && self.return_to_file(window, damages)? {
                return Ok(Next::File);
            }
            let is_refuted =
                !self.layout.is_possible(header) || !is_usual && self.is_refuted(header, window)?;
            let is_doubtful = is_refuted || !self.layout.has_lengths(header);
            if is_doubtful && self.return_to_record(window, damages)? {
                continue;
            }
            if is_refuted {
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
            self.has_unusual |= !self.layout.is_plausible(header);
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
        let Some(Some(last_s)) = self.records.checked_sub(1).map(|last| self.recent(last)) else {
            return usual;
        };
        // The second of the last record, as far as its bytes have been examined.
        let (mut last_s, mut examined_s, mut may_be_file) = (last_s, None, true);
        while usual.count < most && self.search.is_none() {
            let rest = &bytes[usual.length..];
            let Some(header) = self.layout.header(rest) else { break };
            let length = self.layout.length(header);
            // Records of one second begin with the same bytes.
            if examined_s != Some(header.seconds) {
                if !header.is_near(last_s) {
                    break;
                }
                (examined_s, may_be_file) = (Some(header.seconds), may_begin_file(rest));
            }
            if !self.layout.is_plausible(header) || may_be_file && begins_file(rest) {
                break;
            }
            let Some(data) = rest.get(self.layout.record_header()..length) else { break };
            let time_ns = self.layout.time_ns(header);
            if time_ns >= limit_ns {
                break;
            }
            each(&Frame { time_ns, link: self.layout.link, wire_len: header.wire_len, data });
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

    /// Returns from the end of the source, inside a record, to what this record covers.
    pub(crate) fn return_from_end(
        &mut self,
        window: &mut Window,
        damages: &mut Damages,
    ) -> Result<Covered, End> {
        if self.return_to_file(window, damages)? {
            return Ok(Covered::File);
        }
        let is_found = self.return_to_record(window, damages)?;
        is_found.then_some(Covered::Record).ok_or(End::Cut)
    }

    /// Moves the window back to the header of a file that the last record covers: the file before
    /// it was cut. Returns whether there is one.
    fn return_to_file(&mut self, window: &mut Window, damages: &mut Damages) -> io::Result<bool> {
        let record = window.behind();
        while let Some(at) = self.files.find(window, record, 1..record, begins_file)? {
            let back = record - at;
            // A packet may have a part of a file: then the records go on behind it.
            let goes_on = self.layout.is_record(window.data()) && self.goes_on(window)?;
            if is_file(window, back, goes_on.then_some(back))? {
                window.rewind(back);
                damages.add(Damage::before_file(window.offset(), at));
                return Ok(true);
            }
            self.files.reject(window)?;
        }
        Ok(false)
    }

    /// Moves the window back to a record that the last record covers: the length of the latter is
    /// damaged. Returns whether there is one, from which records go on.
    fn return_to_record(&mut self, window: &mut Window, damages: &mut Damages) -> io::Result<bool> {
        let record = window.behind();
        let covered = self.layout.record_header()..record;
        let Some(damaged) = self.layout.header(window.from(record)) else { return Ok(false) };
        let (layout, recent, high) = (self.layout, self.recent, self.layout.high_byte());
        let is_begin = |bytes: &[u8]| {
            bytes.get(high) == Some(&0)
                && layout
                    .header(bytes)
                    .is_some_and(|header| layout.is_plausible(header) && is_recent(&recent, header))
        };
        while let Some(at) = self.covered.find(window, record, covered.clone(), is_begin)? {
            if are_records(window, record - at, layout)? {
                let offset = window.offset() - record as u64;
                window.rewind(record - at);
                let kind = DamageKind::Length(u64::from(damaged.captured));
                damages.add(Damage { offset, kind, resumed: Some(window.offset()) });
                return Ok(true);
            }
            self.covered.reject(window)?;
        }
        Ok(false)
    }

    /// Moves the window to the header of a file that begins inside a record's header: the file
    /// before it was cut there. Returns whether there is one.
    fn skip_to_file(&self, window: &mut Window, damages: &mut Damages) -> io::Result<bool> {
        let header = self.layout.record_header();
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

    /// Returns the record with this header, and up to `captured` bytes of its packet.
    fn located(&self, header: Header, window: &mut Window, captured: u32) -> io::Result<Located> {
        let wanted = self.layout.record_header() + captured as usize;
        let there = window.fill_to(wanted)?.len().min(wanted);
        Ok(Located {
            time_ns: Some(self.layout.time_ns(header)),
            link: self.layout.link,
            wire_len: header.wire_len,
            data: self.layout.record_header()..there,
            record_len: wanted as u64,
        })
    }

    /// Begins the search for the record after a damaged one. Returns the latter if only its length
    /// is damaged.
    fn begin_search(&mut self, header: Header, window: &mut Window) -> io::Result<Option<Located>> {
        let is_packet =
            !header.is_zero() && self.is_near(header) && self.layout.has_fraction(header);
        let captured = header.captured.min(header.wire_len).min(self.layout.longest);
        let located = if is_packet { Some(self.located(header, window, captured)?) } else { None };
        let offset = window.offset();
        let length = self.layout.record_header() as u64 + u64::from(header.captured);
        let (kind, claimed_end) = match header.is_zero() {
            true => (DamageKind::Zeros, None),
            false if self.layout.is_possible(header) => (DamageKind::Time, None),
            false => (DamageKind::Length(u64::from(header.captured)), Some(offset + length)),
        };
        self.search = Some(Search { offset, kind, claimed_end });
        window.retain(0);
        if located.is_none() {
            window.consume(1);
        }
        // The search begins right after the header.
        let searched_from = self.layout.record_header() as u64;
        Ok(located.map(|located| Located { record_len: searched_from, ..located }))
    }

    /// Advances the window to the next plausible record, or to another file. Returns whether there
    /// is one.
    fn find_record(&self, window: &mut Window, search: Search) -> io::Result<bool> {
        loop {
            if !window.settle()? {
                return Ok(false);
            }
            let length = window.fill_to(self.layout.record_header())?.len();
            if length < self.layout.record_header() {
                window.consume(length as u64);
                window.settle()?;
                return Ok(false);
            }
            let bytes = window.data();
            let headers = bytes.len() - self.layout.record_header() + 1;
            let high = self.layout.high_byte();
            let is_begin = |at: &usize| {
                let bytes = &bytes[*at..];
                bytes[high] == 0 && self.layout.is_record(bytes) || begins_file(bytes)
            };
            let Some(at) = (0..headers).find(is_begin) else {
                window.consume(headers as u64);
                window.spend(headers)?;
                continue;
            };
            window.consume(at as u64);
            window.settle()?;
            window.spend(at)?;
            let is_found = match begins_file(window.data()) {
                true => is_file(window, 0, None)?,
                false => search.claimed_end == Some(window.offset()) || self.goes_on(window)?,
            };
            if is_found {
                return Ok(true);
            }
            window.consume(1);
        }
    }

    /// Returns whether the record at the beginning of the window, which is possible, is none: its
    /// time is far from the last ones, and some bytes behind it are no header of a record, before
    /// one of a recent time or the end of the source.
    fn is_refuted(&self, header: Header, window: &mut Window) -> io::Result<bool> {
        if self.is_near(header) {
            return Ok(false);
        }
        let is_unusual = self.has_unusual && !self.layout.is_plausible(header);
        let necessary = if is_unusual { Self::LONG_CHAIN } else { Self::CHAIN };
        let mut following = Following::new(self.layout, header);
        for nth in 0..necessary {
            let before = following.header;
            let next = match following.next(window)? {
                Behind::Header(next) => next,
                // What the record covers is searched.
                Behind::Nothing => return Ok(nth == 0),
                Behind::End | Behind::Part => return Ok(false),
            };
            if self.is_recent(next) {
                return Ok(false);
            }
            let may_follow = match is_unusual {
                true => self.layout.is_possible(next) && next.is_near(before.seconds),
                false => self.layout.is_plausible(next),
            };
            if !may_follow {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether as many plausible records as necessary, or the end of the source, follow the
    /// one at the beginning of the window.
    fn goes_on(&self, window: &mut Window) -> io::Result<bool> {
        let Some(header) = self.layout.header(window.data()) else { return Ok(false) };
        let is_known = self.is_recent(header);
        let necessary = if is_known { 1 } else { Self::CHAIN };
        let mut near = 0;
        let mut following = Following::new(self.layout, header);
        for _ in 0..Self::LONG_CHAIN {
            let before = following.header;
            let next = match following.next(window)? {
                Behind::Header(next) if !self.layout.is_plausible(next) => return Ok(false),
                Behind::Header(next) => next,
                Behind::Part | Behind::Nothing => return Ok(near > 0),
                Behind::End => return Ok(true),
            };
            near += usize::from(is_known || next.is_near(before.seconds) || self.is_recent(next));
            if near == necessary {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Returns whether the time of a record is near that of one of the last records, if there are
    /// any.
    fn is_near(&self, header: Header) -> bool {
        self.records == 0 || self.is_recent(header)
    }

    fn is_recent(&self, header: Header) -> bool {
        is_recent(&self.recent, header)
    }
}

fn is_recent(recent: &[Option<u32>], header: Header) -> bool {
    recent.iter().flatten().any(|last| header.is_near(*last))
}

/// The headers of the records that follow one, as far as the window can hold them.
struct Following {
    layout: Layout,
    /// The last header, of the record that begins at `at` in the window.
    header: Header,
    at: usize,
}

/// The bytes behind a record.
enum Behind {
    Header(Header),
    /// The end of the source, or another file.
    End,
    /// A part of a header, before the end.
    Part,
    /// Nothing: the record is cut.
    Nothing,
}

impl Following {
    /// Begins behind the record with this header, at the beginning of the window.
    const fn new(layout: Layout, header: Header) -> Self {
        Self { layout, header, at: 0 }
    }

    fn next(&mut self, window: &mut Window) -> io::Result<Behind> {
        self.at += self.layout.length(self.header);
        let bytes = window.fill_to(self.at + self.layout.record_header())?;
        let Some(rest) = bytes.get(self.at..) else { return Ok(Behind::Nothing) };
        if rest.is_empty() || begins_file(rest) {
            return Ok(Behind::End);
        }
        let Some(next) = self.layout.header(rest) else { return Ok(Behind::Part) };
        self.header = next;
        Ok(Behind::Header(next))
    }
}
