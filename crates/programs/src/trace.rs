//! A capture that an example reads, as far as it wants.

use std::io::ErrorKind;

use capture::{Capture, End, OpenError, synth};
use indicatif::ProgressBar;

use crate::input::Input;
use crate::program::Program;
use crate::program::failure::{Failure, Kind};

/// A capture, and the bar that shows how much of it was read.
pub struct Trace {
    pub capture: Capture,
    pub bar: ProgressBar,
}

impl Trace {
    pub fn open(program: Program, input: &Input) -> Result<Self, Failure> {
        let is_none = |error: OpenError| Failure::new(Kind::Input, format_args!("{input} {error}"));
        let (bytes, bar) = input.open(program).map_err(|error| is_none(error.into()))?;
        let capture = Capture::new(bytes).map_err(is_none)?;
        Ok(Self { capture, bar })
    }

    /// Traffic for a machine that has no capture at hand.
    pub fn made(program: Program, seed: u64) -> Self {
        let capture = Capture::memory(synth::capture(seed)).expect("what is made is a capture");
        Self { capture, bar: program.bar(None, "generated traffic") }
    }

    /// Has the capture read, and says so if that was not to its end. That the end is missing is no
    /// failure; that it is damaged is one.
    pub fn read<T>(
        mut self,
        program: Program,
        take: impl FnOnce(&mut Capture, &ProgressBar) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let taken = take(&mut self.capture, &self.bar);
        self.bar.finish_and_clear();
        let whole = self.capture.whole_packets();
        match self.capture.end() {
            None if program.quiet || taken.is_err() => {}
            // One more is out, and not yet known to be whole.
            None => program.log(&format_args!("only the first {} packets are read", whole + 1)),
            Some(End::Whole) => {}
            Some(End::Unreadable(error)) if error.kind() != ErrorKind::UnexpectedEof => {
                let why = format_args!("capture cannot be read after packet {whole}: {error}");
                return Err(Failure::new(Kind::Input, why));
            }
            Some(end) => program.log(&format_args!("capture is cut after packet {whole}: {end}")),
        }
        taken
    }
}
