//! A reference model of `dml::Receiver`: checksums word by word, regions one by one.

pub mod frames;

use flowtable::papers::dml::{
    BufferTooSmall, DmlHeader, Kind, ReceiveError, Received, Receiver, Region,
};

/// The Internet checksum of RFC 1071, word by word.
pub fn checksum(bytes: &[u8]) -> u16 {
    let sum = bytes.chunks(2).fold(0_u32, |sum, pair| {
        let word = u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
        let sum = sum + u32::from(word);
        (sum & 0xffff) + (sum >> 16)
    });
    sum as u16
}

/// The copied data and the sum of each region.
type Outcome = Result<(Vec<u8>, Vec<(Region, u16)>), ReceiveError>;

/// The reference model: does region by region what `Receiver` does in one pass.
fn receive(header: &DmlHeader<'_>, packet: &[u8], room: usize) -> Outcome {
    if let Some(region) = header.regions().find(|region| region.slice(packet).is_none()) {
        return Err(ReceiveError::OutOfPacket(region));
    }
    let mut times = vec![0_u8; packet.len()];
    for region in header.regions().filter(|region| region.kind == Kind::DATA) {
        let times = &mut times[region.offset as usize..][..region.length as usize];
        times.iter_mut().for_each(|times| *times += 1);
    }
    if let Some(at) = times.iter().position(|times| *times > 1) {
        return Err(ReceiveError::DataOverlaps { at: at as u32 });
    }
    let copied = packet.iter().zip(times).filter(|(_, times)| *times == 1);
    let data: Vec<u8> = copied.map(|(byte, _)| *byte).collect();
    if data.len() > room {
        return Err(ReceiveError::BufferTooSmall(BufferTooSmall {
            needed: data.len(),
            capacity: room,
        }));
    }
    let sums = header.regions().filter(|region| region.kind == Kind::CHECKSUM);
    Ok((data, sums.map(|region| (region, checksum(region.slice(packet).unwrap()))).collect()))
}

/// Receives with `receiver` and with the reference model, and compares results and data.
pub fn receive_checked(
    receiver: &mut Receiver,
    header: &DmlHeader<'_>,
    packet: &[u8],
    room: usize,
) -> Result<(), ReceiveError> {
    let mut destination = vec![0xa5; room];
    let expected = receive(header, packet, room);
    let received = receiver.receive(header, packet, &mut destination);
    let received = received.map(|Received { copied, checksums, .. }| {
        (copied, checksums.iter().map(|it| (it.region, it.checksum.sum())).collect::<Vec<_>>())
    });
    let copied = received.as_ref().map_or(0, |(copied, _)| *copied);
    let (data, untouched) = destination.split_at(copied);
    assert!(untouched.iter().all(|byte| *byte == 0xa5));
    assert_eq!(received.map(|(_, sums)| (data.to_vec(), sums)), expected);
    expected.map(drop)
}
