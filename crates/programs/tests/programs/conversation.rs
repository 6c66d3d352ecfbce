//! Composed TCP segments.

use std::net::SocketAddr;

use capture::Numbers;
use flowtable::{FlowKey, TcpFlags};
use programs::tcp_demux::Segment;

/// The sender of a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// Two communicating sockets, which keep sequence numbers right.
pub(crate) struct Conversation {
    /// The key of the client's segments.
    pub(crate) key: FlowKey,
    /// The next sequence numbers of the client and of the server.
    next: [u32; 2],
}

impl Conversation {
    pub(crate) fn new(client: &str, server: &str) -> Self {
        let [client, server] =
            [client, server].map(|text| text.parse::<SocketAddr>().expect("a socket"));
        let key = FlowKey::new(client.ip(), server.ip(), client.port(), server.port(), 6);
        // Both will wrap around soon.
        Self { key: key.expect("one version"), next: [u32::MAX - 5, u32::MAX - 100] }
    }

    pub(crate) fn v4(port: u16) -> Self {
        Self::new(&format!("192.0.2.1:{port}"), "198.51.100.2:443")
    }

    /// Returns the next segment, with flags by their letters and a length of payload. It
    /// acknowledges all segments of the other side except the last `crossing` numbers, which are in
    /// flight.
    pub(crate) fn crossing(
        &mut self,
        side: Side,
        letters: &str,
        payload: u64,
        crossing: u32,
    ) -> Segment {
        let (own, key) =
            if side == Side::Client { (0, self.key) } else { (1, self.key.reversed()) };
        let flags = [
            ('S', TcpFlags::SYN),
            ('A', TcpFlags::ACK),
            ('F', TcpFlags::FIN),
            ('R', TcpFlags::RST),
        ];
        let flags = flags.into_iter().filter(|(letter, _)| letters.contains(*letter));
        let flags = flags.fold(TcpFlags(0), |all, (_, flag)| all | flag);
        let (sequence, acknowledgment) =
            (self.next[own], self.next[1 - own].wrapping_sub(crossing));
        let ends = letters.chars().filter(|letter| "SF".contains(*letter)).count() as u32;
        self.next[own] = sequence.wrapping_add(payload as u32).wrapping_add(ends);
        Segment { key, flags, numbers: Numbers { sequence, acknowledgment, payload } }
    }

    pub(crate) fn send(&mut self, side: Side, letters: &str, payload: u64) -> Segment {
        self.crossing(side, letters, payload, 0)
    }

    pub(crate) fn all(&mut self, segments: &[(Side, &str, u64)]) -> Vec<Segment> {
        segments
            .iter()
            .map(|(side, letters, payload)| self.send(*side, letters, *payload))
            .collect()
    }
}
