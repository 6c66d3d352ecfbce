//! The capture format pcapng, with sections, interfaces and their clocks.
//!
//! ```text
//!     │ section │ interface 0 │ interface 1 │ packet of 1 │ packet of 0 │ … │ section │ …
//!     │ type │ length │ …                    … │ length │            each block
//! ```
//!
//! A section determines the byte order, an interface its link type and clock. Blocks without
//! packets, and blocks of unknown types, are skipped by their length.
//!
//! A block is damaged if its two lengths differ. The next block is then searched for byte by byte:
//! a known type, and two equal lengths. The search is linear in the bytes that it passes. Some
//! programs do not count the padding of a block in its lengths, whether or not it is there.
//!
//! A simple packet has no time: it gets the time of the packet before it, or of the next packet.
//!
//! `pcap-parser` parses interface descriptions, with their options. It collects all options of a
//! block, several times the bytes that they have in the file, so it gets only descriptions of at
//! most [`MAX_DESCRIPTION`] bytes; the few fields of packets are parsed here. So is the clock:
//! `pcap-parser` reads offsets in one byte order only and refuses clocks with powers of two.
//!
//! Format: draft-ietf-opsawg-pcapng.

use std::borrow::Cow;
use std::io;

use pcap_parser::{InterfaceDescriptionBlock, OptionCode};
use pcap_parser::{parse_interfacedescriptionblock_be, parse_interfacedescriptionblock_le};

use super::blocks::{
    ENHANCED_PACKET, INTERFACE, KNOWN, OBSOLETE_PACKET, SIMPLE_PACKET, TRAILER, size,
};
use super::damage::{Damage, DamageKind, Damages, Search};
use super::magic::{SECTION, begins_file, section_order};
use super::nested::{are_blocks_to_end, is_file, is_file_to_end};
use super::order::Order;
use super::record::{End, Located, Next};
use super::scan::Scan;
use super::window::Window;

/// The state of the current section.
#[derive(Clone)]
pub(crate) struct Pcapng {
    order: Order,
    /// By ID. `None` is one with a malformed description, which keeps its ID.
    interfaces: Vec<Option<Interface>>,
    search: Option<Search>,
    /// The scan for what blocks cover that claim more bytes than the source has.
    covered: Scan,
}

#[derive(Clone, Copy)]
struct Interface {
    link: u16,
    /// Maximum captured length; 0 if there is no limit.
    snap_len: u32,
    clock: Clock,
}

/// The offset of the packet in blocks of each type.
const ENHANCED_HEADER: usize = 28;
const SIMPLE_HEADER: usize = 12;

/// Maximum length of an interface description: an option has at most as much, and real descriptions
/// have some hundred bytes.
const MAX_DESCRIPTION: usize = 1 << 16;

/// Maximum number of stored interfaces of a section: enough for any host, and a bound for malicious
/// files.
const MAX_INTERFACES: usize = 1 << 16;

impl Pcapng {
    /// Opens a capture that begins with a section header, if it is one.
    pub(crate) fn open(head: &[u8]) -> Option<Self> {
        let order = section_order(head)?;
        Some(Self { order, interfaces: Vec::new(), search: None, covered: Scan::default() })
    }

    /// Returns the next packet; the window then begins with its block.
    pub(crate) fn next(&mut self, window: &mut Window, damages: &mut Damages) -> Result<Next, End> {
        loop {
            if let Some(search) = self.search {
                let is_found = self.find_block(window, search)?;
                search.end(window.offset(), is_found, damages);
                self.search = None;
            }
            // A section is a block like all others.
            let is_section = section_order(window.fill_to(12)?).is_some();
            if !is_section && begins_file(window.data()) {
                return Ok(Next::File);
            }
            let Some(Block { kind, size }) = self.block(window, damages)? else { continue };
            // A block that is too long is treated as empty: malformed, if its type matters.
            let wanted = if size <= longest(kind) { size } else { 0 };
            let offset = window.offset();
            match self.take(kind, &window.data()[..wanted]) {
                Taken::Packet(located) => return Ok(Next::Frame(located)),
                Taken::Nothing => {}
                Taken::Damaged(kind) => {
                    let resumed = Some(offset + size as u64);
                    damages.add(Damage { offset, kind, resumed });
                }
            }
            window.consume(size as u64);
            if !window.settle()? {
                return Err(End::Cut);
            }
        }
    }

    /// Returns the block at the beginning of the window, which has it as a whole. Enters a new
    /// section. Returns `None` if the block is damaged, after beginning a search for the next one;
    /// or skipped.
    fn block(&mut self, window: &mut Window, damages: &mut Damages) -> Result<Option<Block>, End> {
        let head = window.fill_to(12)?;
        if head.is_empty() {
            return Err(End::Whole);
        }
        let order = section_order(head).unwrap_or(self.order);
        let (Some(kind), Some(length)) = (order.u32(head, 0), order.u32(head, 4)) else {
            return Err(End::Cut);
        };
        if head.len() < 12 {
            return Err(End::Cut);
        }
        let wanted = length as usize;
        let mut damage = DamageKind::Length(u64::from(length));
        let mut claimed_end = None;
        if wanted > Window::MAX {
            claimed_end = Some(window.offset() + u64::from(length));
        } else if wanted >= 12 {
            let bytes = window.fill_to(wanted.next_multiple_of(4))?;
            if bytes.len() < wanted {
                return match self.skip(window, length, damages)? {
                    true => Ok(None),
                    false => Err(End::Cut),
                };
            }
            if let Some(size) = size(bytes, length, order) {
                if kind == SECTION {
                    self.order = order;
                    self.interfaces.clear();
                }
                return Ok(Some(Block { kind, size }));
            }
            damage = DamageKind::Malformed;
        }
        let offset = window.offset();
        self.search = Some(Search { offset, kind: damage, claimed_end });
        window.consume(4);
        Ok(None)
    }

    /// Moves the window into a block that claims more bytes than the source has, if its file was
    /// cut there, and another one follows; or if its length is damaged, and other blocks follow.
    /// Returns whether that is so.
    fn skip(
        &mut self,
        window: &mut Window,
        length: u32,
        damages: &mut Damages,
    ) -> io::Result<bool> {
        let (order, offset, rest) = (self.order, window.offset(), 1..window.data().len());
        let is_begin = |bytes: &[u8]| begins_file(bytes) || is_head(order, bytes);
        while let Some(at) = self.covered.find(window, 0, rest.clone(), is_begin)? {
            let bytes = &window.data()[at..];
            let kind = match begins_file(bytes) {
                true => is_file_to_end(bytes).then_some(DamageKind::Cut),
                false => {
                    are_blocks_to_end(order, bytes).then_some(DamageKind::Length(u64::from(length)))
                }
            };
            if let Some(kind) = kind {
                damages.add(Damage { offset, kind, resumed: Some(offset + at as u64) });
                window.consume(at as u64);
                window.settle()?;
                return Ok(true);
            }
            self.covered.reject(window)?;
        }
        Ok(false)
    }

    /// Advances the window to the next plausible block. Returns whether there is one.
    fn find_block(&self, window: &mut Window, search: Search) -> io::Result<bool> {
        loop {
            if !window.settle()? {
                return Ok(false);
            }
            if window.fill_to(12)?.len() < 12 {
                window.consume(window.data().len() as u64);
                window.settle()?;
                return Ok(false);
            }
            let bytes = window.data();
            let heads = bytes.len() - 11;
            // The first byte of a known type, which is the first test of each byte of a search.
            let types = match self.order {
                Order::Big => 0..=0,
                Order::Little => INTERFACE as u8..=ENHANCED_PACKET as u8,
            };
            let is_begin = |at: &usize| {
                let bytes = &bytes[*at..];
                types.contains(&bytes[0]) && is_head(self.order, bytes) || begins_file(bytes)
            };
            let Some(at) = (0..heads).find(is_begin) else {
                window.consume(heads as u64);
                window.spend(heads)?;
                continue;
            };
            window.consume(at as u64);
            window.settle()?;
            window.spend(at)?;
            let is_found = match begins_file(window.data()) {
                true => is_file(window, 0, None)?,
                false => self.is_block(window, search)?,
            };
            if is_found {
                return Ok(true);
            }
            window.consume(1);
        }
    }

    /// Returns whether what begins like a block at the beginning of the window is one.
    fn is_block(&self, window: &mut Window, search: Search) -> io::Result<bool> {
        if search.claimed_end == Some(window.offset()) {
            return Ok(true);
        }
        let Some(length) = self.order.u32(window.data(), 4) else { return Ok(false) };
        let bytes = window.fill_to((length as usize).next_multiple_of(4))?;
        Ok(size(bytes, length, self.order).is_some())
    }

    fn take(&mut self, kind: u32, block: &[u8]) -> Taken {
        let interface = match kind {
            INTERFACE => return self.describe(block),
            ENHANCED_PACKET => self.order.u32(block, 8),
            // Here the ID has 16 bits, followed by a drop counter.
            OBSOLETE_PACKET => self.order.u16(block, 8).map(u32::from),
            SIMPLE_PACKET => Some(0),
            _ => return Taken::Nothing,
        };
        let Some(interface) = interface else { return Taken::Damaged(DamageKind::Malformed) };
        let Some(interface) = self.interface(interface) else {
            return Taken::Damaged(DamageKind::UnknownInterface);
        };
        let packet = match kind {
            SIMPLE_PACKET => self.simple(interface, block),
            _ => self.packet(interface, block),
        };
        packet.map_or(Taken::Damaged(DamageKind::Malformed), Taken::Packet)
    }

    fn describe(&mut self, block: &[u8]) -> Taken {
        let block = self.padded(block);
        let parsed = match self.order {
            Order::Big => parse_interfacedescriptionblock_be(&block),
            Order::Little => parse_interfacedescriptionblock_le(&block),
        };
        let interface = parsed.ok().map(|(_, described)| Interface::new(&described, self.order));
        if self.interfaces.len() < MAX_INTERFACES {
            self.interfaces.push(interface);
        }
        interface.map_or(Taken::Damaged(DamageKind::Malformed), |_| Taken::Nothing)
    }

    /// Returns a block with its padding, and with lengths that count it.
    fn padded<'a>(&self, block: &'a [u8]) -> Cow<'a, [u8]> {
        let size = block.len().next_multiple_of(4);
        if size < 12 || self.order.u32(block, 4) == Some(size as u32) {
            return block.into();
        }
        let mut padded = block[..block.len() - TRAILER].to_vec();
        padded.resize(size - TRAILER, 0);
        let length = self.order.bytes(size as u32);
        padded[4..8].copy_from_slice(&length);
        padded.extend(length);
        padded.into()
    }

    /// Parses an enhanced or obsolete packet of an interface.
    fn packet(&self, interface: Interface, block: &[u8]) -> Option<Located> {
        let (high, low) = (self.order.u32(block, 12)?, self.order.u32(block, 16)?);
        let captured = self.order.u32(block, 20)? as usize;
        let room = block.len().checked_sub(ENHANCED_HEADER + TRAILER)?;
        let wire_len = self.order.u32(block, 24)?;
        (captured <= room).then(|| Located {
            time_ns: Some(interface.clock.time_ns(high, low)),
            link: interface.link,
            wire_len,
            data: ENHANCED_HEADER..ENHANCED_HEADER + captured,
            record_len: block.len() as u64,
        })
    }

    /// Parses a simple packet, which has no time, and belongs to the first interface.
    fn simple(&self, interface: Interface, block: &[u8]) -> Option<Located> {
        let room = block.len().checked_sub(SIMPLE_HEADER + TRAILER)?;
        let wire_len = self.order.u32(block, 8)?;
        let snap_len = if interface.snap_len == 0 { u32::MAX } else { interface.snap_len };
        let captured = room.min(wire_len.min(snap_len) as usize);
        Some(Located {
            time_ns: None,
            link: interface.link,
            wire_len,
            data: SIMPLE_HEADER..SIMPLE_HEADER + captured,
            record_len: block.len() as u64,
        })
    }

    /// Returns the time of the first packet of these blocks that has one.
    pub(crate) fn first_time(&self, mut blocks: &[u8]) -> Option<u64> {
        let mut ahead = self.clone();
        loop {
            let (kind, length) = (self.order.u32(blocks, 0)?, self.order.u32(blocks, 4)?);
            let size = size(blocks, length, self.order).filter(|size| *size >= 12)?;
            if kind == SECTION {
                return None;
            }
            let (block, rest) = blocks.split_at(size);
            if let Taken::Packet(Located { time_ns: Some(time_ns), .. }) = ahead.take(kind, block) {
                return Some(time_ns);
            }
            blocks = rest;
        }
    }

    fn interface(&self, id: u32) -> Option<Interface> {
        *self.interfaces.get(id as usize)?
    }
}

/// Returns whether these bytes begin like a block of a section in this order.
fn is_head(order: Order, bytes: &[u8]) -> bool {
    let (Some(kind), Some(length)) = (order.u32(bytes, 0), order.u32(bytes, 4)) else {
        return false;
    };
    let is_known = KNOWN.contains(&kind);
    let has_packet = matches!(kind, OBSOLETE_PACKET | ENHANCED_PACKET);
    let captured = if has_packet { order.u32(bytes, 20).unwrap_or(0) } else { 0 };
    is_known && (12..=Window::MAX).contains(&(length as usize)) && captured <= length
}

/// A whole block.
struct Block {
    kind: u32,
    /// Its length in the file, with padding.
    size: usize,
}

/// The contents of a block.
enum Taken {
    Packet(Located),
    Nothing,
    Damaged(DamageKind),
}

/// Returns the maximum length of blocks of this type. Of blocks without packets or interfaces only
/// type and length matter, and of a section its byte order.
const fn longest(kind: u32) -> usize {
    match kind {
        INTERFACE => MAX_DESCRIPTION,
        ENHANCED_PACKET | OBSOLETE_PACKET | SIMPLE_PACKET => Window::MAX,
        _ => 0,
    }
}

impl Interface {
    fn new(block: &InterfaceDescriptionBlock<'_>, order: Order) -> Self {
        let offset = block.options.iter().find(|option| option.code == OptionCode::IfTsoffset);
        Self {
            link: (block.linktype.0 & 0xffff) as u16,
            snap_len: block.snaplen,
            clock: Clock {
                resolution: Resolution::new(block.if_tsresol),
                offset_s: offset.and_then(|option| order.i64(&option.value, 0)).unwrap_or(0),
            },
        }
    }
}

/// The clock of an interface.
#[derive(Clone, Copy)]
struct Clock {
    resolution: Resolution,
    offset_s: i64,
}

/// The resolution of a clock.
#[derive(Clone, Copy)]
enum Resolution {
    /// Nanoseconds per tick.
    Times(u64),
    /// Ticks per nanosecond.
    Over(u128),
    /// Binary logarithm of the ticks per second.
    Binary(u8),
}

impl Resolution {
    /// Parses the option `if_tsresol`: a negative power of ten or, with its first bit set, of two.
    fn new(option: u8) -> Self {
        match option {
            0..=9 => Self::Times(10_u64.pow(u32::from(9 - option))),
            // From 10^38 on, any timestamp is less than a nanosecond.
            10..0x80 => Self::Over(10_u128.checked_pow(u32::from(option - 9)).unwrap_or(u128::MAX)),
            _ => Self::Binary(option & 0x7f),
        }
    }
}

impl Clock {
    /// Returns nanoseconds since the epoch. Times before it, or after the year 2554, are clamped.
    fn time_ns(self, high: u32, low: u32) -> u64 {
        let ticks = u128::from(high) << 32 | u128::from(low);
        let since = match self.resolution {
            Resolution::Times(unit) => ticks * u128::from(unit),
            Resolution::Over(parts) => ticks / parts,
            Resolution::Binary(power) => (ticks * 1_000_000_000) >> power,
        };
        // Below 2^94: no sum overflows.
        let time = since as i128 + i128::from(self.offset_s) * 1_000_000_000;
        u64::try_from(time.max(0)).unwrap_or(u64::MAX)
    }
}
