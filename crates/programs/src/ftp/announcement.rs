//! Announcements of data connections in the payload of control connections: RFC 959.

use core::error::Error;
use core::fmt;
use std::net::SocketAddrV4;

/// An error in an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The line does not end in its packet, so that digits may be missing.
    Cut,
    /// There are not six decimal numbers.
    Numbers,
    /// A number is above 255.
    Range,
}

/// Returns the socket at which a client listens, by its command: `PORT h1,h2,h3,h4,p1,p2`. Returns
/// `None` for payloads that are not this command.
pub fn of_client(payload: &[u8]) -> Option<Result<SocketAddrV4, Malformed>> {
    let (command, rest) = payload.split_at_checked(5)?;
    command.eq_ignore_ascii_case(b"PORT ").then(|| socket(line(rest)?))
}

/// Returns the socket at which a server listens, by its reply: `227` and six numbers, in
/// parentheses or not (RFC 1123, section 4.1.2.6). Returns `None` for other payloads.
pub fn of_server(payload: &[u8]) -> Option<Result<SocketAddrV4, Malformed>> {
    let rest = payload.strip_prefix(b"227 ")?;
    let numbers = |line: &'_ [u8]| {
        let begin = line.iter().position(u8::is_ascii_digit).ok_or(Malformed::Numbers)?;
        let is_other = |byte: &u8| !byte.is_ascii_digit() && *byte != b',';
        let end = line[begin..].iter().position(is_other).map_or(line.len(), |end| begin + end);
        socket(&line[begin..end])
    };
    Some(line(rest).and_then(numbers))
}

/// Returns the only line of a payload, without its end.
fn line(payload: &[u8]) -> Result<&[u8], Malformed> {
    payload.strip_suffix(b"\r\n").ok_or(Malformed::Cut)
}

/// Parses four numbers of an address and two of a port.
fn socket(list: &[u8]) -> Result<SocketAddrV4, Malformed> {
    let mut numbers = [0; 6];
    let mut fields = list.split(|byte| *byte == b',');
    for number in &mut numbers {
        *number = fields.next().ok_or(Malformed::Numbers).and_then(byte)?;
    }
    if fields.next().is_some() {
        return Err(Malformed::Numbers);
    }
    let [a, b, c, d, high, low] = numbers;
    Ok(SocketAddrV4::new([a, b, c, d].into(), u16::from_be_bytes([high, low])))
}

/// Parses a number of up to three digits: a sign is no digit.
fn byte(digits: &[u8]) -> Result<u8, Malformed> {
    if !(1..=3).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Malformed::Numbers);
    }
    let value = digits.iter().fold(0, |value, digit| 10 * value + u16::from(digit - b'0'));
    u8::try_from(value).map_err(|_| Malformed::Range)
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cut => "the line does not end",
            Self::Numbers => "not six numbers",
            Self::Range => "a number above 255",
        })
    }
}

impl Error for Malformed {}
