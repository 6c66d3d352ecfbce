//! Files of lines: what CSV and JSON have in common.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The columns that records have only on request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Columns {
    pub(crate) community_id: bool,
    pub(crate) vlan: bool,
    pub(crate) mac: bool,
}

/// Returns the length of the whole lines of a file whose lines begin with these bytes in the first
/// one; `None` if it is another file.
pub(crate) fn whole_length(path: &Path, start: &[u8]) -> io::Result<Option<u64>> {
    /// A line of this program is shorter.
    const LONGEST: u64 = 4096;
    let mut file = File::open(path)?;
    let (mut first, mut last) = (Vec::new(), Vec::new());
    (&mut file).take(start.len() as u64).read_to_end(&mut first)?;
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(LONGEST)))?;
    file.take(LONGEST).read_to_end(&mut last)?;
    let cut = (last.len() - whole_lines(&last)) as u64;
    // Without any whole line, a file that was cut in the first one.
    let is_own = start.starts_with(&first) && cut < LONGEST;
    Ok(is_own.then(|| length.saturating_sub(cut)))
}

/// Returns the length of the whole lines at the beginning of these bytes.
pub(crate) fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// Returns the number of lines.
pub(crate) fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
