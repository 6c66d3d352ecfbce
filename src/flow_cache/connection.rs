//! The state of a connection in the diagram of [`state`](super::state).

use super::config::Config;
use super::state::{Class, CloseRule, FinWatch, Packet, Protocol};
use crate::key::flow::{Direction, TcpFlags};

/// The state of a flow that its packets change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ConnectionState {
    pub(crate) class: Class,
    pub(crate) protocol: Protocol,
    /// Whether a packet of the reverse direction was observed.
    is_replied: bool,
    /// Of TCP: one of [`handshake`]. Of other protocols: the number of packets, at most 7.
    progress: u8,
    /// FIN detectors by direction.
    sides: [FinWatch; 2],
}

/// What was observed of a handshake, or of acknowledgements without one.
///
/// ```text
///     SYN, ACK of a side ──► Answered ──┐
///                                       ├── ACK of the other side ──► assured
///     ACK of a side, of the other ──────┘
/// ```
mod handshake {
    use crate::key::flow::Direction;

    /// A SYN with an ACK.
    pub(super) const ANSWERED: [u8; 2] = [1, 2];
    /// An ACK, by its side.
    pub(super) const ONE_ACK: [u8; 2] = [3, 4];
    /// An ACK of each side, by the side of the last one.
    pub(super) const BOTH_ACKS: [u8; 2] = [5, 6];

    /// A SYN with an ACK of each side: a simultaneous open.
    pub(super) const BOTH_ANSWERED: u8 = 7;

    /// Returns the progress after a SYN with an ACK of this side.
    pub(super) fn after_answer(progress: u8, side: Direction) -> u8 {
        let other = ANSWERED[side.opposite() as usize];
        if progress == other || progress == BOTH_ANSWERED {
            BOTH_ANSWERED
        } else {
            ANSWERED[side as usize]
        }
    }

    /// Returns the progress after an ACK of this side; `None` if the connection is assured.
    pub(super) fn after_ack(progress: u8, side: Direction) -> Option<u8> {
        let (own, other) = (side as usize, side.opposite() as usize);
        if [ANSWERED[other], BOTH_ACKS[other], BOTH_ANSWERED].contains(&progress) {
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

impl ConnectionState {
    /// The bits that [`bits`](Self::bits) may set.
    pub(crate) const BITS: u16 = 0x3ff;

    /// The bits of the sides that have closed.
    const CLOSED: u16 = 3 << 5;

    /// Packs the state: two bits of class, two of protocol, three flags, and three of progress.
    #[inline]
    pub(crate) const fn bits(self) -> u16 {
        let flags = self.is_replied as u16
            | (self.sides[0].closed as u16) << 1
            | (self.sides[1].closed as u16) << 2;
        self.class as u16
            | (self.protocol as u16) << 2
            | flags << 4
            | (self.progress as u16 & 7) << 7
    }

    /// Returns the state with these [`bits`](Self::bits).
    #[inline]
    pub(crate) const fn from_bits(bits: u16) -> Self {
        Self {
            class: Class::ALL[(bits & 3) as usize],
            protocol: Protocol::ALL[(bits >> 2 & 3) as usize],
            is_replied: bits & 1 << 4 != 0,
            progress: (bits >> 7 & 7) as u8,
            sides: [
                FinWatch { closed: bits & 1 << 5 != 0 },
                FinWatch { closed: bits & 1 << 6 != 0 },
            ],
        }
    }

    /// Returns the [`bits`](Self::bits) of the state after the first packet of a flow.
    #[inline]
    pub(crate) fn first_bits(packet: Packet, direction: Direction, config: &Config) -> u16 {
        let protocol = packet.protocol();
        if direction == Direction::Reverse {
            Self::begin(packet, direction, config).bits()
        } else if protocol != Protocol::Tcp {
            // One packet without an answer.
            Class::Unreplied as u16 | (protocol as u16) << 2 | 1 << 7
        } else if packet.is_only_syn() {
            Class::New as u16 | (protocol as u16) << 2
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
        connection.on_packet(packet, direction, config, || 0);
        connection
    }

    /// Returns whether plain packets leave the state with these bits unchanged, as nearly all do.
    #[inline]
    pub(crate) fn is_steady(bits: u16, rule: CloseRule) -> bool {
        let is_established = bits & 3 == Class::Established as u16;
        is_established & (bits & Self::CLOSED == 0)
            || is_established && rule == CloseRule::BothSides
    }

    /// Processes a packet of the flow, which is as old as `age` returns, in nanoseconds.
    pub(crate) fn on_packet(
        &mut self,
        packet: Packet,
        direction: Direction,
        config: &Config,
        age: impl FnOnce() -> u64,
    ) {
        if self.protocol != Protocol::Tcp {
            self.on_datagram(direction, config, age);
        } else if packet.protocol() == Protocol::Tcp {
            self.on_segment(packet, direction, config.close_rule);
        }
    }

    fn on_datagram(&mut self, direction: Direction, config: &Config, age: impl FnOnce() -> u64) {
        self.progress = (self.progress + 1).min(7);
        self.is_replied |= direction == Direction::Reverse;
        if self.is_replied && matches!(self.class, Class::Unreplied | Class::New) {
            let is_assured = config.assurance.is_reached(self.progress, age);
            self.class = if is_assured { Class::Established } else { Class::New };
        }
    }

    fn on_segment(&mut self, packet: Packet, direction: Direction, rule: CloseRule) {
        if self.class == Class::Closing && packet.is_opening() {
            // Another connection of a flow that lasts over several.
            (self.class, self.progress) = (Class::New, 0);
            self.sides = [FinWatch::default(); 2];
        }
        self.is_replied |= direction == Direction::Reverse;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow_cache::config::Config;

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
}
