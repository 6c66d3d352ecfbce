//! Arbitrary bytes as packets of ephemeral state processing: an error, or a packet that is written
//! unchanged, and that a small store executes as the reference model does.
#![no_main]

use flowtable::papers::esp::{EspPacket, Location, Site};
use libfuzzer_sys::fuzz_target;
use model::esp::CheckedProcessor;
use model::esp::repair::{narrowed, repaired};

/// The maximum number of packets.
const MANY: usize = 100;

// The first byte is the capacity. Before each packet are the time since the previous one, and flags
// for the repair of its bytes.
fuzz_target!(|data: &[u8]| {
    let Some((room, mut rest)) = data.split_first() else { return };
    let mut pair = CheckedProcessor::new(1 + usize::from(room % 8));
    let mut now = 0_u64;
    for _ in 0..MANY {
        let [later, how, bytes @ ..] = rest else { return };
        let bytes = match how % 4 {
            0 => bytes.to_vec(),
            1 => repaired(bytes.to_vec()),
            _ => repaired(narrowed(bytes.to_vec())),
        };
        let Ok((packet, rest_of_packet)) = EspPacket::parse(&bytes) else { return };
        let mut again = vec![0; packet.encoded_len()];
        assert_eq!(packet.write_to(&mut again), Ok(again.len()));
        assert_eq!([&again, rest_of_packet].concat(), bytes);

        // One in eight goes back in time.
        let period = u64::from(*later) * 8;
        now = if how & 0x70 == 0 { now.saturating_sub(period) } else { now + period };
        let location = if how & 0x80 == 0 { Location::Centre } else { Location::Output };
        let (_, executed) = pair.execute(packet, Site { location, identity: 3 }, now);
        assert_eq!(executed.encoded_len(), packet.encoded_len());
        rest = &rest[rest.len() - rest_of_packet.len()..];
    }
});
