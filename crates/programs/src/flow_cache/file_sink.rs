//! Records in a file that survives a full disk, a restart, and rotation.
//!
//! ```text
//!     record ─► Format ─► pending ─► file        at once, or again each second if that fails
//!                           │
//!                           └► lost               beyond BACKLOG bytes
//! ```
//!
//! No record is removed from a file, except by `--overwrite` at the start: records are appended.
//! The file ends with a whole row at any time, also on a full disk: a row of which only a part
//! could be written is taken back; one that an earlier run could not finish is moved to another
//! file.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::destination::Rotation;
use super::export::{Closed, Sink};
use super::identity::{self, Identity};
use super::patient_file::{PatientFile, regular_length};
use super::record::Record;
use crate::program::Console;
use crate::program::signals::Signals;

/// The format of a file.
pub(crate) trait Format: Send {
    /// The unit in which losses are counted, as a plural.
    fn unit(&self) -> &'static str;

    /// Returns the length of the whole rows of a file that is not empty.
    ///
    /// # Errors
    ///
    /// If rows cannot be appended to the file, since it has another format.
    fn whole_length(&self, existing: &Path) -> io::Result<u64>;

    /// Writes what a file needs before the next row.
    fn begin(&mut self, _is_empty: bool, _: &mut Vec<u8>) {}

    /// Writes a record, or keeps it until [`end`](Self::end).
    fn write(&mut self, record: &Record, out: &mut Vec<u8>);

    /// Writes the records that were kept.
    fn end(&mut self, _: &mut Vec<u8>) {}

    /// Returns the length of the whole rows at the beginning of these bytes.
    fn whole(&self, bytes: &[u8]) -> usize;

    /// Returns the number of rows in these bytes.
    fn count(&self, bytes: &[u8]) -> u64;
}

/// The place of a file.
pub(crate) enum Place {
    /// Standard output.
    Opened,
    Named {
        path: PathBuf,
        rotation: Rotation,
        captures: Arc<[Identity]>,
    },
}

/// A file that is written.
struct Written {
    file: PatientFile,
    /// The length, of a regular file.
    length: Option<u64>,
    /// The second in which its period began.
    start_s: u64,
}

/// Why rows wait.
struct Trouble {
    error: String,
    /// The time of the next attempt.
    next: Instant,
}

/// A file, and rows that are not written yet.
pub(crate) struct FileSink {
    name: String,
    format: Box<dyn Format>,
    place: Place,
    written: Option<Written>,
    pending: Vec<u8>,
    /// The bytes of `pending` that are no rows, but the beginning of the file.
    front: usize,
    /// The second of the last record.
    second: u64,
    trouble: Option<Trouble>,
    /// The number of lost rows, and the error that caused the last loss.
    lost: u64,
    error: String,
    console: Console,
    signals: Signals,
}

impl FileSink {
    /// Bytes that are written together.
    const CHUNK: usize = 1 << 16;

    /// Bytes that wait for a full disk, at most.
    const BACKLOG: usize = 1 << 20;

    /// The time between two attempts.
    const RETRY: Duration = Duration::from_secs(1);

    pub(crate) fn new(
        name: String,
        format: Box<dyn Format>,
        place: Place,
        opened: Option<File>,
        console: Console,
        signals: Signals,
    ) -> Self {
        let written = opened.map(|file| {
            let file = PatientFile::new(file, signals.clone());
            Written { file, length: None, start_s: 0 }
        });
        let mut sink = Self {
            name,
            format,
            place,
            written,
            pending: Vec::new(),
            front: 0,
            second: 0,
            trouble: None,
            lost: 0,
            error: String::new(),
            console,
            signals,
        };
        if sink.written.is_some() {
            sink.format.begin(true, &mut sink.pending);
            sink.front = sink.pending.len();
        }
        sink
    }

    /// Opens the file at the start of the run. `overwrites` empties it.
    ///
    /// # Errors
    ///
    /// A line with the reason.
    pub(crate) fn open_first(&mut self, overwrites: bool) -> Result<(), String> {
        let Place::Named { path, captures, .. } = &self.place else { return Ok(()) };
        if overwrites {
            let file = identity::open(path, captures).map_err(|error| error.to_string())?;
            // Not all that can be written can be truncated, such as a pipe.
            let _ = file.set_len(0);
        }
        self.open().map_err(|error| error.to_string())
    }

    /// Opens the file of the last record.
    fn open(&mut self) -> io::Result<()> {
        let Place::Named { path, rotation, captures } = &self.place else { return Ok(()) };
        let start_s = rotation.period_start(self.second);
        let path = free_path(&rotation.path(path, self.second), *rotation)?;
        // Those that the pattern names.
        if let Some(folder) = path.parent().filter(|_| rotation.is_on()) {
            fs::create_dir_all(folder)?;
        }
        let file = identity::open(&path, captures)?;
        let length = self.whole_length(&path, &file, captures)?;
        let file = PatientFile::new(file, self.signals.clone());
        let mut front = Vec::new();
        self.format.begin(length.is_none_or(|length| length == 0), &mut front);
        self.front = front.len();
        self.pending.splice(0..0, front);
        self.written = Some(Written { file, length, start_s });
        Ok(())
    }

    /// Returns the length of a file, if it has one, after its end is moved that is no whole row.
    fn whole_length(
        &self,
        path: &Path,
        file: &File,
        captures: &[Identity],
    ) -> io::Result<Option<u64>> {
        let Some(length @ 1..) = regular_length(file) else { return Ok(regular_length(file)) };
        let whole = self.format.whole_length(path)?;
        if whole < length {
            let (name, cut, unit) = (&self.name, length - whole, self.format.unit());
            let aside = move_end(path, file, whole, captures)?;
            let what = format_args!("the last {cut} bytes are no whole {unit}");
            let aside = aside.display();
            self.console.say(&format_args!("{name}: {what}, and are moved to {aside}"));
        }
        Ok(Some(whole))
    }

    /// Ends the file if the record of this second belongs to the next one.
    fn rotate(&mut self, second: u64) {
        self.second = second;
        let Place::Named { rotation, .. } = &self.place else { return };
        let Some(Written { length, start_s, .. }) = &self.written else { return };
        let is_over = rotation.period_s.is_some() && rotation.period_start(second) != *start_s;
        let is_full = rotation.size.is_some_and(|size| length.is_some_and(|length| length >= size));
        if is_over || is_full {
            self.close();
        }
    }

    /// Ends the file. Rows that cannot be written to it go to the next one.
    fn close(&mut self) {
        self.format.end(&mut self.pending);
        // The next attempt, with another file, reports an error that stays.
        let _ = self.drain();
        self.written = None;
        self.pending.drain(..mem::take(&mut self.front));
    }

    /// Writes pending rows to the file, which is opened first if necessary.
    fn drain(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.written.is_none() {
            self.open()?;
        }
        let Some(written) = &mut self.written else { return Ok(()) };
        let mut at = 0;
        let result = loop {
            match written.file.write(&self.pending[at..]) {
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(count) => at += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
            if at == self.pending.len() {
                break Ok(());
            }
        };
        if result.is_err() {
            at = written.take_back(at, self.format.whole(&self.pending[..at]));
        }
        written.length = written.length.map(|length| length + at as u64);
        self.pending.drain(..at);
        self.front = self.front.saturating_sub(at);
        result
    }

    /// Tries to write pending rows, unless the last attempt has just failed.
    fn attempt(&mut self) -> Result<(), Closed> {
        if self.trouble.as_ref().is_some_and(|trouble| Instant::now() < trouble.next) {
            return Ok(());
        }
        match self.drain() {
            Ok(()) => {
                if self.trouble.take().is_some() {
                    let lost = self.lost_rows();
                    self.console.say(&format_args!("{} is written again{lost}", self.name));
                }
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Closed),
            Err(error) => {
                self.fail(&error);
                Ok(())
            }
        }
    }

    /// Reports an error if it is the first one, and sets the time of the next attempt.
    fn fail(&mut self, error: &io::Error) {
        let is_last = self.signals.check_outputs().is_err();
        if self.trouble.is_none() && !is_last {
            let (name, then) = (&self.name, "it is tried again each second");
            self.console.say(&format_args!("{name} cannot be written: {error}: {then}"));
        }
        let next = Instant::now() + Self::RETRY;
        self.trouble = Some(Trouble { error: error.to_string(), next });
    }

    /// Opens the file, unless that has failed: so that its front is made before its first row.
    fn prepare(&mut self) {
        if self.written.is_none() && self.trouble.is_none() {
            if let Err(error) = self.open() {
                self.fail(&error);
            }
        }
    }

    fn lost_rows(&self) -> String {
        match self.lost {
            0 => String::new(),
            lost => format!("; {lost} {} are lost", self.format.unit()),
        }
    }
}

impl Written {
    /// Takes back a row of which only a part was written: `at` bytes were written, `whole` of them
    /// are rows. Returns the number of bytes that stay.
    fn take_back(&self, at: usize, whole: usize) -> usize {
        match self.length {
            Some(_) if at > whole && self.file.shorten(at - whole).is_ok() => whole,
            _ => at,
        }
    }
}

impl Sink for FileSink {
    fn write(&mut self, record: &Record) -> Result<(), Closed> {
        self.rotate(record.made.as_nanos() / 1_000_000_000);
        self.prepare();
        let before = self.pending.len();
        self.format.write(record, &mut self.pending);
        if self.pending.len() < Self::CHUNK {
            return Ok(());
        }
        self.attempt()?;
        if let Some(trouble) = &self.trouble {
            if self.pending.len() > Self::BACKLOG && self.pending.len() > before {
                self.lost += self.format.count(&self.pending[before..]);
                self.error.clone_from(&trouble.error);
                self.pending.truncate(before);
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Closed> {
        self.format.end(&mut self.pending);
        self.attempt()
    }

    fn finish(&mut self) -> Result<(), Closed> {
        self.format.end(&mut self.pending);
        if let Some(trouble) = &mut self.trouble {
            trouble.next = Instant::now();
        }
        self.attempt()?;
        if let Some(Trouble { error, .. }) = self.trouble.take() {
            self.lost += self.format.count(&self.pending[mem::take(&mut self.front)..]);
            self.pending.clear();
            self.error = error;
        }
        Ok(())
    }

    fn reopen(&mut self) {
        if matches!(self.place, Place::Named { .. }) {
            self.close();
            self.prepare();
        }
    }

    fn is_waiting(&self) -> bool {
        self.trouble.is_some()
    }

    fn state(&self) -> Option<String> {
        let trouble = self.trouble.as_ref()?;
        let waiting = self.format.count(&self.pending[self.front..]);
        let (name, unit, lost) = (&self.name, self.format.unit(), self.lost_rows());
        let error = &trouble.error;
        Some(format!("{name} cannot be written: {error}: {waiting} {unit} wait{lost}"))
    }

    fn losses(&self) -> Option<String> {
        let Self { name, error, lost, .. } = self;
        let unit = self.format.unit();
        (*lost > 0).then(|| format!("{name} cannot be written: {error}; {lost} {unit} are lost"))
    }
}

/// Moves the bytes of a file from the offset `from` on to the end of `FILE.cut`, and returns the
/// path of `FILE.cut`.
fn move_end(path: &Path, file: &File, from: u64, captures: &[Identity]) -> io::Result<PathBuf> {
    let mut name = path.as_os_str().to_owned();
    name.push(".cut");
    let aside = PathBuf::from(name);
    let mut source = File::open(path)?;
    source.seek(SeekFrom::Start(from))?;
    let mut copy = identity::open(&aside, captures)?;
    io::copy(&mut source, &mut copy)?;
    copy.sync_all()?;
    file.set_len(from)?;
    Ok(aside)
}

/// Returns the first path that a rotation by size can use: this one, or the one with the next
/// number behind it.
fn free_path(path: &Path, rotation: Rotation) -> io::Result<PathBuf> {
    let Some(size) = rotation.size else { return Ok(path.to_owned()) };
    let numbered = |number: u64| {
        let mut name = path.as_os_str().to_owned();
        if number > 0 {
            name.push(format!(".{number}"));
        }
        PathBuf::from(name)
    };
    for path in (0..u64::MAX).map(numbered) {
        match path.metadata() {
            Ok(about) if about.len() >= size => {}
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(path),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("all numbers are in use"))
}
