//! Table dumps of BGP routers in the format MRT, as route collectors publish them.
//!
//! ```text
//!     record      time │ type, subtype │ length │ ────────────── body ──────────────
//!     RIB         sequence │ bits, prefix │ count │ entry │ entry │ …
//!     entry       peer │ time │ (path) │ length │ attributes: …, AS_PATH, …
//! ```
//!
//! A route is a prefix with the number of the autonomous system that announces it: the last one of
//! the path of the first entry that has one. Records of other types are skipped. RFC 6396 has the
//! format; RFC 8050 that of entries with the ID of a path.
//!
//! No crate is used: `bgpkit-parser` brings 35 packages and needs Rust 1.88, or is of early 2025;
//! `mrt_parser` is of 2021 and has no IDs of paths; `mrt-rs` is under the GPL.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::io::{self, Read};

/// The bytes by which a dump is recognised: text has no zeros.
pub(super) const HEAD: usize = 8;

/// The type of records of table dumps.
const TABLE_DUMP_V2: u16 = 13;

/// The limit of the length of a record: that of a prefix with a thousand peers has 100 KB.
const LONGEST: u32 = 1 << 24;

/// The attribute with the path, and the kind of its segments that are ordered.
const AS_PATH: u8 = 2;
const AS_SEQUENCE: u8 = 2;

/// The flag of an attribute whose length has two bytes.
const EXTENDED_LENGTH: u8 = 0x10;

/// A prefix, and the autonomous system that announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announced {
    pub(super) address: IpAddr,
    pub(super) len: u32,
    pub(super) origin: Option<u32>,
}

/// Returns whether a file that begins with these bytes is a table dump.
pub(super) fn is_table_dump(head: &[u8]) -> bool {
    head.get(4..6) == Some(&TABLE_DUMP_V2.to_be_bytes()[..])
}

/// Reads the next route; `None` at the end.
pub(super) fn next_route(reader: &mut impl Read) -> io::Result<Option<Announced>> {
    loop {
        let mut header = [0; 12];
        match reader.read(&mut header[..1]) {
            Ok(0) => return Ok(None),
            Ok(_) => reader.read_exact(&mut header[1..])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let mut fields = Fields(&header[4..]);
        let (kind, subtype, length) = (fields.number(2)?, fields.number(2)?, fields.number(4)?);
        if length > LONGEST {
            return Err(invalid(format!("an MRT record of {length} bytes")));
        }
        let mut body = vec![0; length as usize];
        reader.read_exact(&mut body)?;
        if kind == u32::from(TABLE_DUMP_V2) {
            if let Some(route) = route(subtype, &body)? {
                return Ok(Some(route));
            }
        }
    }
}

/// Returns the route of a record of this subtype; `None` if it has none of unicast addresses.
fn route(subtype: u32, body: &[u8]) -> io::Result<Option<Announced>> {
    let (is_v4, path_id) = match subtype {
        2 => (true, 0),
        4 => (false, 0),
        8 => (true, 4),
        10 => (false, 4),
        _ => return Ok(None),
    };
    let mut fields = Fields(body);
    fields.take(4)?;
    let len = fields.number(1)?;
    let bits = fields.take(len.div_ceil(8) as usize)?;
    let mut bytes = [0; 16];
    let longest = if is_v4 { 4 } else { 16 };
    if bits.len() > longest {
        return Err(invalid(format!("a prefix of {len} bits")));
    }
    bytes[..bits.len()].copy_from_slice(bits);
    let address = match is_v4 {
        true => IpAddr::from(Ipv4Addr::from(core::array::from_fn(|at| bytes[at]))),
        false => IpAddr::from(Ipv6Addr::from(bytes)),
    };
    let mut origin = None;
    for _ in 0..fields.number(2)? {
        fields.take(2 + 4 + path_id)?;
        let length = fields.number(2)? as usize;
        let attributes = fields.take(length)?;
        origin = origin.or(last_of_path(attributes)?);
    }
    Ok(Some(Announced { address, len, origin }))
}

/// Returns the last autonomous system of the path in these attributes, unless the path ends with a
/// set.
fn last_of_path(attributes: &[u8]) -> io::Result<Option<u32>> {
    let mut fields = Fields(attributes);
    while !fields.0.is_empty() {
        let (flags, kind) = (fields.number(1)? as u8, fields.number(1)? as u8);
        let length = fields.number(if flags & EXTENDED_LENGTH != 0 { 2 } else { 1 })?;
        let mut path = Fields(fields.take(length as usize)?);
        if kind != AS_PATH {
            continue;
        }
        let mut last = None;
        while !path.0.is_empty() {
            let (kind, count) = (path.number(1)? as u8, path.number(1)? as usize);
            let mut systems = Fields(path.take(4 * count)?);
            last = None;
            while kind == AS_SEQUENCE && !systems.0.is_empty() {
                last = Some(systems.number(4)?);
            }
        }
        return Ok(last);
    }
    Ok(None)
}

/// The fields of a record that have not been read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let too_short = || invalid("an MRT record that is too short for its fields".to_owned());
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(too_short)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads a number of up to four bytes.
    fn number(&mut self, bytes: usize) -> io::Result<u32> {
        let bytes = self.take(bytes)?.iter();
        Ok(bytes.fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
