//! A firewall that admits control connections, and the data connections that they announce.

use core::time::Duration;
use std::net::SocketAddrV4;

use flowtable::flow_cache::{
    Config, ConfigError, Event, ExpectError, Expectations, Expected, Handle, ObserveError, Packet,
    Source, Timeouts,
};
use flowtable::{FlowCache, Timestamp};

use super::announcement::{self, Malformed};
use super::segment::{Key, Segment};

/// The port of control connections.
pub const CONTROL: u16 = 21;

/// An admitted packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// A packet of a control connection.
    Control(Handle),
    /// A packet of a control connection, and the socket at which a data connection is expected.
    Announcement(Handle, SocketAddrV4),
    /// A packet of a data connection, and the control connection that announced it.
    Data(Handle, Handle),
}

/// The reason why a packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Neither a control connection nor an expected one.
    NotExpected,
    /// The flow table takes no new flow.
    Full,
    /// An announcement with an error.
    Malformed(Malformed),
    /// The announced socket is not the sender's, or that of a service: RFC 2577.
    Foreign(SocketAddrV4),
    /// The table of expected flows takes no more.
    Expect(ExpectError),
}

/// A flow that has ended, and those that have ended with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub key: Key,
    pub children: Vec<Key>,
}

/// Connections, each with its parent, and expected ones.
pub struct Firewall {
    flows: FlowCache<Key, Option<Handle>>,
    expectations: Expectations<Key>,
}

impl Firewall {
    /// The time within which an announced data connection begins.
    pub const WITHIN: Duration = Duration::from_secs(60);

    pub fn new(most: usize) -> Result<Self, ConfigError> {
        let flows = FlowCache::new(Config::new(most)?.with_timeouts(Timeouts::CONNTRACK));
        Ok(Self { flows, expectations: Expectations::new(most) })
    }

    /// Decides about a packet.
    pub fn admit(&mut self, segment: &Segment<'_>, now: Timestamp) -> Result<Admitted, Refused> {
        let Segment { key, flags, payload } = *segment;
        let related = self.expectations.find(&key, now);
        let parent = || match related {
            Some(related) => Ok(Some(related.parent)),
            None if key.dport == CONTROL => Ok(None),
            None => Err(Refused::NotExpected),
        };
        let seen = self.flows.try_observe_with(&key, Packet::tcp(flags), now, parent);
        let mut seen = seen.map_err(|error| match error {
            ObserveError::New(refused) => refused,
            ObserveError::Refused(_) => Refused::Full,
        })?;
        let (flow, parent, removed) = (seen.handle(), *seen.flow, seen.take_removed());
        if let (true, Some(_)) = (seen.fresh, related) {
            self.expectations.begin(&key, flow, now);
        }
        if let Some(removed) = removed {
            self.end_children(removed.handle);
        }
        match (parent, payload) {
            (Some(parent), _) => Ok(Admitted::Data(flow, parent)),
            (None, payload) => self.expect(flow, key, payload, now),
        }
    }

    /// Expects the connection that a packet of a control connection announces, if it does.
    fn expect(
        &mut self,
        control: Handle,
        key: Key,
        payload: &[u8],
        now: Timestamp,
    ) -> Result<Admitted, Refused> {
        let is_client = key.dport == CONTROL;
        let of = if is_client { announcement::of_client } else { announcement::of_server };
        let Some(announced) = of(payload) else { return Ok(Admitted::Control(control)) };
        let socket = announced.map_err(Refused::Malformed)?;
        if *socket.ip() != key.src || socket.port() < 1024 {
            return Err(Refused::Foreign(socket));
        }
        // The receiver of the announcement connects, from any port, to its sender.
        let data = Key { src: key.dst, dst: key.src, sport: 0, dport: socket.port() };
        let expected = Expected::new(data).from_source(Source::AnyPort).ending_with_parent();
        let expected = self.expectations.expect(control, expected.within(Self::WITHIN), now);
        expected.map(|()| Admitted::Announcement(control, socket)).map_err(Refused::Expect)
    }

    /// Ends flows whose timeouts have passed, and those that end with them.
    pub fn advance(&mut self, now: Timestamp) -> Vec<Ended> {
        let mut ended = vec![];
        self.flows.advance(now, usize::MAX, |event| {
            if let Event::Ended(flow) = event {
                ended.push((flow.handle, flow.key));
            }
        });
        let with_children = |(flow, key)| Ended { key, children: self.end_children(flow) };
        ended.into_iter().map(with_children).collect()
    }

    /// Ends the children of a flow that has ended, and forgets what it expects.
    fn end_children(&mut self, flow: Handle) -> Vec<Key> {
        let children = self.expectations.end(flow);
        let end = |child| {
            self.expectations.end(child);
            Some(self.flows.remove(child)?.key)
        };
        children.into_iter().filter_map(end).collect()
    }
}
