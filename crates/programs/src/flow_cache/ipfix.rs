//! Encoding of IPFIX messages, RFC 7011, as far as a flow meter needs it.
//!
//! ```text
//!     │ 10 │ length │ export time │ sequence │ domain │       16 bytes
//!     │ set 2 │ length │ template 256 │ template 257 │ …       layouts of records, periodically
//!     │ set 256 │ length │ record │ record │ …                 of IPv4
//!     │ set 257 │ length │ record │ …                          of IPv6
//! ```
//!
//! A record is one direction of a flow: `flowId` is equal for both, and `biflowDirection` marks the
//! initiator's. By option, a record has both directions, RFC 5103, if both have packets. ICMP has
//! templates of its own: a collector could take its type and code for a port of another protocol.
//! Times are in milliseconds.

use core::net::IpAddr;

use capture::Mac;
use flowtable::flow_cache::EndReason;
use flowtable::{Direction, FlowKey};

use super::biflow::Counters;
use super::mac_table::RecordMacs;
use super::record::{Record, is_icmp, ports};

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Source,
    Destination,
    SourcePort,
    DestinationPort,
    Protocol,
    Flags,
    Icmp,
    Vlan,
    InnerVlan,
    SourceMac,
    DestinationMac,
    Packets,
    Bytes,
    First,
    Last,
    FlowId,
    EndReason,
    Direction,
}

/// A field of a record.
#[derive(Clone, Copy, Debug)]
struct Field {
    /// The number of the information element.
    element: u16,
    /// Bytes of the value.
    length: u16,
    value: Value,
    /// Whether the value is that of the other direction.
    is_reverse: bool,
}

impl Field {
    const fn new(element: u16, length: u16, value: Value) -> Self {
        Self { element, length, value, is_reverse: false }
    }
}

/// The content of records that is optional.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Content {
    /// Whether a record has both directions, if both have packets.
    pub(crate) has_both: bool,
    /// Whether a record has the VLANs of its flow.
    pub(crate) has_vlan: bool,
    /// Whether a record has the MAC addresses of its first packets.
    pub(crate) has_mac: bool,
}

/// The layout of a kind of records.
#[derive(Clone, Debug)]
struct Template {
    id: u16,
    fields: Vec<Field>,
}

/// The kind of a record: it determines the template.
#[derive(Clone, Copy, Debug)]
struct Kind {
    is_v6: bool,
    is_icmp: bool,
    has_both: bool,
}

impl Kind {
    /// The number of the first template.
    const FIRST: u16 = 256;

    const fn of(number: u16) -> Self {
        Self { is_v6: number & 1 > 0, is_icmp: number & 2 > 0, has_both: number & 4 > 0 }
    }

    fn number(self) -> usize {
        usize::from(self.is_v6) + 2 * usize::from(self.is_icmp) + 4 * usize::from(self.has_both)
    }

    fn fields(self, content: Content) -> Vec<Field> {
        let [source, destination, icmp] = match self.is_v6 {
            false => [(8, 4), (12, 4), (32, 2)],
            true => [(27, 16), (28, 16), (139, 2)],
        };
        let mut both = vec![
            // Of 16 bits, of which the upper ones are never counted: not all collectors read two
            // bytes. RFC 7011 calls it reduced-size encoding.
            Field::new(6, 1, Value::Flags),
            Field::new(2, 8, Value::Packets),
            Field::new(1, 8, Value::Bytes),
            Field::new(152, 8, Value::First),
            Field::new(153, 8, Value::Last),
        ];
        if self.is_icmp {
            both.push(Field::new(icmp.0, icmp.1, Value::Icmp));
        }
        if content.has_mac {
            both.push(Field::new(56, 6, Value::SourceMac));
            both.push(Field::new(80, 6, Value::DestinationMac));
        }
        let mut fields = vec![];
        if self.has_both {
            // Before the forward ones: nfcapd reads most of the reverse elements as the forward
            // ones, and the last value of an element replaces the others.
            fields.extend(both.iter().map(|field| Field { is_reverse: true, ..*field }));
        }
        fields.extend([
            Field::new(source.0, source.1, Value::Source),
            Field::new(destination.0, destination.1, Value::Destination),
            Field::new(7, 2, Value::SourcePort),
            Field::new(11, 2, Value::DestinationPort),
            Field::new(4, 1, Value::Protocol),
        ]);
        fields.extend(both);
        if content.has_vlan {
            // `vlanId`, for collectors that do not read `dot1qVlanId`, which is the same number.
            fields.push(Field::new(58, 2, Value::Vlan));
            fields.push(Field::new(243, 2, Value::Vlan));
            fields.push(Field::new(245, 2, Value::InnerVlan));
        }
        fields.push(Field::new(148, 8, Value::FlowId));
        fields.push(Field::new(136, 1, Value::EndReason));
        fields.push(Field::new(239, 1, Value::Direction));
        fields
    }
}

/// One record to encode.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    record: &'a Record,
    /// The key in the direction of the record.
    key: FlowKey,
    direction: Direction,
    counters: &'a Counters,
    /// The counters of the other direction, if the record has them.
    other: Option<&'a Counters>,
}

impl<'a> Row<'a> {
    /// Returns the rows of a record: one for each direction with packets, or one for both.
    pub(crate) fn all(record: &'a Record, has_both: bool) -> impl Iterator<Item = Self> {
        let (forward, reverse) = (&record.counted.forward, &record.counted.reverse);
        let is_both = has_both && forward.packets > 0 && reverse.packets > 0;
        let other = is_both.then_some(reverse);
        let there = Self {
            record,
            key: record.key,
            direction: Direction::Forward,
            counters: forward,
            other,
        };
        let (key, direction) = (record.key.reversed(), Direction::Reverse);
        let back = Self { key, direction, counters: reverse, other: None, ..there };
        let rows = [Some(there), (!is_both).then_some(back)];
        rows.into_iter().flatten().filter(|row| row.counters.packets > 0)
    }

    fn kind(&self) -> Kind {
        Kind {
            is_v6: matches!(self.key, FlowKey::V6(_)),
            is_icmp: is_icmp(&self.key),
            has_both: self.other.is_some(),
        }
    }
}

/// All templates.
#[derive(Clone, Debug)]
pub(crate) struct Templates {
    all: Vec<Template>,
}

impl Templates {
    /// Creates the templates; those of records of both directions, too, if records have these.
    pub(crate) fn new(content: Content) -> Self {
        let count = if content.has_both { 8 } else { 4 };
        let template = |number| Template {
            id: Kind::FIRST + number,
            fields: Kind::of(number).fields(content),
        };
        Self { all: (0..count).map(template).collect() }
    }

    /// Returns messages with all templates, whose length is at most `limit`.
    pub(crate) fn messages(&self, limit: usize) -> Vec<Message> {
        let mut messages = vec![Message::new(limit)];
        for template in &self.all {
            if messages.last().is_some_and(|message| !message.has_space(template.length())) {
                messages.push(Message::new(limit));
            }
            if let Some(message) = messages.last_mut() {
                message.add_template(template);
            }
        }
        messages
    }
}

impl Template {
    fn record_len(&self) -> usize {
        self.fields.iter().map(|field| usize::from(field.length)).sum()
    }

    /// Returns the length of the template itself.
    fn length(&self) -> usize {
        4 + self.fields.iter().map(|field| if field.is_reverse { 8 } else { 4 }).sum::<usize>()
    }
}

/// A message under construction.
pub(crate) struct Message {
    bytes: Vec<u8>,
    /// The maximum length.
    limit: usize,
    /// The open set: its ID, and its offset.
    set: Option<(u16, usize)>,
    records: u32,
}

impl Message {
    /// The least limit: the longest template and the longest record fit in.
    pub(crate) const MIN_LIMIT: usize = 256;

    /// The greatest limit: a datagram of UDP in IPv4.
    pub(crate) const MAX_LIMIT: usize = 65_507;

    const VERSION: u16 = 10;
    const HEADER: usize = 16;
    const SET_HEADER: usize = 4;
    const TEMPLATE_SET: u16 = 2;

    /// The enterprise number of elements of the other direction, RFC 5103, and the bit that shows
    /// that there is one.
    const REVERSE: u32 = 29_305;
    const ENTERPRISE: u16 = 1 << 15;

    pub(crate) fn new(limit: usize) -> Self {
        let mut bytes = Vec::with_capacity(limit);
        bytes.resize(Self::HEADER, 0);
        Self { bytes, limit, set: None, records: 0 }
    }

    fn has_space(&self, length: usize) -> bool {
        self.bytes.len() + Self::SET_HEADER + length <= self.limit
    }

    fn add_template(&mut self, template: &Template) {
        self.continue_set(Self::TEMPLATE_SET);
        self.put_u16(template.id);
        self.put_u16(template.fields.len() as u16);
        for field in &template.fields {
            let bit = if field.is_reverse { Self::ENTERPRISE } else { 0 };
            self.put_u16(field.element | bit);
            self.put_u16(field.length);
            if field.is_reverse {
                self.bytes.extend(Self::REVERSE.to_be_bytes());
            }
        }
    }

    /// Adds a record, if it fits into the message. Returns whether it does.
    pub(crate) fn add(&mut self, row: &Row<'_>, templates: &Templates) -> bool {
        let template = &templates.all[row.kind().number()];
        if !self.has_space(template.record_len()) {
            return false;
        }
        self.records += 1;
        self.continue_set(template.id);
        for field in &template.fields {
            self.put(row, field);
        }
        true
    }

    fn put(&mut self, row: &Row<'_>, field: &Field) {
        let Row { record, key, direction, counters, other } = row;
        let counters = if field.is_reverse { other.unwrap_or(counters) } else { counters };
        let [sport, dport] = ports(key);
        let RecordMacs { forward, reverse } = record.macs;
        let is_forward = (*direction == Direction::Forward) != field.is_reverse;
        let macs = if is_forward { forward } else { reverse };
        match field.value {
            Value::Source => self.put_address(key.src()),
            Value::Destination => self.put_address(key.dst()),
            Value::SourcePort => self.put_u16(sport),
            Value::DestinationPort => self.put_u16(dport),
            Value::Protocol => self.put_u8(key.protocol()),
            Value::Flags => self.put_u8(counters.flags.0),
            Value::Icmp => self.put_u16(counters.icmp.unwrap_or_default()),
            Value::Vlan => self.put_u16(record.vlans.outer),
            Value::InnerVlan => self.put_u16(record.vlans.inner),
            Value::SourceMac => self.put_mac(macs.map(|macs| macs.source)),
            Value::DestinationMac => self.put_mac(macs.map(|macs| macs.destination)),
            Value::Packets => self.put_u64(counters.packets),
            Value::Bytes => self.put_u64(counters.bytes),
            Value::First => self.put_u64(counters.first_ns / 1_000_000),
            Value::Last => self.put_u64(counters.last_ns / 1_000_000),
            Value::FlowId => self.put_u64(record.id),
            Value::EndReason => self.put_u8(EndReason::code(record.reason)),
            Value::Direction => self.put_u8(match direction {
                Direction::Forward => 1,
                Direction::Reverse => 2,
            }),
        }
    }

    /// Returns the number of records.
    pub(crate) const fn records(&self) -> u32 {
        self.records
    }

    /// Returns the finished message: export time in seconds since the epoch, and the number of
    /// records in messages before.
    pub(crate) fn finish(mut self, export_s: u32, sequence: u32, domain: u32) -> Vec<u8> {
        if let Some((_, start)) = self.set {
            self.close_set(start);
        }
        let length = self.bytes.len() as u16;
        self.bytes[0..2].copy_from_slice(&Self::VERSION.to_be_bytes());
        self.bytes[2..4].copy_from_slice(&length.to_be_bytes());
        self.bytes[4..8].copy_from_slice(&export_s.to_be_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_be_bytes());
        self.bytes[12..16].copy_from_slice(&domain.to_be_bytes());
        self.bytes
    }

    /// Makes a set with this ID the open one.
    fn continue_set(&mut self, id: u16) {
        match self.set {
            Some((open, _)) if open == id => return,
            Some((_, start)) => self.close_set(start),
            None => {}
        }
        self.set = Some((id, self.bytes.len()));
        self.put_u16(id);
        self.put_u16(0);
    }

    /// Writes the length of the set that began at `start`.
    fn close_set(&mut self, start: usize) {
        let length = (self.bytes.len() - start) as u16;
        self.bytes[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    fn put_address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.bytes.extend(address.octets()),
            IpAddr::V6(address) => self.bytes.extend(address.octets()),
        }
    }

    /// Zeros stand for no address.
    fn put_mac(&mut self, address: Option<Mac>) {
        self.bytes.extend(address.map_or([0; 6], |mac| mac.0));
    }

    fn put_u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    fn put_u16(&mut self, value: u16) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.bytes.extend(value.to_be_bytes());
    }
}
