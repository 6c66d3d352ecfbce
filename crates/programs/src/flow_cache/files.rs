//! Output files, which never overwrite the capture or each other.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::collector::{Collector, Ipfix};
use super::export::Sink;
use super::lines::Lines;
use super::options::{self, Options};
use super::rows::Rows;
use crate::input::Input;

/// Opens all outputs that the options name.
///
/// # Errors
///
/// A line that names the invalid output and the reason.
pub fn open_sinks(options: &Options) -> Result<Vec<Box<dyn Sink>>, String> {
    let mut files = Files::new(options.capture.as_ref());
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    if let Some(destination) = &options.csv {
        let rows = Rows::new(files.open("--csv", destination)?);
        sinks.push(Box::new(rows.map_err(|error| format!("--csv: {error}"))?));
    }
    if let Some(destination) = &options.json {
        sinks.push(Box::new(Lines::new(files.open("--json", destination)?)));
    }
    match &options.ipfix {
        Some(options::Ipfix::To(destination)) => {
            sinks.push(Box::new(Ipfix::to_file(files.open("--ipfix", destination)?)));
        }
        Some(options::Ipfix::Collector(name)) => {
            let collector = Collector::connect(name);
            let collector = collector.map_err(|error| format!("--ipfix {name}: {error}"))?;
            sinks.push(Box::new(Ipfix::to_collector(collector)));
        }
        None => {}
    }
    Ok(sinks)
}

/// A destination of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    File(PathBuf),
    StandardOutput,
}

impl From<&std::ffi::OsStr> for Destination {
    /// `-` is standard output.
    fn from(name: &std::ffi::OsStr) -> Self {
        if name == "-" { Self::StandardOutput } else { Self::File(name.into()) }
    }
}

/// The files in use: the capture, and opened outputs.
struct Files {
    taken: Vec<(Identity, String)>,
}

impl Files {
    /// Creates the list with the capture, if it is a file.
    fn new(capture: Option<&Input>) -> Self {
        let taken = capture.and_then(of_capture);
        let taken = taken.map(|identity| (identity, "is the capture".to_owned()));
        Self { taken: taken.into_iter().collect() }
    }

    /// Opens and truncates a destination.
    ///
    /// # Errors
    ///
    /// A line with the reason.
    fn open(&mut self, option: &str, destination: &Destination) -> Result<Box<dyn Write>, String> {
        match destination {
            Destination::StandardOutput => Ok(Box::new(io::stdout())),
            Destination::File(path) => match self.create(option, path) {
                Ok(file) => Ok(Box::new(file)),
                Err(why) => Err(format!("{option} {}: {why}", path.display())),
            },
        }
    }

    fn create(&mut self, option: &str, path: &Path) -> Result<File, String> {
        let before = fs::metadata(path).ok().and_then(|about| identity(&about, path));
        if let Some((_, what)) = self.taken.iter().find(|(taken, _)| Some(taken) == before.as_ref())
        {
            return Err(what.clone());
        }
        let file = File::create(path).map_err(|error| error.to_string())?;
        let about = file.metadata().map_err(|error| error.to_string())?;
        let now = identity(&about, path);
        self.taken.extend(now.map(|identity| (identity, format!("is the file of {option}"))));
        Ok(file)
    }
}

/// The identity of a file, equal for all of its names.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = PathBuf;

/// Returns the identity of a regular file; nothing else is truncated by opening it.
#[cfg(unix)]
fn identity(about: &Metadata, _: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    about.is_file().then(|| (about.dev(), about.ino()))
}

/// Returns the identity of a regular file. Hard links are not detected.
#[cfg(not(unix))]
fn identity(about: &Metadata, path: &Path) -> Option<Identity> {
    about.is_file().then(|| fs::canonicalize(path).ok()).flatten()
}

fn of_capture(capture: &Input) -> Option<Identity> {
    match capture {
        Input::File(path) => identity(&fs::metadata(path).ok()?, path),
        Input::Pipe => of_standard_input(),
    }
}

#[cfg(unix)]
fn of_standard_input() -> Option<Identity> {
    use std::os::fd::AsFd;
    let input = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    identity(&input.metadata().ok()?, Path::new(""))
}

/// Standard input has no known identity.
#[cfg(not(unix))]
fn of_standard_input() -> Option<Identity> {
    None
}
