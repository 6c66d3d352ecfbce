//! Where the bytes come from: a file or a pipe, compressed or not.

use core::cell::Cell;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

/// Bytes of a capture, and what there is to know about their origin.
pub(crate) struct Source {
    /// The bytes, after decompression.
    pub(crate) bytes: Box<dyn Read>,
    /// Bytes taken from the origin so far, before decompression.
    pub(crate) taken: Rc<Cell<u64>>,
    /// All that there is to take; `None` if the origin cannot know.
    pub(crate) size: Option<u64>,
}

impl Source {
    pub(crate) fn file(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        Self::new(Box::new(file), about.is_file().then(|| about.len()))
    }

    pub(crate) fn standard_input() -> io::Result<Self> {
        Self::new(Box::new(io::stdin().lock()), None)
    }

    pub(crate) fn memory(bytes: Vec<u8>) -> io::Result<Self> {
        let size = bytes.len() as u64;
        Self::new(Box::new(Cursor::new(bytes)), Some(size))
    }

    /// Looks at the first two bytes: gzip is recognised by them and never by a name.
    fn new(origin: Box<dyn Read>, size: Option<u64>) -> io::Result<Self> {
        let taken = Rc::new(Cell::new(0));
        let mut counted = Counted { origin, taken: Rc::clone(&taken) };
        let mut magic = Vec::with_capacity(2);
        counted.by_ref().take(2).read_to_end(&mut magic)?;
        let compressed = magic == [0x1f, 0x8b];
        let whole = Cursor::new(magic).chain(counted);
        let bytes: Box<dyn Read> =
            if compressed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
        Ok(Self { bytes, taken, size })
    }
}

/// A reader that counts.
struct Counted {
    origin: Box<dyn Read>,
    taken: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.origin.read(buffer)?;
        self.taken.set(self.taken.get() + count as u64);
        Ok(count)
    }
}
