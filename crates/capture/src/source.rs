//! Decompression of files and pipes.
//!
//! ```text
//!     gzip member │ gzip member │ zeros │ zstd frame │ …      parts, by their first bytes
//! ```

use std::cell::Cell;
use std::io::{self, BufRead, ErrorKind, Read};
use std::mem;
use std::rc::Rc;

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::Stream;

use super::magic::begins_file;

/// A reader of decompressed bytes. What is compressed is recognised by its first bytes, never by a
/// name: gzip, bzip2, zstd, xz, lz4, one part after the other. Zeros after a part are ignored.
///
/// The first bytes are read by the first call of `read`: a live source may have none yet. All
/// errors of kind `WouldBlock` are passed on, and no byte is lost by them. A call returns an error
/// of kind `Interrupted` after a long way without a result, so that no call is long; it can be
/// repeated.
pub struct Decompressed<R: Read> {
    state: State<R>,
    /// Whether a compressed part was found.
    is_compressed: bool,
    /// The memory of a decoder of xz or zstd.
    memory: usize,
    /// Bytes that the present call may still read from the source.
    left: Rc<Cell<usize>>,
}

enum State<R: Read> {
    /// The first bytes of a part are next.
    Opening(Source<R>),
    Plain(Source<R>),
    Part(Box<Decoder<R>>),
    /// This number of bytes is skipped.
    Skipping(Source<R>, u64),
    /// The end; or a transition.
    Ended,
}

/// The memory of a decoder of xz or zstd without another limit: twice that of `zstd --long`, four
/// times that of `xz -9`.
pub(crate) const DECODER: usize = 1 << 28;

/// Returns a reader of decompressed bytes.
pub fn decompressed<R: Read>(origin: R) -> Decompressed<R> {
    decompressed_within(origin, DECODER)
}

/// Returns a reader of decompressed bytes. A part of xz or zstd whose decoder needs more memory
/// than this is an error.
pub fn decompressed_within<R: Read>(origin: R, memory: usize) -> Decompressed<R> {
    let left = Rc::new(Cell::new(0));
    let source = Source::new(origin, Rc::clone(&left));
    Decompressed { state: State::Opening(source), is_compressed: false, memory, left }
}

/// Returns whether a file with these first bytes is read through a decoder.
pub fn is_compressed(head: &[u8]) -> bool {
    Format::of(head).is_some()
}

impl<R: Read> Decompressed<R> {
    /// Bytes that a call may read without a result.
    const SLICE: usize = 1 << 22;

    /// Selects the decoder of the next part, by its first bytes.
    fn open(&mut self) -> io::Result<()> {
        let State::Opening(source) = &mut self.state else { return Ok(()) };
        let is_first = !self.is_compressed;
        let mut head = source.peek()?;
        while !is_first && head.first() == Some(&0) {
            let zeros = head.iter().take_while(|byte| **byte == 0).count();
            source.consume(zeros);
            head = source.peek()?;
        }
        let is_end = head.is_empty();
        let format = Format::of(head);
        let is_plain = is_first || begins_file(head);
        let State::Opening(source) = mem::replace(&mut self.state, State::Ended) else {
            return Ok(());
        };
        self.state = match format {
            Some(Format::Skippable(length)) => State::Skipping(source, 8 + u64::from(length)),
            Some(format) => State::Part(Box::new(format.decoder(source, self.memory)?)),
            None if is_plain => State::Plain(source),
            None if is_end => State::Ended,
            None => {
                let why = "bytes that are not compressed follow the compressed ones";
                return Err(io::Error::new(ErrorKind::InvalidData, why));
            }
        };
        self.is_compressed |= format.is_some();
        Ok(())
    }

    fn read_part(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match &mut self.state {
                State::Opening(_) => self.open()?,
                State::Plain(source) => return source.read(buffer),
                State::Part(decoder) => match decoder.read(buffer)? {
                    0 => {
                        if let State::Part(decoder) = mem::replace(&mut self.state, State::Ended) {
                            self.state = State::Opening(decoder.end()?);
                        }
                    }
                    count => return Ok(count),
                },
                State::Skipping(source, left) => {
                    let held = source.fill_buf()?.len() as u64;
                    if *left > 0 && held == 0 {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                    source.consume(held.min(*left) as usize);
                    *left -= held.min(*left);
                    if *left > 0 {
                        continue;
                    }
                    if let State::Skipping(source, _) = mem::replace(&mut self.state, State::Ended)
                    {
                        self.state = State::Opening(source);
                    }
                }
                State::Ended => return Ok(0),
            }
        }
    }
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        self.left.set(Self::SLICE);
        self.read_part(buffer).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock if self.left.get() == 0 => ErrorKind::Interrupted.into(),
            _ => error,
        })
    }
}

/// The format of a part.
#[derive(Clone, Copy)]
enum Format {
    Gzip,
    Bzip2,
    Zstd,
    Xz,
    Lz4,
    /// A frame of this length without contents, as zstd and lz4 have them.
    Skippable(u32),
}

impl Format {
    /// The first bytes that determine a format.
    const HEAD: usize = 12;

    fn of(head: &[u8]) -> Option<Self> {
        Some(match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Self::Bzip2,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [0x04, 0x22, 0x4d, 0x18, ..] => Self::Lz4,
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, length @ ..] => {
                Self::Skippable(u32::from_le_bytes(*length.first_chunk()?))
            }
            _ => return None,
        })
    }

    /// The logarithms of the windows of zstd: the least, and the largest without a request.
    const WINDOWS: [u32; 2] = [10, 27];

    fn decoder<R: Read>(self, source: Source<R>, memory: usize) -> io::Result<Decoder<R>> {
        Ok(match self {
            Self::Gzip => Decoder::Gzip(GzDecoder::new(source)),
            Self::Bzip2 => Decoder::Bzip2(BzDecoder::new(source)),
            Self::Zstd | Self::Skippable(_) => {
                let mut decoder = zstd::Decoder::with_buffer(source)?.single_frame();
                let [least, most] = Self::WINDOWS;
                decoder.window_log_max(memory.max(1).ilog2().clamp(least, most))?;
                Decoder::Zstd(decoder)
            }
            Self::Xz => {
                let stream = Stream::new_stream_decoder(memory as u64, 0)?;
                Decoder::Xz(XzDecoder::new_stream(source, stream))
            }
            Self::Lz4 => Decoder::Lz4(lz4::Decoder::new(source)?),
        })
    }
}

/// The decoder of one part. All of them continue after an error of their source.
enum Decoder<R: Read> {
    Gzip(GzDecoder<Source<R>>),
    Bzip2(BzDecoder<Source<R>>),
    Zstd(zstd::Decoder<'static, Source<R>>),
    Xz(XzDecoder<Source<R>>),
    Lz4(lz4::Decoder<Source<R>>),
}

impl<R: Read> Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match self {
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Bzip2(decoder) => decoder.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
            Self::Xz(decoder) => decoder.read(buffer).map_err(|error| {
                match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                    // The words of zstd.
                    Some(liblzma::stream::Error::MemLimit) => {
                        io::Error::other("Stream requires too much memory for decoding")
                    }
                    _ => error,
                }
            }),
            Self::Lz4(decoder) => decoder.read(buffer),
        };
        read.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => Self::cut(),
            _ => error,
        })
    }

    /// One error for all formats, whose libraries have words of their own.
    fn cut() -> io::Error {
        io::Error::new(ErrorKind::UnexpectedEof, "the compressed data ends early")
    }

    /// Returns the source after the part.
    ///
    /// # Errors
    ///
    /// If the part is not complete.
    fn end(self) -> io::Result<Source<R>> {
        Ok(match self {
            Self::Gzip(decoder) => decoder.into_inner(),
            Self::Bzip2(decoder) => decoder.into_inner(),
            Self::Zstd(decoder) => decoder.finish(),
            Self::Xz(decoder) => decoder.into_inner(),
            Self::Lz4(decoder) => match decoder.finish() {
                (source, Ok(())) => source,
                (_, Err(_)) => return Err(Self::cut()),
            },
        })
    }
}

/// A buffered source, whose reads are limited.
struct Source<R> {
    origin: R,
    bytes: Box<[u8]>,
    /// The bytes that were read and not consumed.
    start: usize,
    end: usize,
    left: Rc<Cell<usize>>,
}

impl<R: Read> Source<R> {
    const CAPACITY: usize = 1 << 15;

    fn new(origin: R, left: Rc<Cell<usize>>) -> Self {
        Self { origin, bytes: vec![0; Self::CAPACITY].into(), start: 0, end: 0, left }
    }

    /// Returns the next bytes, at least [`Format::HEAD`] if the source has that many.
    fn peek(&mut self) -> io::Result<&[u8]> {
        while self.end - self.start < Format::HEAD && self.fill()? > 0 {}
        Ok(&self.bytes[self.start..self.end])
    }

    /// Reads more bytes after the few that are left.
    fn fill(&mut self) -> io::Result<usize> {
        if self.left.get() == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let count = loop {
            match self.origin.read(&mut self.bytes[self.end..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.end += count;
        self.left.set(self.left.get().saturating_sub(count));
        Ok(count)
    }
}

impl<R: Read> BufRead for Source<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            self.fill()?;
        }
        Ok(&self.bytes[self.start..self.end])
    }

    fn consume(&mut self, count: usize) {
        self.start += count;
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end && buffer.len() >= Self::CAPACITY {
            return self.origin.read(buffer);
        }
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}
