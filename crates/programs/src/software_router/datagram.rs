//! A packet on its way through the router, from its IP header on.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use capture::{Frame, Packet};
use etherparse::{IpNumber, LaxNetSlice, LaxSlicedPacket};
use flowtable::FlowKey;

/// An IP packet, or what was captured of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Where it is in the traffic.
    pub number: u32,
    /// As it arrived.
    pub key: FlowKey,
    /// The header and what follows it.
    pub bytes: Vec<u8>,
    /// Length of the IP packet, as its header has it.
    pub length: u32,
}

impl Datagram {
    /// Ethernet, with or without VLANs; the bare IP of BSD and Linux; what Linux captures on all
    /// interfaces at once.
    const ETHERNET: u16 = 1;
    const RAW: [u16; 5] = [12, 14, 101, 228, 229];
    const COOKED: u16 = 113;

    /// `None` if the frame has no IP header to its end, or is of another link.
    pub fn of(frame: &Frame<'_>, number: u32) -> Option<Self> {
        let packet = Packet::of(frame).ok()?;
        let sliced = match frame.link {
            Self::ETHERNET => LaxSlicedPacket::from_ethernet(frame.data).ok()?,
            Self::COOKED => {
                // The last two of its sixteen bytes are an EtherType.
                let (head, payload) = frame.data.split_at_checked(16)?;
                let kind = u16::from_be_bytes([head[14], head[15]]);
                LaxSlicedPacket::from_ether_type(kind.into(), payload)
            }
            link if Self::RAW.contains(&link) => LaxSlicedPacket::from_ip(frame.data).ok()?,
            _ => return None,
        };
        let header = match sliced.net.as_ref()? {
            LaxNetSlice::Ipv4(ip) => ip.header().slice(),
            LaxNetSlice::Ipv6(ip) => ip.header().slice(),
            LaxNetSlice::Arp(_) => return None,
        };
        let offset = header.as_ptr().addr() - frame.data.as_ptr().addr();
        let length = u32::try_from(packet.bytes).ok()?;
        // Padding of the frame ends here.
        let end = frame.data.len().min(offset + length as usize);
        let bytes = frame.data.get(offset..end).filter(|bytes| bytes.len() >= header.len())?;
        Some(Self { number, key: packet.key, bytes: bytes.to_vec(), length })
    }

    pub fn is_v4(&self) -> bool {
        matches!(self.key, FlowKey::V4(_))
    }

    /// Bytes of the IP header, without the extensions of IPv6.
    pub fn header_length(&self) -> usize {
        if self.is_v4() { 4 * usize::from(self.bytes[0] & 0x0f) } else { 40 }
    }

    /// Whether its transport layer follows an IP header without options, and is there from its
    /// beginning on.
    pub fn is_plain(&self) -> bool {
        let is_whole = !self.is_v4() || (self.bytes[6] & 0x3f, self.bytes[7]) == (0, 0);
        let (shortest, next) = if self.is_v4() { (20, 9) } else { (40, 6) };
        is_whole && self.header_length() == shortest && self.bytes[next] == self.key.protocol()
    }

    /// What of the transport layer was captured.
    pub fn transport(&self) -> &[u8] {
        &self.bytes[self.header_length()..]
    }

    /// Whether it is a TCP segment whose header was captured, of a packet that is plain.
    pub fn is_segment(&self) -> bool {
        let is_tcp = self.key.protocol() == IpNumber::TCP.0;
        is_tcp && self.is_plain() && self.transport().len() >= 20
    }

    /// Where its header has the addresses: the source, and the destination behind it.
    pub fn addresses(&self) -> [usize; 2] {
        if self.is_v4() { [12, 16] } else { [8, 24] }
    }

    /// Where it goes now; its key says where it went when it arrived.
    pub fn destination(&self) -> IpAddr {
        let at = self.addresses()[1];
        if self.is_v4() {
            Ipv4Addr::from(self.array::<4>(at)).into()
        } else {
            Ipv6Addr::from(self.array::<16>(at)).into()
        }
    }

    /// So many bytes at this place of the header.
    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        core::array::from_fn(|index| self.bytes[at + index])
    }
}
