//! What a terminal shows with `--live` while packets are read: a table above the bar.

use core::time::Duration;
use std::time::Instant;

use indicatif::ProgressBar;

use super::Meter;
use super::live::Table;

/// A table, and when it is drawn again.
pub struct Live {
    bar: ProgressBar,
    table: Table,
    next: Instant,
}

impl Live {
    /// Time between two drawings of the table.
    const PERIOD: Duration = Duration::from_millis(250);

    /// With the largest flows, so many. `None` if nobody would see it.
    pub fn new(bar: &ProgressBar, flows: usize) -> Option<Self> {
        let start = Instant::now();
        let live = || Self { bar: bar.clone(), table: Table::new(flows, start), next: start };
        (!bar.is_hidden()).then(live)
    }

    /// One more packet was metered.
    pub fn packet(&mut self, meter: &Meter) {
        // Packets of a slow network are looked at one by one.
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + Self::PERIOD;
        self.bar.set_message(self.table.draw(meter, now) + "\n\n");
    }
}
