//! Shared parts of programs: the command line, progress on the terminal, and the exit code.
//!
//! ```text
//!     arguments ─► Options ─► try_main ─┬─► results on standard output
//!                                       ├─► a progress bar on standard error
//!                                       └─► Failure: a line on standard error, and an exit code
//! ```

mod console;
pub mod failure;
mod options;
pub mod signals;

use core::fmt;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lexopt::Parser;

pub use console::Console;
use failure::Failure;
pub use options::{Call, Options, parse};

/// A running program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The prefix of its messages.
    name: &'static str,
    /// Whether standard error shows errors only.
    pub quiet: bool,
}

impl Program {
    /// Parses the arguments of this process and runs the program. Returns its exit code.
    pub fn run<O: Options>(
        name: &'static str,
        try_main: impl FnOnce(Self, O) -> Result<(), Failure>,
    ) -> ExitCode {
        let program = Self { name, quiet: false };
        program.end(match parse(Parser::from_env()) {
            Ok(Call::Run(options, quiet)) => try_main(Self { name, quiet }, options),
            Ok(Call::Help) => print(&options::help::<O>()),
            Ok(Call::Version) => print(&format_args!("{name} {}\n", env!("CARGO_PKG_VERSION"))),
            Err(error) => Err(error.into()),
        })
    }

    /// Reports a failure and returns the exit code.
    fn end(self, result: Result<(), Failure>) -> ExitCode {
        let Err(failure) = result else { return ExitCode::SUCCESS };
        if failure.code() != 0 {
            self.log(&failure);
        }
        ExitCode::from(failure.code())
    }

    /// Writes one line to standard error; ignored if that is closed.
    pub fn log(self, what: &dyn fmt::Display) {
        let _ = writeln!(io::stderr(), "{}: {what}", self.name);
    }

    /// Creates a progress bar of `steps` steps, or of an unknown number, on standard error if that
    /// is a terminal. It is cleared when its last owner is dropped. The label is a template of
    /// `indicatif`; a message is drawn above.
    pub fn bar(self, steps: Option<u64>, label: &str) -> ProgressBar {
        let target = match self.quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(4),
        };
        let shape = if steps.is_some() { "{bar:40}" } else { "{spinner}" };
        // An invalid template only changes the appearance of the bar.
        let style = ProgressStyle::with_template(&format!("{{msg}}{shape} {label}"))
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(steps, target).with_style(style);
        bar.tick();
        bar
    }
}

/// Prints results in one write. A reader that closes the pipe is not an error, so that later
/// failures are still reported.
pub fn print(results: &dyn fmt::Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let printed = out.write_all(results.to_string().as_bytes()).and_then(|()| out.flush());
    match printed {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}
