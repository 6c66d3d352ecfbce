//! The terminal display of `--live`: a table above the progress bar.

use core::time::Duration;
use std::time::Instant;

use indicatif::ProgressBar;

use super::live::Table;
use super::{Meter, Totals};

/// A table, and the time of its next drawing.
pub(crate) struct Live {
    bar: ProgressBar,
    table: Table,
    next: Instant,
}

impl Live {
    /// Time between two drawings of the table.
    const PERIOD: Duration = Duration::from_millis(250);

    /// Creates a display of the `flows` largest flows; `None` if the bar is hidden.
    pub(crate) fn new(bar: &ProgressBar, flows: usize) -> Option<Self> {
        let start = Instant::now();
        let live = || Self { bar: bar.clone(), table: Table::new(flows, start), next: start };
        (!bar.is_hidden()).then(live)
    }

    /// Writes something else without disturbing the table.
    pub(crate) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Redraws the table if it is due; called after each packet.
    pub(crate) fn packet(&mut self, totals: &Totals, meter: &Meter) {
        // On a slow network this is called rarely, so each call checks the time.
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + Self::PERIOD;
        self.bar.set_message(self.table.draw(totals, meter, now) + "\n\n");
    }
}
