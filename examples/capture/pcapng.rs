//! The capture file of several sections, interfaces, clocks and orders of bytes.
//!
//! ```text
//!     │ section │ interface 0 │ interface 1 │ packet of 1 │ packet of 0 │ … │ section │ …
//!     │ type │ length │ …                    … │ length │            each block
//! ```
//!
//! A section says the order of bytes, an interface its link type and clock. Blocks that hold no
//! packet, and blocks of unknown types, are skipped by their length.
//!
//! `pcap-parser` takes blocks apart. The clock is computed here: `pcap-parser` reads offsets in one
//! order of bytes only and refuses clocks that tick in powers of two.
//!
//! Format: draft-ietf-opsawg-pcapng.

use pcap_parser::{Block, EnhancedPacketBlock, InterfaceDescriptionBlock, OptionCode};
use pcap_parser::{parse_block_be, parse_block_le};

use super::order::Order;
use super::reader::{End, Located};
use super::window::Window;

/// The section that is being read.
pub(super) struct Pcapng {
    order: Order,
    /// By their numbers. `None` is one whose description was malformed: the next keep their numbers.
    interfaces: Vec<Option<Interface>>,
    skipped: u64,
}

#[derive(Clone, Copy)]
struct Interface {
    link: u16,
    /// Longest packet that is captured; 0 if there is no limit.
    snap_len: u32,
    clock: Clock,
}

/// Packets of the obsolete type, which `pcap-parser` leaves as they are.
const OBSOLETE_PACKET: u32 = 2;
const INTERFACE: u32 = 1;
/// Reads the same in both orders of bytes.
const SECTION: u32 = 0x0a0d_0d0a;

/// Where the packet begins in blocks of each type.
const ENHANCED_HEADER: usize = 28;
const SIMPLE_HEADER: usize = 12;

/// Interfaces of one section that are remembered: enough for any machine, and a bound for a file
/// made of nothing else.
const MAX_INTERFACES: usize = 1 << 16;

impl Pcapng {
    /// A capture that begins with the section header in these bytes, if it is one.
    pub(super) fn open(head: &[u8]) -> Option<Self> {
        let order = section_order(head)?;
        Some(Self { order, interfaces: Vec::new(), skipped: 0 })
    }

    /// Blocks that were malformed, or had a packet of an unknown interface.
    pub(super) const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The next packet; the window then begins with its block.
    pub(super) fn next(&mut self, window: &mut Window) -> Result<Located, End> {
        loop {
            let (kind, length) = self.block(window)?;
            let wanted = length as usize;
            if wanted > Window::MAX {
                self.skipped += 1;
            } else {
                let Some(block) = window.fill_to(wanted)?.get(..wanted) else {
                    return Err(End::Cut);
                };
                match self.take(kind, block) {
                    Taken::Packet(located) => return Ok(located),
                    Taken::Nothing => {}
                    Taken::Malformed => self.skipped += 1,
                }
            }
            if !window.skip(u64::from(length))? {
                return Err(End::Cut);
            }
        }
    }

    /// Type and length of the block that the window begins with. Enters a new section.
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
        let parsed = match self.order {
            Order::Big => parse_block_be(block),
            Order::Little => parse_block_le(block),
        };
        let packet = match parsed {
            Ok((_, Block::InterfaceDescription(interface))) => {
                return self.describe(Some(Interface::new(&interface, self.order)));
            }
            Ok((_, Block::EnhancedPacket(packet))) => self.enhanced(&packet, block.len()),
            Ok((_, Block::SimplePacket(packet))) => self.simple(packet.origlen, block.len()),
            Ok((_, Block::Unknown(_))) if kind == OBSOLETE_PACKET => self.obsolete(block),
            Ok(_) => return Taken::Nothing,
            Err(_) if kind == INTERFACE => {
                self.describe(None);
                None
            }
            // A section has begun, whatever the rest of its header is.
            Err(_) if kind == SECTION => return Taken::Nothing,
            Err(_) => None,
        };
        packet.map_or(Taken::Malformed, Taken::Packet)
    }

    fn describe(&mut self, interface: Option<Interface>) -> Taken {
        if self.interfaces.len() < MAX_INTERFACES {
            self.interfaces.push(interface);
        }
        Taken::Nothing
    }

    fn enhanced(&self, packet: &EnhancedPacketBlock<'_>, record_len: usize) -> Option<Located> {
        let captured = packet.data.len().min(packet.caplen as usize);
        let interface = self.interface(packet.if_id)?;
        Some(Located {
            time_ns: interface.clock.time_ns(packet.ts_high, packet.ts_low),
            link: interface.link,
            wire_len: packet.origlen,
            data: ENHANCED_HEADER..ENHANCED_HEADER + captured,
            record_len: record_len as u64,
        })
    }

    /// A simple packet has no time and no interface but the first.
    fn simple(&self, wire_len: u32, record_len: usize) -> Option<Located> {
        let interface = self.interface(0)?;
        let snap_len = if interface.snap_len == 0 { u32::MAX } else { interface.snap_len };
        let captured = (record_len - 4 - SIMPLE_HEADER).min(wire_len.min(snap_len) as usize);
        Some(Located {
            time_ns: 0,
            link: interface.link,
            wire_len,
            data: SIMPLE_HEADER..SIMPLE_HEADER + captured,
            record_len: record_len as u64,
        })
    }

    /// As an enhanced packet, but a counter of drops takes half of the interface's number.
    fn obsolete(&self, block: &[u8]) -> Option<Located> {
        let interface = self.interface(self.order.u16(block, 8)?.into())?;
        let (high, low) = (self.order.u32(block, 12)?, self.order.u32(block, 16)?);
        let captured = self.order.u32(block, 20)? as usize;
        let room = block.len().checked_sub(ENHANCED_HEADER + 4)?;
        Some(Located {
            time_ns: interface.clock.time_ns(high, low),
            link: interface.link,
            wire_len: self.order.u32(block, 24)?,
            data: ENHANCED_HEADER..ENHANCED_HEADER + captured.min(room),
            record_len: block.len() as u64,
        })
    }

    fn interface(&self, number: u32) -> Option<Interface> {
        *self.interfaces.get(number as usize)?
    }
}

/// What a block was.
enum Taken {
    Packet(Located),
    Nothing,
    Malformed,
}

/// The order of bytes of the section that begins here, if one does.
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

/// What a timestamp of an interface means.
#[derive(Clone, Copy)]
struct Clock {
    resolution: Resolution,
    offset_s: i64,
}

/// How long a tick is.
#[derive(Clone, Copy)]
enum Resolution {
    /// So many nanoseconds.
    Times(u64),
    /// A nanosecond has so many ticks.
    Over(u128),
    /// A second has 2 to this power of ticks.
    Binary(u8),
}

impl Resolution {
    /// The value of the option `if_tsresol`: a negative power of ten or, with its first bit set,
    /// of two.
    fn new(option: u8) -> Self {
        match option {
            0..=9 => Self::Times(10_u64.pow(u32::from(9 - option))),
            // From 10^38 on, all of a timestamp is less than a nanosecond.
            10..0x80 => Self::Over(10_u128.checked_pow(u32::from(option - 9)).unwrap_or(u128::MAX)),
            _ => Self::Binary(option & 0x7f),
        }
    }
}

impl Clock {
    /// Nanoseconds since the epoch. A time before it, or beyond the year 2554, becomes the nearest
    /// that there is.
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
