//! Wireless frames (802.11) and the capture headers before them.
//!
//! ```text
//!     │ radiotap, AVS, Prism │ 802.11 │ 4th address │ QoS │ HT control │ pad │ LLC, SNAP │ IP
//!                                                                           │ subframe │ subframe
//! ```

use super::not_ip::{NotIp, WifiKind};
use super::order::Order;
use super::reject::Reject;
use super::span::Span;
use super::step::{Next, Step};

/// A header of LLC and SNAP with an ether type.
const SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];

/// Radiotap: a header with its length, and fields by bits.
pub(crate) fn radiotap(span: Span<'_>) -> Result<Step<'_>, Reject> {
    let length = span.u16_in(Order::Little, 2)?;
    let is_padded = radiotap_flags(span) & 0x20 != 0;
    Ok((Next::Wifi { is_padded }, span.after(length.into())?))
}

/// Returns the flags of radiotap; 0 without them.
fn radiotap_flags(span: Span<'_>) -> u8 {
    const FIRST_WORD: usize = 4;
    const TIME: u32 = 1;
    const FLAGS: u32 = 1 << 1;
    const MORE: u32 = 1 << 31;
    let word = |at: usize| span.u32_in(Order::Little, at).unwrap_or_default();
    let present = word(FIRST_WORD);
    if present & FLAGS == 0 {
        return 0;
    }
    let mut at = FIRST_WORD;
    while word(at) & MORE != 0 {
        at += 4;
    }
    at += 4;
    if present & TIME != 0 {
        // Aligned.
        at = at.next_multiple_of(8) + 8;
    }
    span.u8(at).unwrap_or_default()
}

/// The header of the Prism driver, or that of AVS, which replaced it.
pub(crate) fn prism(span: Span<'_>) -> Result<Step<'_>, Reject> {
    const LENGTH: usize = 144;
    const AVS: u32 = 0x8021_1000;
    let length = match span.u32(0)? & 0xffff_f000 {
        AVS => span.u32(4)? as usize,
        _ => LENGTH,
    };
    Ok((Next::Wifi { is_padded: false }, span.after(length)?))
}

/// Reads the header of a data frame, whose length depends on its kind.
///
/// Frames without data and encrypted ones are not IP.
pub(crate) fn header(span: Span<'_>, is_padded: bool) -> Result<Step<'_>, Reject> {
    const HEADER: usize = 24;
    const VERSION: u8 = 0x03;
    let (mut control, mut flags) = (span.u8(0)?, span.u8(1)?);
    // Controllers of Cisco swap these bytes. In the right order the version, which is 0, is first.
    if control & VERSION != 0 && flags & VERSION == 0 {
        (control, flags) = (flags, control);
    }
    let not_ip = |kind| Err(Reject::NotIp(NotIp::Wifi(kind)));
    match control & 0x0f {
        0x00 => return not_ip(WifiKind::Management),
        0x04 => return not_ip(WifiKind::Control),
        0x08 if control & 0x40 != 0 => return not_ip(WifiKind::Empty),
        0x08 => {}
        _ => return not_ip(WifiKind::Extension),
    }
    let has_fourth_address = flags & 0x03 == 0x03;
    let mut length = HEADER + if has_fourth_address { 6 } else { 0 };
    let mut quality = [0; 2];
    if control & 0x80 != 0 {
        quality = [span.u8(length)?, span.u8(length + 1)?];
        let has_ht_control = flags & 0x80 != 0;
        length += if has_ht_control { 6 } else { 2 };
    }
    if is_padded {
        length = length.next_multiple_of(4);
    }
    let body = span.after(length)?;
    let is_encrypted = flags & 0x40 != 0;
    match is_encrypted {
        true => decrypted(body).map_or_else(|| not_ip(WifiKind::Encrypted), Ok),
        false if quality[0] & 0x80 != 0 => Ok((Next::Subframes, body)),
        false if quality[1] & 0x01 != 0 => Ok((Next::Llc, after_mesh_control(body))),
        false => Ok((Next::Llc, body)),
    }
}

/// Returns the body of an encrypted frame that was decrypted before it was captured, with or
/// without the initialization vector of WEP or CCMP.
fn decrypted(body: Span<'_>) -> Option<Step<'_>> {
    let after = [0, 4, 8].into_iter().map(|length| body.skip(length));
    let found = after.into_iter().find(|rest| rest.starts_with(&SNAP));
    found.map(|rest| (Next::Llc, rest))
}

/// Skips the mesh control field, if it is one: outside of meshes its bit means something else.
fn after_mesh_control(body: Span<'_>) -> Span<'_> {
    let addresses = usize::from(body.u8(0).unwrap_or_default() & 0x03);
    let rest = body.skip(6 + 6 * addresses);
    if !body.starts_with(&SNAP) && rest.starts_with(&SNAP) { rest } else { body }
}

/// A subframe of an A-MSDU, which is an Ethernet frame with a length, and those after it.
pub(crate) struct Subframe<'a> {
    pub(crate) frame: Span<'a>,
    pub(crate) rest: Option<Span<'a>>,
}

/// Reads the first subframe.
pub(crate) fn subframe(span: Span<'_>) -> Result<Subframe<'_>, Reject> {
    const HEADER: usize = 14;
    let length = HEADER + usize::from(span.u16(HEADER - 2)?);
    let rest = span.after(length.next_multiple_of(4)).ok();
    // A check sequence may follow the last one.
    let rest = rest.filter(|rest| rest.captured().len() >= HEADER);
    Ok(Subframe { frame: span.first(length), rest })
}
