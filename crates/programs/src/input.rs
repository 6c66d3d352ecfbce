//! Input of a program: a file, or standard input.

use core::fmt;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
#[cfg(unix)]
use std::os::fd::AsFd;
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
    /// Opens the input for a program that has other work while it waits.
    pub fn open_patient(&self) -> io::Result<Origin> {
        let file = match self {
            Self::File(path) => File::open(path)?,
            Self::Pipe => standard_input()?,
        };
        let about = file.metadata()?;
        Ok(match about.is_file() {
            true => Origin { bytes: Box::new(file), size: Some(about.len()) },
            false => Origin { bytes: Box::new(Patient { file }), size: None },
        })
    }

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

/// An opened input.
pub struct Origin {
    pub bytes: Box<dyn Read>,
    /// The size of a file; `None` for a pipe, a terminal or a socket.
    pub size: Option<u64>,
}

/// A pipe, of which a read waits for a limited time. Without bytes for that long, or after a
/// signal, it returns an error of kind `WouldBlock`.
struct Patient {
    file: File,
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match is_readable(&self.file)? {
            true => self.file.read(buffer),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

/// Waits until a read would not block, for a limited time. Returns whether it would not.
#[cfg(unix)]
pub(crate) fn is_readable(file: &impl AsFd) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;

    /// The time after which other work is done.
    const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let mut files = [PollFd::new(file, PollFlags::IN)];
    match poll(&mut files, Some(&WAIT)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Elsewhere, reads wait for bytes.
#[cfg(not(unix))]
fn is_readable(_: &File) -> io::Result<bool> {
    Ok(true)
}

/// Returns standard input without the buffer of the standard library.
#[cfg(unix)]
fn standard_input() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
fn standard_input() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdin().as_handle().try_clone_to_owned()?))
}
