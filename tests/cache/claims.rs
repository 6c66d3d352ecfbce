//! Numbers that Chandranmenon and Varghese state about caches by source index, and the filters and
//! routers of their experiments.
//!
//! Traffic follows from seeds, and no test reads a clock.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use flowtable::hash::source_index::SourceIndex;
use model::papers::source_hash_1995::bpf::*;
use model::papers::source_hash_1995::fids::{Fid, Flow, Set};
use model::papers::source_hash_1995::filters::{
    host, of_protocol, programs, readers, readers_cached, to_port, to_subnet, watched,
};
use model::papers::source_hash_1995::indices::SLOTS;
use model::papers::source_hash_1995::router::{
    Cache, by_crc, by_source, by_xor, checksum, forward, forward_cached, hop, in_trie, is_valid,
    name_of, radix_tree, routes,
};
use model::papers::source_hash_1995::traffic::{ETHERNET, Frame, PORTS, TCP, Traffic, UDP, frame};
use model::papers::source_hash_1995::transfers::{
    BY_HAND, FIGURE_2, all, improvement, packets_for_a_circuit, through_a_cache,
};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const SEED: u64 = 1995;

// Transfers.

#[test]
fn transfer_times_are_those_of_figure_2() {
    for (packets, by_hand) in BY_HAND {
        let here = all(&FIGURE_2, packets);
        for (here, by_hand) in here.into_iter().zip(by_hand) {
            assert!((here - by_hand).abs() < 1e-9, "{packets}: {here}, {by_hand}");
        }
        let counted = through_a_cache(&FIGURE_2, packets).unwrap();
        assert!((counted - by_hand[2]).abs() < 1e-9, "{packets}: {counted}");
    }
    assert!((packets_for_a_circuit(&FIGURE_2) - 333.33).abs() < 0.005);
    for packets in 1..=1000 {
        let [datagrams, circuit, source, threaded] = all(&FIGURE_2, packets);
        assert_eq!(datagrams > circuit, packets >= 334, "{packets}");
        assert!((circuit - source - 59.82).abs() < 1e-9);
        assert!((source - threaded - 0.18).abs() < 1e-9);
        assert!(if packets == 1 { source == datagrams } else { source < datagrams }, "{packets}");
    }
    assert_eq!(improvement(30.0, 2.0, 30.0), 1.875);
}

// Programs of the packet filter.

const fn op(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}

/// The result of the program, followed by `RET A`.
fn a_after(code: &[Instruction], packet: &[u8]) -> u32 {
    Program::new(&[code, &[op(RET | A, 0)]].concat()).unwrap().run(packet)
}

#[test]
fn instructions_have_their_documented_effects() {
    const PACKET: [u8; 8] = [0x45, 1, 2, 3, 0xfc, 5, 6, 7];
    let a = |code: &[Instruction]| a_after(code, &PACKET);
    assert_eq!(a(&[op(LD | ABS | W, 1)]), 0x0102_03fc);
    assert_eq!(a(&[op(LD | ABS | H, 3)]), 0x03fc);
    assert_eq!(a(&[op(LD | ABS | B, 7)]), 7);
    assert_eq!(a(&[op(LDX | IMM, 2), op(LD | IND | W, 2)]), 0xfc05_0607);
    assert_eq!(a(&[op(LDX | IMM, 2), op(LD | IND | H, 3)]), 0x0506);
    assert_eq!(a(&[op(LDX | IMM, 2), op(LD | IND | B, 3)]), 5);
    assert_eq!(a(&[op(LD | LEN, 0)]), 8);
    assert_eq!(a(&[op(LD | IMM, 77)]), 77);
    assert_eq!(a(&[op(LDX | LEN, 0), op(MISC | TXA, 0)]), 8);
    // The low half of 0x45 and of 0xfc, in words of four bytes.
    assert_eq!(a(&[op(LDX | MSH | B, 0), op(MISC | TXA, 0)]), 20);
    assert_eq!(a(&[op(LDX | MSH | B, 4), op(MISC | TXA, 0)]), 48);
    let stored = [op(LD | IMM, 9), op(ST, 15), op(LD | IMM, 0), op(LD | MEM, 15)];
    assert_eq!(a(&stored), 9);
    let stored =
        [op(LDX | IMM, 9), op(STX, 0), op(LDX | IMM, 0), op(LDX | MEM, 0), op(MISC | TXA, 0)];
    assert_eq!(a(&stored), 9);
    assert_eq!(a(&[op(LD | IMM, 6), op(MISC | TAX, 0), op(ALU | MUL | X, 0)]), 36);
    assert_eq!(a(&[op(LD | IMM, 3), op(ALU | NEG, 0)]), 3_u32.wrapping_neg());
    for (code, k, result) in [
        (ADD, 5, 17),
        (SUB, 13, u32::MAX),
        (MUL, 1 << 31, 0),
        (DIV, 5, 2),
        (OR, 3, 15),
        (AND, 6, 4),
        (LSH, 2, 48),
        (LSH, 32, 0),
        (RSH, 2, 3),
        (RSH, 40, 0),
    ] {
        assert_eq!(a(&[op(LD | IMM, 12), op(ALU | code | K, k)]), result, "{code:#x} {k}");
        let by_x = [op(LD | IMM, 12), op(LDX | IMM, k), op(ALU | code | X, 0)];
        assert_eq!(a(&by_x), result, "{code:#x} X = {k}");
    }
    for (code, k, holds) in [
        (JEQ, 12, true),
        (JEQ, 11, false),
        (JGT, 11, true),
        (JGT, 12, false),
        (JGE, 12, true),
        (JGE, 13, false),
        (JSET, 20, true),
        (JSET, 19, false),
    ] {
        let both = [op(RET | K, 0), op(RET | K, 1), op(RET | K, 2)];
        let by_k = [&[op(LD | IMM, 12), jump(JMP | code | K, k, 1, 2)], &both[..]].concat();
        let expected = if holds { 1 } else { 2 };
        assert_eq!(Program::new(&by_k).unwrap().run(&[]), expected, "{code:#x} {k}");
        let by_x = [op(LD | IMM, 12), op(LDX | IMM, k), jump(JMP | code | X, 0, 1, 2)];
        assert_eq!(Program::new(&[&by_x, &both[..]].concat()).unwrap().run(&[]), expected);
    }
    assert_eq!(a(&[op(JMP | JA, 1), op(RET | K, 5), op(LD | IMM, 6)]), 6);
}

#[test]
fn a_load_beyond_the_packet_rejects_it() {
    let rejects = |code: &[Instruction]| {
        let program = Program::new(&[code, &[op(RET | K, 1)]].concat()).unwrap();
        assert_eq!(program.run(&[1, 2, 3, 4, 5]), 0, "{code:?}");
    };
    for (size, k) in [(W, 2), (H, 4), (B, 5), (W, u32::MAX), (B, u32::MAX)] {
        rejects(&[op(LD | ABS | size, k)]);
        rejects(&[op(LDX | IMM, k), op(LD | IND | size, 0)]);
        rejects(&[op(LDX | IMM, k), op(LD | IND | size, u32::MAX)]);
    }
    rejects(&[op(LDX | MSH | B, 5)]);
    rejects(&[op(ALU | DIV | X, 0)]);
}

#[test]
fn invalid_programs_are_refused() {
    let refused = |code: &[Instruction]| Program::new(code).unwrap_err();
    let ret = op(RET | K, 0);
    assert_eq!(refused(&[]), ProgramError::Empty);
    assert_eq!(refused(&vec![ret; MAX_LEN + 1]), ProgramError::TooLong(MAX_LEN + 1));
    assert!(Program::new(&vec![ret; MAX_LEN]).is_ok());
    assert_eq!(refused(&[ret, op(LD | IMM, 0)]), ProgramError::NoReturn);
    assert_eq!(refused(&[op(JMP | JA, 1), ret]), ProgramError::Jump(0));
    assert_eq!(refused(&[ret, op(JMP | JA, u32::MAX), ret]), ProgramError::Jump(1));
    assert_eq!(refused(&[jump(JMP | JEQ, 0, 1, 0), ret]), ProgramError::Jump(0));
    assert_eq!(refused(&[jump(JMP | JSET | X, 0, 0, 1), ret]), ProgramError::Jump(0));
    assert!(Program::new(&[jump(JMP | JEQ, 0, 1, 1), ret, ret]).is_ok());
    for code in [ST, STX, LD | MEM, LDX | MEM] {
        assert_eq!(refused(&[op(code, 16), ret]), ProgramError::Memory(0), "{code:#x}");
        assert!(Program::new(&[op(code, 15), ret]).is_ok());
    }
    assert_eq!(refused(&[op(ALU | DIV | K, 0), ret]), ProgramError::Division(0));
    let all = (0..=u16::MAX).filter(|&code| Program::new(&[op(code, 1), ret, ret, ret]).is_ok());
    assert_eq!(all.count(), 45);
    // Loads of bytes from memory, of a header length to A, and instructions of later machines.
    for code in [LD | MEM | B, LD | MSH | B, LDX | ABS | W, ALU | 0x90, ALU | 0xa0, RET | X, 0x100]
    {
        assert_eq!(refused(&[op(code, 1), ret]), ProgramError::Unknown(0), "{code:#x}");
    }
    let text = ProgramError::Jump(3).to_string();
    assert_eq!(text, "instruction 3: jumps out of the program");
}

/// Instructions that are mostly valid.
fn any_instruction() -> impl Strategy<Value = Instruction> {
    let code = prop_oneof![3 => 0_u16..0xb2, 1 => any::<u16>()];
    let k = prop_oneof![4 => 0_u32..20, 1 => any::<u32>()];
    (code, 0_u8..4, 0_u8..4, k).prop_map(|(code, jt, jf, k)| Instruction { code, jt, jf, k })
}

proptest! {
    #[test]
    fn every_valid_program_terminates(
        code in vec(any_instruction(), 0..60),
        packet in vec(any::<u8>(), 0..40),
    ) {
        _ = Program::new(&code).map(|program| program.run(&packet));
        // The valid instructions of these, in sequence.
        let mut valid: Vec<Instruction> = vec![];
        for instruction in code {
            let probe = [&[instruction], &[op(RET | K, 1); 20][..]].concat();
            valid.extend(Program::new(&probe).is_ok().then_some(instruction));
        }
        valid.extend([op(RET | A, 0); 20]);
        let program = Program::new(&valid).expect("each instruction is valid");
        program.run(&packet);
    }
}

// Readers.

/// Which of the 16 readers accept a frame, computed from its fields.
fn accepted(frame: &Frame, watched: &[[u8; 4]; 3]) -> u16 {
    let [source, destination] = [26, 30].map(|at| [0, 1, 2, 3].map(|byte| frame[at + byte]));
    let (protocol, port) = (frame[23], u16::from_be_bytes([frame[48], frame[49]]));
    let mut readers = PORTS.map(|each| protocol == UDP && port == each).to_vec();
    readers.extend([25, 80].map(|each| protocol == TCP && port == each));
    readers.extend(watched.map(|each| source == each || destination == each));
    readers.extend([0, 1].map(|each| destination[..3] == watched[each][..3]));
    readers.push(protocol == TCP);
    readers.iter().enumerate().map(|(bit, is)| u16::from(*is) << bit).sum()
}

#[test]
fn readers_receive_the_same_frames_with_every_index() {
    let traffic = Traffic::new(64, 5000, SEED);
    let watched = watched(&traffic);
    let programs = programs(&watched).unwrap();
    assert_eq!(programs.len(), 16);
    let mut caches: Vec<Cache<u16>> = (0..4).map(|_| Cache::new(SLOTS).unwrap()).collect();
    let mut seen = 0;
    for &flow in &traffic.order {
        let frame = &traffic.frames[flow];
        let expected = accepted(frame, &watched);
        seen |= expected;
        assert_eq!(readers(frame, &programs), expected);
        assert_eq!(readers_cached(frame, &mut caches[0], by_xor, &programs), expected);
        assert_eq!(readers_cached(frame, &mut caches[1], by_crc, &programs), expected);
        assert_eq!(readers_cached(frame, &mut caches[2], by_source, &programs), expected);
        let constant = |_: &Fid, _| SourceIndex::ABSENT;
        assert_eq!(readers_cached(frame, &mut caches[3], constant, &programs), expected);
    }
    assert_eq!(seen & 0b1111_1100_1111_1111, 0b1111_1100_1111_1111, "{seen:016b}");
    assert!(caches[2].statistics().hits > 9 * caches[2].statistics().misses / 4);
    assert_eq!(readers_cached(&[0; 60], &mut caches[2], by_source, &programs), 0, "no name, no IP");
}

#[test]
fn filters_skip_options_and_match_ports_of_first_fragments_only() {
    let flow = Flow { fid: Fid::new([10, 1, 1, 1], [10, 2, 3, 4], 1), index: SourceIndex::new(5) };
    let mut packet = frame(&flow, UDP, 53);
    let accepts = |code: &[Instruction], packet: &[u8]| Program::new(code).unwrap().run(packet) > 0;
    assert!(accepts(&to_port(UDP, 53), &packet));
    assert!(!accepts(&to_port(UDP, 54), &packet) && !accepts(&to_port(TCP, 53), &packet));
    assert!(accepts(&host([10, 1, 1, 1]), &packet) && accepts(&host([10, 2, 3, 4]), &packet));
    assert!(!accepts(&host([10, 2, 3, 5]), &packet));
    assert!(accepts(&to_subnet([10, 2, 3]), &packet) && !accepts(&to_subnet([10, 1, 1]), &packet));
    assert!(accepts(&of_protocol(UDP), &packet) && !accepts(&of_protocol(TCP), &packet));
    packet[21] = 1;
    assert!(!accepts(&to_port(UDP, 53), &packet), "a later fragment");
    packet[13] = 0xdd;
    assert!(!accepts(&of_protocol(UDP), &packet), "not IP");
}

// Routers.

#[test]
fn a_binary_trie_holds_the_hundred_routes() {
    let tree = radix_tree();
    assert_eq!((tree.len(), routes().len()), (100, 100));
    let shape = tree.shape();
    assert_eq!(shape.nodes_by_bits.get(2..).unwrap_or_default().iter().sum::<usize>(), 0);
    // No node has exactly one child.
    assert_eq!(shape.nodes() + 1, shape.leaves);
}

#[test]
fn packets_leave_through_the_same_interface_with_every_index() {
    let traffic = Traffic::new(64, 5000, SEED);
    let (tree, list) = (radix_tree(), routes());
    let matching = |address: Ipv4Addr| {
        let inside = list.iter().filter(|(prefix, _)| prefix.contains(&address));
        inside.max_by_key(|(prefix, _)| prefix.len()).map(|(_, port)| *port)
    };
    let mut caches: Vec<Cache<u8>> = (0..4).map(|_| Cache::new(SLOTS).unwrap()).collect();
    let mut used = HashSet::new();
    for &flow in &traffic.order {
        let ip = &traffic.frames[flow][ETHERNET..];
        let (mut long, mut short) = (ip.to_vec(), ip.to_vec());
        let port = forward(&mut long, in_trie(&tree));
        assert_eq!(port, matching(Ipv4Addr::new(ip[16], ip[17], ip[18], ip[19])));
        used.extend(port);
        assert_eq!(long[8], 63);
        assert!(is_valid(&long), "the checksum is updated");
        let mut check = |cache: usize, index: fn(&Fid, SourceIndex) -> SourceIndex| {
            short.copy_from_slice(ip);
            let by = forward_cached(&mut short, &mut caches[cache], index, in_trie(&tree));
            assert_eq!((by, &short), (port, &long));
        };
        check(0, by_xor);
        check(1, by_crc);
        check(2, by_source);
        check(3, |_, _| SourceIndex::new(3));
    }
    assert_eq!(used.len(), 16);
    let statistics = caches[2].statistics();
    assert!(statistics.hits > 3000, "{statistics:?}");
}

#[test]
fn a_packet_contains_the_name_of_its_flow() {
    for flow in Set::D.flows(100, SEED) {
        let frame = frame(&flow, TCP, 80);
        assert!(is_valid(&frame[ETHERNET..]));
        assert_eq!(name_of(&frame[ETHERNET..]), Some((flow.fid, flow.index)));
        assert_eq!(name_of(&frame[ETHERNET..ETHERNET + 31]), None);
    }
}

#[test]
fn packets_without_a_name_bypass_the_cache() {
    let tree = radix_tree();
    let mut cache: Cache<u8> = Cache::new(SLOTS).unwrap();
    let traffic = Traffic::new(1, 1, SEED);
    let mut packet = traffic.frames[0][ETHERNET..].to_vec();
    packet[20] = 1;
    assert_eq!(name_of(&packet), None);
    let sum = {
        packet[10..12].fill(0);
        checksum(&packet[..32])
    };
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    assert!(forward_cached(&mut packet, &mut cache, by_source, in_trie(&tree)).is_some());
    assert!(cache.is_empty());
}

#[test]
fn the_internet_checksum_is_that_of_rfc_1071() {
    // RFC 1071, section 3: the sum of these is ddf2.
    assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
}

#[test]
fn damaged_headers_are_invalid_and_expired_packets_are_dropped() {
    let traffic = Traffic::new(1, 1, SEED);
    let good = &traffic.frames[0][ETHERNET..];
    assert!(is_valid(good));
    for at in 0..32 {
        let mut bad = good.to_vec();
        bad[at] ^= 0x10;
        assert!(!is_valid(&bad), "byte {at}");
    }
    for length in 0..good.len() {
        assert!(!is_valid(&good[..length]), "cut to {length}");
    }
    let mut rng = StdRng::seed_from_u64(SEED);
    for ttl in 0..=u8::MAX {
        let mut header: [u8; 20] = rng.random();
        (header[0], header[8]) = (0x45, ttl);
        header[2..4].copy_from_slice(&[0, 20]);
        header[10..12].fill(0);
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        let before = header;
        assert_eq!(hop(&mut header), ttl > 1);
        if ttl > 1 {
            assert!(is_valid(&header) && header[8] == ttl - 1);
        } else {
            assert_eq!(header, before);
        }
    }
    assert!(!hop(&mut [0x45; 19]));
}
