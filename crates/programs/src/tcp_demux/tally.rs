//! Counts of a subject in a replay, and deviations from the script.

use flowtable::demux::Found;

use super::watch::Watch;
use super::{Event, Examined, Pcb};

/// Counts and deviations of one subject.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub examined: Examined,
    /// Number of deviations from the script.
    pub wrong: u64,
    /// The first deviation.
    pub first_wrong: Option<String>,
}

impl Tally {
    /// Compares the number of PCBs at the end.
    pub fn ended(&mut self, right: usize, found: usize) {
        if found != right {
            self.is_wrong(|| format!("{found} PCBs at the end instead of {right}"));
        }
    }

    pub fn is_wrong(&mut self, what: impl FnOnce() -> String) {
        self.wrong += 1;
        self.first_wrong.get_or_insert_with(what);
    }
}

impl Watch for Tally {
    fn arrived(&mut self, event: &Event, found: Found<'_, Pcb>) {
        let right = match *event {
            Event::Arrives { id, has_pcb: true, .. } => Some(id),
            _ => None,
        };
        let Found { mut pcb, examined } = found;
        if let Some(pcb) = &mut pcb {
            pcb.segments += 1;
        }
        let found = pcb.map(|pcb| pcb.id);
        self.examined.add(examined, found.is_some());
        if found != right {
            self.is_wrong(|| format!("PCB {found:?} for {event:?}"));
        }
    }

    fn opened(&mut self, id: u32, is_inserted: bool) {
        if !is_inserted {
            self.is_wrong(|| format!("PCB {id} was not inserted"));
        }
    }

    fn closed(&mut self, right: Pcb, pcb: Option<Pcb>) {
        if pcb != Some(right) {
            self.is_wrong(|| format!("{pcb:?} removed instead of {right:?}"));
        }
    }
}
