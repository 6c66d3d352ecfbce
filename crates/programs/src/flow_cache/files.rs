//! Output files, which never overwrite the capture or each other.

use core::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::collector::{Collector, Ipfix};
use super::export::{Output, Sink};
use super::lines::Lines;
use super::options::{self, Options};
use super::rows::Rows;
use crate::input::Input;

/// Opens all outputs that the options name.
///
/// # Errors
///
/// A line that names the invalid output and the reason.
pub(crate) fn open_outputs(options: &Options) -> Result<Vec<Output>, String> {
    let mut files = Files::new(&options.captures);
    let mut outputs: Vec<Output> = Vec::new();
    let mut add = |name: String, sink| outputs.push(Output { name, sink });
    if let Some(to) = &options.csv {
        let rows = Rows::new(files.open("--csv", to)?);
        add(format!("--csv {to}"), Box::new(rows) as Box<dyn Sink>);
    }
    if let Some(to) = &options.json {
        add(format!("--json {to}"), Box::new(Lines::new(files.open("--json", to)?)));
    }
    match &options.ipfix {
        Some(options::Ipfix::To(to)) => {
            let messages = Ipfix::to_file(files.open("--ipfix", to)?);
            add(format!("--ipfix {to}"), Box::new(messages));
        }
        Some(options::Ipfix::Collector(name)) => {
            let collector = Collector::connect(name);
            let collector = collector.map_err(|error| format!("--ipfix {name}: {error}"))?;
            add(format!("--ipfix {name}"), Box::new(Ipfix::to_collector(collector)));
        }
        None => {}
    }
    Ok(outputs)
}

/// A destination of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    File(PathBuf),
    StandardOutput,
}

impl From<&std::ffi::OsStr> for Destination {
    /// `-` is standard output.
    fn from(name: &std::ffi::OsStr) -> Self {
        if name == "-" { Self::StandardOutput } else { Self::File(name.into()) }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::StandardOutput => f.write_str("-"),
        }
    }
}

/// The files in use: the captures, and opened outputs.
struct Files {
    taken: Vec<(Identity, String)>,
}

impl Files {
    /// Creates the list with the captures that are files.
    fn new(captures: &[Input]) -> Self {
        let taken = captures.iter().filter_map(of_capture);
        Self { taken: taken.map(|identity| (identity, "is the capture".to_owned())).collect() }
    }

    /// Opens and truncates a destination.
    ///
    /// # Errors
    ///
    /// A line with the reason.
    fn open(
        &mut self,
        option: &str,
        destination: &Destination,
    ) -> Result<Box<dyn Write + Send>, String> {
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
