//! Files of BGP routers in the format MRT, as route collectors publish them.
//!
//! ```text
//!     record      time │ type, subtype │ length │ ────────────── body ──────────────
//!     RIB         sequence │ bits, prefix │ count │ entry │ entry │ …
//!     entry       peer │ time │ (path) │ length │ attributes: …, AS_PATH, …
//! ```
//!
//! Tables are records of the types `TABLE_DUMP` and `TABLE_DUMP_V2`. An entry of a table, and an
//! update of the types `BGP4MP` and `BGP4MP_ET`, are of a peer of the collector: `rib.rs` has the
//! routes of all peers. The origin of a route is the last autonomous system of its path. Records of
//! other types are skipped. RFC 6396 has the format; RFC 8050 adds IDs of paths to entries.
//!
//! No crate is used: `bgpkit-parser` brings 35 packages and needs Rust 1.88, or is of early 2025;
//! `mrt_parser` is of 2021 and has no IDs of paths; `mrt-rs` is under the GPL.

use core::net::{IpAddr, Ipv4Addr};
use std::io::{self, ErrorKind, Read};

use super::bgp::{self, Attributes, Encoding};
use super::fields::{Family, Fields};
use super::rib::{Announcement, Peer, Rib, Route};

/// The bytes by which a file is recognised: text has no zeros.
pub(super) const HEAD: usize = 8;

/// Types of records.
const TABLE_DUMP: u32 = 12;
const TABLE_DUMP_V2: u32 = 13;
const BGP4MP: u32 = 16;
const BGP4MP_ET: u32 = 17;

/// The limit of the length of a record: that of a prefix with a thousand peers has 100 KB.
const LONGEST: u32 = 1 << 24;

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

    /// Applies the record to `rib`.
    ///
    /// # Errors
    ///
    /// If the record is malformed; then some of its routes may be missing.
    pub(super) fn apply(&self, rib: &mut Rib) -> Result<(), String> {
        let mut fields = Fields(&self.body);
        match (self.kind, self.subtype) {
            (TABLE_DUMP, 1) => entry(fields, Family::V4, rib),
            (TABLE_DUMP, 2) => entry(fields, Family::V6, rib),
            (TABLE_DUMP_V2, 1) => {
                rib.index = peers(fields)?;
                Ok(())
            }
            (TABLE_DUMP_V2, 2) => entries(fields, Family::V4, 0, rib),
            (TABLE_DUMP_V2, 4) => entries(fields, Family::V6, 0, rib),
            (TABLE_DUMP_V2, 8) => entries(fields, Family::V4, 4, rib),
            (TABLE_DUMP_V2, 10) => entries(fields, Family::V6, 4, rib),
            (BGP4MP, subtype) => message(fields, subtype, rib),
            (BGP4MP_ET, subtype) => {
                // Microseconds.
                fields.take(4)?;
                message(fields, subtype, rib)
            }
            _ => Ok(()),
        }
    }
}

/// Reads the entry of a peer in a table of the first version.
fn entry(mut fields: Fields<'_>, family: Family, rib: &mut Rib) -> Result<(), String> {
    fields.take(2 + 2)?;
    let (address, len) = (fields.address(family)?, fields.number(1)?);
    if len as usize > 8 * family.bytes() {
        return Err(format!("a prefix of {len} bits"));
    }
    fields.take(1 + 4)?;
    let peer = Peer { address: fields.address(family)?, system: fields.number(2)? };
    let encoding = Encoding { system: 2, path_id: 0 };
    let attributes = Attributes::parse(fields.block(2)?, encoding)?;
    rib.announce(Route { address, len }, Announcement { peer, path: 0 }, attributes.origin);
    Ok(())
}

/// Reads the peers of a table.
fn peers(mut fields: Fields<'_>) -> Result<Vec<Peer>, String> {
    const IS_V6: u32 = 1;
    const HAS_LONG_SYSTEM: u32 = 2;
    fields.take(4)?;
    fields.block(2)?;
    let count = fields.number(2)?;
    let peer = |_| {
        let kind = fields.number(1)?;
        fields.take(4)?;
        let family = if kind & IS_V6 != 0 { Family::V6 } else { Family::V4 };
        let address = fields.address(family)?;
        let system = fields.number(if kind & HAS_LONG_SYSTEM != 0 { 4 } else { 2 })?;
        Ok(Peer { address, system })
    };
    (0..count).map(peer).collect()
}

/// Reads the entries of all peers for a prefix.
fn entries(
    mut fields: Fields<'_>,
    family: Family,
    path_id: usize,
    rib: &mut Rib,
) -> Result<(), String> {
    fields.take(4)?;
    let (address, len) = fields.prefix(family)?;
    for _ in 0..fields.number(2)? {
        let number = fields.number(2)?;
        fields.take(4)?;
        let path = fields.number(path_id)?;
        let encoding = Encoding { system: 4, path_id };
        let origin = Attributes::parse(fields.block(2)?, encoding)?.origin;
        // A table without its list of peers has their numbers.
        let unlisted = Peer { address: Ipv4Addr::UNSPECIFIED.into(), system: number };
        let peer = rib.index.get(number as usize).copied().unwrap_or(unlisted);
        rib.announce(Route { address, len }, Announcement { peer, path }, origin);
    }
    Ok(())
}

/// Reads a message between the collector and a peer, or a change of their session's state.
fn message(mut fields: Fields<'_>, subtype: u32, rib: &mut Rib) -> Result<(), String> {
    const ESTABLISHED: u32 = 6;
    let (system, path_id) = match subtype {
        1 | 6 => (2, 0),
        4 | 7 => (4, 0),
        8 | 10 => (2, 4),
        9 | 11 => (4, 4),
        // Changes of states.
        0 => (2, 0),
        5 => (4, 0),
        _ => return Ok(()),
    };
    let is_of_collector = matches!(subtype, 6 | 7 | 10 | 11);
    let systems = [fields.number(system)?, fields.number(system)?];
    fields.take(2)?;
    let Some(family) = Family::of(fields.number(2)?) else { return Ok(()) };
    let addresses: [IpAddr; 2] = [fields.address(family)?, fields.address(family)?];
    let sender = usize::from(is_of_collector);
    let peer = Peer { address: addresses[sender], system: systems[sender] };
    if !matches!(subtype, 0 | 5) {
        return bgp::apply(fields, Encoding { system, path_id }, peer, rib);
    }
    fields.take(2)?;
    if fields.number(2)? != ESTABLISHED {
        rib.end_session(peer);
    }
    Ok(())
}
