//! A peer of our own: the cache of the TRASH paper, a trie that collects its own garbage.
//!
//! It knows no order of time: a flow that was silent for too long ends with its next packet, or when
//! it is the oldest of the four that a new flow has to choose from.

use flowtable::{DefaultHashBuilder, Timestamp};
use flowtable::key::bits::Headed;
use flowtable::flow_cache::Packet;
use flowtable::eviction::PassiveGc;
use flowtable::trie::unicache::Unicache;

use super::Name;
use super::meter::{Ledger, Record};
use super::table::Table;

pub(crate) struct Trie {
    flows: Unicache<Headed<Name>, Record>,
    hasher: DefaultHashBuilder,
}

impl Trie {
    pub(crate) fn new(capacity: usize, hasher: DefaultHashBuilder) -> Self {
        let gc = PassiveGc::new(capacity, 1).expect("there is room for a flow");
        Self { flows: Unicache::new(gc), hasher }
    }
}

impl Table for Trie {
    #[inline]
    fn see(
        &mut self,
        name: &Name,
        _: Packet,
        length: u16,
        now: Timestamp,
        ledger: &mut Ledger,
    ) -> bool {
        let (name, direction) = name.normalized();
        let key = Headed::new(name, &self.hasher);
        if let Some(record) = self.flows.get_mut(&key) {
            let is_idle = record.is_idle(now);
            if is_idle {
                ledger.close(&name, &record.counters, record.first, record.last);
                *record = Record::new(direction, now);
            }
            record.see(direction, length, now);
            return is_idle;
        }
        let mut record = Record::new(direction, now);
        record.see(direction, length, now);
        self.flows.insert(
            key,
            record,
            |_, record| Some(record.last),
            |key, record| ledger.close(key.key(), &record.counters, record.first, record.last),
        );
        true
    }

    fn advance(&mut self, _: Timestamp, _: usize, _: &mut Ledger) {}

    fn len(&self) -> usize {
        self.flows.len()
    }

    fn drain(&mut self, ledger: &mut Ledger) {
        for (key, record) in &self.flows {
            ledger.close(key.key(), &record.counters, record.first, record.last);
        }
        self.flows.clear();
    }
}
