//! The BSD packet filter: programs of a small machine that accept or reject a packet.
//!
//! ```text
//!     A, X        the accumulator and the index register, 32 bits, initially 0
//!     M[0..16]    scratch memory, initially 0
//!     packet      bytes, words and half-words of it, most significant byte first
//!     program     { code, jt, jf, k } …       forward jumps only, so that each program terminates
//! ```
//!
//! A program returns the number of bytes to capture; 0 rejects the packet. [`Program::new`]
//! verifies all that does not depend on the packet. Errors that depend on it reject the packet: a
//! load out of bounds, a division by an X of 0.
//!
//! McCanne and Jacobson, *The BSD packet filter: a new architecture for user-level packet capture*,
//! 1993. Defined here beyond the paper: a shift by 32 bits or more gives 0.

use std::error::Error;
use std::fmt;

/// Words of scratch memory.
pub const MEMORY: usize = 16;
/// Maximum number of instructions.
pub const MAX_LEN: usize = 512;

// Instruction classes.
pub const LD: u16 = 0x00;
pub const LDX: u16 = 0x01;
pub const ST: u16 = 0x02;
pub const STX: u16 = 0x03;
pub const ALU: u16 = 0x04;
pub const JMP: u16 = 0x05;
pub const RET: u16 = 0x06;
pub const MISC: u16 = 0x07;
// Sizes of loads: words, half-words, bytes.
pub const W: u16 = 0x00;
pub const H: u16 = 0x08;
pub const B: u16 = 0x10;
// Addressing modes: a constant, the packet at k, the packet at X + k, memory, the packet length,
// and four times the low nibble of a byte, which is the length of an IP header.
pub const IMM: u16 = 0x00;
pub const ABS: u16 = 0x20;
pub const IND: u16 = 0x40;
pub const MEM: u16 = 0x60;
pub const LEN: u16 = 0x80;
pub const MSH: u16 = 0xa0;
// Arithmetic.
pub const ADD: u16 = 0x00;
pub const SUB: u16 = 0x10;
pub const MUL: u16 = 0x20;
pub const DIV: u16 = 0x30;
pub const OR: u16 = 0x40;
pub const AND: u16 = 0x50;
pub const LSH: u16 = 0x60;
pub const RSH: u16 = 0x70;
pub const NEG: u16 = 0x80;
// Jumps: always, or if A is equal, greater, greater or equal, or has a bit in common.
pub const JA: u16 = 0x00;
pub const JEQ: u16 = 0x10;
pub const JGT: u16 = 0x20;
pub const JGE: u16 = 0x30;
pub const JSET: u16 = 0x40;
// The second operand: a constant or X. The source of the result: a constant or A.
pub const K: u16 = 0x00;
pub const X: u16 = 0x08;
pub const A: u16 = 0x10;
// Register transfers.
pub const TAX: u16 = 0x00;
pub const TXA: u16 = 0x80;

/// An instruction in the encoding of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub code: u16,
    /// Instructions to skip if the condition holds, and if it does not.
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// The error of [`Program::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramError {
    Empty,
    /// The number of instructions exceeds [`MAX_LEN`].
    TooLong(usize),
    /// The instruction at this index has an unknown code.
    Unknown(usize),
    /// The jump at this index leaves the program.
    Jump(usize),
    /// The instruction at this index addresses memory out of bounds.
    Memory(usize),
    /// The instruction at this index divides by a constant zero.
    Division(usize),
    /// The last instruction does not return.
    NoReturn,
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "a program without instructions"),
            Self::TooLong(len) => write!(f, "{len} instructions: at most {MAX_LEN}"),
            Self::Unknown(at) => write!(f, "instruction {at}: unknown"),
            Self::Jump(at) => write!(f, "instruction {at}: jumps out of the program"),
            Self::Memory(at) => write!(f, "instruction {at}: memory has {MEMORY} words"),
            Self::Division(at) => write!(f, "instruction {at}: divides by zero"),
            Self::NoReturn => write!(f, "the last instruction does not return"),
        }
    }
}

impl Error for ProgramError {}

/// Decoded operations, one per code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    Word,
    Half,
    Byte,
    WordAtX,
    HalfAtX,
    ByteAtX,
    Length,
    Constant,
    Memory,
    XConstant,
    XMemory,
    XLength,
    XHeader,
    Store,
    StoreX,
    Add,
    Subtract,
    Multiply,
    Divide,
    Or,
    And,
    Left,
    Right,
    AddX,
    SubtractX,
    MultiplyX,
    DivideX,
    OrX,
    AndX,
    LeftX,
    RightX,
    Negate,
    Jump,
    Equal,
    Greater,
    AtLeast,
    AnyBit,
    EqualX,
    GreaterX,
    AtLeastX,
    AnyBitX,
    Return,
    ReturnA,
    AToX,
    XToA,
}

/// All valid codes.
const CODES: [(u16, Operation); 45] = [
    (LD | ABS | W, Operation::Word),
    (LD | ABS | H, Operation::Half),
    (LD | ABS | B, Operation::Byte),
    (LD | IND | W, Operation::WordAtX),
    (LD | IND | H, Operation::HalfAtX),
    (LD | IND | B, Operation::ByteAtX),
    (LD | LEN | W, Operation::Length),
    (LD | IMM | W, Operation::Constant),
    (LD | MEM | W, Operation::Memory),
    (LDX | IMM | W, Operation::XConstant),
    (LDX | MEM | W, Operation::XMemory),
    (LDX | LEN | W, Operation::XLength),
    (LDX | MSH | B, Operation::XHeader),
    (ST, Operation::Store),
    (STX, Operation::StoreX),
    (ALU | ADD | K, Operation::Add),
    (ALU | SUB | K, Operation::Subtract),
    (ALU | MUL | K, Operation::Multiply),
    (ALU | DIV | K, Operation::Divide),
    (ALU | OR | K, Operation::Or),
    (ALU | AND | K, Operation::And),
    (ALU | LSH | K, Operation::Left),
    (ALU | RSH | K, Operation::Right),
    (ALU | ADD | X, Operation::AddX),
    (ALU | SUB | X, Operation::SubtractX),
    (ALU | MUL | X, Operation::MultiplyX),
    (ALU | DIV | X, Operation::DivideX),
    (ALU | OR | X, Operation::OrX),
    (ALU | AND | X, Operation::AndX),
    (ALU | LSH | X, Operation::LeftX),
    (ALU | RSH | X, Operation::RightX),
    (ALU | NEG, Operation::Negate),
    (JMP | JA, Operation::Jump),
    (JMP | JEQ | K, Operation::Equal),
    (JMP | JGT | K, Operation::Greater),
    (JMP | JGE | K, Operation::AtLeast),
    (JMP | JSET | K, Operation::AnyBit),
    (JMP | JEQ | X, Operation::EqualX),
    (JMP | JGT | X, Operation::GreaterX),
    (JMP | JGE | X, Operation::AtLeastX),
    (JMP | JSET | X, Operation::AnyBitX),
    (RET | K, Operation::Return),
    (RET | A, Operation::ReturnA),
    (MISC | TAX, Operation::AToX),
    (MISC | TXA, Operation::XToA),
];

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
struct Step {
    operation: Operation,
    jt: u8,
    jf: u8,
    k: u32,
}

/// A verified program, which terminates for every packet.
#[derive(Clone, Debug)]
pub struct Program(Vec<Step>);

impl Program {
    pub fn new(code: &[Instruction]) -> Result<Self, ProgramError> {
        if code.len() > MAX_LEN {
            return Err(ProgramError::TooLong(code.len()));
        }
        let check = |(at, instruction)| check(at, instruction, code.len());
        let steps: Vec<Step> = code.iter().enumerate().map(check).collect::<Result<_, _>>()?;
        match steps.last().ok_or(ProgramError::Empty)?.operation {
            Operation::Return | Operation::ReturnA => Ok(Self(steps)),
            _ => Err(ProgramError::NoReturn),
        }
    }

    /// Returns the number of bytes to capture.
    pub fn run(&self, packet: &[u8]) -> u32 {
        self.execute(packet).unwrap_or(0)
    }

    /// Executes the program. `None` if the packet does not fit the program.
    fn execute(&self, packet: &[u8]) -> Option<u32> {
        let (mut a, mut x, mut memory) = (0_u32, 0_u32, [0; MEMORY]);
        let mut at = 0;
        loop {
            let &Step { operation, jt, jf, k } = self.0.get(at)?;
            let branch = |is_so| usize::from(if is_so { jt } else { jf });
            at += 1;
            match operation {
                Operation::Word => a = u32::from_be_bytes(load(packet, k, 0)?),
                Operation::Half => a = u16::from_be_bytes(load(packet, k, 0)?).into(),
                Operation::Byte => a = u8::from_be_bytes(load(packet, k, 0)?).into(),
                Operation::WordAtX => a = u32::from_be_bytes(load(packet, k, x)?),
                Operation::HalfAtX => a = u16::from_be_bytes(load(packet, k, x)?).into(),
                Operation::ByteAtX => a = u8::from_be_bytes(load(packet, k, x)?).into(),
                Operation::Length => a = packet.len() as u32,
                Operation::Constant => a = k,
                Operation::Memory => a = memory[k as usize],
                Operation::XConstant => x = k,
                Operation::XMemory => x = memory[k as usize],
                Operation::XLength => x = packet.len() as u32,
                Operation::XHeader => x = 4 * u32::from(load::<1>(packet, k, 0)?[0] & 0xf),
                Operation::Store => memory[k as usize] = a,
                Operation::StoreX => memory[k as usize] = x,
                Operation::Add => a = a.wrapping_add(k),
                Operation::Subtract => a = a.wrapping_sub(k),
                Operation::Multiply => a = a.wrapping_mul(k),
                Operation::Divide => a = a.checked_div(k)?,
                Operation::Or => a |= k,
                Operation::And => a &= k,
                Operation::Left => a = a.checked_shl(k).unwrap_or(0),
                Operation::Right => a = a.checked_shr(k).unwrap_or(0),
                Operation::AddX => a = a.wrapping_add(x),
                Operation::SubtractX => a = a.wrapping_sub(x),
                Operation::MultiplyX => a = a.wrapping_mul(x),
                Operation::DivideX => a = a.checked_div(x)?,
                Operation::OrX => a |= x,
                Operation::AndX => a &= x,
                Operation::LeftX => a = a.checked_shl(x).unwrap_or(0),
                Operation::RightX => a = a.checked_shr(x).unwrap_or(0),
                Operation::Negate => a = a.wrapping_neg(),
                Operation::Jump => at += k as usize,
                Operation::Equal => at += branch(a == k),
                Operation::Greater => at += branch(a > k),
                Operation::AtLeast => at += branch(a >= k),
                Operation::AnyBit => at += branch(a & k != 0),
                Operation::EqualX => at += branch(a == x),
                Operation::GreaterX => at += branch(a > x),
                Operation::AtLeastX => at += branch(a >= x),
                Operation::AnyBitX => at += branch(a & x != 0),
                Operation::Return => return Some(k),
                Operation::ReturnA => return Some(a),
                Operation::AToX => x = a,
                Operation::XToA => a = x,
            }
        }
    }
}

/// Verifies and decodes the instruction at index `at` of `len`.
fn check(at: usize, instruction: &Instruction, len: usize) -> Result<Step, ProgramError> {
    let &Instruction { code, jt, jf, k } = instruction;
    let entry = CODES.iter().find(|entry| entry.0 == code);
    let operation = entry.ok_or(ProgramError::Unknown(at))?.1;
    // The instructions that follow; a jump skips fewer than these.
    let following = len - 1 - at;
    let reaches = |skipped: usize| {
        if skipped < following { Ok(()) } else { Err(ProgramError::Jump(at)) }
    };
    match operation {
        Operation::Jump => reaches(k as usize)?,
        _ if code & 7 == JMP => reaches(jt.max(jf).into())?,
        Operation::Memory | Operation::XMemory | Operation::Store | Operation::StoreX
            if k as usize >= MEMORY =>
        {
            return Err(ProgramError::Memory(at));
        }
        Operation::Divide if k == 0 => return Err(ProgramError::Division(at)),
        _ => {}
    }
    Ok(Step { operation, jt, jf, k })
}

/// Loads bytes of the packet at `k + x`.
#[inline]
fn load<const N: usize>(packet: &[u8], k: u32, x: u32) -> Option<[u8; N]> {
    packet.get(k.checked_add(x)? as usize..)?.first_chunk().copied()
}
