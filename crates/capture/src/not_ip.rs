//! Protocols that are not IP, by the numbers that announce them.
//!
//! Ether types: IEEE RA and Wireshark's `etypes.h`. SAPs: IEEE 802.2. PPP: IANA `ppp-numbers`.

use core::fmt;

/// A protocol other than IP, by the number that announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotIp {
    /// Of Ethernet and others.
    EtherType(u16),
    /// The destination service access point of 802.2.
    Sap(u8),
    /// The organization of a SNAP header.
    Snap(u32),
    Ppp(u16),
    /// A network layer protocol ID of frame relay or ISO.
    Nlpid(u8),
    /// An address family of BSD.
    Family(u32),
    /// A frame without data, or encrypted.
    Wifi(WifiKind),
    /// The payload of MPLS is neither IP nor Ethernet.
    Labelled,
    /// The payload of a service function chain.
    ServicePayload(u8),
    /// A record of this type in the extensible record format of Endace.
    Record(u8),
    /// One of many different protocols.
    Other,
}

/// Frames of 802.11 without readable data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WifiKind {
    Management,
    Control,
    /// Data frames without data.
    Empty,
    Encrypted,
    /// Of another version or an extension.
    Extension,
}

/// A number, and the name of its protocol.
type Name<N> = (N, &'static str);

/// Ether types of protocols that carry no IP in the clear.
const ETHER_TYPES: [Name<u16>; 54] = [
    (0x0806, "ARP"),
    (0x0842, "Wake-on-LAN"),
    (0x0bad, "VINES"),
    (0x22ea, "MSRP"),
    (0x22f0, "AVTP"),
    (0x22f4, "IS-IS"),
    (0x4305, "BATMAN"),
    (0x6001, "MOP"),
    (0x6002, "MOP"),
    (0x6003, "DECnet"),
    (0x6004, "LAT"),
    (0x8035, "RARP"),
    (0x809b, "AppleTalk"),
    (0x80f3, "AARP"),
    (0x8137, "IPX"),
    (0x8138, "IPX"),
    (0x8808, "MAC control"),
    (0x8809, "slow protocols"),
    (0x8819, "CobraNet"),
    (0x8863, "PPPoE discovery"),
    (0x886d, "ANS"),
    (0x887b, "HomePlug"),
    (0x888e, "EAPOL"),
    (0x8892, "PROFINET"),
    (0x8899, "RRCP"),
    (0x88a2, "ATA over Ethernet"),
    (0x88a4, "EtherCAT"),
    (0x88ab, "Powerlink"),
    (0x88b8, "GOOSE"),
    (0x88ba, "sampled values"),
    (0x88c7, "pre-authentication"),
    (0x88ca, "TIPC"),
    (0x88cc, "LLDP"),
    (0x88cd, "SERCOS"),
    (0x88d9, "LLTD"),
    (0x88e1, "HomePlug AV"),
    (0x88e3, "MRP"),
    (0x88e5, "MACsec"),
    (0x88f5, "MVRP"),
    (0x88f6, "MMRP"),
    (0x88f7, "PTP"),
    (0x88f8, "NCSI"),
    (0x88fb, "PRP"),
    (0x8902, "CFM"),
    (0x8906, "FCoE"),
    (0x890d, "802.11 management"),
    (0x8914, "FIP"),
    (0x8915, "RoCE"),
    (0x893a, "IEEE 1905"),
    (0x8940, "ECP"),
    (0x8946, "TRILL channel"),
    (0x9000, "loopback"),
    (0x9003, "loop detection"),
    (0xcafe, "LLT"),
];

/// Service access points of protocols that carry no IP.
const SAPS: [Name<u8>; 8] = [
    (0x00, "null"),
    (0x04, "SNA"),
    (0x42, "spanning tree"),
    (0x7e, "X.25"),
    (0xbc, "VINES"),
    (0xe0, "IPX"),
    (0xf0, "NetBIOS"),
    (0xff, "IPX"),
];

/// Organizations whose SNAP headers announce protocols of switches, and no IP.
const ORGANIZATIONS: [Name<u32>; 6] = [
    (0x00_000c, "Cisco"),
    (0x00_0081, "Nortel"),
    (0x00_80c2, "802.1"),
    (0x00_e02b, "Extreme"),
    (0x00_e052, "Foundry"),
    (0x08_0007, "AppleTalk"),
];

/// Fragments of multilink PPP.
pub(crate) const MULTILINK: u16 = 0x003d;

/// PPP protocols from here on are control protocols.
const FIRST_PPP_CONTROL: u16 = 0x4000;

/// Network layer protocols without IP.
const NLPIDS: [Name<u8>; 4] = [(0x08, "Q.933"), (0x81, "CLNP"), (0x82, "ES-IS"), (0x83, "IS-IS")];

fn name<N: PartialEq>(names: &[Name<N>], number: N) -> Option<&'static str> {
    names.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

impl NotIp {
    /// Returns the name of the protocol, if it is known to carry no IP in the clear.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::EtherType(number) => name(&ETHER_TYPES, number),
            Self::Sap(number) => name(&SAPS, number),
            Self::Snap(organization) => name(&ORGANIZATIONS, organization),
            Self::Ppp(MULTILINK) => Some("multilink fragment"),
            Self::Ppp(number) => (number >= FIRST_PPP_CONTROL).then_some("PPP control"),
            Self::Nlpid(number) => name(&NLPIDS, number),
            Self::Wifi(kind) => kind.name(),
            Self::Family(_) | Self::Labelled | Self::ServicePayload(_) => None,
            Self::Record(_) | Self::Other => None,
        }
    }

    /// Returns whether the protocol is known, and carries no IP in the clear.
    pub fn is_known(self) -> bool {
        self.name().is_some()
    }
}

impl WifiKind {
    const fn name(self) -> Option<&'static str> {
        match self {
            Self::Management => Some("management"),
            Self::Control => Some("control"),
            Self::Empty => Some("empty"),
            Self::Encrypted => Some("encrypted"),
            Self::Extension => None,
        }
    }
}

/// The number, and the name of a known protocol: `ARP (EtherType 0x0806)`.
impl fmt::Display for NotIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = match self {
            Self::EtherType(number) => format!("EtherType 0x{number:04x}"),
            Self::Sap(number) => format!("DSAP 0x{number:02x}"),
            Self::Snap(organization) => format!("SNAP 0x{organization:06x}"),
            Self::Ppp(number) => format!("PPP 0x{number:04x}"),
            Self::Nlpid(number) => format!("NLPID 0x{number:02x}"),
            Self::Family(number) => format!("address family {number}"),
            Self::Wifi(_) => "802.11".to_owned(),
            Self::Labelled => "MPLS of another payload".to_owned(),
            Self::ServicePayload(number) => format!("NSH payload {number}"),
            Self::Record(number) => format!("ERF type {number}"),
            Self::Other => "of other protocols".to_owned(),
        };
        match self.name() {
            Some(name) => write!(f, "{name} ({number})"),
            None => f.write_str(&number),
        }
    }
}
