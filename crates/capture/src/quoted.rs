//! The packet that an error of ICMP quotes: its IP header, and the first bytes behind it.

use flowtable::FlowKey;

use super::ip::Ip;
use super::packet::{Packet, Ports, Transport, key};
use super::record::Frame;
use super::span::Span;
use super::step::Version;

impl Packet {
    /// Returns the key of the packet that this error of ICMP quotes, in the direction of the quoted
    /// packet. `None` if this packet is no error, or if the quotation ends before the ports.
    ///
    /// `frame` is the frame of this packet.
    #[cold]
    pub fn quoted(&self, frame: &Frame<'_>) -> Option<FlowKey> {
        /// The header of ICMP.
        const HEADER: usize = 8;
        let kind = self.icmp?.kind;
        let (version, is_error) = match self.key {
            // Unreachable, source quench, redirect, time exceeded, parameter problem.
            FlowKey::V4(_) => (Version::V4, matches!(kind, 3..=5 | 11 | 12)),
            FlowKey::V6(_) => (Version::V6, kind < 128),
        };
        if !is_error {
            return None;
        }
        let span = Span::new(frame.data, frame.wire_len).after(self.offset as usize).ok()?;
        let error = Ip::parse(version, span).ok()?;
        let quoted = Ip::parse(version, error.payload.after(HEADER).ok()?).ok()?;
        let Transport { sockets, ports, icmp, .. } = Transport::parse(&quoted);
        matches!(ports, Ports::Read | Ports::None).then(|| key(&quoted, sockets, icmp))
    }
}
