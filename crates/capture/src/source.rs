//! Decompression of files and pipes.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;

/// Returns a reader of decompressed bytes. Gzip is recognised by its first two bytes, never by a
/// name.
pub fn decompressed(mut origin: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let mut magic = Vec::with_capacity(2);
    origin.by_ref().take(2).read_to_end(&mut magic)?;
    let is_gzip = magic == [0x1f, 0x8b];
    let whole = Cursor::new(magic).chain(origin);
    Ok(if is_gzip { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
}
