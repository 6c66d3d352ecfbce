//! The state of a connection in the diagram of [`state`](super::state).

use super::state::{Class, CloseRule, FinWatch, Packet, Protocol};
use crate::flow_cache::config::Config;
use crate::key::flow::{Direction, TcpFlags};

/// The state of a flow that its packets change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ConnectionState {
    pub(crate) class: Class,
    pub(crate) protocol: Protocol,
    /// Whether both sides have sent.
    is_replied: bool,
    /// Of TCP: one of [`handshake`]. Of other protocols: the number of packets, at most 7; but 0
    /// while all are of the reverse direction.
    progress: u8,
    /// FIN detectors by direction.
    sides: [FinWatch; 2],
}

/// The observed part of a handshake, or of acknowledgements without one.
///
/// ```text
///     SYN, ACK of a side ──► Answered ──┐
///                                       ├── ACK of the other side ──► assured
///     ACK of a side, of the other ──────┘
/// ```
mod handshake {
    use crate::key::flow::Direction;

    /// A SYN with an ACK.
    pub(crate) const ANSWERED: [u8; 2] = [1, 2];
    /// An ACK, by its side.
    pub(crate) const ONE_ACK: [u8; 2] = [3, 4];
    /// An ACK of each side, by the side of the last one.
    pub(crate) const BOTH_ACKS: [u8; 2] = [5, 6];

    /// A SYN with an ACK of each side: a simultaneous open.
    pub(crate) const BOTH_ANSWERED: u8 = 7;

    /// Returns the progress after a SYN with an ACK of this side.
    pub(crate) const fn after_answer(progress: u8, side: Direction) -> u8 {
        let other = ANSWERED[side.opposite() as usize];
        if progress == other || progress == BOTH_ANSWERED {
            BOTH_ANSWERED
        } else {
            ANSWERED[side as usize]
        }
    }

    /// Returns the progress after an ACK of this side; `None` if the connection is assured.
    pub(crate) const fn after_ack(progress: u8, side: Direction) -> Option<u8> {
        let (own, other) = (side as usize, side.opposite() as usize);
        let is_answered = progress == ANSWERED[other] || progress == BOTH_ANSWERED;
        if is_answered || progress == BOTH_ACKS[other] {
            None
        } else if progress == ONE_ACK[other] {
            Some(BOTH_ACKS[own])
        } else if progress == 0 {
            Some(ONE_ACK[own])
        } else {
            Some(progress)
        }
    }
}

/// The bits of class and progress that a segment as in a handshake changes. The index is the class
/// in two bits, the progress in three, whether the segment is a SYN, and its direction.
const HANDSHAKES: [u16; 128] = {
    let mut changes = [0; 128];
    let mut number = 0;
    while number < changes.len() {
        let (class, progress) = (number as u16 & 3, (number >> 2 & 7) as u8);
        let (is_answer, side) = (number & 1 << 5 != 0, Direction::of(number & 1 << 6 != 0));
        let is_newcomer = ConnectionState::is_newcomer(class);
        let (class_after, progress_after) = if is_answer {
            (class, handshake::after_answer(progress, side))
        } else if !is_newcomer {
            (class, progress)
        } else {
            match handshake::after_ack(progress, side) {
                Some(progress) => (class, progress),
                None => (Class::Established as u16, progress),
            }
        };
        let progress_change = (progress ^ progress_after) as u16;
        changes[number] = class ^ class_after | progress_change << ConnectionState::PROGRESS;
        number += 1;
    }
    changes
};

/// The protocol by bits 2 to 6 of the state. The bit `REPLIED` selects no protocol; TCP also
/// ignores the two bits of closed sides.
const PROTOCOLS: [Protocol; 32] = {
    let mut protocols = [Protocol::Tcp; 32];
    let mut number = 1;
    while number < Protocol::ALL.len() {
        let bits = BITS_OF_PROTOCOLS[number] >> 2;
        protocols[bits as usize] = Protocol::ALL[number];
        protocols[(bits | ConnectionState::REPLIED >> 2) as usize] = Protocol::ALL[number];
        number += 1;
    }
    protocols
};

impl ConnectionState {
    /// The bits that [`bits`](Self::bits) may set.
    pub(crate) const BITS: u16 = 0x3ff;

    /// The bits of the sides that have closed, of TCP.
    const CLOSED: u16 = 3 << 5;

    /// The bits of the class, of the protocol, and of the sides that have closed.
    pub(crate) const KIND: u16 = 3 | Self::NOT_TCP | Self::CLOSED;

    /// The bit of flows of which both sides have sent.
    const REPLIED: u16 = 1 << 4;

    /// The position of the progress.
    const PROGRESS: u32 = 7;

    /// The bits of which one is set if the protocol is not TCP.
    const NOT_TCP: u16 = 3 << 2;

    /// Packs the state: two bits of class, two of protocol, three flags, and three of progress. In
    /// TCP, two of the flags are the FINs of both sides. Other protocols use these two bits for
    /// their number.
    #[inline]
    pub(crate) const fn bits(self) -> u16 {
        let closed = match self.protocol {
            Protocol::Tcp => self.sides[0].closed as u16 | (self.sides[1].closed as u16) << 1,
            _ => 0,
        };
        self.class as u16
            | protocol_bits(self.protocol)
            | (self.is_replied as u16 * Self::REPLIED)
            | closed << 5
            | (self.progress as u16 & 7) << Self::PROGRESS
    }

    /// Returns the protocol of the state with these [`bits`](Self::bits).
    #[inline]
    pub(crate) const fn protocol_of(bits: u16) -> Protocol {
        PROTOCOLS[(bits >> 2 & 31) as usize]
    }

    /// Returns the state with these [`bits`](Self::bits).
    #[inline]
    pub(crate) const fn from_bits(bits: u16) -> Self {
        let is_tcp = bits & 3 << 2 == 0;
        Self {
            class: Class::of(bits as u64),
            protocol: Self::protocol_of(bits),
            is_replied: bits & Self::REPLIED != 0,
            progress: (bits >> Self::PROGRESS & 7) as u8,
            sides: [
                FinWatch { closed: is_tcp && bits & 1 << 5 != 0 },
                FinWatch { closed: is_tcp && bits & 1 << 6 != 0 },
            ],
        }
    }

    /// Returns the [`bits`](Self::bits) of the state after the first packet of a flow.
    #[inline]
    pub(crate) fn first_bits(packet: Packet, direction: Direction, config: &Config) -> u16 {
        if direction == Direction::Reverse {
            Self::begin(packet, direction, config).bits()
        } else if !packet.is_tcp() {
            // One packet without an answer.
            Class::Unreplied as u16 | protocol_bits(packet.protocol()) | 1 << 7
        } else if packet.is_only_syn() {
            Class::New as u16 | protocol_bits(Protocol::Tcp)
        } else {
            Self::begin(packet, direction, config).bits()
        }
    }

    /// Creates the state after the first packet of a flow.
    #[inline(never)]
    pub(crate) fn begin(packet: Packet, direction: Direction, config: &Config) -> Self {
        let is_handshake = packet.flags_of_tcp().contains(TcpFlags::SYN);
        let mut connection = Self {
            class: if is_handshake { Class::New } else { Class::Unreplied },
            protocol: packet.protocol(),
            is_replied: false,
            progress: 0,
            sides: [FinWatch::default(); 2],
        };
        match (connection.protocol, direction) {
            (Protocol::Tcp, _) => connection.on_segment(packet, direction, config.close_rule),
            (_, Direction::Forward) => connection.progress = 1,
            (_, Direction::Reverse) => {}
        }
        connection
    }

    /// Returns whether plain packets leave the state with these bits unchanged, as nearly all do.
    #[inline]
    pub(crate) fn is_steady(bits: u16, rule: CloseRule) -> bool {
        let is_established = bits & 3 == Class::Established as u16;
        let is_open = || bits & Self::CLOSED == 0 || bits & Self::NOT_TCP != 0;
        is_established && (rule == CloseRule::BothSides || is_open())
    }

    /// The mask of a test for steady states. A state is *steady* if a plain packet does not change
    /// it. `bits & steady_mask(rule) == Established` implies a steady state. With
    /// [`CloseRule::FirstAck`], some protocols have steady states that fail this test.
    pub(crate) const fn steady_mask(rule: CloseRule) -> u16 {
        match rule {
            CloseRule::BothSides => 3,
            CloseRule::FirstAck => 3 | Self::CLOSED,
        }
    }

    /// Returns the bits after a packet of the flow, which is as old as `age` returns, in
    /// nanoseconds.
    #[inline]
    pub(crate) fn after(
        bits: u16,
        packet: Packet,
        direction: Direction,
        config: &Config,
        age: impl FnOnce() -> u64,
    ) -> u16 {
        if bits & Self::NOT_TCP != 0 {
            return Self::after_datagram(bits, direction, config, age);
        }
        if !packet.is_tcp() {
            return bits;
        }
        Self::after_segment(bits, packet, direction, config.close_rule)
    }

    /// Returns whether a packet is a segment as in a handshake, with an ACK and without a FIN or
    /// RST, of a connection that no side has closed.
    #[inline]
    pub(crate) const fn is_of_handshake(bits: u16, packet: Packet) -> bool {
        bits & (Self::NOT_TCP | Self::CLOSED) == 0 && packet.is_of_handshake()
    }

    /// Returns the bits after a segment [as in a handshake](Self::is_of_handshake). Bits that are
    /// no state stay.
    #[inline]
    pub(crate) const fn after_handshake(bits: u16, packet: Packet, direction: Direction) -> u16 {
        let number = bits & 3 | bits >> (Self::PROGRESS - 2) & 7 << 2;
        let syn = packet.has_syn() as usize;
        bits ^ HANDSHAKES[number as usize | syn << 5 | (direction as usize) << 6]
    }

    #[inline(never)]
    fn after_segment(bits: u16, packet: Packet, direction: Direction, rule: CloseRule) -> u16 {
        let mut connection = Self::from_bits(bits);
        connection.on_segment(packet, direction, rule);
        connection.bits()
    }

    /// Returns whether a packet and its flow are not of TCP.
    #[inline]
    pub(crate) const fn is_of_datagrams(bits: u16, packet: Packet) -> bool {
        bits & Self::NOT_TCP != 0 && !packet.is_tcp()
    }

    /// Returns the bits after a packet of a flow that is not of TCP.
    #[inline]
    pub(crate) fn after_datagram(
        bits: u16,
        direction: Direction,
        config: &Config,
        age: impl FnOnce() -> u64,
    ) -> u16 {
        let progress = bits >> Self::PROGRESS & 7;
        let first = if progress == 0 { Direction::Reverse } else { Direction::Forward };
        let is_replied = bits & Self::REPLIED != 0 || direction != first;
        let progress = match progress {
            0 if is_replied => 2,
            0 => 0,
            packets => (packets + 1).min(7),
        };
        let replied = if is_replied { Self::REPLIED } else { 0 };
        let class = match bits & 3 {
            class if !is_replied || !Self::is_newcomer(class) => class,
            _ if config.assurance.is_reached(progress as u8, age) => Class::Established as u16,
            _ => Class::New as u16,
        };
        bits & !(7 << Self::PROGRESS | 3) | progress << Self::PROGRESS | replied | class
    }

    /// Returns whether a class is `New` or `Unreplied`.
    const fn is_newcomer(class: u16) -> bool {
        class == Class::New as u16 || class == Class::Unreplied as u16
    }

    fn on_segment(&mut self, packet: Packet, direction: Direction, rule: CloseRule) {
        if self.class == Class::Closing && packet.is_opening() {
            // Another connection of a flow that lasts over several.
            (self.class, self.progress) = (Class::New, 0);
            self.sides = [FinWatch::default(); 2];
        }
        let flags = packet.flags_of_tcp();
        let is_over = self.sides[direction as usize].observe(flags);
        let is_closed = match rule {
            CloseRule::FirstAck => is_over,
            CloseRule::BothSides => {
                flags.contains(TcpFlags::RST) || self.sides.iter().all(|side| side.is_closed())
            }
        };
        if is_closed {
            self.class = Class::Closing;
        } else if packet.is_answer() {
            self.progress = handshake::after_answer(self.progress, direction);
        } else if flags.contains(TcpFlags::ACK) && !flags.contains(TcpFlags::SYN) {
            self.on_ack(direction);
        }
    }

    fn on_ack(&mut self, direction: Direction) {
        if !matches!(self.class, Class::New | Class::Unreplied) {
            return;
        }
        match handshake::after_ack(self.progress, direction) {
            Some(progress) => self.progress = progress,
            None => self.class = Class::Established,
        }
    }
}

/// The bits of a protocol: TCP has none, and three others each value of the bits of closed sides.
#[inline]
const fn protocol_bits(protocol: Protocol) -> u16 {
    BITS_OF_PROTOCOLS[protocol as usize]
}

const BITS_OF_PROTOCOLS: [u16; Protocol::COUNT] = {
    let mut bits = [0; Protocol::COUNT];
    let mut number = 1;
    while number < bits.len() {
        bits[number] = (((number - 1) % 3 + 1) << 2 | ((number - 1) / 3) << 5) as u16;
        number += 1;
    }
    bits
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow_cache::config::Config;

    #[test]
    fn a_state_is_the_same_after_packing() {
        for (protocol, class) in
            Protocol::ALL.into_iter().flat_map(|it| Class::ALL.map(|class| (it, class)))
        {
            for bits in 0..64_u8 {
                let is_tcp = protocol == Protocol::Tcp;
                let state = ConnectionState {
                    class,
                    protocol,
                    is_replied: bits & 1 != 0,
                    progress: bits >> 3,
                    sides: [2, 4].map(|bit| FinWatch { closed: is_tcp && bits & bit != 0 }),
                };
                assert_eq!(state.bits() & !ConnectionState::BITS, 0);
                assert_eq!(ConnectionState::from_bits(state.bits()), state);
            }
        }
    }

    #[test]
    fn the_bits_of_a_first_packet_are_those_of_its_state() {
        let config = Config::new(1).expect("valid");
        for protocol in Protocol::ALL {
            for flags in 0..=u8::MAX {
                let packet = Packet::new(protocol, TcpFlags(flags));
                for direction in [Direction::Forward, Direction::Reverse] {
                    let bits = ConnectionState::begin(packet, direction, &config).bits();
                    assert_eq!(ConnectionState::first_bits(packet, direction, &config), bits);
                }
            }
        }
    }

    #[test]
    fn handshakes_change_the_bits_as_other_segments_do() {
        let mut count = 0;
        for bits in (0..=ConnectionState::BITS).filter(|bits| bits & ConnectionState::NOT_TCP == 0)
        {
            for flags in 0..64 {
                let packet = Packet::tcp(TcpFlags(flags));
                for direction in [Direction::Forward, Direction::Reverse] {
                    if !ConnectionState::is_of_handshake(bits, packet) {
                        continue;
                    }
                    let after = ConnectionState::after_handshake(bits, packet, direction);
                    for rule in [CloseRule::BothSides, CloseRule::FirstAck] {
                        let other = ConnectionState::after_segment(bits, packet, direction, rule);
                        assert_eq!(after, other, "{bits:#x}, {packet:?}");
                        count += 1;
                    }
                }
            }
        }
        assert!(count > 1000);
    }
}
