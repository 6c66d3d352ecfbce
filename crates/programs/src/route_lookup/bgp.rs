//! Messages and attributes of BGP (RFC 4271, RFC 4760), as far as routes need them.

use super::fields::{Family, Fields};
use super::rib::{Announcement, Peer, Rib, Route};

/// Attributes.
const AS_PATH: u32 = 2;
const MP_REACH: u32 = 14;
const MP_UNREACH: u32 = 15;
const AS4_PATH: u32 = 17;

/// The kind of segments of a path that are ordered.
const AS_SEQUENCE: u32 = 2;

/// The flag of an attribute whose length has two bytes.
const EXTENDED_LENGTH: u32 = 0x10;

/// The type of messages with routes.
const UPDATE: u32 = 2;

/// How messages are encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding {
    /// Bytes of the number of an autonomous system.
    pub(super) system: usize,
    /// Bytes of the ID of a path before each prefix: 4 or 0.
    pub(super) path_id: usize,
}

/// The attributes that matter.
#[derive(Default)]
pub(super) struct Attributes<'a> {
    /// The autonomous system that announces the routes.
    pub(super) origin: Option<u32>,
    /// Prefixes of other families than IPv4.
    reached: Option<Fields<'a>>,
    unreached: Option<Fields<'a>>,
}

impl<'a> Attributes<'a> {
    pub(super) fn parse(mut fields: Fields<'a>, encoding: Encoding) -> Result<Self, String> {
        let mut attributes = Self::default();
        let mut origin_of_4 = None;
        while !fields.is_empty() {
            let (flags, kind) = (fields.number(1)?, fields.number(1)?);
            let value = fields.block(if flags & EXTENDED_LENGTH != 0 { 2 } else { 1 })?;
            match kind {
                AS_PATH => attributes.origin = last_of_path(value, encoding.system)?,
                AS4_PATH => origin_of_4 = last_of_path(value, 4)?,
                MP_REACH => attributes.reached = Some(value),
                MP_UNREACH => attributes.unreached = Some(value),
                _ => {}
            }
        }
        if encoding.system == 2 {
            attributes.origin = origin_of_4.or(attributes.origin);
        }
        Ok(attributes)
    }
}

/// Returns the last autonomous system of a path, unless the path ends with a set.
fn last_of_path(mut path: Fields<'_>, system: usize) -> Result<Option<u32>, String> {
    let mut last = None;
    while !path.is_empty() {
        let (kind, count) = (path.number(1)?, path.number(1)? as usize);
        let mut systems = Fields(path.take(system * count)?);
        last = None;
        while kind == AS_SEQUENCE && !systems.is_empty() {
            last = Some(systems.number(system)?);
        }
    }
    Ok(last)
}

/// Applies a message of a peer to `rib`, if it is an update.
pub(super) fn apply(
    mut message: Fields<'_>,
    encoding: Encoding,
    peer: Peer,
    rib: &mut Rib,
) -> Result<(), String> {
    // The marker and the length, which the record has, too.
    message.take(16 + 2)?;
    if message.number(1)? != UPDATE {
        return Ok(());
    }
    let withdrawn = message.block(2)?;
    let attributes = Attributes::parse(message.block(2)?, encoding)?;
    let of_peer = |path| Announcement { peer, path };
    let mut withdraw = |fields, family| {
        prefixes(fields, family, encoding, |route, path| rib.withdraw(route, of_peer(path)))
    };
    withdraw(withdrawn, Family::V4)?;
    if let Some(mut fields) = attributes.unreached {
        if let Some(family) = unicast(&mut fields)? {
            withdraw(fields, family)?;
        }
    }
    let mut announce = |fields, family| {
        prefixes(fields, family, encoding, |route, path| {
            rib.announce(route, of_peer(path), attributes.origin);
        })
    };
    if let Some(mut fields) = attributes.reached {
        if let Some(family) = unicast(&mut fields)? {
            fields.block(1)?;
            fields.take(1)?;
            announce(fields, family)?;
        }
    }
    announce(message, Family::V4)
}

/// Reads the family of prefixes; `None` unless they are of unicast addresses.
fn unicast(fields: &mut Fields<'_>) -> Result<Option<Family>, String> {
    let (family, subsequent) = (Family::of(fields.number(2)?), fields.number(1)?);
    Ok(family.filter(|_| subsequent == 1))
}

/// Passes prefixes to `each`, with the IDs of their paths.
fn prefixes(
    mut fields: Fields<'_>,
    family: Family,
    encoding: Encoding,
    mut each: impl FnMut(Route, u32),
) -> Result<(), String> {
    while !fields.is_empty() {
        let path = fields.number(encoding.path_id)?;
        let (address, len) = fields.prefix(family)?;
        each(Route { address, len }, path);
    }
    Ok(())
}
