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
//! `pcap-parser` parses interface descriptions, with their options, and simple packets. It collects
//! all options of a block, several times the bytes that they have in the file, so it gets only
//! descriptions of at most [`MAX_DESCRIPTION`] bytes; the few fields of other packets are parsed
//! here. So is the clock: `pcap-parser` reads offsets in one byte order only and refuses clocks
//! with powers of two.
//!
//! Format: draft-ietf-opsawg-pcapng.

use pcap_parser::{InterfaceDescriptionBlock, OptionCode};
use pcap_parser::{parse_interfacedescriptionblock_be, parse_interfacedescriptionblock_le};
use pcap_parser::{parse_simplepacketblock_be, parse_simplepacketblock_le};

use super::order::Order;
use super::reader::{End, Located};
use super::window::Window;

/// The state of the current section.
pub(crate) struct Pcapng {
    order: Order,
    /// By ID. `None` is one with a malformed description, which keeps its ID.
    interfaces: Vec<Option<Interface>>,
    skipped: u64,
}

#[derive(Clone, Copy)]
struct Interface {
    link: u16,
    /// Maximum captured length; 0 if there is no limit.
    snap_len: u32,
    clock: Clock,
}

const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
/// Equal in both byte orders.
const SECTION: u32 = 0x0a0d_0d0a;

/// The offset of the packet in blocks of each type.
const ENHANCED_HEADER: usize = 28;
const SIMPLE_HEADER: usize = 12;
/// Length of the block's second length field, after packet and options.
const TRAILER: usize = 4;

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
        Some(Self { order, interfaces: Vec::new(), skipped: 0 })
    }

    /// Returns the number of blocks that were malformed, or had a packet of an unknown interface.
    pub(crate) const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the next packet; the window then begins with its block.
    pub(crate) fn next(&mut self, window: &mut Window) -> Result<Located, End> {
        loop {
            let (kind, length) = self.block(window)?;
            let wanted = length as usize;
            // A block that is too long is treated as empty: malformed, if its type matters.
            let wanted = if wanted <= longest(kind) { wanted } else { 0 };
            let Some(block) = window.fill_to(wanted)?.get(..wanted) else {
                return Err(End::Cut);
            };
            match self.take(kind, block) {
                Taken::Packet(located) => return Ok(located),
                Taken::Nothing => {}
                Taken::Malformed => self.skipped += 1,
            }
            if !window.skip(u64::from(length))? {
                return Err(End::Cut);
            }
        }
    }

    /// Returns type and length of the block at the beginning of the window. Enters a new section.
    fn block(&mut self, window: &mut Window) -> Result<(u32, u32), End> {
        let head = window.fill_to(12)?;
        if head.is_empty() {
            return Err(End::Whole);
        }
        if let Some(order) = section_order(head) {
            self.order = order;
            self.interfaces.clear();
        }
        let (Some(kind), Some(length)) = (self.order.u32(head, 0), self.order.u32(head, 4)) else {
            return Err(End::Cut);
        };
        match length {
            _ if head.len() < 12 => Err(End::Cut),
            0..12 => Err(End::BadLength(length)),
            _ => Ok((kind, length)),
        }
    }

    fn take(&mut self, kind: u32, block: &[u8]) -> Taken {
        let packet = match kind {
            INTERFACE => return self.describe(block),
            ENHANCED_PACKET => {
                self.order.u32(block, 8).and_then(|interface| self.packet(interface, block))
            }
            // Here the ID has 16 bits, followed by a drop counter.
            OBSOLETE_PACKET => {
                self.order.u16(block, 8).and_then(|interface| self.packet(interface.into(), block))
            }
            SIMPLE_PACKET => self.simple(block),
            _ => return Taken::Nothing,
        };
        packet.map_or(Taken::Malformed, Taken::Packet)
    }

    fn describe(&mut self, block: &[u8]) -> Taken {
        let parsed = match self.order {
            Order::Big => parse_interfacedescriptionblock_be(block),
            Order::Little => parse_interfacedescriptionblock_le(block),
        };
        let interface = parsed.ok().map(|(_, described)| Interface::new(&described, self.order));
        if self.interfaces.len() < MAX_INTERFACES {
            self.interfaces.push(interface);
        }
        interface.map_or(Taken::Malformed, |_| Taken::Nothing)
    }

    /// Parses an enhanced or obsolete packet of an interface.
    fn packet(&self, interface: u32, block: &[u8]) -> Option<Located> {
        let interface = self.interface(interface)?;
        let (high, low) = (self.order.u32(block, 12)?, self.order.u32(block, 16)?);
        let captured = self.order.u32(block, 20)? as usize;
        let room = block.len().checked_sub(ENHANCED_HEADER + TRAILER)?;
        let length_again = self.order.u32(block, block.len() - TRAILER)?;
        let is_whole = captured <= room && length_again as usize == block.len();
        is_whole.then_some(Located {
            time_ns: interface.clock.time_ns(high, low),
            link: interface.link,
            wire_len: self.order.u32(block, 24)?,
            data: ENHANCED_HEADER..ENHANCED_HEADER + captured,
            record_len: block.len() as u64,
        })
    }

    /// Parses a simple packet, which has no time, and belongs to the first interface.
    fn simple(&self, block: &[u8]) -> Option<Located> {
        let parsed = match self.order {
            Order::Big => parse_simplepacketblock_be(block),
            Order::Little => parse_simplepacketblock_le(block),
        };
        let (_, packet) = parsed.ok()?;
        let interface = self.interface(0)?;
        let snap_len = if interface.snap_len == 0 { u32::MAX } else { interface.snap_len };
        let captured = packet.data.len().min(packet.origlen.min(snap_len) as usize);
        Some(Located {
            time_ns: 0,
            link: interface.link,
            wire_len: packet.origlen,
            data: SIMPLE_HEADER..SIMPLE_HEADER + captured,
            record_len: block.len() as u64,
        })
    }

    fn interface(&self, id: u32) -> Option<Interface> {
        *self.interfaces.get(id as usize)?
    }
}

/// The contents of a block.
enum Taken {
    Packet(Located),
    Nothing,
    Malformed,
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

/// Returns the byte order of the section that begins here, if one does.
fn section_order(head: &[u8]) -> Option<Order> {
    if Order::Big.u32(head, 0)? != SECTION {
        return None;
    }
    match head.get(8..12)? {
        [0x1a, 0x2b, 0x3c, 0x4d] => Some(Order::Big),
        [0x4d, 0x3c, 0x2b, 0x1a] => Some(Order::Little),
        _ => None,
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
