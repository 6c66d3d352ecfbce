//! Errors of ICMP, joined to the flows that they quote, or not.

use capture::data::{ETHERNET, IP_AT, LITTLE, MICROSECONDS, pcap, segment, tcp6, udp};

use super::{Record, metered};
use crate::run::Run;

const JOINED: [&str; 1] = ["--join-errors"];

/// Returns an error about a packet, from a router to the sender of that packet, which quotes the IP
/// header and `length` bytes behind it.
fn error(about: &[u8], [kind, code]: [u8; 2], length: usize) -> Vec<u8> {
    let ip = &about[IP_AT..];
    let is_v6 = ip[0] >> 4 == 6;
    let header = if is_v6 { 40 } else { 20 };
    let quoted = &ip[..ip.len().min(header + length)];
    let mut out = match is_v6 {
        true => tcp6(0, 0)[..IP_AT + 40].to_vec(),
        false => udp(0, 0, 0)[..IP_AT + 20].to_vec(),
    };
    let size = 8 + quoted.len() as u16;
    let of_ip = &mut out[IP_AT..];
    if is_v6 {
        (of_ip[6], of_ip[7]) = (58, 64);
        of_ip[4..6].copy_from_slice(&size.to_be_bytes());
        of_ip[8..24].fill(0x77);
        of_ip[24..40].copy_from_slice(&ip[8..24]);
    } else {
        of_ip[9] = 1;
        of_ip[2..4].copy_from_slice(&(20 + size).to_be_bytes());
        of_ip[12..16].fill(7);
        of_ip[16..20].copy_from_slice(&ip[12..16]);
    }
    out.extend([kind, code, 0, 0, 0, 0, 0, 0]);
    out.extend(quoted);
    out
}

/// Returns an echo request.
fn ping() -> Vec<u8> {
    let mut ping = udp(0x0800, 0, 8);
    ping[IP_AT + 9] = 1;
    ping[IP_AT + 24..IP_AT + 28].copy_from_slice(&[0, 9, 0, 1]);
    ping
}

/// Returns the packets of both directions, and the type and code of the second one.
fn joined(record: &Record) -> ([u64; 2], Option<u8>, Option<u8>) {
    let reverse = record.reverse.as_ref();
    let field = |field: fn(&super::Half) -> Option<u8>| reverse.and_then(field);
    (record.packets(), field(|half| half.icmp_type), field(|half| half.icmp_code))
}

#[test]
fn errors_count_in_the_flow_that_they_quote() {
    let v6 = tcp6(40_000, 443);
    let cases = [
        (udp(1000, 53, 8), [3, 3]),
        (udp(1000, 53, 8), [5, 1]),
        (segment(true, "S"), [11, 0]),
        (segment(true, "S"), [12, 0]),
        (v6.clone(), [1, 4]),
        (v6, [2, 0]),
        (ping(), [11, 0]),
    ];
    for (packet, [kind, code]) in cases {
        let error = error(&packet, [kind, code], 8);
        let frames = [(0, packet.clone()), (10, error.clone()), (20, error), (30, packet)];
        let records = metered(&frames, &JOINED);
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!(joined(&records[0]), ([2, 2], Some(kind), Some(code)));
        // Without the option, they are a flow of their own.
        let records = metered(&frames, &[]);
        assert_eq!(records.len(), 2, "{records:?}");
        assert_eq!(joined(&records[0]), ([2, 0], None, None));
        assert_eq!(records[1].packets(), [2, 0]);
    }
}

#[test]
fn the_direction_is_that_of_the_error() {
    let (syn, answer) = (segment(true, "S"), segment(false, "SA"));
    let frames = [(0, syn), (10, answer.clone()), (20, error(&answer, [3, 13], 8))];
    let records = metered(&frames, &JOINED);
    assert_eq!((records.len(), records[0].packets()), (1, [2, 1]));
    let forward = records[0].forward.as_ref().expect("it has packets");
    assert_eq!((forward.icmp_type, forward.icmp_code), (Some(3), Some(13)));
    assert_eq!((forward.tcp_flags.as_str(), forward.ip_bytes), ("......S.", 40 + 56));
}

/// An error is a flow of its own if the cache has no flow for it, or if its quotation is no error's
/// or has no ports.
#[test]
fn other_errors_are_flows_of_their_own() {
    let (query, other) = (udp(1000, 53, 8), udp(1000, 54, 8));
    let echo = error(&query, [8, 0], 8);
    let alone = [
        error(&other, [3, 3], 8),
        error(&query, [3, 3], 3),
        error(&query, [13, 0], 8),
        echo,
        error(&tcp6(1, 2), [128, 0], 8),
    ];
    for alone in alone {
        let records = metered(&[(0, query.clone()), (10, alone)], &JOINED);
        assert_eq!(records.len(), 2, "{records:?}");
    }
    // It neither begins a flow nor extends the time of one.
    let error = error(&query, [3, 3], 8);
    let frames = [(0, query.clone()), (50_000, error.clone()), (70_000, other), (70_001, error)];
    let records = metered(&frames, &[&JOINED[..], &["--idle", "60"]].concat());
    let summaries: Vec<_> = records.iter().map(Record::summary).collect();
    let silent = ([1, 1], "idle", "unreplied");
    assert_eq!(summaries[0], silent, "{records:?}");
    assert_eq!(records.len(), 3, "{records:?}");
}

/// An error whose time is doubtful waits for later packets, with its time and the quoted key.
#[test]
fn errors_of_doubtful_time_are_joined() {
    let query = udp(1000, 53, 8);
    let error = error(&query, [3, 3], 8);
    let late = (0..20).map(|number| (100_000 + number, udp(2000 + number as u16, 53, 8)));
    let frames: Vec<_> = [(0, query), (100_000, error)].into_iter().chain(late).collect();
    let records = metered(&frames, &JOINED);
    assert_eq!((records.len(), joined(&records[0])), (21, ([1, 1], Some(3), Some(3))));
}

#[test]
fn workers_cannot_join_errors() {
    let capture = pcap(LITTLE, MICROSECONDS, ETHERNET, &[]);
    let run = Run::piped(&capture, usize::MAX, &["--join-errors", "--workers", "2"]);
    run.assert_refused("--join-errors searches one cache: it cannot be used with --workers");
}
