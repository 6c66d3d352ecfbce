//! A peer from this crate: `Unicache`, the cache of the TRASH paper, a trie with garbage
//! collection.
//!
//! Entries are not ordered by time: an idle flow ends with its next packet, or when it is the
//! oldest of the four candidates for eviction.

use flowtable::eviction::PassiveGc;
use flowtable::flow_cache::Packet;
use flowtable::key::bits::Headed;
use flowtable::trie::unicache::Unicache;
use flowtable::{DefaultHashBuilder, Timestamp};

use super::Name;
use super::meter::{EndedFlows, Record};
use super::subject::Meter;

pub(crate) struct Trie {
    flows: Unicache<Headed<Name>, Record>,
    hasher: DefaultHashBuilder,
}

impl Trie {
    pub(crate) fn new(capacity: usize, hasher: DefaultHashBuilder) -> Self {
        let gc = PassiveGc::new(capacity, 1).expect("the capacity is positive");
        Self { flows: Unicache::new(gc), hasher }
    }
}

impl Meter for Trie {
    type Name = Name;

    #[inline]
    fn on_packet(
        &mut self,
        name: &Name,
        _: Packet,
        length: u16,
        now: Timestamp,
        ended: &mut EndedFlows,
    ) -> bool {
        let (name, direction) = name.normalized();
        let key = Headed::new(name, &self.hasher);
        if let Some(record) = self.flows.get_mut(&key) {
            let is_idle = record.is_idle(now);
            if is_idle {
                ended.add(&name, &record.counters, record.first, record.last);
                *record = Record::new(direction, now);
            }
            record.on_packet(direction, length, now);
            return is_idle;
        }
        let mut record = Record::new(direction, now);
        record.on_packet(direction, length, now);
        self.flows.insert(
            key,
            record,
            |_, record| Some(record.last),
            |key, record| ended.add(&key.key, &record.counters, record.first, record.last),
        );
        true
    }

    fn expire(&mut self, _: Timestamp, _: usize, _: &mut EndedFlows) {}

    fn len(&self) -> usize {
        self.flows.len()
    }

    fn drain(&mut self, ended: &mut EndedFlows) {
        for (key, record) in &self.flows {
            ended.add(&key.key, &record.counters, record.first, record.last);
        }
        self.flows.clear();
    }
}
