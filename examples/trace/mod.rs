//! A capture that an example reads, as far as it wants.

use indicatif::ProgressBar;

use crate::capture::{Capture, End, OpenError};
use crate::input::Input;
use crate::program::Program;
use crate::program::failure::{Failure, Kind};

/// A capture, and the bar that shows how much of it was read.
pub(crate) struct Trace {
    pub(crate) capture: Capture,
    pub(crate) bar: ProgressBar,
}

impl Trace {
    pub(crate) fn open(program: Program, input: &Input) -> Result<Self, Failure> {
        let is_none = |error: OpenError| Failure::new(Kind::Input, format_args!("{input} {error}"));
        let (bytes, bar) = input.open(program).map_err(|error| is_none(error.into()))?;
        let capture = Capture::new(bytes).map_err(is_none)?;
        Ok(Self { capture, bar })
    }

    /// Has the capture read, and says so if that was not to its end.
    pub(crate) fn read<T>(
        mut self,
        program: Program,
        take: impl FnOnce(&mut Capture, &ProgressBar) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let taken = take(&mut self.capture, &self.bar);
        self.bar.finish_and_clear();
        let (taken, whole) = (taken?, self.capture.whole_packets());
        match self.capture.end() {
            None if program.quiet => {}
            // One more is out, and not yet known to be whole.
            None => program.say(&format_args!("only the first {} packets are read", whole + 1)),
            Some(End::Whole) => {}
            Some(end) => program.say(&format_args!("capture is cut after packet {whole}: {end}")),
        }
        Ok(taken)
    }
}
