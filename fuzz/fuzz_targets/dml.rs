//! Arbitrary bytes as a frame with a data manipulation header: an error, or regions within the
//! packet. Receiving equals the reference model, and a parsed header is written unchanged.
#![no_main]

use flowtable::papers::dml::{Checksum, DmlBuilder, DmlHeader, Receiver, Region};
use libfuzzer_sys::fuzz_target;
use model::dml::receive_checked;

// The first byte is the size of the buffer, the others are the frame.
fuzz_target!(|data: &[u8]| {
    let Some((room, frame)) = data.split_first() else { return };
    let Ok((header, packet)) = DmlHeader::parse(frame) else { return };
    for region in header.regions() {
        let slice = region.slice(packet).expect("the region is within the packet");
        assert_eq!(slice.len(), region.length as usize);
        let mut copy = vec![0; slice.len()];
        assert_eq!(Checksum::copying(slice, &mut copy), Ok(Checksum::of(slice)));
        assert_eq!(copy, slice);
    }
    write_again(frame, &header);
    let mut receiver = Receiver::new();
    let _ = receive_checked(&mut receiver, &header, packet, usize::from(*room));
    let _ = receive_checked(&mut receiver, &header, packet, packet.len());
    let _ = receive_checked(&mut receiver, &header, &packet[..packet.len() / 2], packet.len());
});

/// Writes a parsed header unchanged, and parses it again after another header.
fn write_again(frame: &[u8], header: &DmlHeader<'_>) {
    let mut dml = DmlBuilder::from(*header);
    let mut again = vec![0; dml.encoded_len()];
    assert_eq!(dml.write_to(&mut again), Ok(again.len()));
    assert_eq!(again, frame[..again.len()]);
    dml.push_header(3).expect("the packet is short");
    assert_eq!(dml.write_to(&mut again), Ok(again.len()));
    let reach = dml.regions().map(|region| region.end()).max().unwrap_or(0);
    again.resize(again.len() + reach as usize, 0);
    let (moved, _) = DmlHeader::parse(&again).expect("the length is consistent");
    let expected = |region: Region| Region { offset: region.offset + 3, ..region };
    assert!(moved.regions().eq(header.regions().map(expected)));
}
