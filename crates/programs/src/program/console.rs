//! Lines on standard error while a program runs.

use core::fmt;

use indicatif::ProgressBar;

use super::Program;

/// Writes lines to standard error that do not disturb the progress bar. Its copies write to the
/// same place.
#[derive(Clone, Debug)]
pub struct Console {
    program: Program,
    bar: ProgressBar,
}

impl Console {
    pub const fn new(program: Program, bar: ProgressBar) -> Self {
        Self { program, bar }
    }

    /// Writes one line; ignored if standard error is closed.
    pub fn say(&self, what: &dyn fmt::Display) {
        self.bar.suspend(|| self.program.log(what));
    }
}
