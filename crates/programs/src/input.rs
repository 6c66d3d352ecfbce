//! Input of a program: a file, or standard input.

use core::fmt;
use std::cell::Cell;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
#[cfg(unix)]
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::rc::Rc;

use indicatif::ProgressBar;
#[cfg(unix)]
use rustix::event::PollFlags;

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
    /// Opens the input for a program that has other work while it waits, and other files.
    pub fn open_patient(&self, others: &OpenFiles) -> io::Result<Origin> {
        let file = match self {
            Self::File(path) => File::open(path)?,
            Self::Pipe => standard_input()?,
        };
        let about = file.metadata()?;
        Ok(match self {
            Self::File(path) if about.is_file() => {
                let bytes = Box::new(Occasional::new(path.clone(), file, &about, others.clone()));
                Origin { bytes, size: Some(about.len()) }
            }
            _ if about.is_file() => Origin { bytes: Box::new(file), size: Some(about.len()) },
            _ => Origin { bytes: Box::new(Patient { file }), size: None },
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

/// The number of open files of a program.
#[derive(Clone, Debug, Default)]
pub struct OpenFiles(Rc<Cell<usize>>);

impl OpenFiles {
    /// The number beyond which files are closed between reads: far below the limits of systems.
    const MOST: usize = 64;
}

/// A file that is closed between reads while many others are open.
struct Occasional {
    path: PathBuf,
    file: Option<File>,
    position: u64,
    identity: Option<(u64, u64)>,
    others: OpenFiles,
}

impl Occasional {
    fn new(path: PathBuf, file: File, about: &Metadata, others: OpenFiles) -> Self {
        others.0.set(others.0.get() + 1);
        Self { path, file: Some(file), position: 0, identity: identity(about), others }
    }

    /// Opens the file again, at its position.
    fn open(&mut self) -> io::Result<File> {
        let mut file = File::open(&self.path)?;
        if identity(&file.metadata()?) != self.identity {
            return Err(io::Error::other("it was replaced while it was read"));
        }
        file.seek(SeekFrom::Start(self.position))?;
        Ok(file)
    }

    fn close(&mut self) {
        if self.file.take().is_some() {
            self.others.0.set(self.others.0.get() - 1);
        }
    }
}

impl Read for Occasional {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.file.is_none() {
            self.file = Some(self.open()?);
            self.others.0.set(self.others.0.get() + 1);
        }
        let Some(file) = &mut self.file else { return Ok(0) };
        let read = file.read(buffer);
        self.position += *read.as_ref().unwrap_or(&0) as u64;
        if self.others.0.get() > OpenFiles::MOST {
            self.close();
        }
        read
    }
}

impl Drop for Occasional {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns what tells a file from one that has replaced it.
#[cfg(unix)]
fn identity(about: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((about.dev(), about.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
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
    is_ready(file, PollFlags::IN)
}

/// Waits until a short write would not block, for a limited time. Returns whether it would not.
#[cfg(unix)]
pub(crate) fn is_writable(file: &File) -> io::Result<bool> {
    is_ready(file, PollFlags::OUT)
}

#[cfg(unix)]
fn is_ready(file: &impl AsFd, event: PollFlags) -> io::Result<bool> {
    use rustix::event::{PollFd, Timespec, poll};
    use rustix::io::Errno;

    /// The time after which other work is done.
    const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let mut files = [PollFd::new(file, event)];
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

/// Elsewhere, writes wait for their readers.
#[cfg(not(unix))]
pub(crate) fn is_writable(_: &File) -> io::Result<bool> {
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
