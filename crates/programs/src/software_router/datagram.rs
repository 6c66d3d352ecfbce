//! A packet in the router, from its IP header on.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use capture::{Frame, Packet};
use etherparse::IpNumber;
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
    /// Returns a packet of a frame; `None` if its IP header is truncated.
    pub fn of(frame: &Frame<'_>, packet: &Packet, index: u32) -> Option<Self> {
        let length = u32::try_from(packet.bytes).unwrap_or(u32::MAX);
        let bytes = frame.data.get(packet.offset as usize..).unwrap_or_default();
        // Padding of the frame follows.
        let bytes = bytes.get(..length as usize).unwrap_or(bytes);
        let datagram = Self { index, key: packet.key, bytes: bytes.to_vec(), length };
        (bytes.len() >= 20 && bytes.len() >= datagram.header_length()).then_some(datagram)
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
