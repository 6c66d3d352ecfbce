//! Compressed captures: all formats, in pieces and in parts.

use std::io::{self, Cursor, ErrorKind, Read};

use capture::data::{BIG, LITTLE, MICROSECONDS, NANOSECONDS, compressed};
use capture::{Capture, End, decompressed};

use super::reading::{file, ports};

/// Bytes that do not compress well.
fn noise(len: usize) -> Vec<u8> {
    let next = |state: &mut u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Some((*state >> 56) as u8)
    };
    let mut state = 1;
    std::iter::from_fn(|| next(&mut state)).take(len).collect()
}

/// A source that has no bytes for now before each of its pieces.
struct Pieces<'a> {
    bytes: &'a [u8],
    piece: usize,
    is_silent: bool,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_silent = !self.is_silent;
        if self.is_silent {
            return Err(ErrorKind::WouldBlock.into());
        }
        let most = self.piece.min(buffer.len());
        self.bytes.read(&mut buffer[..most])
    }
}

/// Decompresses all bytes of a source that has them in pieces of this length.
fn decompress(bytes: &[u8], piece: usize) -> io::Result<Vec<u8>> {
    let mut reader = decompressed(Pieces { bytes, piece, is_silent: false });
    let (mut out, mut buffer) = (vec![], vec![0; 70_000]);
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(out),
            Ok(count) => out.extend(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

#[test]
fn all_formats_are_decompressed_in_any_pieces() {
    let noise = noise(2000);
    for plain in [&noise[..], &[b'a'; 20_000], b"x", b""] {
        for (name, bytes) in compressed(plain) {
            for piece in [1, 1 << 20] {
                let all =
                    decompress(&bytes, piece).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(all == plain, "{name}: {} bytes in pieces of {piece}", all.len());
            }
        }
    }
}

/// Parts of all formats, with zeros and frames without contents between them.
#[test]
fn parts_follow_each_other() {
    let parts = compressed(b"part ");
    let skipped = [&[0x51, 0x2a, 0x4d, 0x18, 9, 0, 0, 0][..], &[7; 9]].concat();
    for (first, one) in &parts {
        for (second, two) in &parts {
            for between in [&b""[..], &[0; 1000], &skipped] {
                let all = [&one[..], between, two, between].concat();
                let read = decompress(&all, 7).map_err(|error| error.to_string());
                assert_eq!(read, Ok(b"part part ".to_vec()), "{first} {second} {between:?}");
            }
        }
        // Anything else is an error, after the part.
        let error = decompress(&[&one[..], b"garbage"].concat(), 100).map_err(|error| error.kind());
        assert_eq!(error, Err(ErrorKind::InvalidData), "{first}");
    }
    let first = file(LITTLE, MICROSECONDS, 9, &[1, 2]);
    for (name, bytes) in compressed(&first) {
        let mixed = [&bytes[..], &file(BIG, NANOSECONDS, 9, &[3])].concat();
        assert_eq!(ports(&mixed), [1, 2, 3], "{name}");
    }
}

/// Packets before the cut are kept.
#[test]
fn a_cut_compression_is_an_end() {
    let all: Vec<u16> = (1..=20_000).collect();
    for (name, bytes) in compressed(&file(LITTLE, MICROSECONDS, 9, &all)) {
        for end in [bytes.len() - 1, bytes.len() * 3 / 4] {
            let mut capture = Capture::memory(bytes[..end].to_vec()).expect("it begins as one");
            let mut frames = 0;
            while capture.next_frame().is_some() {
                frames += 1;
            }
            let end = capture.end().map(ToString::to_string);
            assert!(frames > 1000, "{name}: {frames} {end:?}");
            let is_cut = matches!(capture.end(), Some(End::Unreadable(error))
                if error.kind() == ErrorKind::UnexpectedEof);
            assert!(is_cut, "{name}: {end:?}");
            assert_eq!(end.as_deref(), Some("the compressed data ends early"), "{name}");
        }
    }
}

/// A file of parts without contents takes long, and each call is short.
#[test]
fn parts_without_contents_are_interruptible() {
    // A name of 60 KB, nothing, and its sum and length.
    let head = [0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3];
    let member = [&head[..], &[b'n'; 60_000], &[0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    let mut reader = decompressed(Cursor::new(member.repeat(300)));
    let mut calls = 0;
    while let Err(error) = reader.read(&mut [0; 10]) {
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        calls += 1;
    }
    assert!((4..=6).contains(&calls), "{calls}");
}
