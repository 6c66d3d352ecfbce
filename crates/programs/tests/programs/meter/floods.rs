//! Floods that are answered: they evict no established connection.

use capture::data::{ETHERNET, IP_AT, LITTLE, MICROSECONDS, pcap, segment, udp};

use super::Record;
use crate::run::Run;

const ESTABLISHED: u32 = 1000;
const FLOOD: u32 = 10_000;

/// A packet of a flood: from the client or not, and its flags; `None` for UDP.
type Packet = (bool, Option<&'static str>);

/// Returns a frame of the client with this address.
fn frame(client: u32, (from_client, flags): Packet) -> Vec<u8> {
    let mut frame = match (flags, from_client) {
        (Some(flags), _) => segment(from_client, flags),
        (None, true) => udp(40_000, 53, 0),
        (None, false) => udp(53, 40_000, 0),
    };
    let at = IP_AT + if from_client { 12 } else { 16 };
    frame[at..at + 4].copy_from_slice(&client.to_be_bytes());
    if flags.is_none() {
        // The other address is fixed.
        let at = IP_AT + if from_client { 16 } else { 12 };
        frame[at..at + 4].copy_from_slice(&[198, 51, 100, 2]);
    }
    frame
}

/// Meters connections, a flood of exchanges, and the connections again, in a cache of twice the
/// size. Returns the number of connections that were lost.
fn lost(flood: &[Packet], arguments: &[&str]) -> usize {
    let mut frames = Vec::new();
    let opens = [(true, "S"), (false, "SA"), (true, "A"), (true, "A"), (false, "A")];
    let opens = opens.map(|(from_client, flags)| (from_client, Some(flags)));
    for client in 0..ESTABLISHED {
        frames.extend(opens.map(|packet| frame(0x0a00_0000 + client, packet)));
    }
    for client in 0..FLOOD {
        frames.extend(flood.iter().map(|packet| frame(0x2000_0000 + client, *packet)));
    }
    for client in 0..ESTABLISHED {
        frames.push(frame(0x0a00_0000 + client, (true, Some("A"))));
    }
    let records: Vec<_> = frames.iter().map(|frame| (1, 0, &frame[..])).collect();
    let capture = pcap(LITTLE, MICROSECONDS, ETHERNET, &records);
    let arguments = [&["--json", "-", "--capacity", "2000"], arguments].concat();
    let run = Run::piped(&capture, usize::MAX, &arguments);
    assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
    assert!(run.count("were evicted") >= u64::from(FLOOD) - 1000, "{run:?}");
    let records = Record::all(&run);
    let established = records.iter().filter(|record| record.src.starts_with("10."));
    let whole = established.filter(|record| record.packets() == [4, 2]);
    ESTABLISHED as usize - whole.count()
}

#[test]
fn answered_floods_evict_no_established_connection() {
    let tcp = |from_client, flags| (from_client, Some(flags));
    let floods: [&[Packet]; 6] = [
        &[tcp(true, "S")],
        &[tcp(true, "S"), tcp(false, "SA")],
        &[tcp(true, "A")],
        &[(true, None), (false, None)],
        &[tcp(true, "A"), tcp(false, "RA")],
        &[tcp(true, "S"), tcp(false, "RA")],
    ];
    for timeouts in ["off", "meter", "conntrack"] {
        for flood in floods {
            assert_eq!(lost(flood, &["--timeouts", timeouts]), 0, "{timeouts} {flood:?}");
        }
    }
    // Complete handshakes evict those connections first that were idle for longest: all of them.
    let handshake = [tcp(true, "S"), tcp(false, "SA"), tcp(true, "A")];
    assert_eq!(lost(&handshake, &[]), ESTABLISHED as usize);
}
