//! Packets, and their form on the wire.

use core::error::Error;
use core::fmt;
use core::ops::BitOr;

use super::instruction::{Instruction, Operation, Relation};
use crate::dml::{BufferTooSmall, Checksum};

/// The version of the format.
const VERSION: u8 = 1;

/// Bytes in front of the operands.
const PREFIX: usize = 16;

/// Where the checksum begins and ends.
const CHECKSUM: core::ops::Range<usize> = 6..8;

const ERROR_FLAG: u8 = 0x80;

/// Numbers of instructions.
const COUNT: u8 = 1;
const COMPARE: u8 = 2;
const COLLECT: u8 = 3;
const RCHILD: u8 = 4;
const RCOLLECT: u8 = 5;

/// A place within a router that has ephemeral state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Location {
    /// The port at which packets arrive.
    Input = 1,
    /// Where all packets come by.
    Centre = 2,
    /// The port at which packets leave.
    Output = 4,
}

/// The locations at which a packet is executed: one at least.
///
/// # Example
///
/// ```
/// use flowtable::ephemeral::esp::{Location, Locations};
///
/// let ports = Locations::INPUT | Locations::OUTPUT;
/// assert!(ports.contains(Location::Output) && !ports.contains(Location::Centre));
/// assert_eq!(Locations::from(Location::Centre), Locations::CENTRE);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Locations(u8);

impl Locations {
    /// At input ports.
    pub const INPUT: Self = Self(Location::Input as u8);
    /// At the centre.
    pub const CENTRE: Self = Self(Location::Centre as u8);
    /// At output ports.
    pub const OUTPUT: Self = Self(Location::Output as u8);
    /// Everywhere.
    pub const ALL: Self = Self(Self::INPUT.0 | Self::CENTRE.0 | Self::OUTPUT.0);

    /// Whether the location is one of these.
    #[inline]
    #[must_use]
    pub const fn contains(self, location: Location) -> bool {
        self.0 & location as u8 != 0
    }
}

impl From<Location> for Locations {
    #[inline]
    fn from(location: Location) -> Self {
        Self(location as u8)
    }
}

impl BitOr for Locations {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A packet of ephemeral state processing: an instruction, and what routers need to know to execute it.
///
/// The [module](super) has the format. Reading and writing take O(1).
///
/// # Example
///
/// ```
/// use flowtable::ephemeral::esp::{Instruction, Locations, EspPacket, PacketError};
///
/// let instruction = Instruction::Count { tag: 0x1234_5678_9abc_def0, threshold: 1 };
/// let packet = EspPacket::new(Locations::CENTRE, 42, instruction);
/// let mut buffer = [0; EspPacket::MAX_LEN + 4];
/// let length = packet.write_to(&mut buffer)?;
/// assert_eq!((length, packet.encoded_len()), (EspPacket::MIN_LEN, EspPacket::MIN_LEN));
///
/// // A packet of its own may have padding behind it, a piggybacked one has a datagram.
/// let (parsed, behind) = EspPacket::parse(&buffer[..length + 4])?;
/// assert_eq!((parsed, behind), (packet, &[0; 4][..]));
///
/// buffer[20] ^= 1;
/// assert!(matches!(EspPacket::parse(&buffer), Err(PacketError::Checksum { .. })));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EspPacket {
    /// Where it is executed.
    pub locations: Locations,
    /// Whether it could not be executed somewhere. Then it is not executed any more.
    pub error: bool,
    /// The number of what is behind it, as in the headers of IP.
    pub protocol: u8,
    /// Which computation it belongs to: drawn at random by whoever begins it. Sets of children depend on it; the
    /// names of bindings do not.
    pub computation: u64,
    /// What is to be done.
    pub instruction: Instruction,
}

impl EspPacket {
    /// Bytes of the smallest packet: one that counts.
    pub const MIN_LEN: usize = PREFIX + 12;
    /// Bytes of the largest one: one that collects from children.
    pub const MAX_LEN: usize = PREFIX + 5 * 8;
    /// The protocol of a packet that has nothing behind it: IP has a number for that.
    pub const NOTHING_BEHIND: u8 = 59;

    /// A packet of its own that has not met with an error.
    #[must_use]
    pub const fn new(locations: Locations, computation: u64, instruction: Instruction) -> Self {
        Self { locations, error: false, protocol: Self::NOTHING_BEHIND, computation, instruction }
    }

    /// The packet at the beginning of these bytes, and what is behind it.
    ///
    /// Only what [`write_to`](Self::write_to) writes is taken, so that whatever is read is written again as it was.
    ///
    /// # Errors
    ///
    /// If the bytes end within the packet, or if it has anything in it that is not of the format: the first such thing.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), PacketError> {
        let given = bytes.len();
        let Some(prefix) = bytes.first_chunk::<PREFIX>() else {
            return Err(PacketError::Truncated { needed: Self::MIN_LEN, given });
        };
        let &[version, opcode, flags, operator, words, protocol, ..] = prefix;
        if version != VERSION {
            return Err(PacketError::Version(version));
        }
        let needed = PREFIX + blank(opcode)?.operands_len();
        if usize::from(words) * 4 != needed {
            return Err(PacketError::Length { words, needed });
        }
        let Some((own, behind)) = bytes.split_at_checked(needed) else {
            return Err(PacketError::Truncated { needed, given });
        };
        let expected = checksum(own);
        if own[CHECKSUM] != expected {
            return Err(PacketError::Checksum { found: [own[6], own[7]], expected });
        }
        let locations = flags & !ERROR_FLAG;
        if locations == 0 || locations & !Locations::ALL.0 != 0 {
            return Err(PacketError::Flags(flags));
        }
        let (computation, operands) = number(&own[8..]);
        let instruction = decoded(opcode, operator, operands)?;
        let (locations, error) = (Locations(locations), flags & ERROR_FLAG != 0);
        Ok((Self { locations, error, protocol, computation, instruction }, behind))
    }

    /// Bytes that it has on the wire, a multiple of four.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        PREFIX + self.instruction.operands_len()
    }

    /// Writes it to the beginning of the buffer, and returns how many bytes it has. An executed packet has as many as
    /// before: it can be written over itself.
    ///
    /// # Errors
    ///
    /// If the buffer is shorter. Nothing is written then.
    pub fn write_to(&self, buffer: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let (needed, capacity) = (self.encoded_len(), buffer.len());
        let own = buffer.get_mut(..needed).ok_or(BufferTooSmall { needed, capacity })?;
        let (opcode, operator, numbers) = encoded(&self.instruction);
        let flags = self.locations.0 | if self.error { ERROR_FLAG } else { 0 };
        own[..6].copy_from_slice(&[
            VERSION,
            opcode,
            flags,
            operator,
            (needed / 4) as u8,
            self.protocol,
        ]);
        own[8..PREFIX].copy_from_slice(&self.computation.to_be_bytes());
        for (place, number) in own[PREFIX..].chunks_mut(8).zip(numbers) {
            // The threshold has the upper half of its number.
            let bytes = number.to_be_bytes();
            place.copy_from_slice(&bytes[..place.len()]);
        }
        let sum = checksum(own);
        own[CHECKSUM].copy_from_slice(&sum);
        Ok(needed)
    }
}

/// The checksum of a packet, whatever it has where that belongs.
fn checksum(own: &[u8]) -> [u8; 2] {
    let (before, behind) = (&own[..CHECKSUM.start], &own[CHECKSUM.end..]);
    Checksum::of(before).plus(Checksum::of(behind)).field()
}

/// The number in front, and what is behind it; those of a packet are there.
fn number(bytes: &[u8]) -> (u64, &[u8]) {
    bytes.split_first_chunk().map_or((0, bytes), |(first, rest)| (u64::from_be_bytes(*first), rest))
}

/// The instruction of this number, with operands that do not matter.
fn blank(opcode: u8) -> Result<Instruction, PacketError> {
    let operator = match opcode {
        COUNT | RCHILD => 0,
        COMPARE => Relation::Less as u8,
        _ => Operation::Sum as u8,
    };
    decoded(opcode, operator, &[])
}

/// The instruction with these operands, zeros where there are none.
fn decoded(opcode: u8, operator: u8, operands: &[u8]) -> Result<Instruction, PacketError> {
    let mut rest = operands;
    let mut next = || {
        let (number, behind) = number(rest);
        rest = behind;
        number
    };
    let unknown = PacketError::Operator { opcode, operator };
    let relation = || Relation::of(operator).ok_or(unknown);
    let operation = || Operation::of(operator).ok_or(unknown);
    let instruction = match opcode {
        COUNT => {
            let tag = next();
            let threshold = rest.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
            Instruction::Count { tag, threshold }
        }
        COMPARE => Instruction::Compare { relation: relation()?, tag: next(), value: next() },
        COLLECT => Instruction::Collect {
            operation: operation()?,
            count: next(),
            result: next(),
            value: next(),
        },
        RCHILD => Instruction::RChild { children: next(), child: next() },
        RCOLLECT => Instruction::RCollect {
            operation: operation()?,
            children: next(),
            reported: next(),
            result: next(),
            child: next(),
            value: next(),
        },
        _ => return Err(PacketError::Instruction(opcode)),
    };
    match opcode {
        COUNT | RCHILD if operator != 0 => Err(unknown),
        _ => Ok(instruction),
    }
}

/// Its number, that of its operator, and its operands, of which it has the first ones.
fn encoded(instruction: &Instruction) -> (u8, u8, [u64; 5]) {
    match *instruction {
        Instruction::Count { tag, threshold } => {
            (COUNT, 0, [tag, u64::from(threshold) << 32, 0, 0, 0])
        }
        Instruction::Compare { tag, relation, value } => {
            (COMPARE, relation as u8, [tag, value, 0, 0, 0])
        }
        Instruction::Collect { count, result, operation, value } => {
            (COLLECT, operation as u8, [count, result, value, 0, 0])
        }
        Instruction::RChild { children, child } => (RCHILD, 0, [children, child, 0, 0, 0]),
        Instruction::RCollect { children, reported, result, operation, child, value } => {
            (RCOLLECT, operation as u8, [children, reported, result, child, value])
        }
    }
}

/// Why bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketError {
    /// The bytes end within the packet.
    Truncated {
        /// Bytes that it has, as far as that is known.
        needed: usize,
        /// Bytes that there are.
        given: usize,
    },
    /// It is of a version that is not known.
    Version(u8),
    /// There is no such instruction.
    Instruction(u8),
    /// It has fewer operands than its instruction, or more.
    Length {
        /// Words of 32 bits that it says it has.
        words: u8,
        /// Bytes that it must have.
        needed: usize,
    },
    /// It is not as it was sent.
    Checksum {
        /// What it says.
        found: [u8; 2],
        /// What it would have to say.
        expected: [u8; 2],
    },
    /// Flags that are not known, or no location at all.
    Flags(u8),
    /// The instruction has no such operator.
    Operator {
        /// The number of the instruction.
        opcode: u8,
        /// The number of the operator.
        operator: u8,
    },
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, given } => {
                write!(f, "the packet has {needed} bytes at least, of which {given} are there")
            }
            Self::Version(version) => write!(f, "version {version} is not known"),
            Self::Instruction(opcode) => write!(f, "there is no instruction {opcode}"),
            Self::Length { words, needed } => {
                write!(f, "it says {words} words of four bytes, and has {needed} bytes")
            }
            Self::Checksum { found: [a, b], expected: [c, d] } => {
                write!(f, "the checksum is {a:02x}{b:02x}, and would be {c:02x}{d:02x}")
            }
            Self::Flags(flags) => {
                write!(f, "flags {flags:#04x} name no location, or something that is not known")
            }
            Self::Operator { opcode, operator } => {
                write!(f, "instruction {opcode} has no operator {operator}")
            }
        }
    }
}

impl Error for PacketError {}
