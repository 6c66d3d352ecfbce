//! Ephemeral state processing: packets from arbitrary bytes, instructions against a reference
//! model.

use core::time::Duration;

use flowtable::papers::dml::BufferTooSmall;
use flowtable::papers::esp::{
    Action, EspPacket, Instruction, Location, Locations, Operation, PacketError, Relation, Site,
    child_bits, execute,
};
use flowtable::{EphemeralStore, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use model::esp::CheckedProcessor;
use model::esp::repair::{repaired, summed};

const RELATIONS: [Relation; 6] = [
    Relation::Less,
    Relation::AtMost,
    Relation::Equal,
    Relation::NotEqual,
    Relation::AtLeast,
    Relation::Greater,
];

const OPERATIONS: [Operation; 6] =
    [Operation::Sum, Operation::Min, Operation::Max, Operation::And, Operation::Or, Operation::Xor];

const SITE: Site = Site { location: Location::Centre, identity: 1000 };

/// One packet of each kind, with distinct operands.
fn one_of_each() -> [EspPacket; 5] {
    let number = |byte: u8| u64::from_be_bytes([byte; 8]) ^ 0x0001_0203_0405_0607;
    [
        Instruction::Count { tag: number(0x11), threshold: 0x1122_3344 },
        Instruction::Compare { tag: number(0x21), relation: Relation::Less, value: number(0x22) },
        Instruction::Collect {
            count: number(0x31),
            result: number(0x32),
            operation: Operation::Max,
            value: number(0x33),
        },
        Instruction::RChild { children: number(0x41), child: number(0x42) },
        Instruction::RCollect {
            children: number(0x51),
            reported: number(0x52),
            result: number(0x53),
            operation: Operation::Sum,
            child: number(0x54),
            value: number(0x55),
        },
    ]
    .map(|instruction| EspPacket::new(Locations::CENTRE, number(0xc0), instruction))
}

fn encoded(packet: &EspPacket) -> Vec<u8> {
    let mut bytes = vec![0xee; packet.encoded_len()];
    assert_eq!(packet.write_to(&mut bytes), Ok(bytes.len()));
    bytes
}

// Packets.

#[test]
fn the_format_is_the_documented_one() {
    let [count, _, collect, _, robust] = one_of_each();
    let bytes = b"\x01\x01\x02\x00\x07\x3b\x00\x00\
        \xc0\xc1\xc2\xc3\xc4\xc5\xc6\xc7\x11\x10\x13\x12\x15\x14\x17\x16\x11\x22\x33\x44";
    assert_eq!(encoded(&count), summed(bytes.to_vec()));
    let collect = EspPacket {
        locations: Locations::INPUT | Locations::OUTPUT,
        error: true,
        protocol: 17,
        ..collect
    };
    let bytes = encoded(&collect);
    assert_eq!((bytes.len(), &bytes[..6]), (40, &[1, 3, 0x85, 19, 10, 17][..]));
    assert_eq!(encoded(&robust)[1..5], [5, 2, 17, 14]);
    let lengths = one_of_each().map(|packet| packet.encoded_len());
    assert_eq!(lengths, [28, 32, 40, 32, 56]);
    assert_eq!((EspPacket::MIN_LEN, EspPacket::MAX_LEN), (28, 56));
    // With the headers of IPv4 and Ethernet the shortest packet is as long as in the paper.
    assert_eq!(EspPacket::MIN_LEN + 20 + 14, 62);
    for (relation, number) in RELATIONS.into_iter().zip(1..) {
        let instruction = Instruction::Compare { tag: 0, relation, value: 0 };
        assert_eq!(encoded(&EspPacket { instruction, ..count })[3], number);
    }
    for (operation, number) in OPERATIONS.into_iter().zip(17..) {
        let instruction = Instruction::Collect { count: 0, result: 0, operation, value: 0 };
        assert_eq!(encoded(&EspPacket { instruction, ..count })[3], number);
    }
}

#[test]
fn bytes_after_a_packet_are_returned() {
    for packet in one_of_each() {
        let bytes = encoded(&packet);
        for rest in [&b""[..], &[0; 18], b"a datagram", &bytes] {
            let both = [&bytes, rest].concat();
            assert_eq!(EspPacket::parse(&both), Ok((packet, rest)));
        }
    }
}

#[test]
fn a_short_buffer_is_not_written() {
    for packet in one_of_each() {
        let needed = packet.encoded_len();
        for room in 0..needed {
            let mut buffer = vec![0xee; room];
            assert_eq!(
                packet.write_to(&mut buffer),
                Err(BufferTooSmall { needed, capacity: room })
            );
            assert!(buffer.iter().all(|byte| *byte == 0xee));
        }
    }
}

#[test]
fn each_invalid_field_has_an_error() {
    let with = |offset: usize, byte: u8| {
        let mut bytes = encoded(&one_of_each()[0]);
        bytes[offset] = byte;
        EspPacket::parse(&summed(bytes)).map(|(packet, _)| packet)
    };
    for version in (0..=255).filter(|version| *version != 1) {
        assert_eq!(with(0, version), Err(PacketError::Version(version)));
    }
    for opcode in [0].into_iter().chain(6..=255) {
        assert_eq!(with(1, opcode), Err(PacketError::Instruction(opcode)));
    }
    for flags in 0..=255_u8 {
        let is_known = flags & 0x78 == 0 && flags & 7 != 0;
        match with(2, flags) {
            Ok(packet) => assert!(is_known && packet.error == (flags >= 0x80)),
            Err(error) => assert_eq!((is_known, error), (false, PacketError::Flags(flags))),
        }
    }
    for operator in 1..=255 {
        assert_eq!(with(3, operator), Err(PacketError::Operator { opcode: 1, operator }));
    }
    for words in (0..=255).filter(|words| *words != 7) {
        assert_eq!(with(4, words), Err(PacketError::Length { words, needed: 28 }));
    }
    for protocol in 0..=255 {
        assert_eq!(with(5, protocol).map(|packet| packet.protocol), Ok(protocol));
    }
    let messages = [
        (with(0, 9).unwrap_err(), "unknown version 9"),
        (with(1, 9).unwrap_err(), "unknown instruction 9"),
        (with(2, 9).unwrap_err(), "flags 0x09 have no location, or reserved bits"),
        (with(3, 9).unwrap_err(), "instruction 1 has no operator 9"),
        (with(4, 9).unwrap_err(), "the length field is 9 words, but the packet has 28 bytes"),
    ];
    for (error, message) in messages {
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn each_instruction_accepts_its_own_operators_only() {
    for (packet, known) in one_of_each().into_iter().zip([0..1, 1..7, 17..23, 0..1, 17..23]) {
        let bytes = encoded(&packet);
        let opcode = bytes[1];
        for operator in 0..=255_u8 {
            let mut bytes = bytes.clone();
            bytes[3] = operator;
            let parsed = EspPacket::parse(&summed(bytes)).map(|_| ());
            let unknown = Err(PacketError::Operator { opcode, operator });
            assert_eq!(parsed, if known.contains(&operator) { Ok(()) } else { unknown });
        }
    }
}

#[test]
fn a_truncated_packet_is_an_error_with_both_lengths() {
    for packet in one_of_each() {
        let bytes = encoded(&packet);
        for given in 0..bytes.len() {
            let needed = if given < 16 { EspPacket::MIN_LEN } else { bytes.len() };
            let error = PacketError::Truncated { needed, given };
            assert_eq!(EspPacket::parse(&bytes[..given]), Err(error));
        }
    }
}

#[test]
fn a_change_of_any_single_byte_is_detected() {
    for packet in one_of_each() {
        let bytes = [encoded(&packet), vec![0; 32]].concat();
        for offset in 0..packet.encoded_len() {
            for change in 1..=255 {
                let mut bytes = bytes.clone();
                bytes[offset] ^= change;
                assert!(EspPacket::parse(&bytes).is_err(), "{packet:?} {offset} {change}");
            }
        }
    }
}

/// The checksum does not detect a word of zeros that becomes ones, nor a change of the order of
/// words.
#[test]
fn the_checksum_misses_inverted_zeros_and_swapped_words_only() {
    let instruction = Instruction::Count { tag: 0, threshold: 1 << 16 };
    let packet = EspPacket::new(Locations::CENTRE, 0xffff_0000_0000_0000, instruction);
    let bytes = encoded(&packet);
    for offset in (0..bytes.len()).step_by(2).filter(|offset| *offset != 6) {
        let word = [bytes[offset], bytes[offset + 1]];
        let mut damaged = bytes.clone();
        damaged[offset] ^= 0xff;
        damaged[offset + 1] ^= 0xff;
        let is_missed = word[0] == word[1] && [0x00, 0xff].contains(&word[0]);
        assert_eq!(EspPacket::parse(&damaged).is_ok(), is_missed, "{offset}");
    }
    let mut swapped = bytes.clone();
    swapped[8..12].rotate_left(2);
    let (read, _) = EspPacket::parse(&swapped).expect("the checksum is unchanged");
    assert_eq!(read.computation, 0x0000_ffff_0000_0000);
    // A sum of all ones has one valid checksum only: zeros, not ones.
    let with_tag =
        |tag| EspPacket { instruction: Instruction::Count { tag, threshold: 1 }, ..packet };
    let zero = (0..0x1_0000).map(with_tag).find(|packet| encoded(packet)[6..8] == [0, 0]);
    let mut bytes = encoded(&zero.expect("one tag in 65,535 has this checksum"));
    assert!(EspPacket::parse(&bytes).is_ok());
    bytes[6..8].fill(0xff);
    let (found, expected) = ([0xff; 2], [0; 2]);
    assert_eq!(EspPacket::parse(&bytes), Err(PacketError::Checksum { found, expected }));
}

fn instructions(
    tags: impl Strategy<Value = u64> + Clone,
    children: impl Strategy<Value = u64> + Clone,
    values: impl Strategy<Value = u64> + Clone,
) -> impl Strategy<Value = Instruction> {
    let operators = (select(&RELATIONS[..]), select(&OPERATIONS[..]), 0..5_u8);
    let threshold = prop_oneof![0..4_u32, any::<u32>()];
    (operators, [tags.clone(), tags.clone(), tags], children, values, threshold).prop_map(
        |((relation, operation, kind), [a, b, c], child, value, threshold)| match kind {
            0 => Instruction::Count { tag: a, threshold },
            1 => Instruction::Compare { tag: a, relation, value },
            2 => Instruction::Collect { count: a, result: b, operation, value },
            3 => Instruction::RChild { children: a, child },
            _ => Instruction::RCollect {
                children: a,
                reported: b,
                result: c,
                operation,
                child,
                value,
            },
        },
    )
}

fn locations() -> impl Strategy<Value = Locations> {
    let some = [
        Locations::CENTRE,
        Locations::INPUT,
        Locations::OUTPUT | Locations::CENTRE,
        Locations::INPUT | Locations::OUTPUT,
        Locations::ALL,
    ];
    select(some.to_vec())
}

proptest! {
    #[test]
    fn packets_are_parsed_as_they_were_written(
        instruction in instructions(any::<u64>(), any::<u64>(), any::<u64>()),
        locations in locations(),
        (error, protocol, computation) in any::<(bool, u8, u64)>(),
        rest in vec(any::<u8>(), 0..20),
    ) {
        let packet = EspPacket { locations, error, protocol, computation, instruction };
        let bytes = encoded(&packet);
        prop_assert_eq!(&summed(bytes.clone()), &bytes);
        let both = [&bytes, &rest[..]].concat();
        prop_assert_eq!(EspPacket::parse(&both), Ok((packet, &rest[..])));
    }

    #[test]
    fn arbitrary_bytes_are_an_error_or_are_written_unchanged(
        bytes in vec(any::<u8>(), 0..80),
        first in prop_oneof![Just(None), (1..6_u8, any::<[bool; 4]>(), 0..24_u8).prop_map(Some)],
    ) {
        let mut bytes = bytes;
        if let (Some((opcode, flags, operator)), [_, a, b, c, ..]) = (first, &mut bytes[..]) {
            let flags = flags.iter().zip([1, 2, 4, 0x80]).filter(|(is_set, _)| **is_set);
            (*a, *b, *c) = (opcode, flags.map(|(_, bit)| bit).sum(), operator);
        }
        for bytes in [bytes.clone(), repaired(bytes)] {
            if let Ok((packet, rest)) = EspPacket::parse(&bytes) {
                prop_assert_eq!([&encoded(&packet), rest].concat(), bytes);
            }
        }
    }
}

// Instructions.

#[test]
fn relations_and_operations_have_their_names_meaning() {
    let holds = |value, bound| RELATIONS.map(|relation| relation.holds(value, bound));
    assert_eq!(holds(3, 4), [true, true, false, true, false, false]);
    assert_eq!(holds(4, 4), [false, true, true, false, true, false]);
    assert_eq!(holds(u64::MAX, 4), [false, false, false, true, true, true]);
    let apply = |one, other| OPERATIONS.map(|operation| operation.apply(one, other));
    assert_eq!(apply(0b1100, 0b1010), [22, 10, 12, 0b1000, 0b1110, 0b0110]);
    assert_eq!(apply(u64::MAX, 2), [u64::MAX, 2, u64::MAX, 2, u64::MAX, u64::MAX - 2]);
}

#[test]
fn a_child_has_up_to_four_random_bits() {
    let all: Vec<u64> = (0..1000).map(|child| child_bits(7, child)).collect();
    assert!(all.iter().all(|bits| (1..=4).contains(&bits.count_ones())));
    // Four of 64 with repetition: 3.91 distinct bits on average, and each bit 61 times in a
    // thousand.
    let mean = all.iter().map(|bits| bits.count_ones()).sum::<u32>() as f64 / 1000.0;
    assert!((mean - 3.907).abs() < 0.03, "{mean}");
    for bit in 0..64 {
        let times = all.iter().filter(|bits| *bits >> bit & 1 == 1).count();
        assert!((30..100).contains(&times), "{bit}: {times}");
    }
    assert!((0..1000).all(|child| child_bits(8, child) != all[child as usize]));
    // The bits are part of the protocol: equal in all routers.
    assert_eq!(child_bits(0, 0), 1 << 47 | 1 << 25 | 1 << 6);
}

/// The table of the documentation, which has these numbers rounded.
#[test]
fn children_are_missed_with_the_documented_probability() {
    const COMPUTATIONS: u64 = 20_000;
    for (children, expected) in [(2, 0.00002), (4, 0.001), (8, 0.036), (12, 0.199), (16, 0.5)] {
        let is_missed = |computation: &u64| {
            let mut seen = 0;
            (0..children).any(|child| {
                let bits = child_bits(*computation, child);
                let is_known = seen | bits == seen;
                seen |= bits;
                is_known
            })
        };
        let missed = (0..COMPUTATIONS).filter(is_missed).count() as f64 / COMPUTATIONS as f64;
        assert!((missed - expected).abs() < 0.0005 + expected / 10.0, "{children}: {missed}");
    }
}

fn run(pair: &mut CheckedProcessor, instruction: Instruction, now: u64) -> (Action, EspPacket) {
    pair.execute(EspPacket::new(Locations::CENTRE, 1, instruction), SITE, now)
}

#[test]
fn packets_for_other_locations_and_after_errors_are_not_executed() {
    let mut pair = CheckedProcessor::new(4);
    let locations = [Location::Input, Location::Centre, Location::Output];
    for packet in one_of_each() {
        for location in locations {
            let site = Site { location, ..SITE };
            let others = locations.into_iter().filter(|other| *other != location);
            let elsewhere = others.map(Locations::from).reduce(|a, b| a | b).expect("two");
            let packet = EspPacket { locations: elsewhere, ..packet };
            assert_eq!(pair.execute(packet, site, 0), (Action::Forward, packet));
            let packet = EspPacket { locations: Locations::ALL, error: true, ..packet };
            assert_eq!(pair.execute(packet, site, 0), (Action::Forward, packet));
            assert!(pair.store.is_empty());
        }
    }
}

#[test]
fn a_counter_saturates() {
    let mut pair = CheckedProcessor::new(1);
    let greatest = Instruction::Compare { tag: 5, relation: Relation::Greater, value: u64::MAX };
    assert_eq!(run(&mut pair, greatest, 0).0, Action::Forward);
    let count = Instruction::Count { tag: 5, threshold: u32::MAX };
    assert_eq!([run(&mut pair, count, 1).0, run(&mut pair, count, 2).0], [Action::Drop; 2]);
    assert_eq!(pair.store.get(&5, Timestamp::from_nanos(2)), Some(&u64::MAX));
}

#[test]
fn writing_does_not_extend_the_lifetime() {
    let mut pair = CheckedProcessor::new(8);
    let count = Instruction::Count { tag: 1, threshold: 1 };
    let compare = |value| Instruction::Compare { tag: 2, relation: Relation::Greater, value };
    let child = |child| Instruction::RChild { children: 3, child };
    for (begin, now) in [(true, 0), (false, 400), (false, 999), (true, 1000), (false, 1999)] {
        let is_first = if begin { Action::Forward } else { Action::Drop };
        assert_eq!(run(&mut pair, count, now).0, is_first);
        // Each value exceeds the one before, but the binding is still the first one.
        assert_eq!(run(&mut pair, compare(now), now).0, Action::Forward);
        assert_eq!(run(&mut pair, child(7), now).0, is_first);
    }
    assert_eq!(pair.store.live(Timestamp::from_nanos(1999)), 3);
    assert_eq!(pair.store.live(Timestamp::from_nanos(2000)), 0);
}

#[test]
fn an_instruction_without_room_sets_the_error_bit_and_changes_nothing() {
    let others = |pair: &mut CheckedProcessor, tags: std::ops::Range<u64>| {
        tags.for_each(|tag| {
            assert!(!run(pair, Instruction::Count { tag, threshold: 9 }, 0).1.error);
        });
    };
    let operation = Operation::Sum;
    let (tag, value, relation) = (1, 5, Relation::Less);
    let collect = Instruction::Collect { count: 100, result: 1, operation, value };
    for (instruction, missing) in [
        (Instruction::Count { tag, threshold: 9 }, 1),
        (Instruction::Compare { tag, relation, value }, 1),
        (collect, 1),
        (Instruction::RChild { children: 1, child: 7 }, 1),
        (robust(1, 2, 3, 4), 2),
    ] {
        for room in 0..=missing {
            let mut pair = CheckedProcessor::new(16);
            others(&mut pair, 100..101);
            _ = run(&mut pair, Instruction::RChild { children: 1000, child: 7 }, 0);
            others(&mut pair, 101..115 - room);
            let before = pair.model.living(1);
            let instruction = match instruction {
                Instruction::RCollect { .. } => robust(1000, 2, 3, 4),
                other => other,
            };
            let (action, packet) = run(&mut pair, instruction, 1);
            assert_eq!(packet.error, room < missing, "{instruction:?}, room for {room}");
            if room < missing {
                assert_eq!((action, packet.instruction), (Action::Forward, instruction));
                assert_eq!(pair.model.living(1), before);
            }
            // There is room again when the other bindings have expired.
            let count = Instruction::Count { tag: 1, threshold: 1 };
            assert!(!run(&mut pair, count, 1000).1.error);
        }
    }
}

fn robust(children: u64, reported: u64, result: u64, value: u64) -> Instruction {
    let (operation, child) = (Operation::Sum, 7);
    Instruction::RCollect { children, reported, result, operation, child, value }
}

#[test]
fn uncounted_and_unannounced_reports_are_errors() {
    let mut pair = CheckedProcessor::new(8);
    let collect =
        |value| Instruction::Collect { count: 1, result: 2, operation: Operation::Max, value };
    assert!(run(&mut pair, collect(3), 0).1.error);
    _ = run(&mut pair, Instruction::Count { tag: 1, threshold: 1 }, 0);
    assert_eq!(run(&mut pair, collect(3), 0).0, Action::Forward);
    // All reports have arrived: another one is a duplicate, or was not counted.
    assert!(run(&mut pair, collect(9), 0).1.error);
    assert_eq!(pair.store.get(&2, Timestamp::ZERO), Some(&3));

    assert!(run(&mut pair, robust(4, 5, 6, 1), 0).1.error);
    _ = run(&mut pair, Instruction::RChild { children: 4, child: 8 }, 0);
    assert!(run(&mut pair, robust(4, 5, 6, 1), 0).1.error);
    _ = run(&mut pair, Instruction::RChild { children: 4, child: 7 }, 0);
    assert_eq!(run(&mut pair, robust(4, 5, 6, 1), 0).0, Action::Drop);
}

#[test]
fn a_router_reports_once_for_all_children() {
    let mut pair = CheckedProcessor::new(8);
    let announce = |child| Instruction::RChild { children: 1, child };
    let (children, reported, result, operation) = (1, 2, 3, Operation::Max);
    let report = |child, value| Instruction::RCollect {
        children,
        reported,
        result,
        operation,
        child,
        value,
    };
    for (child, is_new) in [(7, true), (8, true), (7, false), (9, true), (9, false), (8, false)] {
        let (action, packet) = run(&mut pair, announce(child), 0);
        assert_eq!(action == Action::Forward, is_new);
        assert_eq!(packet.instruction, announce(if is_new { SITE.identity } else { child }));
    }
    for (child, value, forwarded) in [
        (8, 20, None),
        (8, 99, None),
        (7, 10, None),
        (8, 98, None),
        (9, 15, Some(20)),
        (9, 97, None),
    ] {
        let (action, packet) = run(&mut pair, report(child, value), 1);
        let expected = forwarded.map(|value| report(SITE.identity, value));
        assert_eq!((action == Action::Forward).then_some(packet.instruction), expected);
        assert!(!packet.error);
    }
}

/// Steps of a test: a packet, the site that receives it, and the time since the last step, which
/// may be negative.
fn steps() -> impl Strategy<Value = Vec<(EspPacket, Site, i64)>> {
    let few = prop_oneof![4 => 0..6_u64, 1 => select(&[u64::MAX, 1 << 63][..])];
    let values = prop_oneof![3 => 0..10_u64, 1 => select(&[u64::MAX, u64::MAX - 1, 1 << 63][..])];
    let flags = (prop_oneof![8 => Just(Locations::CENTRE), 1 => locations()], 0..20_u8, 0..3_u64);
    let packet = (flags, instructions(few.clone(), few, values)).prop_map(
        |((locations, error, computation), instruction)| EspPacket {
            error: error == 0,
            ..EspPacket::new(locations, computation, instruction)
        },
    );
    let site = prop_oneof![9 => Just(Location::Centre), 1 => Just(Location::Input)]
        .prop_map(|location| Site { location, ..SITE });
    let later = prop_oneof![10 => 0..60_i64, 2 => 300..1200_i64, 1 => -1500..0_i64];
    vec((packet, site, later), 1..if cfg!(miri) { 20 } else { 200 })
}

proptest! {
    #[test]
    fn instructions_match_the_reference_model(capacity in 1..9_usize, steps in steps()) {
        let (mut pair, mut now) = (CheckedProcessor::new(capacity), 0_u64);
        for (packet, site, later) in steps {
            now = now.saturating_add_signed(later);
            _ = pair.execute(packet, site, now);
        }
    }
}

/// Equal tags have no use, but need the room of one binding only.
#[test]
fn equal_tags_need_one_binding() {
    let mut store: EphemeralStore = EphemeralStore::new(2, Duration::from_secs(10)).unwrap();
    let mut run = |instruction| {
        let mut packet = EspPacket::new(Locations::CENTRE, 1, instruction);
        let action = execute(&mut store, &mut packet, SITE, Timestamp::ZERO);
        (action, packet.error)
    };
    assert_eq!(run(Instruction::RChild { children: 1, child: 5 }), (Action::Forward, false));
    let (operation, child) = (Operation::Sum, 5);
    let report =
        Instruction::RCollect { children: 1, reported: 2, result: 2, operation, child, value: 9 };
    assert!(!run(report).1);
}
