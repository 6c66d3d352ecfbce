//! Opening of output files, which never overwrite the capture or each other.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::collector::Collector;
use super::destination::Destination;
use super::export::Sink;
use super::file_sink::{FileSink, Format, Place};
use super::identity::{self, Identity};
use super::lines::Lines;
use super::messages::Messages;
use super::options::{Ipfix, Options};
use super::rows::Rows;
use crate::program::Console;
use crate::program::signals::Signals;

/// Opens all outputs that the options name.
///
/// # Errors
///
/// A line that names the invalid output and the reason.
pub(crate) fn open_outputs(
    options: &Options,
    console: &Console,
    signals: &Signals,
) -> Result<Vec<Box<dyn Sink>>, String> {
    let captures: Vec<Identity> =
        options.captures.iter().filter_map(identity::of_capture).collect();
    let mut opening = Opening {
        options,
        console,
        signals,
        captures: captures.into(),
        outputs: Vec::new(),
        taken: Vec::new(),
    };
    if let Some(to) = &options.csv {
        opening.file("--csv", to, Box::new(Rows::new(options.columns)))?;
    }
    if let Some(to) = &options.json {
        opening.file("--json", to, Box::new(Lines::new(options.columns)))?;
    }
    for ipfix in &options.ipfix {
        match ipfix {
            Ipfix::To(to) => {
                opening.file("--ipfix", to, Box::new(Messages::new(&options.messages)))?;
            }
            Ipfix::Collector(name) => {
                let (console, signals) = (console.clone(), signals.clone());
                let collector = Collector::connect(name, &options.messages, console, signals)
                    .map_err(|error| format!("--ipfix {name}: {error}"))?;
                opening.outputs.push(Box::new(collector));
            }
        }
    }
    Ok(opening.outputs)
}

/// Outputs that are being opened.
struct Opening<'a> {
    options: &'a Options,
    console: &'a Console,
    signals: &'a Signals,
    captures: Arc<[Identity]>,
    outputs: Vec<Box<dyn Sink>>,
    taken: Vec<Taken>,
}

/// A file that no other output may use.
struct Taken {
    option: &'static str,
    path: PathBuf,
    /// `None` for a pattern: its files are opened later.
    identity: Option<Identity>,
}

impl Opening<'_> {
    fn file(
        &mut self,
        option: &'static str,
        to: &Destination,
        format: Box<dyn Format>,
    ) -> Result<(), String> {
        let name = format!("{option} {to}");
        let (console, signals) = (self.console.clone(), self.signals.clone());
        let rotation = self.options.rotation;
        let Destination::File(path) = to else {
            let out = standard_output().map_err(|error| format!("{name}: {error}"))?;
            let sink = FileSink::new(name, format, Place::Opened, Some(out), console, signals);
            self.outputs.push(Box::new(sink));
            return Ok(());
        };
        let refused = |why: String| format!("{name}: {why}");
        rotation.check(path).map_err(refused)?;
        if let Some(other) = self.taken.iter().find(|taken| taken.is(path)) {
            return Err(refused(format!("is the file of {}", other.option)));
        }
        let place = Place::Named { path: path.clone(), rotation, captures: self.captures.clone() };
        let mut sink = FileSink::new(name.clone(), format, place, None, console, signals);
        // A file of a time is opened with the first record: only then is its name known.
        if !rotation.is_on() {
            sink.open_first(self.options.overwrites).map_err(refused)?;
        }
        let identity = if rotation.is_on() { None } else { identity::of_file(path) };
        self.outputs.push(Box::new(sink));
        self.taken.push(Taken { option, path: path.clone(), identity });
        Ok(())
    }
}

impl Taken {
    /// Returns whether this is a name of the file.
    fn is(&self, path: &Path) -> bool {
        match &self.identity {
            Some(identity) => identity::of_file(path).as_ref() == Some(identity),
            // Only a pattern: pipes and devices can be given twice.
            None => self.path == path && path.metadata().map_or(true, |about| about.is_file()),
        }
    }
}

/// Returns standard output without the buffer of the standard library.
#[cfg(unix)]
fn standard_output() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
fn standard_output() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}
