//! What examples have in common as programs: the command line, what a terminal shows meanwhile, and
//! how they end.
//!
//! ```text
//!     arguments ─► Options ─► try_main ─┬─► results on standard output
//!                                       ├─► a bar on standard error, while something takes long
//!                                       └─► Failure: a line on standard error, and an exit code
//! ```

pub mod failure;
mod options;

use core::fmt;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lexopt::Parser;

use failure::Failure;
pub use options::{Options, parse};

/// An example that runs.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// What its messages begin with.
    name: &'static str,
    /// Whether standard error is to have nothing but what is wrong.
    pub quiet: bool,
}

impl Program {
    /// Does what the arguments of this process ask for. What it exits with.
    pub fn run<O: Options>(
        name: &'static str,
        try_main: impl FnOnce(Self, O) -> Result<(), Failure>,
    ) -> ExitCode {
        let program = Self { name, quiet: false };
        program.end(match parse(Parser::from_env()) {
            Ok(Some((options, quiet))) => try_main(Self { name, quiet }, options),
            Ok(None) => print(&options::help::<O>()),
            Err(error) => Err(error.into()),
        })
    }

    /// Says why there was a failure, if there was.
    fn end(self, result: Result<(), Failure>) -> ExitCode {
        let Err(failure) = result else { return ExitCode::SUCCESS };
        if failure.code() != 0 {
            self.log(&failure);
        }
        ExitCode::from(failure.code())
    }

    /// One line on standard error. If that is closed, there is nobody left to tell.
    pub fn log(self, what: &dyn fmt::Display) {
        let _ = writeln!(io::stderr(), "{}: {what}", self.name);
    }

    /// A bar of so many steps, or of an unknown number of them, on standard error if that is a
    /// terminal. Its last owner clears the screen of it. The label is a template of `indicatif`; a
    /// message is drawn above.
    pub fn bar(self, steps: Option<u64>, label: &str) -> ProgressBar {
        let target = match self.quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(4),
        };
        let shape = if steps.is_some() { "{bar:40}" } else { "{spinner}" };
        // A template that does not parse costs the looks of the bar, not the run.
        let style = ProgressStyle::with_template(&format!("{{msg}}{shape} {label}"))
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(steps, target).with_style(style);
        bar.tick();
        bar
    }
}

/// Prints results, all at once. Whoever stops reading them has seen enough: what is wrong is still
/// to be said.
pub fn print(results: &dyn fmt::Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let printed = out.write_all(results.to_string().as_bytes()).and_then(|()| out.flush());
    match printed {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}
