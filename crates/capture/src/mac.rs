//! MAC addresses of a packet.

use core::fmt;

use super::packet::Packet;
use super::record::Frame;

/// A MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

/// Six bytes in hexadecimal digits, with colons.
impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The addresses of an Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Macs {
    pub source: Mac,
    pub destination: Mac,
}

impl Packet {
    /// Returns the addresses in the last Ethernet header before the IP header that gives the packet
    /// its key; `None` if there is no Ethernet header.
    ///
    /// `frame` is the frame of this packet.
    pub fn macs(&self, frame: &Frame<'_>) -> Option<Macs> {
        let header = frame.data.get(self.ethernet? as usize..)?;
        let (destination, rest) = header.split_first_chunk()?;
        let source = rest.first_chunk()?;
        Some(Macs { source: Mac(*source), destination: Mac(*destination) })
    }
}
