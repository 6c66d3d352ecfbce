//! Connection state and timeouts of flows.
//!
//! ```text
//!                                   SYN │                 │ any other packet
//!                                       ▼      both sides ▼
//!                                 ┌───────────┐ (not TCP) ┌───────────┐
//!                                 │    New    │ ◂──────── │ Unreplied │
//!                                 └─────┬─────┘           └─────┬─────┘
//!                 assured               └──────┐         ┌──────┘  assured (TCP met half-way)
//!                                              ▼         ▼
//!                                            ┌─────────────┐
//!           a FIN of each side, or           │ Established │
//!           a RST at any time                └──────┬──────┘
//!                                                   ▼
//!                                             ┌───────────┐
//!           a SYN: another flow  ◂─────────── │  Closing  │ ───────▸  idle timeout: ended
//!                                             └───────────┘
//! ```
//!
//! Only flows that are *assured* are established, and protected from floods:
//!
//! - **TCP**: by a complete handshake, a SYN with an ACK of one side and then an ACK of the other;
//!   or, if the handshake was not observed, by acknowledgements of both sides: an ACK of one side,
//!   then of the other, then of the first. A RST acknowledges nothing.
//! - **Other protocols**: when both sides have sent, and the flow has lived for some packets or
//!   some time: [`Assurance`]. An exchange of a query and its answer stays new.
//!
//! So answers of a server do not make its attacker's flows established: a flood of SYNs that are
//! answered or refused, of stray ACKs answered by RSTs, or of datagrams that are answered once
//! evicts itself.
//!
//! Flows of other protocols than TCP begin as unreplied, and so does a connection whose beginning
//! was not observed. The sender of the first packet is the initiator, unless the packet is a SYN
//! with an ACK: then its receiver is. A caller that knows better sets it: [`Initiator`].
//!
//! A closing flow *lingers*: its last acknowledgement and other packets in flight still find it,
//! and do not look like another flow of one packet. A SYN shows that its sockets are reused; an
//! answer to a SYN that was not observed does not, since it may be late. Where a flow is to last
//! over several connections,
//! [`Config::with_socket_reuse`](crate::flow_cache::Config::with_socket_reuse) turns
//! that off: then the SYN makes the flow new again.
//!
//! Keys without a direction, and keys of sockets connected to themselves, have no reverse
//! direction: their flows stay new or unreplied. Callers with other information use
//! [`FlowCache::set_class`](crate::FlowCache::set_class).
//!
//! Sequence numbers are not tracked. An attacker that can forge a RST can have a flow closed, which
//! costs its entry in the table and not the connection; a caller that has to distrust RSTs filters
//! them first.
//!
//! Papers: the rule [`CloseRule::FirstAck`] is the active garbage collection of Olsson and Nilsson,
//! *TRASH*, section 4. Names of the reasons: RFC 7011 and the registry of IPFIX, `flowEndReason`.

use core::fmt;
use core::time::Duration;

pub use crate::key::FinWatch;
use crate::key::flow::Direction;

pub use super::properties::{Initiator, Packet, Protocol, Tenant};

pub(crate) const SECOND: u64 = 1_000_000_000;

/// The class of a flow, in the order in which a full table evicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Class {
    /// Closed by both sides, or reset: the flow lingers.
    Closing,
    /// A connection whose handshake is not complete, or an exchange of another protocol that is too
    /// short to be assured.
    New,
    /// Packets in one direction only; or a connection that was met half-way and is not assured.
    Unreplied,
    /// Assured: a complete handshake, or packets in both directions for some time.
    Established,
}

impl Class {
    /// All classes, in order.
    pub const ALL: [Self; 4] = [Self::Closing, Self::New, Self::Unreplied, Self::Established];

    /// Returns the class with the number in the lowest two bits.
    #[inline]
    pub(crate) const fn of(bits: u64) -> Self {
        match bits & 3 {
            0 => Self::Closing,
            1 => Self::New,
            2 => Self::Unreplied,
            _ => Self::Established,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Closing => "closing",
            Self::New => "new",
            Self::Unreplied => "unreplied",
            Self::Established => "established",
        })
    }
}

/// The reason for the end of a flow, or for a report of it: `flowEndReason` of IPFIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum EndReason {
    /// The idle timeout.
    Idle,
    /// The active timeout: the flow is reported, and has not ended.
    Active,
    /// The end of the connection: it has lingered, or another flow reuses its sockets.
    Ended,
    /// A call that removes flows.
    Forced,
    /// An eviction, or an emergency.
    Resources,
}

impl EndReason {
    /// The reason for the end of a flow of a class by its idle timeout.
    #[inline]
    pub(crate) fn of_idle(class: Class) -> Self {
        if class == Class::Closing { Self::Ended } else { Self::Idle }
    }

    /// All reasons, in the order of their codes.
    pub const ALL: [Self; 5] =
        [Self::Idle, Self::Active, Self::Ended, Self::Forced, Self::Resources];

    /// Returns the code of IPFIX.
    ///
    /// ```
    /// use flowtable::flow_cache::EndReason;
    ///
    /// assert_eq!(EndReason::ALL.map(EndReason::code), [1, 2, 3, 4, 5]);
    /// ```
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Idle => "idle",
            Self::Active => "active",
            Self::Ended => "ended",
            Self::Forced => "forced",
            Self::Resources => "lack of resources",
        })
    }
}

/// The rule by which a TCP connection counts as closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum CloseRule {
    /// After a FIN of each side, or a RST.
    #[default]
    BothSides,
    /// After a FIN and a later acknowledgement of one side, or a RST: the active garbage collection
    /// of the TRASH paper. A connection that is closed on one side only, while the other still
    /// sends, counts as closed: that is acceptable for a cache, and wrong for a table that has to
    /// track open connections.
    FirstAck,
}

/// Which packets renew the idle timeout of a flow.
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::{Config, Packet, Renewal};
/// use flowtable::{FlowCache, FourTuple, Timestamp};
///
/// // An outsider cannot keep a mapping open: it ends 2 min after the last packet from inside.
/// let config = Config::new(100)?.with_renewal(Renewal::Initiator);
/// assert_eq!(config.renewal(), Renewal::Initiator);
/// let mut cache: FlowCache<FourTuple<u32>, ()> = FlowCache::new(config);
/// let inside = FourTuple { src: 10, dst: 90, sport: 5000, dport: 53 };
/// cache.observe(&inside, Packet::UDP, Timestamp::ZERO)?;
/// for (second, is_found) in [(1, true), (29, true), (119, true), (120, false)] {
///     let (answer, now) = (inside.reversed(), Timestamp::from_secs(second));
///     let seen = cache.try_observe_with(&answer, Packet::UDP, now, || Err("no mapping"));
///     assert_eq!(seen.is_ok(), is_found);
/// }
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Renewal {
    /// Packets of both sides.
    #[default]
    BothSides,
    /// Packets of the initiator only: RFC 4787 has rules for address translation (REQ-6), where an
    /// outsider shall not keep a mapping open. The time of the last packet of a flow is the time of
    /// the initiator's last packet then, in reports, too. Each packet takes the longer path.
    Initiator,
}

impl Renewal {
    /// Whether a packet of this direction renews the timeout.
    #[inline]
    pub(crate) const fn is_by(self, direction: Direction) -> bool {
        matches!(self, Self::BothSides) || matches!(direction, Direction::Forward)
    }
}

/// The packets or the age that assure a flow of a protocol other than TCP.
///
/// Both sides must have sent.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::flow_cache::{Assurance, Class, Config, Packet};
/// use flowtable::{FlowCache, FourTuple, Timestamp};
///
/// let assurance = Assurance::new(3, Duration::from_secs(5));
/// let config = Config::new(100)?.with_assurance(assurance);
/// let mut cache: FlowCache<FourTuple<u32>, ()> = FlowCache::new(config);
/// let key = FourTuple { src: 10, dst: 20, sport: 5353, dport: 53 };
/// let mut class = |key, second| {
///     cache.observe(&key, Packet::UDP, Timestamp::from_secs(second)).map(|seen| seen.class)
/// };
/// assert_eq!(class(key, 0)?, Class::Unreplied);
/// assert_eq!(class(key.reversed(), 1)?, Class::New);
/// assert_eq!(class(key, 2)?, Class::Established);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(from = "crate::flow_cache::serial::UncheckedAssurance"),
    serde(into = "crate::flow_cache::serial::UncheckedAssurance")
)]
pub struct Assurance {
    pub(crate) packets: u8,
    /// Nanoseconds.
    pub(crate) age: u64,
}

impl Assurance {
    /// The greatest number of packets.
    pub const MAX_PACKETS: u8 = 7;

    /// Six packets, or two seconds. The latter is the rule of Linux.
    pub const DEFAULT: Self = Self { packets: 6, age: 2 * SECOND };

    /// Creates a rule: a flow is assured with `packets` packets, at most
    /// [`MAX_PACKETS`](Self::MAX_PACKETS), or with a packet when it is `age` old.
    #[must_use]
    pub const fn new(packets: u8, age: Duration) -> Self {
        let packets = if packets > Self::MAX_PACKETS { Self::MAX_PACKETS } else { packets };
        let nanos = age.as_nanos();
        let age = if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 };
        Self { packets, age }
    }

    /// Returns whether a flow of this age is assured, in nanoseconds.
    #[inline]
    pub(crate) const fn is_old(self, age: u64) -> bool {
        age >= self.age
    }

    /// Returns whether a flow is assured, of which both sides have sent.
    #[inline]
    pub(crate) fn is_reached(self, packets: u8, age: impl FnOnce() -> u64) -> bool {
        packets >= self.packets || self.is_old(age())
    }
}

impl Default for Assurance {
    fn default() -> Self {
        Self::DEFAULT
    }
}
