//! Decompression of files and pipes.

use std::io::{self, Chain, Cursor, Read};
use std::mem;

use flate2::read::MultiGzDecoder;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A reader of decompressed bytes. Gzip is recognised by its first two bytes, never by a name.
///
/// The first bytes are read by the first call of `read`: a live source may have none yet.
pub struct Decompressed<R> {
    state: State<R>,
}

enum State<R> {
    /// The first bytes, at most two, are being read.
    Opening(Vec<u8>, R),
    Plain(Chain<Cursor<Vec<u8>>, R>),
    Gzip(Box<MultiGzDecoder<Chain<Cursor<Vec<u8>>, R>>>),
    /// The transition from `Opening`.
    Empty,
}

/// Returns a reader of decompressed bytes.
pub fn decompressed<R: Read>(origin: R) -> Decompressed<R> {
    Decompressed { state: State::Opening(Vec::new(), origin) }
}

impl<R: Read> Decompressed<R> {
    /// Reads the first bytes, and selects the decoder.
    fn open(&mut self) -> io::Result<()> {
        if let State::Opening(magic, origin) = &mut self.state {
            while magic.len() < GZIP.len() {
                let mut byte = [0];
                match origin.read(&mut byte) {
                    Ok(0) => break,
                    Ok(_) => magic.extend(byte),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        self.state = match mem::replace(&mut self.state, State::Empty) {
            State::Opening(magic, origin) if magic == GZIP => {
                let whole = Cursor::new(magic).chain(origin);
                State::Gzip(Box::new(MultiGzDecoder::new(whole)))
            }
            State::Opening(magic, origin) => State::Plain(Cursor::new(magic).chain(origin)),
            other => other,
        };
        Ok(())
    }
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if matches!(self.state, State::Opening(..)) {
            self.open()?;
        }
        match &mut self.state {
            State::Plain(source) => source.read(buffer),
            State::Gzip(source) => source.read(buffer),
            State::Opening(..) | State::Empty => Ok(0),
        }
    }
}
