//! Headers between Ethernet and IP as data.
//!
//! Ether types: IEEE RA and Wireshark's `etypes.h`.

use etherparse::EtherType;

use super::step::Next;

pub(crate) const MPLS: EtherType = EtherType(0x8847);
pub(crate) const MPLS_MULTICAST: EtherType = EtherType(0x8848);
pub(crate) const PPPOE: EtherType = EtherType(0x8864);
pub(crate) const MACSEC: EtherType = EtherType(0x88e5);
pub(crate) const SERVICE_HEADER: EtherType = EtherType(0x894f);
pub(crate) const TRILL: EtherType = EtherType(0x22f3);
pub(crate) const REALTEK: EtherType = EtherType(0x8899);
/// Smaller values of the type field are the length of an 802.3 frame.
pub(crate) const FIRST_TYPE: u16 = 1536;
/// Length of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;

/// A header of fixed length that an ether type announces.
pub(crate) struct Tag {
    pub(crate) ether_type: u16,
    /// Length of the header without the ether type that announces it, and with its own.
    pub(crate) length: usize,
    /// Whether it begins with the tag control information of a VLAN.
    pub(crate) is_vlan: bool,
    pub(crate) then: Then,
}

/// The content behind a [`Tag`].
#[derive(Clone, Copy)]
pub(crate) enum Then {
    /// By the last two bytes of the header: an ether type, or a length of 802.3.
    EtherType,
    Header(Next),
}

const fn vlan(ether_type: u16) -> Tag {
    Tag { ether_type, length: 4, is_vlan: true, then: Then::EtherType }
}

const fn typed(ether_type: u16, length: usize) -> Tag {
    Tag { ether_type, length, is_vlan: false, then: Then::EtherType }
}

const fn before(ether_type: u16, length: usize, next: Next) -> Tag {
    Tag { ether_type, length, is_vlan: false, then: Then::Header(next) }
}

/// Headers of fixed length. `ethernet.rs` reads those of variable length: MPLS, MACsec, NSH, TRILL
/// and Realtek's.
pub(crate) const TAGS: [Tag; 18] = [
    // 802.1Q, 802.1ad, and provider bridging before its standard had a number.
    vlan(0x8100),
    vlan(0x88a8),
    vlan(0x9100),
    vlan(0x9200),
    vlan(0x9300),
    // Fine-grained labels of TRILL, RFC 7172.
    vlan(0x893b),
    // Cisco: VN-Tag of virtual interfaces, CMD with a security group, FabricPath.
    typed(0x8926, 6),
    typed(0x8909, 8),
    before(0x8903, 2, Next::Ethernet),
    // E-TAG of port extenders, 802.1BR.
    typed(0x893f, 8),
    // HSR, IEC 62439-3.
    typed(0x892f, 6),
    // R-TAG of redundant streams, 802.1CB.
    typed(0xf1c1, 6),
    // Marvell's tag of a switch port.
    typed(0xdada, 8),
    // Backbone bridging, 802.1ah.
    before(0x88e7, 4, Next::Ethernet),
    // Transparent Ethernet bridging; NVGRE.
    before(0x6558, 0, Next::Ethernet),
    // PPP, and a session of PPPoE.
    before(0x880b, 0, Next::Ppp),
    before(0x8864, 6, Next::Ppp),
    // LLC in a jumbo frame.
    before(0x8870, 0, Next::Llc),
];
