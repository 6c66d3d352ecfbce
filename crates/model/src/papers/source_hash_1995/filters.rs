//! The programs of 16 readers, as tcpdump would compile them, and the set of readers that accept a
//! packet.

use flowtable::hash::source_index::SourceIndex;

use super::bpf::{
    ABS, ALU, AND, B, H, IND, Instruction, JEQ, JMP, JSET, K, LD, LDX, MSH, Program, ProgramError,
    RET, W,
};
use super::fids::Fid;
use super::router::{Cache, name_of};
use super::traffic::{ETHERNET, Frame, PORTS, TCP, Traffic, UDP};

/// A set of readers, one bit each.
pub type Readers = u16;

/// The whole packet.
const WHOLE: u32 = 262_144;
const ETHERNET_IP: u32 = 0x0800;

const fn load(code: u16, at: u32) -> Instruction {
    Instruction { code: LD | code, jt: 0, jf: 0, k: at }
}

const fn is(k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code: JMP | JEQ | K, jt, jf, k }
}

const fn returns(k: u32) -> Instruction {
    Instruction { code: RET | K, jt: 0, jf: 0, k }
}

/// `ip and <protocol> dst port <port>`: first fragments only, after options of any length.
pub fn to_port(protocol: u8, port: u16) -> Vec<Instruction> {
    vec![
        load(ABS | H, 12),
        is(ETHERNET_IP, 0, 8),
        load(ABS | B, 23),
        is(protocol.into(), 0, 6),
        load(ABS | H, 20),
        Instruction { code: JMP | JSET | K, jt: 4, jf: 0, k: 0x1fff },
        Instruction { code: LDX | MSH | B, jt: 0, jf: 0, k: 14 },
        load(IND | H, 16),
        is(port.into(), 0, 1),
        returns(WHOLE),
        returns(0),
    ]
}

/// `ip host <address>`.
pub fn host(address: [u8; 4]) -> Vec<Instruction> {
    let address = u32::from_be_bytes(address);
    vec![
        load(ABS | H, 12),
        is(ETHERNET_IP, 0, 5),
        load(ABS | W, 26),
        is(address, 2, 0),
        load(ABS | W, 30),
        is(address, 0, 1),
        returns(WHOLE),
        returns(0),
    ]
}

/// `ip dst net <subnet>/24`.
pub fn to_subnet([a, b, c]: [u8; 3]) -> Vec<Instruction> {
    vec![
        load(ABS | H, 12),
        is(ETHERNET_IP, 0, 4),
        load(ABS | W, 30),
        Instruction { code: ALU | AND | K, jt: 0, jf: 0, k: 0xffff_ff00 },
        is(u32::from_be_bytes([a, b, c, 0]), 0, 1),
        returns(WHOLE),
        returns(0),
    ]
}

/// `ip proto <protocol>`.
pub fn of_protocol(protocol: u8) -> Vec<Instruction> {
    vec![
        load(ABS | H, 12),
        is(ETHERNET_IP, 0, 3),
        load(ABS | B, 23),
        is(protocol.into(), 0, 1),
        returns(WHOLE),
        returns(0),
    ]
}

/// The destinations of the first three flows: monitored hosts.
pub fn watched(traffic: &Traffic) -> [[u8; 4]; 3] {
    let destination = |frame: &Frame| [frame[30], frame[31], frame[32], frame[33]];
    [0, 1, 2].map(|flow| destination(&traffic.frames[flow]))
}

/// The programs of 16 readers: eight servers, two TCP ports, three hosts, two subnets, and all of
/// TCP. The result is the same for all packets of a flow.
pub fn programs(watched: &[[u8; 4]; 3]) -> Result<Vec<Program>, ProgramError> {
    let servers = PORTS.map(|port| to_port(UDP, port));
    let web = [25, 80].map(|port| to_port(TCP, port));
    let hosts = watched.map(host);
    let nets = [watched[0], watched[1]].map(|[a, b, c, _]| to_subnet([a, b, c]));
    let all = servers.into_iter().chain(web).chain(hosts).chain(nets).chain([of_protocol(TCP)]);
    all.map(|program| Program::new(&program)).collect()
}

/// The slow path: runs all programs and returns the readers that accept the packet.
#[inline]
pub fn readers(frame: &[u8], programs: &[Program]) -> Readers {
    let accepts = |(bit, program): (usize, &Program)| Readers::from(program.run(frame) > 0) << bit;
    programs.iter().enumerate().map(accepts).sum()
}

/// The fast path: uses the cached result if the flow is in the cache.
#[inline]
pub fn readers_cached(
    frame: &[u8],
    cache: &mut Cache<Readers>,
    index: impl Fn(&Fid, SourceIndex) -> SourceIndex,
    programs: &[Program],
) -> Readers {
    let Some((fid, source)) = frame.get(ETHERNET..).and_then(name_of) else {
        return readers(frame, programs);
    };
    let index = index(&fid, source);
    *cache.get_or_insert_with(index, fid, |_| readers(frame, programs))
}
