//! Files of lines: what CSV and JSON have in common.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The columns that records have only on request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Columns {
    pub(crate) community_id: bool,
    pub(crate) vlan: bool,
    pub(crate) mac: bool,
}

/// The contents of a file of lines before this run.
pub(crate) struct Existing {
    /// The beginning of the first line.
    pub(crate) first: String,
    /// Whether the last line has an end.
    pub(crate) is_whole: bool,
}

impl Existing {
    /// Reads it from a file that is not empty.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        /// A line of this program is shorter.
        const LONGEST: u64 = 4096;
        let mut file = File::open(path)?;
        let mut first = Vec::new();
        BufReader::new((&mut file).take(LONGEST)).read_until(b'\n', &mut first)?;
        file.seek(SeekFrom::End(-1))?;
        let mut last = Vec::new();
        file.read_to_end(&mut last)?;
        let first = String::from_utf8_lossy(&first).trim_end().to_owned();
        Ok(Self { first, is_whole: last.first() == Some(&b'\n') })
    }
}

/// Returns the length of the whole lines at the beginning of these bytes.
pub(crate) fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// Returns the number of lines.
pub(crate) fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
