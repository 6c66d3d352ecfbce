//! The script: all events of a host, computed once.

use std::collections::HashSet;

use flowtable::FlowKey;
use flowtable::demux::Arrival;

/// A PCB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pcb {
    /// The ID of its connection.
    pub id: u32,
    /// Segments for which it was found.
    pub segments: u64,
}

/// An event at the host. Connections have IDs, which index their keys in [`Script::keys`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A segment arrives, and its PCB is looked up.
    Arrives { id: u32, arrival: Arrival, has_pcb: bool },
    /// A segment is sent, from a connection that has a PCB.
    Sent(u32),
    /// The PCB of a connection is inserted.
    Opens(u32),
    /// The PCB is removed.
    Closes(u32),
}

/// All events, and the open connections before and after.
#[derive(Debug, Default)]
pub struct Script {
    /// The keys of connections, in the direction of arriving segments. A reused key has an ID for
    /// each connection; a connection that never gets a PCB has an ID, too.
    pub keys: Vec<FlowKey>,
    /// The keys of [`ConnectionId`](flowtable::demux::ConnectionId): the IDs.
    pub ids: Vec<u32>,
    /// Connections that have a PCB before the first event.
    pub open_before: Vec<u32>,
    pub events: Vec<Event>,
    /// Number of warm-up events at the beginning, which are not counted.
    warm_up: usize,
    /// Connections that have a PCB after the last event.
    pub open_after: Vec<u32>,
    /// Connections to remove and to insert after the last event, to restore the initial state.
    pub to_close: Vec<u32>,
    pub to_open: Vec<u32>,
    /// Number of segments that find the PCB of each connection.
    segments: Vec<u64>,
    /// Number of connections with a PCB, and the maximum at a time.
    pub connections: usize,
    pub most_open: usize,
    /// The sum of the open connections at each event: a list examines about half as many PCBs.
    pub open_sum: u64,
}

impl Script {
    /// Returns the events after the warm-up.
    pub fn counted(&self) -> &[Event] {
        &self.events[self.warm_up..]
    }

    /// Returns the number of counted lookups.
    pub fn lookups(&self) -> usize {
        let arrives = |event: &&Event| matches!(event, Event::Arrives { .. });
        self.counted().iter().filter(arrives).count()
    }

    /// Returns the final PCB of a connection.
    pub fn pcb(&self, id: u32) -> Pcb {
        Pcb { id, segments: self.segments[id as usize] }
    }

    /// Returns the sum of the [shares](Self::share) of all PCBs that should be found.
    pub fn sum(&self) -> u64 {
        let share = |event: &Event| match *event {
            Event::Arrives { id, has_pcb: true, .. } => Self::share(id),
            _ => 0,
        };
        self.counted().iter().map(share).fold(0, u64::wrapping_add)
    }

    /// Returns the share of a PCB in the sum. Other sets of PCBs hardly have the same sum.
    #[inline]
    pub fn share(id: u32) -> u64 {
        (u64::from(id) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// A script under construction.
#[derive(Debug, Default)]
pub struct Draft {
    script: Script,
    is_open: Vec<bool>,
}

impl Draft {
    /// Adds a connection, and returns its ID.
    pub fn add(&mut self, key: FlowKey) -> u32 {
        let id = self.script.keys.len() as u32;
        self.script.keys.push(key);
        self.script.ids.push(id);
        self.script.segments.push(0);
        self.is_open.push(false);
        id
    }

    /// Marks a connection as open from the beginning. Must precede its other events.
    pub fn was_open(&mut self, id: u32) {
        self.script.open_before.push(id);
        self.is_open[id as usize] = true;
    }

    pub fn opens(&mut self, id: u32) {
        self.is_open[id as usize] = true;
        self.script.events.push(Event::Opens(id));
    }

    pub fn closes(&mut self, id: u32) {
        self.is_open[id as usize] = false;
        self.script.events.push(Event::Closes(id));
    }

    pub fn arrives(&mut self, id: u32, arrival: Arrival) {
        let has_pcb = self.is_open[id as usize];
        self.script.segments[id as usize] += u64::from(has_pcb);
        self.script.events.push(Event::Arrives { id, arrival, has_pcb });
    }

    /// Adds a sent segment, if the connection has a PCB.
    pub fn sent(&mut self, id: u32) {
        if self.is_open[id as usize] {
            self.script.events.push(Event::Sent(id));
        }
    }

    /// Ends the warm-up. No connection may have opened or closed in it.
    pub fn counts_from_here(&mut self) {
        self.script.warm_up = self.script.events.len();
    }

    pub fn finish(self) -> Script {
        let Self { mut script, is_open } = self;
        let mut open = script.open_before.len();
        (script.connections, script.most_open) = (open, open);
        for event in &script.events {
            match event {
                Event::Opens(_) => {
                    open += 1;
                    script.connections += 1;
                }
                Event::Closes(_) => open -= 1,
                Event::Arrives { .. } | Event::Sent(_) => {}
            }
            script.most_open = script.most_open.max(open);
            script.open_sum += open as u64;
        }
        let is_open = |id: &u32| is_open[*id as usize];
        script.open_after = script.ids.iter().copied().filter(is_open).collect();
        let before: HashSet<u32> = script.open_before.iter().copied().collect();
        let has_opened = |id: &u32| !before.contains(id);
        script.to_close = script.open_after.iter().copied().filter(has_opened).collect();
        script.to_open = script.open_before.iter().copied().filter(|id| !is_open(id)).collect();
        script
    }
}
