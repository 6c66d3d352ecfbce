//! Names of output files: one file, or a pattern whose files follow each other.

use core::fmt;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use chrono::DateTime;
use chrono::format::{Item, StrftimeItems};

/// A destination of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    File(PathBuf),
    StandardOutput,
}

impl From<&OsStr> for Destination {
    /// `-` is standard output.
    fn from(name: &OsStr) -> Self {
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

/// When an output file ends and the next one begins.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rotation {
    /// The period in seconds, counted from the epoch.
    pub(crate) period_s: Option<u64>,
    /// The length in bytes.
    pub(crate) size: Option<u64>,
}

impl Rotation {
    pub(crate) const fn is_on(self) -> bool {
        self.period_s.is_some() || self.size.is_some()
    }

    /// Returns the second in which the period of this second began.
    pub(crate) fn period_start(self, second: u64) -> u64 {
        self.period_s.map_or(second, |period| second / period * period)
    }

    /// Checks that a name can be used with this rotation.
    ///
    /// # Errors
    ///
    /// If the name is no valid pattern, is equal for periods in a row, or is in a folder that does
    /// not exist and has no time.
    pub(crate) fn check(self, path: &Path) -> Result<(), String> {
        if !self.is_on() {
            return Ok(());
        }
        let text = path.to_str().ok_or("a name with times must be UTF-8")?;
        if StrftimeItems::new(text).any(|item| item == Item::Error) {
            return Err("an unknown conversion behind %, or none: %% is a percent sign".to_owned());
        }
        if self.period_s.is_some_and(|period| has_equal_names(text, period)) {
            let why = "the name needs a time of each period, such as %Y%m%d-%H%M%S";
            return Err(format!("with --rotate-time, {why}"));
        }
        let has_time = |folder: &Path| folder.to_str().is_none_or(|text| text.contains('%'));
        match path.ancestors().skip(1).find(|folder| !has_time(folder)) {
            Some(folder) if folder.as_os_str().is_empty() || folder.is_dir() => Ok(()),
            Some(folder) => Err(format!("there is no folder {}", folder.display())),
            None => Ok(()),
        }
    }

    /// Returns the path of the file of this second.
    pub(crate) fn path(self, path: &Path, second: u64) -> PathBuf {
        match path.to_str() {
            Some(text) if self.is_on() => expand(text, self.period_start(second)).into(),
            _ => path.to_owned(),
        }
    }
}

/// Returns whether a pattern has the same name for periods in a row.
fn has_equal_names(pattern: &str, period_s: u64) -> bool {
    /// All units of time begin with the epoch. A leap year is among the first years.
    const PERIODS: u64 = 10;
    let name = |number: u64| expand(pattern, number * period_s);
    (0..PERIODS).any(|number| name(number) == name(number + 1))
}

/// Replaces the conversions of `strftime` by a time in UTC. The pattern is valid.
fn expand(pattern: &str, second: u64) -> String {
    let time = i64::try_from(second).ok().and_then(|second| DateTime::from_timestamp(second, 0));
    time.unwrap_or_default().format(pattern).to_string()
}
