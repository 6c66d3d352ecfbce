//! Input of a program: a file, or standard input.

use core::fmt;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use indicatif::ProgressBar;

use crate::program::Program;

/// A source of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    File(PathBuf),
    Pipe,
}

/// Converts a name on the command line; `-` is standard input.
impl From<OsString> for Input {
    fn from(name: OsString) -> Self {
        if name == "-" { Self::Pipe } else { Self::File(name.into()) }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Pipe => write!(f, "standard input"),
        }
    }
}

impl Input {
    /// Opens the input, with a bar that shows the bytes read, and for a file the total.
    pub fn open(&self, program: Program) -> io::Result<(Box<dyn Read>, ProgressBar)> {
        let (origin, size): (Box<dyn Read>, _) = match self {
            Self::File(path) => {
                let file = File::open(path)?;
                let about = file.metadata()?;
                (Box::new(file), about.is_file().then_some(about.len()))
            }
            Self::Pipe => (Box::new(io::stdin().lock()), None),
        };
        let label = match size {
            Some(_) => "{bytes}/{total_bytes}, {eta} left",
            None => "{bytes}",
        };
        let bar = program.bar(size, label);
        Ok((Box::new(bar.wrap_read(origin)), bar))
    }
}
