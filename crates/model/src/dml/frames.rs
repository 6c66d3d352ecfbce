//! Frames with a data manipulation header, byte by byte.

use flowtable::papers::dml::Region;

/// A frame with these regions and this packet, which need not be valid.
pub fn frame(regions: &[Region], packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![1, regions.len() as u8, 0x08, 0x00];
    for region in regions {
        frame.extend(region.kind.0.to_be_bytes());
        frame.extend(region.flags.to_be_bytes());
        frame.extend(region.offset.to_be_bytes());
        frame.extend(region.length.to_be_bytes());
    }
    frame.extend(packet);
    frame
}

/// Bytes that differ from their neighbours, both odd and even.
pub fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 151 + i / 7) as u8).collect()
}
