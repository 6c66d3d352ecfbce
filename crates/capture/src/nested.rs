//! Files inside a file: captures that were concatenated after one that was cut, or parts of a
//! capture in packets.
//!
//! ```text
//!     │ record, cut │ file │ record │ record │ record │ …       a file: its records go on
//!     │ record: │ … │ file │ record │ rec│ │ record │ …         a packet with a part of a file
//!     └──── claimed length, and behind it ─┘
//! ```
//!
//! The header of a file is no proof: a packet may have transferred one. But its records end with
//! the packet, in whose place more records than a packet can hold follow the header of a file.

use std::io;

use super::blocks::{self, KNOWN};
use super::layout::Layout;
use super::magic::{SECTION, begins_file, section_order};
use super::order::Order;
use super::window::Window;

/// The number of records that prove a file: more than packets of usual length hold.
pub(crate) const PROOF: usize = 32;

/// The length of [enough](ENOUGH) records that proves a file: more than a packet holds.
const LONGEST_PACKET: usize = 1 << 16;

/// The number of headers without which no records are proved, however long these are.
const ENOUGH: usize = 2;

/// The records of a file.
enum Records {
    /// All of them are plausible, and near in time.
    Usual(Layout),
    /// Unusual ones are near in time.
    Pcap(Layout),
    Pcapng(Order),
}

/// The result of following records.
enum Followed {
    /// Enough of them, or another file after them.
    Proved,
    /// Something else follows.
    Refuted,
    /// This number of bytes is necessary. There are some headers; one more if the bytes end with a
    /// record, which proves as much.
    Missing { bytes: usize, headers: usize },
}

/// Returns whether a file begins `back` bytes before the window, which are retained. If one of its
/// records begins at `end`, counted from the first byte of the file, it is none: a record of the
/// file around it begins there, too.
pub(crate) fn is_file(window: &mut Window, back: usize, end: Option<usize>) -> io::Result<bool> {
    Ok(proved(window, back, |bytes| follow_file(bytes, end))?.is_some())
}

/// Returns whether records of this layout begin `back` bytes before the window, which are retained,
/// and go on behind its beginning, where none begins, or up to it, if the source ends there: at
/// least two, or one that ends with the source.
pub(crate) fn are_records(window: &mut Window, back: usize, layout: Layout) -> io::Result<bool> {
    let records = Records::Usual(layout);
    let end = (!window.data().is_empty()).then_some(back);
    let headers = proved(window, back, |bytes| follow(&records, bytes, 0, end))?;
    Ok(headers.is_some_and(|headers| headers >= ENOUGH))
}

/// Follows the records that begin `back` bytes before the window until they are proved, and returns
/// the number of their headers; `None` if they are refuted.
fn proved(
    window: &mut Window,
    back: usize,
    follow: impl Fn(&[u8]) -> Followed,
) -> io::Result<Option<usize>> {
    loop {
        match follow(window.from(back)) {
            Followed::Proved => return Ok(Some(PROOF)),
            Followed::Refuted => return Ok(None),
            Followed::Missing { bytes, headers } => {
                let wanted = bytes.saturating_sub(back);
                // At the end of the source, no record is missing.
                if window.fill_to(wanted)?.len() < wanted {
                    return Ok(Some(headers));
                }
            }
        }
    }
}

/// Returns whether a file begins with these bytes, which are the last ones of the source.
pub(crate) fn is_file_to_end(bytes: &[u8]) -> bool {
    !matches!(follow_file(bytes, None), Followed::Refuted)
}

/// Returns whether these bytes, which are the last ones of the source, are blocks of a section:
/// one is complete, or more.
pub(crate) fn are_blocks_to_end(order: Order, bytes: &[u8]) -> bool {
    match follow(&Records::Pcapng(order), bytes, 0, None) {
        Followed::Proved => true,
        Followed::Refuted => false,
        Followed::Missing { headers, .. } => headers > 0,
    }
}

/// Follows the records of what begins like a file.
fn follow_file(bytes: &[u8], end: Option<usize>) -> Followed {
    if let Some(order) = section_order(bytes) {
        return follow(&Records::Pcapng(order), bytes, 0, end);
    }
    if bytes.len() < Layout::FILE_HEADER {
        return Followed::Missing { bytes: Layout::FILE_HEADER, headers: 0 };
    }
    match Layout::of(bytes) {
        Some(layout) => follow(&Records::Pcap(layout), bytes, layout.file_header(), end),
        None => Followed::Refuted,
    }
}

fn follow(records: &Records, bytes: &[u8], first: usize, end: Option<usize>) -> Followed {
    let (mut at, mut last) = (first, None);
    for complete in 0..PROOF {
        if Some(at) == end {
            return Followed::Refuted;
        }
        let rest = bytes.get(at..).unwrap_or_default();
        let is_long = at >= LONGEST_PACKET && complete >= ENOUGH;
        if is_long || at > 0 && begins_file(rest) {
            break;
        }
        let length = match records {
            Records::Usual(layout) => record(*layout, rest, &mut last, |plausible, near| {
                plausible && (near || complete == 0)
            }),
            Records::Pcap(layout) => {
                record(*layout, rest, &mut last, |plausible, near| plausible || near)
            }
            Records::Pcapng(order) => block(*order, rest),
        };
        match length {
            Some(Length::Known(length)) => at += length,
            Some(Length::Missing(length)) => {
                let headers = complete + usize::from(complete > 0 && at == bytes.len());
                return Followed::Missing { bytes: at + length, headers };
            }
            None => return Followed::Refuted,
        }
    }
    Followed::Proved
}

/// The length of a record.
enum Length {
    Known(usize),
    /// This number of bytes is necessary.
    Missing(usize),
}

/// Returns the length of the record at the beginning of these bytes; `None` if it is impossible, or
/// not `accepted` by whether it is plausible, and near the `last` one in time.
fn record(
    layout: Layout,
    bytes: &[u8],
    last: &mut Option<u32>,
    accepted: impl Fn(bool, bool) -> bool,
) -> Option<Length> {
    let Some(header) = layout.header(bytes) else {
        return Some(Length::Missing(layout.record_header()));
    };
    let is_near = last.replace(header.seconds).is_some_and(|last| header.is_near(last));
    let is_possible = header.captured <= layout.longest && !header.is_zero();
    let is_accepted = is_possible && accepted(layout.is_plausible(header), is_near);
    is_accepted.then(|| Length::Known(layout.length(header)))
}

/// Returns the length of the block at the beginning of these bytes; `None` if its two lengths
/// differ, or if it is not complete and of an unknown type.
fn block(order: Order, bytes: &[u8]) -> Option<Length> {
    const HEAD: usize = 8;
    let (Some(kind), Some(length)) = (order.u32(bytes, 0), order.u32(bytes, 4)) else {
        return Some(Length::Missing(HEAD));
    };
    if !(12..=Window::MAX as u32).contains(&length) {
        return None;
    }
    if let Some(size) = blocks::size(bytes, length, order) {
        return Some(Length::Known(size));
    }
    let wanted = (length as usize).next_multiple_of(4);
    let is_begin = bytes.len() < wanted && (kind == SECTION || KNOWN.contains(&kind));
    is_begin.then_some(Length::Missing(wanted))
}
