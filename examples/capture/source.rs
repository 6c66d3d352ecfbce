//! Where the bytes come from: a file or a pipe, compressed or not.

use std::fs::{File, Metadata};
use std::io::{self, Chain, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// The bytes of a capture, without compression.
pub(crate) struct Source {
    stream: Stream,
    size: Option<u64>,
    metadata: Option<Metadata>,
}

enum Stream {
    Plain(Origin),
    Gzip(Box<MultiGzDecoder<Origin>>),
}

/// All bytes of the file or pipe: the first two, which were looked at, and the rest.
type Origin = Chain<Cursor<Vec<u8>>, Counted>;

impl Source {
    pub(crate) fn file(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let size = metadata.is_file().then_some(metadata.len());
        Self::new(Box::new(file), size, Some(metadata))
    }

    pub(crate) fn standard_input() -> io::Result<Self> {
        let metadata = metadata_of_standard_input();
        Self::new(Box::new(io::stdin().lock()), None, metadata)
    }

    pub(crate) fn memory(bytes: Vec<u8>) -> io::Result<Self> {
        let size = bytes.len() as u64;
        Self::new(Box::new(Cursor::new(bytes)), Some(size), None)
    }

    /// Looks at the first two bytes: gzip is recognised by them and never by a name.
    fn new(
        origin: Box<dyn Read>,
        size: Option<u64>,
        metadata: Option<Metadata>,
    ) -> io::Result<Self> {
        let mut counted = Counted { origin, count: 0 };
        let mut magic = Vec::with_capacity(2);
        counted.by_ref().take(2).read_to_end(&mut magic)?;
        let is_gzip = magic == [0x1f, 0x8b];
        let origin = Cursor::new(magic).chain(counted);
        let stream = if is_gzip {
            Stream::Gzip(Box::new(MultiGzDecoder::new(origin)))
        } else {
            Stream::Plain(origin)
        };
        Ok(Self { stream, size, metadata })
    }

    /// Bytes taken from the file or pipe so far, before decompression.
    pub(crate) fn taken(&self) -> u64 {
        let (_, counted) = match &self.stream {
            Stream::Plain(origin) => origin.get_ref(),
            Stream::Gzip(decoder) => decoder.get_ref().get_ref(),
        };
        counted.count
    }

    /// All that there is to take; `None` if that is unknown.
    pub(crate) const fn size(&self) -> Option<u64> {
        self.size
    }

    /// What the system knows of the file or pipe, if there is one and it tells.
    pub(crate) const fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }
}

#[cfg(unix)]
fn metadata_of_standard_input() -> Option<Metadata> {
    use std::os::fd::AsFd;
    let input = io::stdin().as_fd().try_clone_to_owned().ok()?;
    File::from(input).metadata().ok()
}

#[cfg(not(unix))]
const fn metadata_of_standard_input() -> Option<Metadata> {
    None
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.stream {
            Stream::Plain(origin) => origin.read(buffer),
            Stream::Gzip(decoder) => decoder.read(buffer),
        }
    }
}

/// A reader that counts.
struct Counted {
    origin: Box<dyn Read>,
    count: u64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.origin.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}
