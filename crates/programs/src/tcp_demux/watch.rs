//! Observers of a replay.

use flowtable::demux::Found;

use super::{Event, Pcb};

/// An observer of a replay.
pub(crate) trait Watch {
    /// Called with the result of the lookup of a segment.
    fn arrived(&mut self, event: &Event, found: Found<'_, Pcb>);

    /// Called after the insertion of a PCB, with its success.
    fn opened(&mut self, id: u32, is_inserted: bool);

    /// Called with a removed PCB; `right` is the expected one.
    fn closed(&mut self, right: Pcb, pcb: Option<Pcb>);
}
