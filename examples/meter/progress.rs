//! A bar on the terminal while a long capture is read.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of bytes read, drawn only if standard error is a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    packets: u64,
}

impl Progress {
    /// Packets between two looks at the bar: a look costs more than a packet.
    const STRIDE: u64 = 4096;

    /// A bar for so many bytes; of a pipe, whose size is unknown, only the bytes so far are shown.
    pub(crate) fn new(size: Option<u64>) -> Self {
        let bar = match size {
            _ if !io::stderr().is_terminal() => ProgressBar::hidden(),
            Some(size) => ProgressBar::new(size)
                .with_style(style("{bar:40} {bytes}/{total_bytes}, {eta} left")),
            None => ProgressBar::no_length().with_style(style("{spinner} {bytes}")),
        };
        Self { bar, packets: 0 }
    }

    /// One more packet was read, and so many bytes in all.
    pub(crate) fn packet(&mut self, bytes_read: u64) {
        self.packets += 1;
        if self.packets % Self::STRIDE == 0 {
            self.bar.set_position(bytes_read);
        }
    }

    /// Clears the bar.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    // A template that does not parse costs the looks of the bar, not the run.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
