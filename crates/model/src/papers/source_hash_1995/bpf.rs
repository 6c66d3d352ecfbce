//! The BSD packet filter: programs for a small machine that say whether a reader wants a packet.
//!
//! ```text
//!     A, X        the accumulator and the index register, 32 bits, 0 in the beginning
//!     M[0..16]    scratch memory, 0 in the beginning
//!     packet      bytes, words and half-words of it, most significant byte first
//!     program     { code, jt, jf, k } …                jumps go forward only, so that each program ends
//! ```
//!
//! What a program returns is how many bytes the reader wants; 0 is none. [`Program::new`] looks once at what would be
//! wrong with any packet; what depends on the packet rejects it: a load beyond its end, a division by an X of 0.
//!
//! Paper: McCanne and Jacobson, *The BSD packet filter: a new architecture for user-level packet capture* (1993).
//! Beyond it: a shift by 32 bits or more gives 0, which C leaves open.

use std::error::Error;
use std::fmt;

/// Words of scratch memory.
pub const MEMORY: usize = 16;
/// Instructions of a program, at most.
pub const MAX_LEN: usize = 512;

// Classes.
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
// Where loads are from: a constant, the packet at k, the packet at X + k, memory, the packet's length, and
// four times the low half of a byte, which is the length of an IP header.
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
// Jumps: always, or if A is equal, greater, greater or equal, or has one of the bits.
pub const JA: u16 = 0x00;
pub const JEQ: u16 = 0x10;
pub const JGT: u16 = 0x20;
pub const JGE: u16 = 0x30;
pub const JSET: u16 = 0x40;
// The other operand: a constant or X. What is returned: a constant or A.
pub const K: u16 = 0x00;
pub const X: u16 = 0x08;
pub const A: u16 = 0x10;
// Between the registers.
pub const TAX: u16 = 0x00;
pub const TXA: u16 = 0x80;

/// An instruction, as the paper and every system have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub code: u16,
    /// Instructions to skip if a condition holds, and if it does not.
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// Why a program is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramError {
    Empty,
    /// It has so many instructions, more than [`MAX_LEN`].
    TooLong(usize),
    /// There is no such instruction as the one at this place.
    Unknown(usize),
    /// The jump at this place ends behind the program.
    Jump(usize),
    /// There is no such word of scratch memory.
    Memory(usize),
    /// By a constant zero.
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
            Self::Jump(at) => write!(f, "instruction {at}: jumps behind the program"),
            Self::Memory(at) => write!(f, "instruction {at}: memory has {MEMORY} words"),
            Self::Division(at) => write!(f, "instruction {at}: divides by zero"),
            Self::NoReturn => write!(f, "the last instruction does not return"),
        }
    }
}

impl Error for ProgramError {}

/// What instructions do, one name for each code.
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

/// All codes that there are.
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

/// An instruction that was looked at.
#[derive(Clone, Copy, Debug)]
struct Step {
    operation: Operation,
    jt: u8,
    jf: u8,
    k: u32,
}

/// A program that was found to be sound: it ends, whatever the packet.
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

    /// How many bytes of the packet its reader wants.
    pub fn run(&self, packet: &[u8]) -> u32 {
        self.execute(packet).unwrap_or(0)
    }

    /// `None` where something is not as the program takes it to be.
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

/// Looks at the instruction at `at` of so many.
fn check(at: usize, instruction: &Instruction, len: usize) -> Result<Step, ProgramError> {
    let &Instruction { code, jt, jf, k } = instruction;
    let known = CODES.iter().find(|known| known.0 == code);
    let operation = known.ok_or(ProgramError::Unknown(at))?.1;
    // Instructions to come; a jump skips fewer than these.
    let behind = len - 1 - at;
    let reaches = |skipped: usize| {
        if skipped < behind { Ok(()) } else { Err(ProgramError::Jump(at)) }
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

/// Bytes of the packet at `k + x`.
#[inline]
fn load<const N: usize>(packet: &[u8], k: u32, x: u32) -> Option<[u8; N]> {
    packet.get(k.checked_add(x)? as usize..)?.first_chunk().copied()
}
