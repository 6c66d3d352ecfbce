//! What a host hears, says and does, once and for all.

use std::collections::HashSet;

use flowtable::FlowKey;
use flowtable::demux::Arrival;

use super::Pcb;

/// Something that happens at the host. Connections have numbers, by which [`Script::keys`] has
/// their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A segment arrives, and its PCB is looked for.
    Arrives { id: u32, arrival: Arrival, has_pcb: bool },
    /// A segment is sent, from a connection that has a PCB.
    Sent(u32),
    /// The connection gets its PCB.
    Opens(u32),
    /// The PCB goes.
    Closes(u32),
}

/// All that happens, and how things are before and after it.
#[derive(Debug, Default)]
pub struct Script {
    /// The names of connections, as segments have them that arrive. A name that is used again has a
    /// number each time; one that never gets a PCB has a number, too.
    pub keys: Vec<FlowKey>,
    /// What [`ConnectionId`](flowtable::demux::ConnectionId) knows them by: their numbers.
    pub ids: Vec<u32>,
    /// Connections that have a PCB before the first event.
    pub open_before: Vec<u32>,
    pub events: Vec<Event>,
    /// So many events at the beginning are there to warm up: they do not count.
    warm_up: usize,
    /// Connections that have one after the last event.
    pub open_after: Vec<u32>,
    /// What to take out and to put in after the last event, to begin again.
    pub to_close: Vec<u32>,
    pub to_open: Vec<u32>,
    /// Segments for which the PCB of each is found.
    segments: Vec<u64>,
    /// Connections with a PCB, and as many as there are at a time.
    pub connections: usize,
    pub most_open: usize,
}

impl Script {
    /// The events that count.
    pub fn counted(&self) -> &[Event] {
        &self.events[self.warm_up..]
    }

    /// Lookups that count.
    pub fn lookups(&self) -> usize {
        let arrives = |event: &&Event| matches!(event, Event::Arrives { .. });
        self.counted().iter().filter(arrives).count()
    }

    /// A connection's PCB as it is in the end.
    pub fn pcb(&self, id: u32) -> Pcb {
        Pcb { id, segments: self.segments[id as usize] }
    }

    /// The sum of the [shares](Self::share) of all PCBs that are to be found.
    pub fn sum(&self) -> u64 {
        let share = |event: &Event| match *event {
            Event::Arrives { id, has_pcb: true, .. } => Self::share(id),
            _ => 0,
        };
        self.counted().iter().map(share).fold(0, u64::wrapping_add)
    }

    /// What it adds to find this PCB. Sums of others are hardly the same.
    #[inline]
    pub fn share(id: u32) -> u64 {
        (u64::from(id) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// A script that is being written.
#[derive(Debug, Default)]
pub struct Draft {
    script: Script,
    is_open: Vec<bool>,
}

impl Draft {
    /// A number for this name.
    pub fn add(&mut self, key: FlowKey) -> u32 {
        let id = self.script.keys.len() as u32;
        self.script.keys.push(key);
        self.script.ids.push(id);
        self.script.segments.push(0);
        self.is_open.push(false);
        id
    }

    /// The connection has had a PCB from the beginning. It must be told before other news of it.
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

    /// Where there is no PCB, nothing is sent from it.
    pub fn sent(&mut self, id: u32) {
        if self.is_open[id as usize] {
            self.script.events.push(Event::Sent(id));
        }
    }

    /// What was written so far is there to warm up. No connection may have opened or closed.
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
        }
        let is_open = |id: &u32| is_open[*id as usize];
        script.open_after = script.ids.iter().copied().filter(is_open).collect();
        let before: HashSet<u32> = script.open_before.iter().copied().collect();
        let has_opened = |id: &u32| !before.contains(id);
        script.to_close = script.open_after.iter().copied().filter(has_opened).collect();
        script.to_open =
            script.open_before.iter().copied().filter(|id| !is_open(id)).collect();
        script
    }
}
