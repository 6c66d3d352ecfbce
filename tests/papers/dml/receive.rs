//! Packets received in one pass, against a reference model with one pass per region.

use flowtable::papers::dml::{
    BufferTooSmall, DmlBuilder, DmlHeader, Kind, ReceiveError, Receiver, Region,
};
use model::alloc;
use model::cases;
use model::dml::frames::{bytes, frame};
use model::dml::receive_checked;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Random bytes, only zeros, or only ones.
fn packet(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => vec(any::<u8>(), 0..longest),
        1 => (0..longest).prop_map(|length| vec![0; length]),
        1 => (0..longest).prop_map(|length| vec![0xff; length]),
    ]
}

/// Checksum regions anywhere, and data regions that rarely overlap: `cuts` are their ends.
fn regions_of(
    length: usize,
    sums: &[(Index, Index)],
    cuts: &[Index],
    wild: Option<(Index, Index)>,
) -> Vec<Region> {
    let region =
        |kind, a: usize, b: usize| Region::new(kind, a.min(b) as u32, a.abs_diff(b) as u32);
    let at = |index: &Index| index.index(length + 1);
    let mut cuts: Vec<usize> = cuts.iter().map(at).collect();
    cuts.sort_unstable();
    let data = cuts.chunks_exact(2).map(|cut| region(Kind::DATA, cut[0], cut[1]));
    let sums = sums.iter().map(|(a, b)| region(Kind::CHECKSUM, at(a), at(b)));
    let wild = wild.iter().map(|(a, b)| region(Kind::DATA, at(a), at(b)));
    // Ordered neither by offset nor by kind.
    let mut regions: Vec<Region> = data.chain(sums).chain(wild).collect();
    regions.sort_by_key(|region| region.length.wrapping_mul(0x9e37_79b9));
    regions
}

fn ends() -> impl Strategy<Value = (Index, Index)> {
    (any::<Index>(), any::<Index>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(2000, 20)))]

    #[test]
    fn one_pass_equals_a_pass_per_region(
        packets in vec((
            prop_oneof![packet(40), packet(2000)],
            vec(ends(), 0..5),
            vec(any::<Index>(), 0..8),
            proptest::option::weighted(0.1, ends()),
            prop_oneof![4 => Just(0), 1 => -3..4_isize],
        ), 1..4)
    ) {
        let mut receiver = Receiver::new();
        for (packet, sums, cuts, wild, more) in packets {
            let regions = regions_of(packet.len(), &sums, &cuts, wild);
            let frame = frame(&regions, &packet);
            let (header, packet) = DmlHeader::parse(&frame).unwrap();
            let data = header.regions().filter(|region| region.kind == Kind::DATA);
            let data: u64 = data.map(|region| u64::from(region.length)).sum();
            let room = (data as usize).saturating_add_signed(more);
            let _ = receive_checked(&mut receiver, &header, packet, room);
            if let Some(shorter) = packet.len().checked_sub(1) {
                let _ = receive_checked(&mut receiver, &header, &packet[..shorter], room);
            }
        }
    }
}

/// Receives a packet and compares the result with that of the reference model.
fn received(regions: &[Region], packet: &[u8], room: usize) -> Result<(), ReceiveError> {
    let frame = frame(regions, packet);
    let (header, packet) = DmlHeader::parse(&frame).unwrap();
    receive_checked(&mut Receiver::new(), &header, packet, room)
}

#[test]
fn data_that_touches_is_copied_and_data_that_overlaps_is_not() {
    let data = |offset, length| Region::new(Kind::DATA, offset, length);
    let packet = bytes(20);
    // In any order; empty regions do not overlap others.
    assert_eq!(received(&[data(5, 3), data(0, 5), data(8, 1)], &packet, 9), Ok(()));
    assert_eq!(received(&[data(0, 5), data(3, 0), data(5, 0), data(20, 0)], &packet, 5), Ok(()));
    assert_eq!(received(&[], &packet, 0), Ok(()));
    assert_eq!(received(&[data(0, 20)], &packet, 20), Ok(()));
    for (regions, at) in [
        ([data(0, 5), data(4, 5)], 4),
        ([data(4, 5), data(0, 5)], 4),
        ([data(0, 20), data(7, 1)], 7),
        ([data(3, 2), data(3, 2)], 3),
        ([data(3, 2), data(3, 9)], 3),
    ] {
        assert_eq!(received(&regions, &packet, 20), Err(ReceiveError::DataOverlaps { at }));
        // An overlap is reported even if the buffer is too small, too.
        assert_eq!(received(&regions, &packet, 0), Err(ReceiveError::DataOverlaps { at }));
    }
    let no_room = BufferTooSmall { needed: 6, capacity: 5 };
    assert_eq!(received(&[data(1, 4), data(9, 2)], &packet, 5), Err(no_room.into()));
}

#[test]
fn sums_of_nested_layers_overlap() {
    let packet = bytes(200);
    let sum = |offset, length| Region::new(Kind::CHECKSUM, offset, length);
    let data = Region::new(Kind::DATA, 51, 100);
    assert_eq!(received(&[data, sum(20, 180), sum(0, 20), sum(0, 200)], &packet, 100), Ok(()));
    assert_eq!(received(&[sum(51, 100), data, sum(51, 100), sum(52, 99)], &packet, 100), Ok(()));
    assert_eq!(received(&[sum(0, 52), sum(150, 50), sum(70, 3), data], &packet, 100), Ok(()));
    assert_eq!(received(&[sum(200, 0), sum(7, 0), data, sum(0, 0)], &packet, 100), Ok(()));
    // The greatest number of regions, most of the packet each, some with odd lengths.
    let all: Vec<Region> = (0..255).map(|number| sum(number % 3, 190 + number % 7)).collect();
    assert_eq!(received(&all, &packet, 0), Ok(()));
}

#[test]
fn a_sum_of_zeros_differs_from_a_sum_of_ones() {
    // The sum of the bytes before the zeros is not zero; the bytes after them are zero modulo
    // 65,535.
    let mut packet = vec![0x12, 0x34, 0, 0, 0, 0, 0xff, 0xff, 0x56];
    let sum = |offset, length| Region::new(Kind::CHECKSUM, offset, length);
    let regions = [sum(0, 9), sum(2, 4), sum(3, 2), sum(6, 2), sum(5, 3), sum(5, 4)];
    assert_eq!(received(&regions, &packet, 0), Ok(()));
    packet.insert(0, 0);
    assert_eq!(
        received(&regions.map(|sum| Region { offset: sum.offset + 1, ..sum }), &packet, 0),
        Ok(())
    );
}

#[test]
fn a_packet_that_is_shorter_than_the_parsed_one_is_refused() {
    let key = Region::new(Kind::KEY, 8, 2);
    let frame = frame(&[Region::new(Kind::DATA, 0, 4), key], &bytes(10));
    let (header, packet) = DmlHeader::parse(&frame).unwrap();
    let mut to = [7; 10];
    let mut receiver = Receiver::new();
    let error = receiver.receive(&header, &packet[..9], &mut to).unwrap_err();
    assert_eq!((error, to), (ReceiveError::OutOfPacket(key), [7; 10]));
    // A longer packet has the same regions.
    let received = receiver.receive(&header, &[1; 11], &mut to).unwrap();
    assert_eq!((received.copied, received.checksums.len()), (4, 0));
    assert_eq!(to, [1, 1, 1, 1, 7, 7, 7, 7, 7, 7]);
}

#[test]
fn neither_a_receiver_nor_a_cleared_builder_allocates() {
    assert!(size_of::<Receiver>() <= 9 * 1024);
    let all: Vec<Region> = (0..255).map(|at| Region::new(Kind::CHECKSUM, at, 9)).collect();
    let (large, small) = (frame(&all, &[1; 300]), frame(&all[..9], &[1; 300]));
    let (large, small) = (DmlHeader::parse(&large).unwrap(), DmlHeader::parse(&small).unwrap());
    let (mut dml, mut out) = (DmlBuilder::from(large.0), vec![0; 4000]);
    let ((), usage) = alloc::measure(|| {
        let mut receiver = Receiver::new();
        for (header, packet) in [small, large, small] {
            let received = receiver.receive(&header, packet, &mut []).unwrap();
            assert_eq!(received.checksums.len(), header.regions().len());
            dml.clear();
            header.regions().for_each(|region| dml.add(region).unwrap());
            dml.write_to(&mut out).unwrap();
        }
    });
    assert_eq!(usage.allocations, 0);
}

#[test]
fn the_greatest_number_of_regions_covers_a_large_packet() {
    let packet = bytes(if cfg!(miri) { 500 } else { 65_535 });
    let length = packet.len() as u32;
    let sum = |at| Region::new(Kind::CHECKSUM, at, length - 2 * at);
    let all: Vec<Region> = (0..255).map(sum).collect();
    assert_eq!(received(&all, &packet, 0), Ok(()));
    let data = |at: u32| Region::new(Kind::DATA, 2 * at, 1);
    let all: Vec<Region> = (0..255).map(data).collect();
    assert_eq!(received(&all, &packet, 255), Ok(()));
    let no_room = BufferTooSmall { needed: 255, capacity: 254 };
    assert_eq!(received(&all, &packet, 254), Err(no_room.into()));
}
