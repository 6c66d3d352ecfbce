//! From the segments of a capture to what a host does about them.
//!
//! ```text
//!     SynReceived ── an answer ──► Open ── both FINs are acknowledged, or RST ──► Gone
//!       ▲                     ▲                                              │
//!      SYN            anything but a SYN:             SYN: a new connection ─┘
//!                       it was open before
//! ```
//!
//! - The host is whoever gets the SYN: what goes there arrives and is looked up, what comes from
//!   there is sent.
//! - A SYN finds nothing. The answer to it makes the PCB; a SYN that nobody answers, or that a RST
//!   answers, leaves none: nobody listened. SYNs both ways are an answer to each other.
//! - A SYN for a connection that is open finds its PCB and changes nothing: it is taken for a
//!   repeated one. Where both sides have sent a FIN, it takes the place of the old connection.
//! - Nothing waits once the last FIN is acknowledged, there is no TIME-WAIT: what still arrives
//!   finds nothing.
//! - A connection without a SYN in the capture was open before the first packet. The host is who
//!   has the lower port, or gets the first segment if both are the same. If it begins with the
//!   answer to a SYN, the host is who answers, and it opens there.

use std::collections::HashMap;

use flowtable::{Direction, FlowKey, TcpFlags};

use super::{Draft, Script, Segment};

/// The host, as far as it is seen.
#[derive(Debug, Default)]
pub struct Host {
    /// By normalized names. Not one of this crate's maps, as those are what is examined.
    connections: HashMap<FlowKey, Connection>,
    draft: Draft,
    seen: Seen,
}

/// What there was in the capture.
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
    /// SYNs that led to no connection, without those that were repeated.
    pub unanswered: usize,
    /// Segments that arrive, find nothing and are no SYN.
    pub stray: usize,
}

/// What goes on between two sockets.
#[derive(Clone, Copy, Debug)]
struct Connection {
    id: u32,
    /// Which direction of the normalized name leads to the host.
    inwards: Direction,
    state: State,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A SYN has come.
    SynReceived,
    /// It has a PCB.
    Open(Fins),
    Gone,
}

/// How far the two directions of a connection are, that of the normalized name first.
type Fins = [Fin; 2];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    Missing,
    /// It was sent. What acknowledges it awaits this number.
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

    /// Segments so far.
    pub fn segments(&self) -> usize {
        self.seen.segments()
    }

    /// The script, and what was seen; `None` if there was no segment.
    pub fn finish(self) -> Option<(Script, Seen)> {
        (!self.connections.is_empty()).then(|| (self.draft.finish(), self.seen))
    }

    /// A talk as it is before its first segment.
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

    /// The talk after this segment of it.
    fn advance(&mut self, mut connection: Connection, segment: &Segment, direction: Direction) -> Connection {
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

    /// Whether a SYN begins another connection.
    fn is_over(&self) -> bool {
        match self.state {
            State::SynReceived => false,
            State::Open(fins) => !fins.contains(&Fin::Missing),
            State::Gone => true,
        }
    }

    /// Whether this shows that the SYN was answered. If it is not the answer itself, that was not
    /// captured.
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
