//! Packets, and their encoding.

use core::error::Error;
use core::fmt;
use core::ops::BitOr;

use super::instruction::{Instruction, Operation, Relation};
use crate::papers::dml::{BufferTooSmall, Checksum};

/// The version of the packet format.
const VERSION: u8 = 1;

/// Length of the header, which precedes the operands.
const HEADER: usize = 16;

/// Byte range of the checksum.
const CHECKSUM: core::ops::Range<usize> = 6..8;

const ERROR_FLAG: u8 = 0x80;

/// Opcodes of the instructions.
const COUNT: u8 = 1;
const COMPARE: u8 = 2;
const COLLECT: u8 = 3;
const RCHILD: u8 = 4;
const RCOLLECT: u8 = 5;

/// A location within a router that has ephemeral state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Location {
    /// The port at which packets arrive.
    Input = 1,
    /// The common point that all packets pass.
    Centre = 2,
    /// The port at which packets leave.
    Output = 4,
}

/// A non-empty set of the locations at which a packet is executed.
///
/// # Example
///
/// ```
/// use flowtable::papers::esp::{Location, Locations};
///
/// let ports = Locations::INPUT | Locations::OUTPUT;
/// assert!(ports.contains(Location::Output) && !ports.contains(Location::Centre));
/// assert_eq!(Locations::from(Location::Centre), Locations::CENTRE);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Locations(u8);

impl Locations {
    /// Input ports.
    pub const INPUT: Self = Self(Location::Input as u8);
    /// The centre.
    pub const CENTRE: Self = Self(Location::Centre as u8);
    /// Output ports.
    pub const OUTPUT: Self = Self(Location::Output as u8);
    /// All locations.
    pub const ALL: Self = Self(Self::INPUT.0 | Self::CENTRE.0 | Self::OUTPUT.0);

    /// Returns whether the set contains the location.
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

/// A packet of ephemeral state processing: an instruction, and the context of its execution.
///
/// The [module](super) describes the format. Parsing and writing take O(1).
///
/// # Example
///
/// ```
/// use flowtable::papers::esp::{EspPacket, Instruction, Locations, PacketError};
///
/// let instruction = Instruction::Count { tag: 0x1234_5678_9abc_def0, threshold: 1 };
/// let packet = EspPacket::new(Locations::CENTRE, 42, instruction);
/// let mut buffer = [0; EspPacket::MAX_LEN + 4];
/// let length = packet.write_to(&mut buffer)?;
/// assert_eq!((length, packet.encoded_len()), (EspPacket::MIN_LEN, EspPacket::MIN_LEN));
///
/// // A padding may follow a packet, and a datagram follows a piggybacked one.
/// let (parsed, payload) = EspPacket::parse(&buffer[..length + 4])?;
/// assert_eq!((parsed, payload), (packet, &[0; 4][..]));
///
/// buffer[20] ^= 1;
/// assert!(matches!(EspPacket::parse(&buffer), Err(PacketError::Checksum { .. })));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EspPacket {
    /// The locations at which the packet is executed.
    pub locations: Locations,
    /// Whether an execution has failed. Then the packet is not executed any more.
    pub error: bool,
    /// The IP protocol number of the payload.
    pub protocol: u8,
    /// The identity of the computation: drawn at random by its initiator. Sets of children depend
    /// on it; tags of bindings do not.
    pub computation: u64,
    /// The instruction to execute.
    pub instruction: Instruction,
}

impl EspPacket {
    /// The length in bytes of the smallest packet: COUNT.
    pub const MIN_LEN: usize = HEADER + 12;
    /// The length in bytes of the largest packet: RCOLLECT.
    pub const MAX_LEN: usize = HEADER + 5 * 8;
    /// The protocol of a packet without payload: IP's number for *no next header*.
    pub const NO_NEXT_HEADER: u8 = 59;

    /// Creates a packet without payload, with a clear error bit.
    #[must_use]
    pub const fn new(locations: Locations, computation: u64, instruction: Instruction) -> Self {
        Self { locations, error: false, protocol: Self::NO_NEXT_HEADER, computation, instruction }
    }

    /// Parses the packet at the beginning of a slice. Returns it with the rest of the slice.
    ///
    /// Accepts only the encoding of [`write_to`](Self::write_to), so parsing and writing are
    /// inverse.
    ///
    /// # Errors
    ///
    /// The first violation of the format, or [`Truncated`](PacketError::Truncated).
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), PacketError> {
        let given = bytes.len();
        let Some(header) = bytes.first_chunk::<HEADER>() else {
            return Err(PacketError::Truncated { needed: Self::MIN_LEN, given });
        };
        let &[version, opcode, flags, operator, words, protocol, ..] = header;
        if version != VERSION {
            return Err(PacketError::Version(version));
        }
        let needed = HEADER + zeroed(opcode)?.operands_len();
        if usize::from(words) * 4 != needed {
            return Err(PacketError::Length { words, needed });
        }
        let Some((packet, rest)) = bytes.split_at_checked(needed) else {
            return Err(PacketError::Truncated { needed, given });
        };
        let expected = checksum(packet);
        if packet[CHECKSUM] != expected {
            return Err(PacketError::Checksum { found: [packet[6], packet[7]], expected });
        }
        let locations = flags & !ERROR_FLAG;
        if locations == 0 || locations & !Locations::ALL.0 != 0 {
            return Err(PacketError::Flags(flags));
        }
        let (computation, operands) = split_u64(&packet[8..]);
        let instruction = decode(opcode, operator, operands)?;
        let (locations, error) = (Locations(locations), flags & ERROR_FLAG != 0);
        Ok((Self { locations, error, protocol, computation, instruction }, rest))
    }

    /// Returns the encoded length in bytes, a multiple of four.
    #[inline]
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        HEADER + self.instruction.operands_len()
    }

    /// Writes the packet to the beginning of a buffer. Returns its length. Execution does not
    /// change the length, so an executed packet can be written in place.
    ///
    /// # Errors
    ///
    /// If the buffer is too short. Nothing is written.
    pub fn write_to(&self, buffer: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let (needed, capacity) = (self.encoded_len(), buffer.len());
        let packet = buffer.get_mut(..needed).ok_or(BufferTooSmall { needed, capacity })?;
        let (opcode, operator, operands) = encode(&self.instruction);
        let flags = self.locations.0 | if self.error { ERROR_FLAG } else { 0 };
        packet[..6].copy_from_slice(&[
            VERSION,
            opcode,
            flags,
            operator,
            (needed / 4) as u8,
            self.protocol,
        ]);
        packet[8..HEADER].copy_from_slice(&self.computation.to_be_bytes());
        for (field, operand) in packet[HEADER..].chunks_mut(8).zip(operands) {
            // The threshold is the upper half of its operand.
            let bytes = operand.to_be_bytes();
            field.copy_from_slice(&bytes[..field.len()]);
        }
        let sum = checksum(packet);
        packet[CHECKSUM].copy_from_slice(&sum);
        Ok(needed)
    }
}

/// Returns the checksum of a packet, without its checksum field.
fn checksum(packet: &[u8]) -> [u8; 2] {
    let (before, after) = (&packet[..CHECKSUM.start], &packet[CHECKSUM.end..]);
    Checksum::of(before).plus(Checksum::of(after)).field()
}

/// Splits off the first 64-bit field, or zero if the bytes end before.
fn split_u64(bytes: &[u8]) -> (u64, &[u8]) {
    bytes.split_first_chunk().map_or((0, bytes), |(first, rest)| (u64::from_be_bytes(*first), rest))
}

/// Returns the instruction with this opcode and operands of zero.
fn zeroed(opcode: u8) -> Result<Instruction, PacketError> {
    let operator = match opcode {
        COUNT | RCHILD => 0,
        COMPARE => Relation::Less as u8,
        _ => Operation::Sum as u8,
    };
    decode(opcode, operator, &[])
}

/// Decodes an instruction. Missing operands are zero.
fn decode(opcode: u8, operator: u8, operands: &[u8]) -> Result<Instruction, PacketError> {
    let mut rest = operands;
    let mut next = || {
        let (operand, after) = split_u64(rest);
        rest = after;
        operand
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

/// Returns the opcode, the code of the operator, and the operands, padded with zeros.
fn encode(instruction: &Instruction) -> (u8, u8, [u64; 5]) {
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

/// The error of [`EspPacket::parse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketError {
    /// The slice ends within the packet.
    Truncated {
        /// The length of the packet, or the minimum if the header is incomplete.
        needed: usize,
        /// The length of the slice.
        given: usize,
    },
    /// The version is unknown.
    Version(u8),
    /// The opcode is unknown.
    Instruction(u8),
    /// The length does not match the instruction.
    Length {
        /// The length field, in words of 32 bits.
        words: u8,
        /// The length in bytes that the instruction requires.
        needed: usize,
    },
    /// The checksum is wrong.
    Checksum {
        /// The checksum field.
        found: [u8; 2],
        /// The computed checksum.
        expected: [u8; 2],
    },
    /// A reserved flag is set, or no location is.
    Flags(u8),
    /// The operator is unknown for the instruction.
    Operator {
        /// The opcode of the instruction.
        opcode: u8,
        /// The code of the operator.
        operator: u8,
    },
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, given } => {
                write!(f, "the packet needs at least {needed} bytes, and the slice has {given}")
            }
            Self::Version(version) => write!(f, "unknown version {version}"),
            Self::Instruction(opcode) => write!(f, "unknown instruction {opcode}"),
            Self::Length { words, needed } => {
                write!(f, "the length field is {words} words, but the packet has {needed} bytes")
            }
            Self::Checksum { found: [a, b], expected: [c, d] } => {
                write!(f, "the checksum is {a:02x}{b:02x}, expected {c:02x}{d:02x}")
            }
            Self::Flags(flags) => {
                write!(f, "flags {flags:#04x} have no location, or reserved bits")
            }
            Self::Operator { opcode, operator } => {
                write!(f, "instruction {opcode} has no operator {operator}")
            }
        }
    }
}

impl Error for PacketError {}
