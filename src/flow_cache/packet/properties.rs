//! Packets, as their flows are given them: protocol, flags, tenant, initiator.

use core::fmt;

use crate::key::flow::TcpFlags;

/// The protocol of a flow, on which its timeouts depend.
///
/// Only TCP has states of its own. Flows of all other protocols are assured by their packets in
/// both directions: see [`Assurance`](crate::flow_cache::Assurance).
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::flow_cache::{Class, Packet, Protocol, Timeouts};
/// use flowtable::TcpFlags;
///
/// // OSPF, protocol 89, is one of the others; here it has timeouts of its own.
/// let protocol = |number| match number {
///     89 => Protocol::Custom1,
///     number => Protocol::from(number),
/// };
/// let hello = Packet::new(protocol(89), TcpFlags(0));
/// assert_eq!(hello.protocol(), Protocol::Custom1);
/// assert_eq!((protocol(132), protocol(47)), (Protocol::Sctp, Protocol::Gre));
/// let idle = Duration::from_secs(40);
/// let timeouts = Timeouts::CONNTRACK.with_idle(Protocol::Custom1, Class::Unreplied, idle)?;
/// assert_eq!(timeouts.idle(hello.protocol(), Class::Unreplied), Some(idle));
/// # Ok::<(), flowtable::flow_cache::TimeoutError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Protocol {
    /// TCP, whose packets change the class of a flow.
    Tcp,
    /// UDP and similar protocols.
    Udp,
    /// ICMP of either version of IP: echo and similar exchanges.
    Icmp,
    /// All other protocols.
    Other,
    /// SCTP.
    Sctp,
    /// GRE.
    Gre,
    /// ESP and AH of IPsec.
    Ipsec,
    /// A protocol of the caller's choice, by number or by port: DNS, for example, apart from other
    /// flows of UDP.
    Custom1,
    /// A further protocol of the caller's choice.
    Custom2,
    /// A further protocol of the caller's choice.
    Custom3,
    /// A further protocol of the caller's choice.
    Custom4,
}

impl Protocol {
    /// The number of protocols.
    pub(crate) const COUNT: usize = Self::ALL.len();

    /// All protocols.
    pub const ALL: [Self; 11] = [
        Self::Tcp,
        Self::Udp,
        Self::Icmp,
        Self::Other,
        Self::Sctp,
        Self::Gre,
        Self::Ipsec,
        Self::Custom1,
        Self::Custom2,
        Self::Custom3,
        Self::Custom4,
    ];
}

/// Converts an IP protocol number.
impl From<u8> for Protocol {
    #[inline]
    fn from(number: u8) -> Self {
        match number {
            6 => Self::Tcp,
            17 => Self::Udp,
            1 | 58 => Self::Icmp,
            132 => Self::Sctp,
            47 => Self::Gre,
            50 | 51 => Self::Ipsec,
            _ => Self::Other,
        }
    }
}

/// A tenant, zone or VRF whose flows are counted, so that it can be given a share of a table.
///
/// The default, tenant 0, means no tenant: its flows are not counted, and it has no share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tenant(pub u32);

/// Which side of a first packet is the initiator of its flow.
///
/// The flow's key and the directions of all its packets are relative to the initiator.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Initiator, Packet};
/// use flowtable::{Direction, FlowCache, FourTuple, TcpFlags, Timestamp};
///
/// let mut cache: FlowCache<FourTuple<u32>, ()> = FlowCache::new(Config::new(100)?);
/// let key = FourTuple { src: 10, dst: 20, sport: 443, dport: 40_000 };
/// // A SYN with an ACK as the first packet of a flow: the answer to a packet that was not seen.
/// let answer = Packet::tcp(TcpFlags::SYN | TcpFlags::ACK);
/// let seen = cache.observe(&key, answer, Timestamp::ZERO)?;
/// assert_eq!((seen.fresh, seen.direction), (true, Direction::Reverse));
/// // Where the side of a packet is known, by its interface for example, no flag need reveal it.
/// let inside = answer.with_initiator(Initiator::Sender);
/// let key = FourTuple { sport: 80, ..key };
/// let seen = cache.observe(&key, inside, Timestamp::ZERO)?;
/// assert_eq!((seen.fresh, seen.direction), (true, Direction::Forward));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Initiator {
    /// The sender; but the receiver of a SYN with an ACK, which is an answer.
    #[default]
    ByFlags,
    /// The sender of the packet.
    Sender,
    /// The receiver of the packet.
    Receiver,
}

/// The properties of a packet that change the state of its flow.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Packet, Protocol, Tenant};
/// use flowtable::TcpFlags;
///
/// let opens = Packet::tcp(TcpFlags::SYN);
/// assert_eq!(opens, Packet::new(Protocol::from(6), TcpFlags::SYN));
/// let query = Packet::UDP.from_tenant(Tenant(7));
/// assert_eq!((query.protocol(), query.tenant()), (Protocol::Udp, Tenant(7)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
// The flags are the lowest byte of the word in which it is passed: each packet's are tested.
#[repr(C)]
pub struct Packet {
    flags: TcpFlags,
    /// A [`Protocol`]. As a number, all values of a packet are valid, and the compiler does not use
    /// others as a tag of `Option`, which each packet of a burst would be tested for.
    protocol: u8,
    /// Counts if the packet is the first one of a flow: the initiator in two bits, and above them
    /// the [`attempt`](Self::attempt).
    first: u16,
    tenant: Tenant,
}

impl Packet {
    /// A UDP datagram.
    pub const UDP: Self = Self::new(Protocol::Udp, TcpFlags(0));
    /// An ICMP message.
    pub const ICMP: Self = Self::new(Protocol::Icmp, TcpFlags(0));
    /// A packet of another protocol.
    pub const OTHER: Self = Self::new(Protocol::Other, TcpFlags(0));

    /// Creates a packet of a protocol; the flags count if that is TCP.
    #[inline]
    #[must_use]
    pub const fn new(protocol: Protocol, flags: TcpFlags) -> Self {
        let first = Initiator::ByFlags as u16;
        Self { flags, protocol: protocol as u8, first, tenant: Tenant(0) }
    }

    /// Creates a TCP segment with these flags.
    #[inline]
    #[must_use]
    pub const fn tcp(flags: TcpFlags) -> Self {
        Self::new(Protocol::Tcp, flags)
    }

    /// Sets the tenant. A flow belongs to the tenant of its first packet. One exception: the flow
    /// takes the place of a flow with the same key that has expired, or is closing, and the tenant
    /// of the packet is at its share, or the memory limit has no room for tenants. Then it belongs
    /// to the tenant of the flow before it. Where tenants have equal addresses, keys should have a
    /// zone.
    #[inline]
    #[must_use]
    pub const fn from_tenant(self, tenant: Tenant) -> Self {
        Self { tenant, ..self }
    }

    /// Sets the sequence number of a TCP segment. It tells whether a SYN opens another connection,
    /// or repeats an attempt that was refused: a SYN with the number of the first packet of a
    /// closing flow belongs to that flow, which is new again. Other packets are not affected.
    ///
    /// The cache needs 2 bytes for each flow, from the first packet with a number on: 14 bits of a
    /// hash. Without memory for them, each SYN on a closing flow opens another connection.
    ///
    /// # Example
    ///
    /// ```
    /// use flowtable::flow_cache::{Config, Packet};
    /// use flowtable::{FlowCache, FourTuple, TcpFlags, Timestamp};
    ///
    /// let mut cache: FlowCache<FourTuple<u32>, ()> = FlowCache::new(Config::new(100)?);
    /// let key = FourTuple { src: 10, dst: 20, sport: 40_000, dport: 443 };
    /// let refusal = Packet::tcp(TcpFlags::RST | TcpFlags::ACK);
    /// let mut fresh = vec![];
    /// // Two attempts of a host that repeats each, as Windows does.
    /// for sequence in [7000, 7000, 9000, 9000] {
    ///     let syn = Packet::tcp(TcpFlags::SYN).with_sequence(sequence);
    ///     fresh.push(cache.observe(&key, syn, Timestamp::ZERO)?.fresh);
    ///     cache.observe(&key.reversed(), refusal, Timestamp::ZERO)?;
    /// }
    /// assert_eq!(fresh, [true, false, true, false]);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn with_sequence(self, sequence: u32) -> Self {
        // The highest bits of a product depend on all bits of its factors.
        let hash = sequence.wrapping_mul(0x9e37_79b1) >> 18;
        let attempt = if hash == 0 { 1 } else { hash as u16 };
        Self { first: self.first & 3 | attempt << 2, ..self }
    }

    /// Returns 14 bits of a hash of the sequence number; 0 if that is not set.
    #[inline]
    pub(crate) const fn attempt(self) -> u16 {
        self.first >> 2
    }

    /// Sets the initiator, in case that the packet is the first one of a flow. No other packet is
    /// affected by it.
    #[inline]
    #[must_use]
    pub const fn with_initiator(self, initiator: Initiator) -> Self {
        Self { first: self.first & !3 | initiator as u16, ..self }
    }

    /// Returns which side is the initiator, if the packet is the first one of a flow.
    pub(crate) const fn initiator(self) -> Initiator {
        match self.first & 3 {
            0 => Initiator::ByFlags,
            1 => Initiator::Sender,
            _ => Initiator::Receiver,
        }
    }

    /// Returns the protocol.
    #[inline]
    #[must_use]
    pub const fn protocol(self) -> Protocol {
        Protocol::ALL[self.protocol as usize]
    }

    /// Returns whether the protocol is TCP.
    #[inline]
    pub(crate) const fn is_tcp(self) -> bool {
        self.protocol == Protocol::Tcp as u8
    }

    /// Returns the tenant.
    #[inline]
    #[must_use]
    pub const fn tenant(self) -> Tenant {
        self.tenant
    }

    /// Returns whether the packet only extends the timeout of its flow.
    #[inline]
    pub(crate) const fn is_plain(self) -> bool {
        self.flags.0 & (TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0) == 0
    }

    /// Returns whether the packet opens a connection, and is not an answer.
    pub(crate) fn is_opening(self) -> bool {
        self.flags_of_tcp().0 & (TcpFlags::SYN | TcpFlags::ACK | TcpFlags::RST).0 == TcpFlags::SYN.0
    }

    /// Returns whether the packet is a SYN and nothing else, if it is a TCP segment.
    #[inline]
    pub(crate) const fn is_only_syn(self) -> bool {
        let flags = TcpFlags::SYN.0 | TcpFlags::ACK.0 | TcpFlags::FIN.0 | TcpFlags::RST.0;
        self.flags.0 & flags == TcpFlags::SYN.0
    }

    /// Whether it is a segment of TCP with an ACK, and without a FIN or RST.
    #[inline]
    pub(crate) const fn is_of_handshake(self) -> bool {
        let flags = TcpFlags::ACK.0 | TcpFlags::FIN.0 | TcpFlags::RST.0;
        self.is_tcp() && self.flags.0 & flags == TcpFlags::ACK.0
    }

    /// Whether the SYN flag is set, of any protocol.
    #[inline]
    pub(crate) const fn has_syn(self) -> bool {
        self.flags.0 & TcpFlags::SYN.0 != 0
    }

    /// Returns whether the packet answers an opening one: its sender is not the initiator.
    pub(crate) fn is_answer(self) -> bool {
        self.flags_of_tcp().contains(TcpFlags::SYN | TcpFlags::ACK)
    }

    /// Returns whether the receiver is the initiator, if the packet is the first one of a flow.
    pub(crate) fn is_to_initiator(self) -> bool {
        match self.initiator() {
            Initiator::ByFlags => self.is_answer(),
            Initiator::Sender => false,
            Initiator::Receiver => true,
        }
    }

    pub(crate) fn flags_of_tcp(self) -> TcpFlags {
        if self.is_tcp() { self.flags } else { TcpFlags(0) }
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packet")
            .field("protocol", &self.protocol())
            .field("flags", &self.flags)
            .field("initiator", &self.initiator())
            .field("tenant", &self.tenant)
            .finish_non_exhaustive()
    }
}
