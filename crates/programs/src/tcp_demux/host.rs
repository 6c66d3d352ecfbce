//! The host: converts the segments of a capture into a script.
//!
//! ```text
//!     SynReceived ── an answer ──► Open ── both FINs acknowledged, or RST ──► Gone
//!       ▲                     ▲                                              │
//!      SYN            anything but a SYN:             SYN: a new connection ─┘
//!                       already open before
//! ```
//!
//! - The host is the receiver of the SYN: segments towards it arrive and are looked up, segments
//!   from it are sent.
//! - A SYN finds no PCB. The answer to it creates the PCB; a SYN without an answer, or answered by
//!   a RST, creates none, since no socket listened. Simultaneous SYNs answer each other.
//! - A SYN for an open connection finds its PCB and changes nothing: it is taken for a
//!   retransmission. If both sides have sent a FIN, a new connection replaces the old one.
//! - There is no TIME-WAIT: segments after the acknowledgement of the last FIN find no PCB.
//! - A connection without a SYN in the capture was open before the first packet. The host is the
//!   side with the lower port, or the receiver of the first segment if the ports are equal. If the
//!   capture begins with the answer to a SYN, the host is the side that answers, and the connection
//!   opens there.

use std::collections::HashMap;

use flowtable::{Direction, FlowKey, TcpFlags};

use super::{Draft, Script, Segment};

/// The host, as seen in the capture.
#[derive(Debug, Default)]
pub struct Host {
    /// By normalized keys. Not one of this crate's maps, since those are the subjects.
    connections: HashMap<FlowKey, Connection>,
    draft: Draft,
    seen: Seen,
}

/// Counts of segments and connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Segments towards the host, and from it.
    pub arrived: usize,
    pub sent: usize,
    /// Segments with these flags; SYNs without those that answer one.
    pub syn: usize,
    pub fin: usize,
    pub rst: usize,
    /// Connections whose SYN is not in the capture.
    pub without_syn: usize,
    /// SYNs without a connection, except retransmissions.
    pub unanswered: usize,
    /// Segments that arrive, find no PCB and are not SYNs.
    pub stray: usize,
}

/// A connection between two sockets.
#[derive(Clone, Copy, Debug)]
struct Connection {
    id: u32,
    /// The direction of the normalized key that leads to the host.
    inwards: Direction,
    state: State,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A SYN has arrived.
    SynReceived,
    /// It has a PCB.
    Open(Fins),
    Gone,
}

/// The FINs of both directions, that of the normalized key first.
type Fins = [Fin; 2];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    Missing,
    /// The FIN was sent; this is the sequence number after it.
    Sent(u32),
    Acknowledged,
}

impl Host {
    pub fn process(&mut self, segment: &Segment) {
        self.seen.count(segment);
        let (name, direction) = segment.key.normalized();
        let connection = match self.connections.get(&name).copied() {
            Some(connection) if segment.is_request() && connection.is_over() => {
                if connection.has_pcb() {
                    self.draft.closes(connection.id);
                }
                self.begin(segment, direction)
            }
            Some(connection) => connection,
            None => self.begin(segment, direction),
        };
        let connection = self.advance(connection, segment, direction);
        self.connections.insert(name, connection);
    }

    /// Returns the number of segments.
    pub fn segments(&self) -> usize {
        self.seen.segments()
    }

    /// Returns the script and the counts; `None` without segments.
    pub fn finish(self) -> Option<(Script, Seen)> {
        (!self.connections.is_empty()).then(|| (self.draft.finish(), self.seen))
    }

    /// Returns a connection in the state before its first segment.
    fn begin(&mut self, segment: &Segment, direction: Direction) -> Connection {
        let is_answer = segment.has(TcpFlags::SYN) && segment.has(TcpFlags::ACK);
        let key = segment.key;
        let is_inwards = segment.is_request() || (!is_answer && key.dport() <= key.sport());
        let (inwards, key) =
            if is_inwards { (direction, key) } else { (direction.opposite(), key.reversed()) };
        let id = self.draft.add(key);
        let state = if segment.is_request() {
            State::SynReceived
        } else if segment.has(TcpFlags::RST) {
            State::Gone
        } else if is_answer {
            self.seen.without_syn += 1;
            State::SynReceived
        } else {
            self.seen.without_syn += 1;
            self.draft.was_open(id);
            State::Open([Fin::Missing; 2])
        };
        self.seen.unanswered += usize::from(state == State::SynReceived);
        Connection { id, inwards, state }
    }

    /// Returns the connection after a segment.
    fn advance(
        &mut self,
        mut connection: Connection,
        segment: &Segment,
        direction: Direction,
    ) -> Connection {
        let arrives = direction == connection.inwards;
        if connection.is_answered_by(segment, arrives) {
            self.seen.unanswered -= 1;
            self.draft.opens(connection.id);
            connection.state = State::Open([Fin::Missing; 2]);
        }
        if arrives {
            self.seen.arrived += 1;
            self.seen.stray += usize::from(!connection.has_pcb() && !segment.is_request());
            self.draft.arrives(connection.id, segment.arrival());
        } else {
            self.seen.sent += 1;
            self.draft.sent(connection.id);
        }
        let after = Connection { state: connection.state.after(segment, direction), ..connection };
        if connection.has_pcb() && !after.has_pcb() {
            self.draft.closes(connection.id);
        }
        after
    }
}

impl Seen {
    pub fn segments(&self) -> usize {
        self.arrived + self.sent
    }

    fn count(&mut self, segment: &Segment) {
        self.syn += usize::from(segment.is_request());
        self.fin += usize::from(segment.has(TcpFlags::FIN));
        self.rst += usize::from(segment.has(TcpFlags::RST));
    }
}

impl Connection {
    fn has_pcb(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Returns whether a SYN begins another connection.
    fn is_over(&self) -> bool {
        match self.state {
            State::SynReceived => false,
            State::Open(fins) => !fins.contains(&Fin::Missing),
            State::Gone => true,
        }
    }

    /// Returns whether the segment shows that the SYN was answered. The answer itself may not have
    /// been captured.
    fn is_answered_by(&self, segment: &Segment, arrives: bool) -> bool {
        let is_retry = arrives && segment.is_request();
        self.state == State::SynReceived && !segment.has(TcpFlags::RST) && !is_retry
    }
}

impl State {
    fn after(self, segment: &Segment, direction: Direction) -> Self {
        let Self::Open(mut fins) = self else {
            return if segment.has(TcpFlags::RST) { Self::Gone } else { self };
        };
        let [own, others] = match direction {
            Direction::Forward => [0, 1],
            Direction::Reverse => [1, 0],
        };
        if segment.has(TcpFlags::FIN) && fins[own] != Fin::Acknowledged {
            fins[own] = Fin::Sent(segment.end());
        }
        if matches!(fins[others], Fin::Sent(end) if segment.acknowledges(end)) {
            fins[others] = Fin::Acknowledged;
        }
        let is_over = segment.has(TcpFlags::RST) || fins == [Fin::Acknowledged; 2];
        if is_over { Self::Gone } else { Self::Open(fins) }
    }
}
