//! The TCP of a capture.

use core::fmt;

use capture::{Capture, Tunnels, packets};

use super::{Host, Script, Seen, Segment};
use crate::packet_counts::PacketCounts;

/// The events of the host of a capture.
#[derive(Debug)]
pub struct Recorded {
    pub script: Script,
    pub seen: Seen,
}

impl Recorded {
    /// Maximum number of segments: some 100 MB of memory.
    pub const MOST: usize = 1 << 22;

    /// Reads the TCP segments; `None` if there are none.
    pub fn read(capture: &mut Capture, counts: &mut PacketCounts) -> Option<Self> {
        let mut host = Host::default();
        while host.segments() < Self::MOST {
            let Some(frame) = capture.next_frame() else { break };
            for packet in packets(&frame, Tunnels::Outer)
                .filter_map(|packet| counts.count(&packet, frame.link).copied())
            {
                Segment::of(&packet).iter().for_each(|segment| host.process(segment));
            }
        }
        let (script, seen) = host.finish()?;
        Some(Self { script, seen })
    }
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Script { connections, most_open, .. } = &self.script;
        let Seen { arrived, sent, syn, fin, rst, .. } = self.seen;
        let segments = self.seen.segments();
        writeln!(f, "{segments} TCP segments, {arrived} arrive at the host, {sent} leave it")?;
        writeln!(f, "{connections:>10} connections, {most_open} at once at most")?;
        writeln!(f, "{syn:>10} SYN, {fin} FIN, {rst} RST")?;
        let Seen { without_syn, unanswered, stray, .. } = self.seen;
        let counts = [
            (without_syn, "connections whose SYN is not in the capture"),
            (unanswered, "SYNs that led to no connection"),
            (stray, "segments that arrive for no connection"),
        ];
        let mut shown = counts.into_iter().filter(|(count, _)| *count > 0);
        shown.try_for_each(|(count, what)| writeln!(f, "{count:>10} {what}"))
    }
}
