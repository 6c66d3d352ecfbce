//! The data manipulation header: checksums against RFC 1071, offsets in random stacks of headers,
//! and arbitrary bytes as a header. Receiving is in `receive`.

use core::ops::Range;
use model::cases;

use flowtable::papers::dml::{
    BufferTooSmall, BuildError, Checksum, DispatchFlags, DmlBuilder, DmlHeader, Kind, MAX_REGIONS,
    ParseError, ReceiveError, Receiver, Region,
};
use model::dml::frames::{bytes, frame};
use model::dml::{checksum, receive_checked};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

const IPV4: u16 = 0x0800;

// Checksums.

#[test]
fn checksums_match_the_examples_of_rfc_1071() {
    let packet = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(Checksum::of(&packet).sum(), 0xddf2);
    assert_eq!(Checksum::of(&packet).field(), [0x22, 0x0d]);
    // In two parts, the second of which begins at an odd offset.
    let (first, second) = (Checksum::of(&packet[..3]), Checksum::of(&packet[3..]));
    assert_eq!((first.sum(), second.sum()), (0xf201, 0xf0eb));
    assert_eq!(first.plus(second.at_offset(3)).sum(), 0xddf2);
    // Swapped bytes have a swapped sum.
    let swapped: Vec<u8> = packet.chunks(2).flat_map(|word| [word[1], word[0]]).collect();
    assert_eq!(Checksum::of(&swapped).sum(), 0xf2dd);
}

#[test]
fn an_ip_header_verifies() {
    let header = *b"\x45\0\0\x73\0\0\x40\0\x40\x11\xb8\x61\xc0\xa8\0\x01\xc0\xa8\0\xc7";
    assert!(Checksum::of(&header).verifies());
    let mut blank = header;
    blank[10..12].fill(0);
    assert_eq!(Checksum::of(&blank).field(), [0xb8, 0x61]);
    for bit in 0..8 * header.len() {
        let mut damaged = header;
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(!Checksum::of(&damaged).verifies(), "bit {bit}");
    }
}

#[test]
fn a_sum_of_zeros_is_not_all_ones() {
    for length in [0, 1, 2, 63, 64, 65, 200] {
        assert_eq!(Checksum::of(&vec![0; length]).sum(), 0, "{length}");
        assert!(!Checksum::of(&vec![0; length]).verifies(), "{length}");
    }
    // Both are zero modulo 65,535; only one of them has bytes.
    assert!(Checksum::of(&[0xff, 0xff]).verifies());
    let ones = Checksum::of(&[0xff; 2]);
    assert_eq!(ones.plus(ones), ones);
    assert_eq!(ones.plus(Checksum::default()), ones);
    assert_eq!(Checksum::of(&[0xff, 0xfe, 0x00, 0x01]), ones);
    assert_eq!(format!("{ones:?}"), "Checksum(0xffff)");
}

#[test]
fn sums_of_short_slices_are_correct_at_every_length_and_alignment() {
    let (ones, mixed) = (vec![0xff; 400], bytes(400));
    for bytes in [&ones, &mixed] {
        for begin in 0..17 {
            for length in 0..if cfg!(miri) { 70 } else { 300 } {
                let bytes = &bytes[begin..begin + length];
                assert_eq!(Checksum::of(bytes).sum(), checksum(bytes), "{begin} {length}");
                let mut copy = vec![0; length + 3];
                assert_eq!(Checksum::copying(bytes, &mut copy), Ok(Checksum::of(bytes)));
                assert_eq!((&copy[..length], &copy[length..]), (bytes, &[0; 3][..]));
            }
        }
    }
}

#[test]
fn sums_of_slices_longer_than_a_block_of_lanes_are_correct() {
    if cfg!(miri) {
        return;
    }
    for length in [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, (2 << 20) + 67] {
        for bytes in [vec![0xff; length], bytes(length)] {
            let mut copy = vec![0; length];
            assert_eq!(Checksum::of(&bytes).sum(), checksum(&bytes), "{length}");
            assert_eq!(Checksum::copying(&bytes, &mut copy).unwrap().sum(), checksum(&bytes));
            assert!(copy == bytes, "{length}");
        }
    }
}

#[test]
fn a_copy_into_a_short_buffer_copies_nothing() {
    let mut to = [7; 99];
    assert_eq!(
        Checksum::copying(&[1; 100], &mut to),
        Err(BufferTooSmall { needed: 100, capacity: 99 })
    );
    assert_eq!(to, [7; 99]);
    assert_eq!(
        BufferTooSmall { needed: 100, capacity: 99 }.to_string(),
        "100 bytes do not fit into 99"
    );
}

proptest! {
    #[test]
    fn sums_of_parts_add_up(
        packet in vec(any::<u8>(), 0..600), cuts in vec(any::<Index>(), 0..6),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(packet.len() + 1)).collect();
        cuts.extend([0, packet.len()]);
        cuts.sort_unstable();
        let sum = cuts.windows(2).fold(Checksum::default(), |sum, cut| {
            sum.plus(Checksum::of(&packet[cut[0]..cut[1]]).at_offset(cut[0]))
        });
        prop_assert_eq!(sum.sum(), checksum(&packet));
    }
}

// Stacks of headers.

/// The header, trailer and regions that a layer adds to a packet.
#[derive(Clone, Debug)]
struct Layer {
    header: u8,
    trailer: u8,
    /// Kind, flags, and both ends.
    regions: Vec<(u16, u16, Index, Index)>,
}

fn layers() -> impl Strategy<Value = Vec<Layer>> {
    let region =
        (prop_oneof![0..9_u16, any::<u16>()], any::<u16>(), any::<Index>(), any::<Index>());
    let layer = (0..80_u8, prop_oneof![Just(0), 0..9_u8], vec(region, 0..5));
    let layer = layer.prop_map(|(header, trailer, regions)| Layer { header, trailer, regions });
    vec(layer, 0..12)
}

/// A reference model: a packet whose bytes are numbered in the order of their creation, and the
/// numbers in each region.
#[derive(Default)]
struct Model {
    packet: Vec<u32>,
    made: u32,
    regions: Vec<(Kind, u16, Vec<u32>)>,
}

impl Model {
    fn make(&mut self, count: u8) -> Range<u32> {
        let first = self.made;
        self.made += u32::from(count);
        first..self.made
    }

    fn step(&mut self, dml: &mut DmlBuilder, layer: &Layer) {
        let (header, trailer) = (self.make(layer.header), self.make(layer.trailer));
        self.packet.splice(0..0, header);
        self.packet.extend(trailer);
        dml.push_header(layer.header.into()).unwrap();
        for (kind, flags, a, b) in &layer.regions {
            let (a, b) = (a.index(self.packet.len() + 1), b.index(self.packet.len() + 1));
            let (begin, end) = (a.min(b), a.max(b));
            let region = Region::new(Kind(*kind), begin as u32, (end - begin) as u32);
            dml.add(Region { flags: *flags, ..region }).unwrap();
            self.regions.push((region.kind, *flags, self.packet[begin..end].to_vec()));
        }
    }

    /// The bytes with these numbers.
    fn bytes(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().map(|number| (number.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect()
    }

    fn check(&self, dml: &DmlBuilder) {
        assert_eq!(dml.regions().len(), self.regions.len());
        for (region, (kind, flags, numbers)) in dml.regions().zip(&self.regions) {
            assert_eq!((region.kind, region.flags), (*kind, *flags));
            let actual = &self.packet[region.offset as usize..][..region.length as usize];
            assert_eq!(actual, numbers, "{region}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(500, 5)))]

    #[test]
    fn regions_are_the_bytes_that_their_layer_added(layers in layers(), ethertype in any::<u16>()) {
        let (mut model, mut dml) = (Model::default(), DmlBuilder::new(ethertype));
        for layer in &layers {
            model.step(&mut dml, layer);
            model.check(&dml);
        }
        let packet = Model::bytes(&model.packet);
        let mut frame = vec![0xa5; dml.encoded_len() + packet.len()];
        prop_assert_eq!(dml.write_to(&mut frame), Ok(dml.encoded_len()));
        prop_assert!(frame[dml.encoded_len()..].iter().all(|byte| *byte == 0xa5));
        frame[dml.encoded_len()..].copy_from_slice(&packet);

        let (header, payload) = DmlHeader::parse(&frame).unwrap();
        prop_assert_eq!(payload, &packet);
        prop_assert_eq!(header.ethertype, ethertype);
        prop_assert_eq!(header.regions().len(), model.regions.len());
        for (region, (kind, flags, numbers)) in header.regions().zip(&model.regions) {
            prop_assert_eq!((region.kind, region.flags), (*kind, *flags));
            prop_assert_eq!(region.slice(payload), Some(&Model::bytes(numbers)[..]));
        }
        let expected: Vec<Region> = dml.regions().collect();
        prop_assert!(header.regions().rev().eq(expected.into_iter().rev()));
        let _ = receive_checked(&mut Receiver::new(), &header, payload, packet.len());

        // A truncated packet is an error if a region needs the missing bytes.
        let needed = dml.encoded_len() + reach(&dml);
        for length in 0..frame.len() {
            prop_assert_eq!(DmlHeader::parse(&frame[..length]).is_ok(), length >= needed);
        }
    }

    #[test]
    fn a_received_header_is_extended_by_further_layers(layers in layers(), more in layers()) {
        let (mut model, mut dml) = (Model::default(), DmlBuilder::new(IPV4));
        layers.iter().for_each(|layer| model.step(&mut dml, layer));
        let mut frame = vec![0; dml.encoded_len() + model.packet.len()];
        dml.write_to(&mut frame).unwrap();
        let (header, _) = DmlHeader::parse(&frame).unwrap();
        let mut dml = DmlBuilder::from(header);
        model.check(&dml);
        let mut again = vec![0; dml.encoded_len()];
        prop_assert_eq!(dml.write_to(&mut again), Ok(again.len()));
        prop_assert_eq!(&again, &frame[..again.len()]);
        for layer in &more {
            model.step(&mut dml, layer);
            model.check(&dml);
        }
    }
}

#[test]
fn a_header_has_up_to_255_regions() {
    let mut dml = DmlBuilder::new(IPV4);
    for number in 0..MAX_REGIONS as u32 {
        dml.push_header(1 + number % 3).unwrap();
        dml.add(Region::new(Kind::CHECKSUM, number % 2, 1)).unwrap();
    }
    assert_eq!(dml.add(Region::new(Kind::DATA, 0, 0)), Err(BuildError::TooMany));
    dml.push_header(1000).unwrap();
    let regions: Vec<Region> = dml.regions().collect();
    assert_eq!((regions.len(), dml.encoded_len()), (255, 4 + 255 * 12));
    // Later headers have 1 + number % 3 bytes each, and the last one has a thousand.
    for (number, region) in (0..).zip(&regions) {
        let above: u32 = (number + 1..255).map(|later| 1 + later % 3).sum();
        assert_eq!(region.offset, number % 2 + above + 1000, "{number}");
    }
    let packet = bytes(reach(&dml));
    let mut wire = vec![0; dml.encoded_len()];
    dml.write_to(&mut wire).unwrap();
    wire.extend(&packet);
    assert_eq!(wire, frame(&regions, &packet));
    let (header, packet) = DmlHeader::parse(&wire).unwrap();
    assert!(header.regions().eq(regions));
    receive_checked(&mut Receiver::new(), &header, packet, 0).unwrap();
}

#[test]
fn a_refused_region_or_header_changes_nothing() {
    const MOST: u32 = u32::MAX;
    let mut dml = DmlBuilder::new(IPV4);
    let far = |offset, length| Region::new(Kind::DATA, offset, length);
    assert_eq!(dml.add(far(MOST, 1)), Err(BuildError::TooFar));
    assert_eq!(dml.add(far(1, MOST)), Err(BuildError::TooFar));
    assert_eq!(dml.regions().len(), 0);
    dml.add(far(MOST - 12, 2)).unwrap();
    dml.add(far(3, 4)).unwrap();
    assert_eq!(dml.push_header(11), Err(BuildError::TooFar));
    assert!(dml.regions().eq([far(MOST - 12, 2), far(3, 4)]), "unmoved");
    dml.push_header(10).unwrap();
    assert!(dml.regions().eq([far(MOST - 2, 2), far(13, 4)]));
    assert_eq!(dml.push_header(1), Err(BuildError::TooFar));
    assert_eq!(dml.push_header(MOST), Err(BuildError::TooFar));
    dml.push_header(0).unwrap();
    dml.add(far(MOST, 0)).unwrap();
    assert!(dml.regions().eq([far(MOST - 2, 2), far(13, 4), far(MOST, 0)]));

    // A cleared builder has no regions.
    dml.clear();
    assert_eq!((dml.regions().len(), dml.encoded_len()), (0, 4));
    dml.push_header(MOST).unwrap();
    assert_eq!(dml.push_header(1), Err(BuildError::TooFar), "headers without regions");
    dml.add(far(0, MOST)).unwrap();
    assert!(dml.regions().eq([far(0, MOST)]));
}

#[test]
fn a_short_buffer_is_not_written() {
    let mut dml = DmlBuilder::new(IPV4);
    dml.add(Region::new(Kind::KEY, 1, 2)).unwrap();
    let mut out = [7; 17];
    for room in 0..16 {
        assert_eq!(
            dml.write_to(&mut out[..room]),
            Err(BufferTooSmall { needed: 16, capacity: room })
        );
    }
    assert_eq!(out, [7; 17]);
    assert_eq!(dml.write_to(&mut out), Ok(16));
    assert_eq!(&out, b"\x01\x01\x08\0\0\x02\0\0\0\0\0\x01\0\0\0\x02\x07");
}

#[test]
fn three_regions_of_tcp_take_40_bytes() {
    let mut dml = DmlBuilder::new(IPV4);
    dml.add(Region::new(Kind::DATA, 0, 100)).unwrap();
    dml.push_header(20).unwrap();
    dml.add(Region::new(Kind::CHECKSUM, 0, 120)).unwrap();
    dml.push_header(24).unwrap();
    dml.add(Region::new(Kind::CHECKSUM, 0, 24)).unwrap();
    assert_eq!(dml.encoded_len(), 20 + 20);
    let ranges: Vec<_> = dml.regions().map(|region| (region.offset, region.length)).collect();
    assert_eq!(ranges, [(44, 100), (24, 120), (0, 24)]);
}

// Invalid headers.

#[test]
fn invalid_headers_are_errors() {
    let region = Region::new(Kind::DATA, 2, 3);
    let good = frame(&[Region::new(Kind::KEY, 0, 0), region], b"12345");
    assert!(DmlHeader::parse(&good).is_ok());
    for given in 0..4 {
        let error = DmlHeader::parse(&good[..given]).unwrap_err();
        assert_eq!(error, ParseError::Truncated { needed: 4, given });
    }
    for given in 4..28 {
        let error = DmlHeader::parse(&good[..given]).unwrap_err();
        assert_eq!(error, ParseError::Truncated { needed: 28, given });
    }
    for packet in 0..5 {
        let error = DmlHeader::parse(&good[..28 + packet]).unwrap_err();
        assert_eq!(error, ParseError::OutOfPacket { region, packet });
    }
    for version in (0..=255).filter(|version| *version != 1) {
        let mut other = good.clone();
        other[0] = version;
        assert_eq!(DmlHeader::parse(&other).unwrap_err(), ParseError::Version(version));
    }
}

#[test]
fn offsets_and_lengths_do_not_overflow() {
    for (offset, length) in [
        (u32::MAX, 1),
        (1, u32::MAX),
        (u32::MAX, u32::MAX),
        (1 << 31, 1 << 31),
        (11, 0),
        (0, 11),
        (10, 1),
        (u32::MAX, 0),
    ] {
        let region = Region::new(Kind::CHECKSUM, offset, length);
        assert_eq!(region.slice(&[0; 10]), None);
        let frame = frame(&[region], &[0; 10]);
        let error = DmlHeader::parse(&frame).unwrap_err();
        assert_eq!(error, ParseError::OutOfPacket { region, packet: 10 });
    }
    let frame = frame(&[Region::new(Kind::DATA, 10, 0), Region::new(Kind::DATA, 0, 10)], &[0; 10]);
    assert!(DmlHeader::parse(&frame).is_ok());
}

#[test]
fn error_messages_describe_the_cause() {
    let region = Region::new(Kind(77), 2, 3);
    for (error, text) in [
        (
            ParseError::Truncated { needed: 28, given: 5 },
            "the header has at least 28 bytes, but 5 are given",
        ),
        (ParseError::Version(9), "version 9 is unknown"),
        (
            ParseError::OutOfPacket { region, packet: 4 },
            "kind 77 of 3 bytes at 2 ends beyond the packet of 4 bytes",
        ),
    ] {
        assert_eq!(error.to_string(), text);
    }
    assert_eq!(BuildError::TooMany.to_string(), "a header has at most 255 regions");
    assert_eq!(BuildError::TooFar.to_string(), "a packet ends at byte 2^32 - 1 at most");
    for (error, text) in [
        (ReceiveError::OutOfPacket(region), "kind 77 of 3 bytes at 2 ends beyond the packet"),
        (ReceiveError::DataOverlaps { at: 5 }, "byte 5 is in two regions of application data"),
        (BufferTooSmall { needed: 2, capacity: 1 }.into(), "2 bytes do not fit into 1"),
    ] {
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn kinds_have_names_and_unknown_kinds_are_preserved() {
    let names = ["checksum", "key", "decrypt", "destination", "data", "dispatch"];
    for (number, name) in (1..).zip(names) {
        assert_eq!(Kind(number).to_string(), name);
    }
    let mut dml = DmlBuilder::new(0x86dd);
    for number in [0, 7, 0x8000, u16::MAX] {
        assert_eq!(format!("{:?}", Kind(number)), format!("Kind(kind {number})"));
        dml.add(Region { flags: !number, ..Region::new(Kind(number), 0, 1) }).unwrap();
    }
    let mut frame = vec![0; dml.encoded_len() + 1];
    dml.write_to(&mut frame).unwrap();
    let (header, packet) = DmlHeader::parse(&frame).unwrap();
    for number in [0, 7, 0x8000, u16::MAX] {
        let region = header.find(Kind(number)).unwrap();
        assert_eq!((region.kind.0, region.flags, region.length), (number, !number, 1));
    }
    assert_eq!(header.find(Kind::DATA), None);
    assert_eq!((header.ethertype, packet.len()), (0x86dd, 1));
    assert!(DmlBuilder::from(header).regions().eq(header.regions()));
    receive_checked(&mut Receiver::new(), &header, packet, 0).unwrap();
}

#[test]
fn the_first_region_of_a_kind_is_found() {
    let [a, b, c] = [0, 1, 2].map(|at| Region::new(Kind(4 + at % 2), at.into(), 1));
    let frame = frame(&[a, b, c], b"abc");
    let (header, packet) = DmlHeader::parse(&frame).unwrap();
    assert_eq!(header.find(Kind::DESTINATION), Some(a));
    assert!(header.regions().rev().eq([c, b, a]));
    assert_eq!(header.regions().len(), 3);
    assert_eq!(c.slice(packet), Some(&b"c"[..]));
    let mut regions = header.regions();
    assert_eq!((regions.next_back(), regions.nth(1), regions.next()), (Some(c), Some(b), None));
    assert!(format!("{header:?}").contains("Kind(data)"));
}

#[test]
fn dispatch_flags_are_bits() {
    let flags = DispatchFlags::PROCESS | DispatchFlags::SILENT;
    assert_eq!(flags, DispatchFlags(3));
    assert_eq!(DispatchFlags::LATER, DispatchFlags(4));
}

/// The greatest end of a region.
fn reach(dml: &DmlBuilder) -> usize {
    dml.regions().map(|region| region.end()).max().unwrap_or(0) as usize
}

/// Numbers at which arithmetic may overflow, and small ones.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..40_u32, 1 => select(vec![u32::MAX, u32::MAX - 1, 1 << 31, 1 << 16])]
}

fn region() -> impl Strategy<Value = Region> {
    (prop_oneof![1..7_u16, any::<u16>()], any::<u16>(), number(), number()).prop_map(
        |(kind, flags, offset, length)| Region { kind: Kind(kind), flags, offset, length },
    )
}

/// Checks that any bytes are a header whose regions are within its packet, or a correct error.
fn check_any_bytes(frame: &[u8]) {
    let count = frame.get(1).map_or(0, |count| usize::from(*count));
    let (needed, given) = (4 + 12 * count, frame.len());
    match DmlHeader::parse(frame) {
        Ok((header, packet)) => {
            assert_eq!(header.regions().len(), count);
            assert_eq!(packet, &frame[needed..]);
            for region in header.regions() {
                let slice = region.slice(packet).unwrap();
                assert_eq!(slice.len(), region.length as usize);
                assert!(region.offset as usize + slice.len() <= packet.len());
            }
            let mut again = vec![0; needed];
            assert_eq!(DmlBuilder::from(header).write_to(&mut again), Ok(needed));
            assert_eq!(again, frame[..needed]);
            for room in [0, packet.len() / 2, packet.len()] {
                let _ = receive_checked(&mut Receiver::new(), &header, packet, room);
            }
        }
        Err(error) => match error {
            ParseError::Truncated { needed: least, given: available } => {
                assert_eq!((least, available), (if given < 4 { 4 } else { needed }, given));
                assert!(given < least);
            }
            ParseError::Version(version) => assert!(version == frame[0] && version != 1),
            ParseError::OutOfPacket { region, packet } => {
                assert_eq!(packet, given - needed);
                assert!(region.end() > packet as u64);
            }
            other => panic!("{other:?}"),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(2000, 20)))]

    #[test]
    fn arbitrary_bytes_are_a_header_or_an_error(frame in vec(any::<u8>(), 0..100)) {
        check_any_bytes(&frame);
    }

    #[test]
    fn arbitrary_regions_are_inside_the_packet_or_an_error(
        regions in vec(region(), 0..6), packet in vec(any::<u8>(), 0..80), cut in any::<Index>()
    ) {
        let frame = frame(&regions, &packet);
        check_any_bytes(&frame);
        check_any_bytes(&frame[..cut.index(frame.len())]);
    }
}
