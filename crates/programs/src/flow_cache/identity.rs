//! Identities of files, by which an output is not the capture that is read.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;
#[cfg(not(unix))]
use std::path::PathBuf;

use crate::input::Input;

/// Opens a file to append to it; creates it if necessary.
///
/// # Errors
///
/// If it is a capture, or cannot be opened.
pub(crate) fn open(path: &Path, captures: &[Identity]) -> io::Result<File> {
    if of_file(path).is_some_and(|before| captures.contains(&before)) {
        return Err(io::Error::other("is the capture"));
    }
    OpenOptions::new().append(true).create(true).open(path)
}

/// The identity of a file, equal for all of its names.
#[cfg(unix)]
pub(crate) type Identity = (u64, u64);
#[cfg(not(unix))]
pub(crate) type Identity = PathBuf;

/// Returns the identity of a regular file; nothing else is changed by opening it.
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

/// Returns the identity of the regular file with this name.
pub(crate) fn of_file(path: &Path) -> Option<Identity> {
    identity(&fs::metadata(path).ok()?, path)
}

/// Returns the identity of the file that a capture is read from.
pub(crate) fn of_capture(capture: &Input) -> Option<Identity> {
    match capture {
        Input::File(path) => of_file(path),
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
