//! Ethernet, and headers between it and IP.
//!
//! ```text
//!     │ Ethernet │ VLAN │ VLAN │ MPLS │ MPLS │ IP            any number, in any order:
//!     │ Ethernet │ PPPoE │ PPP │ IP                          each has the type of the next
//!     │ Ethernet │ length │ LLC, SNAP │ IP
//!     │ Ethernet │ MPLS │ control word │ Ethernet │ IP
//! ```

use etherparse::{EtherType, Ethernet2HeaderSlice, SingleVlanHeaderSlice};

use super::link::{IpAt, Version, ppp_payload, raw};
use super::order::Order;
use super::reject::Reject;

pub(crate) const MPLS: EtherType = EtherType(0x8847);
pub(crate) const PPPOE: EtherType = EtherType(0x8864);
const MPLS_MULTICAST: EtherType = EtherType(0x8848);
/// Provider bridging before its standard had a number.
const OLD_PROVIDER_BRIDGING: EtherType = EtherType(0x9200);
const BACKBONE_BRIDGING: EtherType = EtherType(0x88e7);
/// Smaller values of the type field are the length of an 802.3 frame.
const FIRST_TYPE: u16 = 1536;
/// An LLC header of SNAP, and a SNAP header of ether types.
const SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];

/// Finds the IP header in an Ethernet frame.
pub(crate) fn frame(frame: &[u8]) -> Result<IpAt, Reject> {
    let header = Ethernet2HeaderSlice::from_slice(frame).map_err(|_| Reject::LinkCut)?;
    payload(frame, header.ether_type(), header.slice().len())
}

/// Returns the ether type at an offset.
pub(crate) fn type_at(frame: &[u8], at: usize) -> Result<EtherType, Reject> {
    Order::Big.u16(frame, at).map(EtherType).ok_or(Reject::LinkCut)
}

/// Finds the IP header after an ether type, from `offset` on.
pub(crate) fn payload(
    frame: &[u8],
    mut ether_type: EtherType,
    mut offset: usize,
) -> Result<IpAt, Reject> {
    // Each iteration advances `offset`, so the loop ends.
    loop {
        (ether_type, offset) = match ether_type {
            EtherType::IPV4 => return Ok(IpAt { version: Version::V4, offset }),
            EtherType::IPV6 => return Ok(IpAt { version: Version::V6, offset }),
            EtherType::VLAN_TAGGED_FRAME
            | EtherType::PROVIDER_BRIDGING
            | EtherType::VLAN_DOUBLE_TAGGED_FRAME
            | OLD_PROVIDER_BRIDGING => vlan(frame, offset)?,
            MPLS | MPLS_MULTICAST => match after_labels(frame, offset)? {
                Labelled::Ip(found) => return Ok(found),
                Labelled::Ethernet(at) => inner_ethernet(frame, at)?,
            },
            PPPOE => ppp_payload(frame, offset + 6)?,
            BACKBONE_BRIDGING => inner_ethernet(frame, offset + 4)?,
            EtherType(0..FIRST_TYPE) => snap(frame, offset)?,
            _ => return Err(Reject::NotIp),
        };
    }
}

fn vlan(frame: &[u8], offset: usize) -> Result<(EtherType, usize), Reject> {
    let tag = SingleVlanHeaderSlice::from_slice(frame.get(offset..).unwrap_or_default())
        .map_err(|_| Reject::LinkCut)?;
    Ok((tag.ether_type(), offset + tag.slice().len()))
}

/// Reads an Ethernet header inside the frame.
fn inner_ethernet(frame: &[u8], at: usize) -> Result<(EtherType, usize), Reject> {
    let header = Ethernet2HeaderSlice::from_slice(frame.get(at..).unwrap_or_default())
        .map_err(|_| Reject::LinkCut)?;
    Ok((header.ether_type(), at + header.slice().len()))
}

/// Reads LLC with SNAP, which has an ether type; other LLC carries no IP that matters.
pub(crate) fn snap(frame: &[u8], offset: usize) -> Result<(EtherType, usize), Reject> {
    if !frame.get(offset..).unwrap_or_default().starts_with(&SNAP) {
        return Err(Reject::NotIp);
    }
    let at = offset + SNAP.len();
    Ok((type_at(frame, at)?, at + 2))
}

/// The payload of MPLS, which has no type field: guessed from the first half byte, as routers do.
enum Labelled {
    Ip(IpAt),
    /// The offset of an Ethernet header: a pseudo-wire.
    Ethernet(usize),
}

fn after_labels(frame: &[u8], mut offset: usize) -> Result<Labelled, Reject> {
    loop {
        let label = Order::Big.u32(frame, offset).ok_or(Reject::LinkCut)?;
        offset += 4;
        let bottom_of_stack = label & 0x100 != 0;
        if bottom_of_stack {
            break;
        }
    }
    match frame.get(offset).ok_or(Reject::LinkCut)? >> 4 {
        0 => Ok(Labelled::Ethernet(offset + 4)),
        4 | 6 => raw(frame, offset).map(Labelled::Ip),
        _ => Err(Reject::NotIp),
    }
}
