//! What a meter tells of a flow: all that was counted, or what was counted since it told before.

use flowtable::flow_cache::{Class, Departed, EndReason, Event};
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
pub struct HalfRecord {
    /// The name, as packets of this direction carry it.
    pub key: FlowKey,
    pub direction: Direction,
    pub counters: Counters,
}

impl Record {
    pub fn of_departed(flow: Departed<FlowKey, Biflow>, made: Timestamp) -> Self {
        let Departed { handle, key, value, reason, class, .. } = flow;
        Self { id: handle.id(), key, counted: value, reason, class, made }
    }

    /// The record that an event gives. A flow that lives on is counted from 0 again.
    pub fn of_event(event: Event<'_, FlowKey, Biflow>, made: Timestamp) -> Self {
        match event {
            Event::Ended(flow) => Self::of_departed(flow, made),
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
    pub fn directions(&self) -> impl Iterator<Item = HalfRecord> {
        let Biflow { forward, reverse } = self.counted;
        let there = HalfRecord { key: self.key, direction: Direction::Forward, counters: forward };
        let back =
            HalfRecord { key: self.key.reversed(), direction: Direction::Reverse, counters: reverse };
        [there, back].into_iter().filter(|half| half.counters.packets > 0)
    }
}
