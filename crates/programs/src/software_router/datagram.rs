//! A packet in the router, from its IP header on.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use capture::{Frame, Packet};
use etherparse::{IpNumber, LaxNetSlice, LaxSlicedPacket};
use flowtable::FlowKey;

/// An IP packet, possibly truncated by the capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its index in the traffic.
    pub index: u32,
    /// Its key on arrival.
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

    /// Returns the packet of a frame; `None` if it has no complete IP header, or an unsupported
    /// link type.
    pub fn of(frame: &Frame<'_>, index: u32) -> Option<Self> {
        let packet = Packet::of(frame).ok()?;
        let sliced = match frame.link {
            Self::ETHERNET => LaxSlicedPacket::from_ethernet(frame.data).ok()?,
            Self::COOKED => {
                // The last two of the sixteen header bytes are an EtherType.
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
        Some(Self { index, key: packet.key, bytes: bytes.to_vec(), length })
    }

    pub fn is_v4(&self) -> bool {
        matches!(self.key, FlowKey::V4(_))
    }

    /// Returns the length of the IP header, without the extensions of IPv6.
    pub fn header_length(&self) -> usize {
        if self.is_v4() { 4 * usize::from(self.bytes[0] & 0x0f) } else { 40 }
    }

    /// Returns whether its transport layer follows an IP header without options, and is present
    /// from its beginning on.
    pub fn is_plain(&self) -> bool {
        let is_whole = !self.is_v4() || (self.bytes[6] & 0x3f, self.bytes[7]) == (0, 0);
        let (shortest, next) = if self.is_v4() { (20, 9) } else { (40, 6) };
        is_whole && self.header_length() == shortest && self.bytes[next] == self.key.protocol()
    }

    /// Returns the captured part of the transport layer.
    pub fn transport(&self) -> &[u8] {
        &self.bytes[self.header_length()..]
    }

    /// Returns whether it is a plain packet with a complete TCP header.
    pub fn is_segment(&self) -> bool {
        let is_tcp = self.key.protocol() == IpNumber::TCP.0;
        is_tcp && self.is_plain() && self.transport().len() >= 20
    }

    /// Returns the offsets of the source and the destination address in the header.
    pub fn addresses(&self) -> [usize; 2] {
        if self.is_v4() { [12, 16] } else { [8, 24] }
    }

    /// Returns its current destination; its key has the one on arrival.
    pub fn destination(&self) -> IpAddr {
        let at = self.addresses()[1];
        if self.is_v4() {
            Ipv4Addr::from(self.array::<4>(at)).into()
        } else {
            Ipv6Addr::from(self.array::<16>(at)).into()
        }
    }

    /// Returns `N` bytes of the header at an offset.
    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        core::array::from_fn(|index| self.bytes[at + index])
    }
}
