//! Scripts of the flow cache: its configuration and a sequence of operations.

use std::fmt::Debug;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use arbitrary::Arbitrary;
use flowtable::flow_cache::{
    Class, CloseRule, Config, Emergency, Packet, Protocol, Renewal, Tenant, Timeouts,
};
use flowtable::key::flow::FlowName;
use flowtable::{FiveTuple, FourTuple, TcpFlags, Timestamp};

#[derive(Arbitrary, Debug)]
pub(crate) struct Input {
    pub(crate) setup: Setup,
    pub(crate) policy: Policy,
    pub(crate) five: bool,
    pub(crate) steps: Vec<(When, Op)>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) struct Setup {
    flows: u8,
    first_ack: bool,
    initiator_renews: bool,
    tick: u8,
    timeouts: u8,
    /// The timeout of each class: squared, in hundredths of a second; 0 is never.
    idle: [u8; 4],
    active: u8,
    emergency: Option<[u8; 3]>,
    /// The memory limit in units of 16 bytes.
    pub(crate) bytes: Option<u16>,
    pub(crate) share: Option<(u8, u8)>,
    pub(crate) seed: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Policy {
    ByClass,
    Lru,
    SecondChance,
    Random,
    Passive(u8, u8),
}

/// The change of time before a step, in both directions.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) struct When(pub(crate) u8, pub(crate) u16);

/// A packet of one of 32 keys, in either direction.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) key: u8,
    kind: u8,
    flags: u8,
}

/// An operation. Numbers select live or dead flows.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(crate) enum Op {
    Observe(Sent),
    Burst([Sent; 4], u8, When),
    Advance(u8),
    /// Advances this many years.
    Age(u8, u8),
    AddAlias(u8, u8),
    /// Adds this many more unused names.
    AddNames(u8, u8),
    RemoveKey(u8, u8),
    Remove(u8),
    Pin(u8, bool),
    SetClass(u8, u8),
    Add(u8, u8),
    SetShare(u8, Option<u8>),
    SetClock(When),
    Page(u8),
    PageChanged,
    Save(u8),
    Restore,
    Restart,
    Clear,
    Drain(u8),
    Clone,
}

/// A key made of a number. The flow of number 0 goes from a socket to itself.
pub(crate) trait Key: FlowName + Debug {
    fn make(number: u16) -> Self;

    /// One of 32 keys, in either direction.
    fn of(byte: u8) -> Self {
        let key = Self::make(u16::from(byte / 2 % 32));
        if byte.is_multiple_of(2) { key } else { key.reversed() }
    }
}

impl Key for FiveTuple<Ipv4Addr> {
    fn make(number: u16) -> Self {
        let src = Ipv4Addr::new(10, 0, (number >> 8) as u8, number as u8);
        let dst = if number == 0 { src } else { Ipv4Addr::new(9 + (number % 3) as u8, 0, 0, 0) };
        Self { src, dst, sport: 443, dport: 443, protocol: 6 }
    }
}

impl Key for FourTuple<Ipv6Addr> {
    fn make(number: u16) -> Self {
        let FiveTuple { src, dst, sport, dport, .. } = FiveTuple::make(number);
        Self { src: src.to_ipv6_mapped(), dst: dst.to_ipv6_mapped(), sport, dport }
    }
}

impl Sent {
    pub(crate) fn packet(self) -> Packet {
        let protocol = match self.kind % 8 {
            0..5 => Protocol::Tcp,
            5 => Protocol::Udp,
            6 => Protocol::Icmp,
            _ => Protocol::Other,
        };
        let packet = Packet::new(protocol, TcpFlags(self.flags)).from_tenant(tenant(self.kind / 8));
        if self.kind < 128 { packet } else { packet.with_sequence(self.kind.into()) }
    }
}

pub(crate) fn tenant(byte: u8) -> Tenant {
    Tenant(u32::from(byte % 4))
}

impl When {
    pub(crate) fn from(self, now: Timestamp) -> Timestamp {
        let Self(kind, amount) = self;
        let (now, amount) = (now.as_nanos(), u64::from(amount));
        Timestamp::from_nanos(match kind % 8 {
            0 | 1 => now,
            2 => now.saturating_add(amount),
            3 => now.saturating_add(amount * 1_000_000),
            4 => now.saturating_add(amount * 1_000_000_000),
            5 => now.saturating_add(amount * DAY),
            6 => now.saturating_sub(amount * 1_000_000),
            _ => amount * (u64::MAX / u64::from(u16::MAX)),
        })
    }
}

const DAY: u64 = 24 * 3600 * 1_000_000_000;

impl Setup {
    pub(crate) fn config(self) -> Config {
        let flows = self.capacity();
        let tick = [1, 10_000_000, 1_000_000_000, 3_600_000_000_000][usize::from(self.tick % 4)];
        let rule = if self.first_ack { CloseRule::FirstAck } else { CloseRule::BothSides };
        let config = Config::new(flows).expect("the capacity is positive");
        let renewal = if self.initiator_renews { Renewal::Initiator } else { Renewal::BothSides };
        let config = config.with_timeouts(self.timeouts()).with_close_rule(rule);
        let config = config.with_renewal(renewal);
        let mut config = config.with_tick(Duration::from_nanos(tick)).expect("at most an hour");
        if let Some((enter, leave, idle)) = self.emergency() {
            let idle = Duration::from_millis(10 * (1 + u64::from(idle)));
            let emergency = Emergency::new(enter, leave, idle).expect("it leaves below its entry");
            config = config.with_emergency(emergency).expect("it enters in time");
        }
        match self.max_bytes() {
            Some(bytes) => config.with_max_bytes(bytes).expect("the limit is above the minimum"),
            None => config,
        }
    }

    pub(crate) fn capacity(self) -> usize {
        1 + usize::from(self.flows % 20)
    }

    pub(crate) fn max_bytes(self) -> Option<usize> {
        self.bytes.map(|bytes| Config::MIN_BYTES + 16 * usize::from(bytes))
    }

    /// Enter, leave, and the timeout of idle flows.
    pub(crate) fn emergency(self) -> Option<(usize, usize, u8)> {
        let [enter, leave, idle] = self.emergency?;
        let enter = 1 + usize::from(enter) % self.capacity();
        Some((enter, 1 + usize::from(leave) % enter, idle))
    }

    fn timeouts(self) -> Timeouts {
        let time = |byte: u8, factor: u64| {
            let byte = u64::from(byte);
            (byte > 0).then(|| Duration::from_millis(10 * byte * byte * factor))
        };
        let mut timeouts = match self.timeouts % 8 {
            0 => return Timeouts::CONNTRACK,
            1 => return Timeouts::METER,
            2 => return Timeouts::OFF,
            _ => Timeouts::OFF,
        };
        for (class, byte) in Class::ALL.into_iter().zip(self.idle) {
            for (protocol, factor) in Protocol::ALL.into_iter().zip(1..) {
                timeouts = timeouts
                    .with_idle(protocol, class, time(byte, factor))
                    .expect("the timeout is short");
            }
        }
        timeouts.with_active(time(self.active, 1)).expect("the timeout is short")
    }
}
