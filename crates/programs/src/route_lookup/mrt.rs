//! Files of BGP routers in the format MRT, as route collectors publish them.
//!
//! ```text
//!     record      time │ type, subtype │ length │ ────────────── body ──────────────
//!     RIB         sequence │ bits, prefix │ count │ entry │ entry │ …
//!     entry       peer │ time │ (path) │ length │ attributes: …, AS_PATH, …
//! ```
//!
//! Tables are records of the types `TABLE_DUMP` and `TABLE_DUMP_V2`. A route of a table is a prefix
//! with the number of the autonomous system that announces it: the last one of the path of the
//! first entry that has one. Updates, of the types `BGP4MP` and `BGP4MP_ET`, are applied in their
//! order, as if they were of one peer. Records of other types are skipped. RFC 6396 has the format;
//! RFC 8050 that of entries with the ID of a path.
//!
//! No crate is used: `bgpkit-parser` brings 35 packages and needs Rust 1.88, or is of early 2025;
//! `mrt_parser` is of 2021 and has no IDs of paths; `mrt-rs` is under the GPL.

use core::net::IpAddr;
use std::io::{self, ErrorKind, Read};

use super::bgp::{self, Attributes, Encoding};
use super::fields::{Family, Fields};

/// The bytes by which a file is recognised: text has no zeros.
pub(super) const HEAD: usize = 8;

/// Types of records.
const TABLE_DUMP: u32 = 12;
const TABLE_DUMP_V2: u32 = 13;
const BGP4MP: u32 = 16;
const BGP4MP_ET: u32 = 17;

/// The limit of the length of a record: that of a prefix with a thousand peers has 100 KB.
const LONGEST: u32 = 1 << 24;

/// A prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) address: IpAddr,
    pub(super) len: u32,
}

/// A change of a route, with the autonomous system that announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// An entry of a table: the first one with a system counts.
    Entry(Option<u32>),
    Announced(Option<u32>),
    Withdrawn,
}

/// Returns whether a file that begins with these bytes is in the format MRT.
pub(super) fn is_mrt(head: &[u8]) -> bool {
    matches!(head, [_, _, _, _, 0, 11..=13 | 16..=17 | 32..=33 | 48..=49, ..])
}

/// A record.
#[derive(Default)]
pub(super) struct Record {
    kind: u32,
    subtype: u32,
    body: Vec<u8>,
}

impl Record {
    /// Reads the next record; returns whether there is one.
    ///
    /// # Errors
    ///
    /// If the file cannot be read any further.
    pub(super) fn read(&mut self, reader: &mut impl Read) -> io::Result<bool> {
        let cut = |error: io::Error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                io::Error::new(ErrorKind::UnexpectedEof, "the file ends inside a record")
            }
            _ => error,
        };
        let mut header = [0; 12];
        loop {
            match reader.read(&mut header[..1]) {
                Ok(0) => return Ok(false),
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        reader.read_exact(&mut header[1..]).map_err(cut)?;
        let mut fields = Fields(&header[4..]);
        let mut number = |bytes| fields.number(bytes).map_err(io::Error::other);
        (self.kind, self.subtype) = (number(2)?, number(2)?);
        let length = number(4)?;
        if length > LONGEST {
            let why = format!("an MRT record of {length} bytes");
            return Err(io::Error::new(ErrorKind::InvalidData, why));
        }
        self.body.resize(length as usize, 0);
        reader.read_exact(&mut self.body).map_err(cut)?;
        Ok(true)
    }

    /// Passes the changes of this record to `each`.
    ///
    /// # Errors
    ///
    /// If the record is malformed; then some of its changes may be missing.
    pub(super) fn changes(&self, each: &mut impl FnMut(Route, Change)) -> Result<(), String> {
        let mut fields = Fields(&self.body);
        match (self.kind, self.subtype) {
            (TABLE_DUMP, 1) => entry(fields, Family::V4, each),
            (TABLE_DUMP, 2) => entry(fields, Family::V6, each),
            (TABLE_DUMP_V2, 2) => entries(fields, Family::V4, 0, each),
            (TABLE_DUMP_V2, 4) => entries(fields, Family::V6, 0, each),
            (TABLE_DUMP_V2, 8) => entries(fields, Family::V4, 4, each),
            (TABLE_DUMP_V2, 10) => entries(fields, Family::V6, 4, each),
            (BGP4MP, subtype) => message(fields, subtype, each),
            (BGP4MP_ET, subtype) => {
                // Microseconds.
                fields.take(4)?;
                message(fields, subtype, each)
            }
            _ => Ok(()),
        }
    }
}

/// Reads the entry of a peer in a table of the first version.
fn entry(
    mut fields: Fields<'_>,
    family: Family,
    each: &mut impl FnMut(Route, Change),
) -> Result<(), String> {
    fields.take(2 + 2)?;
    let (address, len) = (fields.address(family)?, fields.number(1)?);
    if len as usize > 8 * family.bytes() {
        return Err(format!("a prefix of {len} bits"));
    }
    fields.take(1 + 4 + family.bytes() + 2)?;
    let encoding = Encoding { system: 2, path_id: 0 };
    let attributes = Attributes::parse(fields.block(2)?, encoding)?;
    each(Route { address, len }, Change::Entry(attributes.origin));
    Ok(())
}

/// Reads the entries of all peers for a prefix.
fn entries(
    mut fields: Fields<'_>,
    family: Family,
    path_id: usize,
    each: &mut impl FnMut(Route, Change),
) -> Result<(), String> {
    fields.take(4)?;
    let (address, len) = fields.prefix(family)?;
    let mut origin = None;
    for _ in 0..fields.number(2)? {
        fields.take(2 + 4 + path_id)?;
        let encoding = Encoding { system: 4, path_id };
        origin = origin.or(Attributes::parse(fields.block(2)?, encoding)?.origin);
    }
    each(Route { address, len }, Change::Entry(origin));
    Ok(())
}

/// Reads a message between two routers.
fn message(
    mut fields: Fields<'_>,
    subtype: u32,
    each: &mut impl FnMut(Route, Change),
) -> Result<(), String> {
    let (system, path_id) = match subtype {
        1 | 6 => (2, 0),
        4 | 7 => (4, 0),
        8 | 10 => (2, 4),
        9 | 11 => (4, 4),
        // Changes of states.
        _ => return Ok(()),
    };
    fields.take(2 * system + 2)?;
    let Some(family) = Family::of(fields.number(2)?) else { return Ok(()) };
    fields.take(2 * family.bytes())?;
    bgp::changes(fields, Encoding { system, path_id }, each)
}
