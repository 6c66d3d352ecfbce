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

use capture::is_compressed;
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

    /// Returns whether the input is read through a decoder, as far as that is known: a pipe may be.
    pub fn may_be_compressed(&self) -> bool {
        let Self::File(path) = self else { return true };
        if !path.is_file() {
            return true;
        }
        let mut head = Vec::new();
        let read = File::open(path).and_then(|file| file.take(16).read_to_end(&mut head));
        read.is_ok() && is_compressed(&head)
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
#[derive(Clone, Debug)]
pub struct OpenFiles {
    count: Rc<Cell<usize>>,
    /// The number beyond which files are closed between reads.
    most: usize,
}

impl OpenFiles {
    /// The largest number of files that stay open.
    const MOST: usize = 64;

    /// Descriptors for the standard streams, libraries, and files that the parent left open.
    const RESERVED: usize = 16;

    /// Raises the limit of this process to the one that it may have. `others` is the number of
    /// other files and sockets that the program opens.
    pub fn within_limit(others: usize) -> Self {
        let free = descriptors().saturating_sub(Self::RESERVED + others);
        Self { count: Rc::default(), most: free.min(Self::MOST) }
    }

    fn add(&self) {
        self.count.set(self.count.get() + 1);
    }

    fn remove(&self) {
        self.count.set(self.count.get() - 1);
    }

    fn is_full(&self) -> bool {
        self.count.get() > self.most
    }
}

/// Raises the limit of file descriptors, and returns it.
#[cfg(unix)]
fn descriptors() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let maximum = getrlimit(Resource::Nofile).maximum;
    // The former limit stays where the system refuses it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let limit = getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| limit.try_into().ok()).unwrap_or(usize::MAX)
}

/// Elsewhere, there is no such limit.
#[cfg(not(unix))]
fn descriptors() -> usize {
    usize::MAX
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
        others.add();
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
            self.others.remove();
        }
    }
}

impl Read for Occasional {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.file.is_none() {
            self.file = Some(self.open()?);
            self.others.add();
        }
        let Some(file) = &mut self.file else { return Ok(0) };
        let read = file.read(buffer);
        self.position += *read.as_ref().unwrap_or(&0) as u64;
        if self.others.is_full() {
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
