//! The life of a flow: what its packets make of it, and how long it may be silent.
//!
//! ```text
//!                                   SYN │                 │ any other packet
//!                                       ▼                 ▼
//!                                 ┌───────────┐     ┌───────────┐
//!                                 │    New    │     │ Unreplied │
//!                                 └─────┬─────┘     └─────┬─────┘
//!           answered and acknowledged   └──────┐   ┌──────┘   a packet of the other direction
//!                                              ▼   ▼
//!                                         ┌─────────────┐
//!           a FIN of each side, or        │ Established │
//!           a RST at any time             └──────┬──────┘
//!                                                ▼
//!                                          ┌───────────┐
//!           a SYN: another flow  ◂──────── │  Closing  │ ────────▸  silent long enough: over
//!                                          └───────────┘
//! ```
//!
//! Only TCP is new or closing; flows of other protocols begin as unreplied. A connection whose
//! beginning was not seen does, too. The first packet says who the initiator is, unless it is a
//! SYN with an ACK: then that is who gets it.
//!
//! A closing flow *lingers*: its last acknowledgement, and what else was under way, still find it, and
//! do not look like another flow of one packet. A SYN tells that its sockets are used again; an answer to a
//! SYN that was not seen does not, since it may be late.
//!
//! Names of one direction only, and those of sockets that talk to themselves, have no other direction: their
//! flows stay new or unreplied. Who knows better says so: [`FlowCache::set_class`](crate::FlowCache::set_class).
//!
//! Sequence numbers are not followed. Who can forge a RST can have a flow closed, which costs its entry
//! in a table and not the connection; who must not believe a RST decides before the table sees it.
//!
//! Papers: the rule [`CloseRule::FirstAck`] is the active garbage collection of Olsson and Nilsson,
//! *TRASH*, section 4. Names of the reasons: RFC 7011 and the registry of IPFIX, `flowEndReason`.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::key::flow::{Direction, TcpFlags};

/// What a flow's timeouts depend on, besides its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Protocol {
    /// The only one whose packets say where in its life a flow is.
    Tcp,
    /// UDP, and what is like it.
    Udp,
    /// Echo and the like, of either version of IP.
    Icmp,
    /// All others.
    Other,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tcp, Self::Udp, Self::Icmp, Self::Other];
}

/// By the number that IP has for it.
impl From<u8> for Protocol {
    #[inline]
    fn from(number: u8) -> Self {
        match number {
            6 => Self::Tcp,
            17 => Self::Udp,
            1 | 58 => Self::Icmp,
            _ => Self::Other,
        }
    }
}

/// A tenant, zone or VRF whose flows are counted, so that it can be given a share of a table.
///
/// The default, number 0, is nobody: its flows are not counted, and it has no share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tenant(pub u16);

/// What a packet says about the life of its flow.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    protocol: Protocol,
    flags: TcpFlags,
    tenant: Tenant,
}

impl Packet {
    /// A datagram.
    pub const UDP: Self = Self::new(Protocol::Udp, TcpFlags(0));
    /// A message of ICMP.
    pub const ICMP: Self = Self::new(Protocol::Icmp, TcpFlags(0));
    /// A packet of another protocol.
    pub const OTHER: Self = Self::new(Protocol::Other, TcpFlags(0));

    /// A packet of a protocol; the flags count if that is TCP.
    #[inline]
    #[must_use]
    pub const fn new(protocol: Protocol, flags: TcpFlags) -> Self {
        Self { protocol, flags, tenant: Tenant(0) }
    }

    /// A segment of TCP with these flags.
    #[inline]
    #[must_use]
    pub const fn tcp(flags: TcpFlags) -> Self {
        Self::new(Protocol::Tcp, flags)
    }

    /// The same packet, of a tenant. A flow belongs to the tenant of its first packet, or to that of the flow
    /// whose sockets it has taken over.
    #[inline]
    #[must_use]
    pub const fn from_tenant(self, tenant: Tenant) -> Self {
        Self { tenant, ..self }
    }

    /// Its protocol.
    #[must_use]
    pub const fn protocol(self) -> Protocol {
        self.protocol
    }

    /// Its tenant.
    #[must_use]
    pub const fn tenant(self) -> Tenant {
        self.tenant
    }

    /// Whether it says nothing but that its flow lives.
    #[inline]
    pub(crate) const fn is_plain(self) -> bool {
        self.flags.0 & (TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0) == 0
    }

    /// Whether it opens a connection, and is no answer.
    pub(crate) fn is_opening(self) -> bool {
        self.flags_of_tcp().0 & (TcpFlags::SYN | TcpFlags::ACK | TcpFlags::RST).0 == TcpFlags::SYN.0
    }

    /// Whether it answers one that opens a connection: its sender is not who began.
    pub(crate) fn is_answer(self) -> bool {
        self.flags_of_tcp().contains(TcpFlags::SYN | TcpFlags::ACK)
    }

    fn flags_of_tcp(self) -> TcpFlags {
        if self.protocol == Protocol::Tcp { self.flags } else { TcpFlags(0) }
    }
}

/// Where in its life a flow is. In this order flows are given up when a table is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Class {
    /// Closed by both sides, or reset: it lingers.
    Closing,
    /// A connection whose handshake is not complete.
    New,
    /// Packets of one direction only.
    Unreplied,
    /// Packets of both directions.
    Established,
}

impl Class {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::Closing, Self::New, Self::Unreplied, Self::Established];
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

/// Why a flow, or a report of it, ended: `flowEndReason` of IPFIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum EndReason {
    /// It was silent for its idle timeout.
    Idle,
    /// It lives, but was not reported for the active timeout.
    Active,
    /// Its packets said so: it lingered, or another flow has its sockets.
    Ended,
    /// The caller said so.
    Forced,
    /// There was no room for it.
    Resources,
}

impl EndReason {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 5] =
        [Self::Idle, Self::Active, Self::Ended, Self::Forced, Self::Resources];

    /// The number that IPFIX has for it.
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

/// When a TCP connection counts as closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CloseRule {
    /// When both sides have sent a FIN, or one a RST.
    #[default]
    BothSides,
    /// When a side that has sent a FIN acknowledges something, or one sends a RST: the active garbage
    /// collection of the TRASH paper. A connection that is closed on one side only, while the
    /// other still sends, counts as closed: a cache loses little by that, a table that must
    /// know open connections is wrong.
    FirstAck,
}

/// Watches one direction of a TCP connection for its end: the paper's active garbage collection.
///
/// ```text
///     A → B   FIN ACK     A's direction is marked
///     B → A   FIN ACK     B's direction is marked
///     A → B   ACK         marked, and no FIN: over, both directions may go
/// ```
///
/// Keep one with each direction's entry and feed it that direction's flags. A reset ends it at once,
/// and a new SYN on the same sockets begins it anew. A connection that is closed on one side only
/// counts as over at the next ACK from that side: that costs a cache one miss, but a table that must
/// know open connections asks that both directions be [closed](Self::is_closed).
///
/// # Example
///
/// ```
/// use flowtable::flow_cache::FinWatch;
/// use flowtable::TcpFlags;
///
/// let mut direction = FinWatch::default();
/// assert!(!direction.observe(TcpFlags::ACK));
/// assert!(!direction.observe(TcpFlags::FIN | TcpFlags::ACK));
/// assert!(direction.is_closed());
/// assert!(direction.observe(TcpFlags::ACK));
/// assert!(FinWatch::default().observe(TcpFlags::RST));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FinWatch {
    closed: bool,
}

impl FinWatch {
    /// Sees the flags of the next segment; whether the connection is over with it.
    #[must_use]
    pub fn observe(&mut self, flags: TcpFlags) -> bool {
        if flags.contains(TcpFlags::RST) {
            return true;
        }
        if flags.contains(TcpFlags::SYN) {
            self.closed = false;
            return false;
        }
        if flags.contains(TcpFlags::FIN) {
            self.closed = true;
            return false;
        }
        self.closed && flags.contains(TcpFlags::ACK)
    }

    /// Whether a FIN was seen in this direction.
    #[must_use]
    pub const fn is_closed(self) -> bool {
        self.closed
    }
}

/// Where a flow is in the picture above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Course {
    pub(crate) class: Class,
    pub(crate) protocol: Protocol,
    /// Whether there was a packet of the other direction.
    is_replied: bool,
    /// By direction.
    sides: [FinWatch; 2],
}

impl Course {
    /// The first packet of a flow, and its direction.
    pub(crate) fn begin(packet: Packet, direction: Direction, rule: CloseRule) -> Self {
        let is_handshake = packet.flags_of_tcp().contains(TcpFlags::SYN);
        let class = if is_handshake { Class::New } else { Class::Unreplied };
        let mut course = Self {
            class,
            protocol: packet.protocol,
            is_replied: false,
            sides: [FinWatch::default(); 2],
        };
        course.see(packet, direction, rule);
        course
    }

    /// Whether plain packets leave it as it is, as nearly all do.
    #[inline]
    pub(crate) fn is_steady(&self, rule: CloseRule) -> bool {
        self.class == Class::Established
            && (rule == CloseRule::BothSides || !self.sides.iter().any(|side| side.is_closed()))
    }

    /// A packet of the flow.
    pub(crate) fn see(&mut self, packet: Packet, direction: Direction, rule: CloseRule) {
        let is_reverse = direction == Direction::Reverse;
        if self.protocol != Protocol::Tcp || packet.protocol != Protocol::Tcp {
            self.is_replied |= is_reverse;
            if self.class == Class::Unreplied && self.is_replied {
                self.class = Class::Established;
            }
            return;
        }
        let flags = packet.flags;
        let is_over = self.sides[usize::from(is_reverse)].observe(flags);
        let is_closed = match rule {
            CloseRule::FirstAck => is_over,
            CloseRule::BothSides => {
                flags.contains(TcpFlags::RST) || self.sides.iter().all(|side| side.is_closed())
            }
        };
        let is_acknowledged = flags.0 & (TcpFlags::SYN | TcpFlags::ACK).0 == TcpFlags::ACK.0;
        self.class = match self.class {
            _ if is_closed => Class::Closing,
            // Who answers and goes on without a SYN has got the acknowledgement.
            Class::New if is_acknowledged && (self.is_replied || is_reverse) => Class::Established,
            Class::Unreplied if is_reverse => Class::Established,
            class => class,
        };
        self.is_replied |= is_reverse;
    }
}

/// How long flows may be silent, by protocol and class, and how long they may go unreported.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use flowtable::flow_cache::{Class, Protocol, Timeouts};
///
/// let timeouts = Timeouts::CONNTRACK
///     .with_idle(Protocol::Udp, Class::Unreplied, Duration::from_secs(10))?
///     .with_active(Duration::from_secs(300))?;
/// assert_eq!(timeouts.idle(Protocol::Udp, Class::Unreplied), Some(Duration::from_secs(10)));
/// assert!(timeouts.with_active(Duration::ZERO).is_err());
/// assert_eq!(timeouts.with_active(None)?.active(), None);
/// # Ok::<(), flowtable::flow_cache::TimeoutError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Nanoseconds, by protocol and class; [`NEVER`] is none.
    idle: [[u64; 4]; 4],
    active: u64,
}

/// As good as no timeout.
pub(crate) const NEVER: u64 = u64::MAX;

const SECOND: u64 = 1_000_000_000;

impl Timeouts {
    /// The longest timeout: 292 years.
    pub const MAX: Duration = Duration::from_nanos(u64::MAX / 2);

    /// Those of connection tracking and address translation, which must not forget what is open:
    ///
    /// | | closing | new | unreplied | established |
    /// |---|--:|--:|--:|--:|
    /// | TCP | 120 s | 60 s | 300 s | 7440 s |
    /// | UDP | 30 s | 30 s | 30 s | 120 s |
    /// | ICMP | 30 s | 30 s | 30 s | 60 s |
    /// | others | 60 s | 60 s | 60 s | 600 s |
    ///
    /// and no active timeout. The established ones are the least that RFC 5382 (TCP), RFC 4787 (UDP)
    /// and RFC 5508 (ICMP) allow; the others are about those of Linux.
    pub const CONNTRACK: Self = Self {
        idle: [
            [120 * SECOND, 60 * SECOND, 300 * SECOND, 7440 * SECOND],
            [30 * SECOND, 30 * SECOND, 30 * SECOND, 120 * SECOND],
            [30 * SECOND, 30 * SECOND, 30 * SECOND, 60 * SECOND],
            [60 * SECOND, 60 * SECOND, 60 * SECOND, 600 * SECOND],
        ],
        active: NEVER,
    };

    /// Those of a flow meter: 60 seconds of silence end a flow, 5 if it is closing; and it is reported
    /// every 300 seconds. The first and the last are the defaults of nfdump.
    pub const METER: Self = Self {
        idle: [[5 * SECOND, 60 * SECOND, 60 * SECOND, 60 * SECOND]; 4],
        active: 300 * SECOND,
    };

    /// None: flows live until someone ends them.
    pub const OFF: Self = Self { idle: [[NEVER; 4]; 4], active: NEVER };

    /// How long a flow of this protocol and class may be silent; `None` is for ever.
    #[must_use]
    pub const fn idle(&self, protocol: Protocol, class: Class) -> Option<Duration> {
        period(self.idle_nanos(protocol, class))
    }

    /// How long a flow may go unreported; `None` is for ever.
    #[must_use]
    pub const fn active(&self) -> Option<Duration> {
        period(self.active)
    }

    /// With another idle timeout for one protocol and class.
    ///
    /// # Errors
    ///
    /// If the timeout is 0, or longer than [`MAX`](Self::MAX).
    pub fn with_idle(
        mut self,
        protocol: Protocol,
        class: Class,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<Self, TimeoutError> {
        self.idle[protocol as usize][class as usize] = nanos(timeout.into())?;
        Ok(self)
    }

    /// With the same idle timeout for all protocols and classes.
    ///
    /// # Errors
    ///
    /// As [`with_idle`](Self::with_idle).
    ///
    /// # Example
    ///
    /// ```
    /// use core::time::Duration;
    /// use flowtable::flow_cache::{Class, Protocol, Timeouts};
    ///
    /// let minute = Duration::from_secs(60);
    /// let timeouts = Timeouts::CONNTRACK.with_all_idle(minute)?;
    /// assert_eq!(timeouts.idle(Protocol::Tcp, Class::Established), Some(minute));
    /// # Ok::<(), flowtable::flow_cache::TimeoutError>(())
    /// ```
    pub fn with_all_idle(
        mut self,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<Self, TimeoutError> {
        self.idle = [[nanos(timeout.into())?; 4]; 4];
        Ok(self)
    }

    /// With another active timeout.
    ///
    /// # Errors
    ///
    /// As [`with_idle`](Self::with_idle).
    pub fn with_active(
        mut self,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<Self, TimeoutError> {
        self.active = nanos(timeout.into())?;
        Ok(self)
    }

    pub(crate) const fn idle_nanos(&self, protocol: Protocol, class: Class) -> u64 {
        self.idle[protocol as usize][class as usize]
    }

    pub(crate) const fn active_nanos(&self) -> u64 {
        self.active
    }
}

/// Those of connection tracking.
impl Default for Timeouts {
    fn default() -> Self {
        Self::CONNTRACK
    }
}

const fn period(nanos: u64) -> Option<Duration> {
    if nanos == NEVER { None } else { Some(Duration::from_nanos(nanos)) }
}

/// The nanoseconds of a timeout that may be one.
pub(crate) fn nanos(timeout: Option<Duration>) -> Result<u64, TimeoutError> {
    match timeout {
        None => Ok(NEVER),
        Some(Duration::ZERO) => Err(TimeoutError::Zero),
        Some(timeout) if timeout > Timeouts::MAX => Err(TimeoutError::TooLong),
        Some(timeout) => Ok(timeout.as_nanos() as u64),
    }
}

/// Why a timeout was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeoutError {
    /// A flow would end with its first packet.
    Zero,
    /// Longer than [`Timeouts::MAX`]: `None` is for ever.
    TooLong,
}

impl fmt::Display for TimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => write!(f, "timeout of 0: a flow would end with its first packet"),
            Self::TooLong => write!(f, "timeout longer than {} s", Timeouts::MAX.as_secs()),
        }
    }
}

impl Error for TimeoutError {}
