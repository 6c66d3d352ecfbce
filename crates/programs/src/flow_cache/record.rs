//! What a meter tells of a flow: all that was counted, or what was counted since it told before.

use flowtable::flow_cache::{Class, EndReason, Event, RemovedFlow};
use flowtable::{Direction, FlowKey, Timestamp};

use super::biflow::{Biflow, Counters};

/// Packets of a flow, from one report to the next or to the end.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// The number of the flow; all of its records have it.
    pub id: u64,
    /// The name of the flow, as packets of its initiator carry it.
    pub key: FlowKey,
    pub counted: Biflow,
    pub reason: EndReason,
    pub class: Class,
    /// When it was made, by the clock of the packets.
    pub made: Timestamp,
}

/// One direction of a record that has packets.
#[derive(Clone, Copy, Debug)]
pub struct OneWay {
    /// The name, as packets of this direction carry it.
    pub key: FlowKey,
    pub direction: Direction,
    pub counters: Counters,
}

impl Record {
    pub fn of_removed(flow: RemovedFlow<FlowKey, Biflow>, made: Timestamp) -> Self {
        let RemovedFlow { handle, key, value, reason, class, .. } = flow;
        Self { id: handle.id(), key, counted: value, reason, class, made }
    }

    /// The record that an event gives. A flow that lives on is counted from 0 again.
    pub fn of_event(event: Event<'_, FlowKey, Biflow>, made: Timestamp) -> Self {
        match event {
            Event::Ended(flow) => Self::of_removed(flow, made),
            Event::Active(flow) => Self {
                id: flow.handle.id(),
                key: *flow.key,
                counted: flow.value.take(),
                reason: EndReason::Active,
                class: flow.class,
                made,
            },
        }
    }

    /// The directions that have packets, the initiator's first.
    pub fn directions(&self) -> impl Iterator<Item = OneWay> {
        let Biflow { forward, reverse } = self.counted;
        let there = OneWay { key: self.key, direction: Direction::Forward, counters: forward };
        let back =
            OneWay { key: self.key.reversed(), direction: Direction::Reverse, counters: reverse };
        [there, back].into_iter().filter(|way| way.counters.packets > 0)
    }
}
