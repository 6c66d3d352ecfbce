//! What a terminal shows while packets are read: a bar, and the table of `--live` above it.

use core::time::Duration;
use std::io::{self, IsTerminal};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Meter;
use super::live::Table;

/// A bar of bytes read, drawn only if standard error is a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    packets: u64,
    live: Option<Live>,
}

/// A table, and when it is drawn again.
struct Live {
    table: Table,
    next: Instant,
}

impl Progress {
    /// Packets between two looks at the bar: a look costs more than a packet.
    const STRIDE: u64 = 4096;

    /// Time between two drawings of the table.
    const PERIOD: Duration = Duration::from_millis(250);

    /// A bar for so many bytes; of a pipe, whose size is unknown, only the bytes so far are shown.
    /// With the largest flows above it, so many, if they are wanted.
    pub(crate) fn new(size: Option<u64>, flows: Option<usize>) -> Self {
        if !io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), packets: 0, live: None };
        }
        let above = if flows.is_some() { "{msg}\n\n" } else { "" };
        let bar = match size {
            Some(_) => "{bar:40} {bytes}/{total_bytes}, {eta} left",
            None => "{spinner} {bytes}",
        };
        let target = ProgressDrawTarget::stderr_with_hz(4);
        let bar =
            ProgressBar::with_draw_target(size, target).with_style(style(&[above, bar].concat()));
        let start = Instant::now();
        let live = flows.map(|flows| Live { table: Table::new(flows, start), next: start });
        Self { bar, packets: 0, live }
    }

    /// One more packet was metered, and so many bytes were read in all.
    pub(crate) fn packet(&mut self, bytes_read: u64, meter: &Meter) {
        self.packets += 1;
        if let Some(live) = &mut self.live {
            // Packets of a slow network are looked at one by one.
            let now = Instant::now();
            if now < live.next {
                return;
            }
            live.next = now + Self::PERIOD;
            self.bar.set_message(live.table.draw(meter, now));
            self.bar.set_position(bytes_read);
        } else if self.packets % Self::STRIDE == 0 {
            self.bar.set_position(bytes_read);
        }
    }

    /// Clears the screen of it.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    // A template that does not parse costs the looks of the bar, not the run.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
