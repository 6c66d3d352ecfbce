//! Encoding of IPFIX messages, RFC 7011, as far as a flow meter needs it.
//!
//! ```text
//!     │ 10 │ length │ export time │ sequence │ domain │       16 bytes
//!     │ set 2 │ length │ template 256 │ template 257 │         layouts of records, periodically
//!     │ set 256 │ length │ record │ record │ …                 of IPv4
//!     │ set 257 │ length │ record │ …                          of IPv6
//! ```
//!
//! A record is one direction of a flow, since few collectors support the bidirectional records of
//! RFC 5103; `flowId` is equal for both directions, and `biflowDirection` marks the initiator's.
//! Times are in milliseconds.

use core::net::IpAddr;

use flowtable::flow_cache::EndReason;
use flowtable::{Direction, FlowKey};

use super::record::HalfRecord;

/// Information elements: number, and length of the value in bytes.
mod element {
    pub(super) const OCTET_DELTA_COUNT: (u16, u16) = (1, 8);
    pub(super) const PACKET_DELTA_COUNT: (u16, u16) = (2, 8);
    pub(super) const PROTOCOL_IDENTIFIER: (u16, u16) = (4, 1);
    pub(super) const TCP_CONTROL_BITS: (u16, u16) = (6, 2);
    pub(super) const SOURCE_PORT: (u16, u16) = (7, 2);
    pub(super) const SOURCE_IPV4: (u16, u16) = (8, 4);
    pub(super) const DESTINATION_PORT: (u16, u16) = (11, 2);
    pub(super) const DESTINATION_IPV4: (u16, u16) = (12, 4);
    pub(super) const SOURCE_IPV6: (u16, u16) = (27, 16);
    pub(super) const DESTINATION_IPV6: (u16, u16) = (28, 16);
    pub(super) const ICMP_TYPE_CODE_IPV4: (u16, u16) = (32, 2);
    pub(super) const FLOW_END_REASON: (u16, u16) = (136, 1);
    pub(super) const ICMP_TYPE_CODE_IPV6: (u16, u16) = (139, 2);
    pub(super) const FLOW_ID: (u16, u16) = (148, 8);
    pub(super) const FLOW_START_MILLISECONDS: (u16, u16) = (152, 8);
    pub(super) const FLOW_END_MILLISECONDS: (u16, u16) = (153, 8);
    pub(super) const BIFLOW_DIRECTION: (u16, u16) = (239, 1);
}

/// The template of records of an IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
enum Template {
    V4 = 256,
    V6 = 257,
}

impl Template {
    const fn of(key: &FlowKey) -> Self {
        match key {
            FlowKey::V4(_) => Self::V4,
            FlowKey::V6(_) => Self::V6,
        }
    }

    /// Returns the fields in the order in which [`Message::add`] writes them.
    const fn fields(self) -> [(u16, u16); 14] {
        use element::*;
        let (source, destination, icmp) = match self {
            Self::V4 => (SOURCE_IPV4, DESTINATION_IPV4, ICMP_TYPE_CODE_IPV4),
            Self::V6 => (SOURCE_IPV6, DESTINATION_IPV6, ICMP_TYPE_CODE_IPV6),
        };
        [
            source,
            destination,
            SOURCE_PORT,
            DESTINATION_PORT,
            PROTOCOL_IDENTIFIER,
            TCP_CONTROL_BITS,
            icmp,
            PACKET_DELTA_COUNT,
            OCTET_DELTA_COUNT,
            FLOW_START_MILLISECONDS,
            FLOW_END_MILLISECONDS,
            FLOW_ID,
            FLOW_END_REASON,
            BIFLOW_DIRECTION,
        ]
    }

    fn record_len(self) -> usize {
        self.fields().iter().map(|(_, length)| usize::from(*length)).sum()
    }
}

/// A message under construction.
pub(crate) struct Message {
    bytes: Vec<u8>,
    /// The open set: its template, and its offset.
    set: Option<(Template, usize)>,
    records: u32,
}

impl Message {
    /// Maximum length of a message: with UDP and IPv6 headers it fits into an Ethernet frame, even
    /// within a tunnel or two.
    const MAX: usize = 1400;
    const VERSION: u16 = 10;
    const HEADER: usize = 16;
    const SET_HEADER: usize = 4;
    const TEMPLATE_SET: u16 = 2;

    pub(crate) fn new() -> Self {
        let mut bytes = Vec::with_capacity(Self::MAX);
        bytes.resize(Self::HEADER, 0);
        Self { bytes, set: None, records: 0 }
    }

    /// Adds the templates, which precede all records.
    pub(crate) fn add_templates(&mut self) {
        let start = self.open_set(Self::TEMPLATE_SET);
        for template in [Template::V4, Template::V6] {
            let fields = template.fields();
            self.put_u16(template as u16);
            self.put_u16(fields.len() as u16);
            for (element, length) in fields {
                self.put_u16(element);
                self.put_u16(length);
            }
        }
        self.close_set(start);
    }

    /// Returns whether a record fits into the message.
    pub(crate) fn fits(&self, half: &HalfRecord) -> bool {
        let record_len = Template::of(&half.key).record_len();
        self.bytes.len() + Self::SET_HEADER + record_len <= Self::MAX
    }

    /// Adds a record: one direction of the flow with this ID.
    pub(crate) fn add(&mut self, half: &HalfRecord, flow_id: u64, reason: EndReason) {
        let HalfRecord { key, direction, counters } = half;
        self.records += 1;
        self.continue_set(Template::of(key));
        self.put_address(key.src());
        self.put_address(key.dst());
        self.put_u16(key.sport());
        self.put_u16(key.dport());
        self.put_u8(key.protocol());
        self.put_u16(counters.flags.0.into());
        self.put_u16(counters.icmp);
        self.put_u64(counters.packets);
        self.put_u64(counters.bytes);
        self.put_u64(counters.first_ns / 1_000_000);
        self.put_u64(counters.last_ns / 1_000_000);
        self.put_u64(flow_id);
        self.put_u8(reason.code());
        self.put_u8(match direction {
            Direction::Forward => 1,
            Direction::Reverse => 2,
        });
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

    fn continue_set(&mut self, template: Template) {
        match self.set {
            Some((open, _)) if open == template => return,
            Some((_, start)) => self.close_set(start),
            None => {}
        }
        self.set = Some((template, self.open_set(template as u16)));
    }

    /// Begins a set, and returns its offset.
    fn open_set(&mut self, id: u16) -> usize {
        let start = self.bytes.len();
        self.put_u16(id);
        self.put_u16(0);
        start
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
