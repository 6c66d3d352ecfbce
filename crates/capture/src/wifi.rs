//! Wireless frames (802.11) and the capture headers before them.

use super::ethernet;
use super::link::IpAt;
use super::order::Order;
use super::reject::Reject;

/// Length of the header of the Prism driver.
pub(crate) const PRISM: usize = 144;

/// Radiotap: a header with its length.
pub(crate) fn radiotap(bytes: &[u8]) -> Result<IpAt, Reject> {
    let length = Order::Little.u16(bytes, 2).ok_or(Reject::LinkCut)?;
    frame(bytes, length.into())
}

/// Finds the IP header in a data frame at `at`: its header has a length by its kind, followed by
/// LLC and SNAP.
///
/// Frames without data, encrypted ones, and aggregates of several packets are not IP.
pub(crate) fn frame(bytes: &[u8], at: usize) -> Result<IpAt, Reject> {
    const HEADER: usize = 24;
    let header = bytes.get(at..).unwrap_or_default();
    if header.len() < HEADER {
        return Err(Reject::LinkCut);
    }
    let (kind, flags) = (header[0], header[1]);
    let is_data = kind & 0x0c == 0x08;
    let is_empty = kind & 0x40 != 0;
    let is_encrypted = flags & 0x40 != 0;
    if !is_data || is_empty || is_encrypted {
        return Err(Reject::NotIp);
    }
    let fourth_address = if flags & 0x03 == 0x03 { 6 } else { 0 };
    let quality_of_service = if kind & 0x80 == 0 { 0 } else { 2 };
    let (ether_type, offset) =
        ethernet::snap(bytes, at + HEADER + fourth_address + quality_of_service)?;
    ethernet::payload(bytes, ether_type, offset)
}
