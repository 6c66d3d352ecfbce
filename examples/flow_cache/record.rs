//! What a meter tells of a flow: all that was counted, or what was counted since it told before.

use flowtable::{Class, Departed, Direction, EndReason, Event, FlowKey, Timestamp};

use super::biflow::{Biflow, Counters};

/// Packets of a flow, from one report to the next or to the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// The number of the flow; all of its records have it.
    pub(crate) id: u64,
    /// The name of the flow, as packets of its initiator carry it.
    pub(crate) key: FlowKey,
    pub(crate) counted: Biflow,
    pub(crate) reason: EndReason,
    pub(crate) class: Class,
    /// When it was made, by the clock of the packets.
    pub(crate) made: Timestamp,
}

/// One direction of a record that has packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneWay {
    /// The name, as packets of this direction carry it.
    pub(crate) key: FlowKey,
    pub(crate) direction: Direction,
    pub(crate) counters: Counters,
}

impl Record {
    pub(crate) fn of_departed(flow: Departed<FlowKey, Biflow>, made: Timestamp) -> Self {
        let Departed { handle, key, value, reason, class, .. } = flow;
        Self { id: handle.id(), key, counted: value, reason, class, made }
    }

    /// The record that an event gives. A flow that lives on is counted from 0 again.
    pub(crate) fn of_event(event: Event<'_, FlowKey, Biflow>, made: Timestamp) -> Self {
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
    pub(crate) fn directions(&self) -> impl Iterator<Item = OneWay> {
        let Biflow { forward, reverse } = self.counted;
        let there = OneWay { key: self.key, direction: Direction::Forward, counters: forward };
        let back =
            OneWay { key: self.key.reversed(), direction: Direction::Reverse, counters: reverse };
        [there, back].into_iter().filter(|way| way.counters.packets > 0)
    }
}
