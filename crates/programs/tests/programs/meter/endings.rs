//! Ends of flows, on packets with chosen times and flags.

use capture::data::{segment, segment_of, udp};

use super::{Record, metered};

const OPEN: [(u32, bool, &str); 3] = [(0, true, "S"), (10, false, "SA"), (20, true, "A")];
const CLOSE: [(u32, bool, &str); 2] = [(1000, true, "FA"), (1010, false, "FA")];

/// Returns the records of segments between two fixed sockets: milliseconds, whether from the
/// client, flags.
fn connection(parts: &[&[(u32, bool, &str)]], arguments: &[&str]) -> Vec<Record> {
    let frame = |&(ms, from_client, flags): &(u32, bool, &str)| (ms, segment(from_client, flags));
    let frames: Vec<_> = parts.concat().iter().map(frame).collect();
    metered(&frames, arguments)
}

fn summaries(records: &[Record]) -> Vec<([u64; 2], &str, &str)> {
    records.iter().map(Record::summary).collect()
}

#[test]
fn silence_of_both_directions_ends_a_flow() {
    let (there, back) = (udp(1000, 53, 0), udp(1000, 53, 0));
    let idle = ["--idle", "60"];
    let frames = [(0, there.clone()), (59_900, there.clone()), (120_100, back)];
    let ended = [([2, 0], "idle", "unreplied"), ([1, 0], "forced", "unreplied")];
    assert_eq!(summaries(&metered(&frames, &idle)), ended);
    assert_eq!(
        summaries(&metered(&frames, &["--idle", "60.3"])),
        [([3, 0], "forced", "unreplied")]
    );
    assert_eq!(summaries(&metered(&frames, &[])), [([3, 0], "forced", "unreplied")]);
    // Segments of the server alone keep the client's direction.
    let parts = [(0, true, "A"), (50_000, false, "A"), (100_000, false, "A"), (150_000, true, "A")];
    assert_eq!(summaries(&connection(&[&parts], &idle)), [([2, 2], "forced", "established")]);
}

/// A silent flow expires even if only packets of other flows, or non-IP packets, arrive.
#[test]
fn any_packet_advances_the_time() {
    let arp = vec![0xff; 60];
    for other in [udp(2000, 53, 0), arp] {
        let frames = [(0, udp(1000, 53, 0)), (61_000, other), (61_001, udp(1000, 53, 0))];
        let records = metered(&frames, &["--timeouts", "meter"]);
        assert_eq!(records[0].summary(), ([1, 0], "idle", "unreplied"));
    }
}

#[test]
fn a_flow_that_lives_on_is_reported_in_parts() {
    let frames: Vec<_> = (0..1000).map(|s| (s * 1000, udp(1000, 53, s as usize % 7))).collect();
    let records = metered(&frames, &["--active", "300"]);
    let parts =
        [([300, 0], "active"), ([300, 0], "active"), ([300, 0], "active"), ([100, 0], "forced")];
    let reported: Vec<_> =
        records.iter().map(|record| (record.packets(), record.end_reason.as_str())).collect();
    assert_eq!(reported, parts);
    assert!(records.iter().all(|record| record.flow_id == records[0].flow_id));
    let halves: Vec<_> = records.iter().filter_map(|record| record.forward.as_ref()).collect();
    assert!(halves.windows(2).all(|pair| pair[0].last_ns + 1_000_000_000 == pair[1].first_ns));
    let bytes: u64 = halves.iter().map(|half| half.ip_bytes).sum();
    assert_eq!(bytes, (0..1000).map(|s| 28 + s % 7).sum::<u64>());
    // A flow that was reported and is silent since has no further record.
    let frames = [(0, udp(1, 2, 0)), (301_000, udp(3, 4, 0)), (400_000, udp(3, 4, 0))];
    let records = metered(&frames, &["--idle", "350", "--active", "300"]);
    assert_eq!(
        summaries(&records),
        [([1, 0], "active", "unreplied"), ([2, 0], "forced", "unreplied")]
    );
}

#[test]
fn a_closed_connection_lingers_and_is_over() {
    let meter = ["--timeouts", "meter"];
    let last_ack: &[(u32, bool, &str)] = &[(1020, true, "A")];
    let later: &[(u32, bool, &str)] = &[(70_000, true, "A")];
    let over = ([4, 2], "ended", "closing");
    // The last acknowledgement does not create a flow; a later packet does.
    let records = connection(&[&OPEN, &CLOSE, last_ack, later], &meter);
    assert_eq!(summaries(&records), [over, ([1, 0], "forced", "unreplied")]);
    assert_eq!(records[0].forward.as_ref().map(|half| half.tcp_flags.as_str()), Some("...A..SF"));
    // So does a reset, and packets while it lingers belong to it.
    let reset: &[(u32, bool, &str)] = &[(30, false, "R"), (4000, true, "A"), (8000, true, "A")];
    let records = connection(&[&OPEN, reset, &[(80_000, true, "A")]], &meter);
    assert_eq!(
        summaries(&records),
        [([4, 2], "ended", "closing"), ([1, 0], "forced", "unreplied")]
    );
    // A longer time to linger, or none at all.
    let parts: [&[_]; 4] = [&OPEN, &CLOSE, last_ack, later];
    let longer = connection(&parts, &["--timeouts", "meter", "--linger", "90"]);
    assert_eq!(summaries(&longer), [([5, 2], "forced", "closing")]);
    let soon: [&[_]; 4] = [&OPEN, &CLOSE, last_ack, &[(50_000, true, "A")]];
    let off = connection(&soon, &["--timeouts", "meter", "--linger", "off"]);
    assert_eq!(summaries(&off), [([5, 2], "forced", "established")]);
    let idle = connection(&parts, &["--idle", "100"]);
    assert_eq!(summaries(&idle), [over, ([1, 0], "forced", "unreplied")]);
}

#[test]
fn a_connection_closed_on_one_side_goes_on() {
    let half: &[(u32, bool, &str)] =
        &[(100, true, "FA"), (110, false, "A"), (10_000, false, "A"), (10_010, true, "A")];
    let last: &[(u32, bool, &str)] = &[(50_000, false, "FA"), (50_010, true, "A")];
    let records =
        connection(&[&OPEN, half, last, &[(120_000, true, "A")]], &["--timeouts", "meter"]);
    assert_eq!(
        summaries(&records),
        [([5, 4], "ended", "closing"), ([1, 0], "forced", "unreplied")]
    );
}

/// Two connections between the same sockets.
#[test]
fn a_connection_on_reused_sockets_is_another_flow() {
    let again: &[(u32, bool, &str)] = &[(2000, true, "S+"), (2010, false, "SA"), (2020, true, "A")];
    let records = connection(&[&OPEN, &CLOSE, again], &["--timeouts", "meter"]);
    let both = [([3, 2], "ended", "closing"), ([2, 1], "forced", "established")];
    assert_eq!(summaries(&records), both);
    assert_ne!(records[0].flow_id, records[1].flow_id);
    // A retransmitted SYN is not another connection.
    let twice: &[(u32, bool, &str)] = &[(0, true, "S"), (1000, true, "S"), (1010, false, "SA")];
    assert_eq!(connection(&[twice], &["--timeouts", "meter"]).len(), 1);
    // If nothing ends a flow, that does not either.
    assert_eq!(
        summaries(&connection(&[&OPEN, &CLOSE, again], &[])),
        [([5, 3], "forced", "established")]
    );
}

/// Some hosts repeat an attempt that was refused, with its sequence number.
#[test]
fn repeated_attempts_that_are_refused_are_one_flow() {
    let refused = |ms: u32, syn: &'static str| [(ms, true, syn), (ms + 10, false, "RA")];
    let attempts = [refused(0, "S"), refused(500, "S"), refused(1000, "S")].concat();
    let other = refused(1500, "S+");
    let records = connection(&[&attempts, &other], &["--timeouts", "meter"]);
    let both = [([3, 3], "ended", "closing"), ([1, 1], "forced", "closing")];
    assert_eq!(summaries(&records), both);
    // The FIN of a connection that has ended begins no flow, though it is lost again and again:
    // after 1, 2, 4, ... 32 seconds, and then every minute.
    let times = [1, 2, 4, 8, 16, 32, 60, 60].into_iter().scan(2000, |ms, wait| {
        *ms += 1000 * wait;
        Some((*ms, false, "FA"))
    });
    let late: Vec<(u32, bool, &str)> = times.collect();
    let records = connection(&[&OPEN, &CLOSE, &late], &["--timeouts", "meter"]);
    assert_eq!(summaries(&records), [([3, 2 + 8], "forced", "closing")]);
}

#[test]
fn the_initiator_is_the_source() {
    let begins_with = |part: (u32, bool, &str)| {
        let records = connection(&[&[part, (5, true, "A")]], &[]);
        assert_eq!(records.len(), 1);
        let Record { src, sport, dst, dport, .. } = records[0].clone();
        (format!("{src}:{sport} {dst}:{dport}"), records[0].packets())
    };
    let (client, server) = ("192.0.2.1:40000", "198.51.100.2:443");
    assert_eq!(begins_with((0, true, "S")), (format!("{client} {server}"), [2, 0]));
    assert_eq!(begins_with((0, false, "A")), (format!("{server} {client}"), [1, 1]));
    // An answer: the request was not captured.
    assert_eq!(begins_with((0, false, "SA")), (format!("{client} {server}"), [1, 1]));
}

/// Four flows of four classes in a cache for four: the closing one is evicted first, the
/// established one last.
#[test]
fn a_full_cache_evicts_the_least_important_first() {
    let mut frames: Vec<_> = OPEN
        .iter()
        .map(|&(ms, from_client, flags)| (ms, segment_of(1, from_client, flags)))
        .collect();
    frames.push((30, udp(7, 53, 0)));
    frames.push((40, segment_of(2, true, "S")));
    frames.push((50, segment_of(3, true, "S")));
    frames.push((60, segment_of(3, false, "RA")));
    frames.extend((0..5).map(|port| (100 + u32::from(port), udp(100 + port, 53, 0))));
    let records = metered(&frames, &["--capacity", "4", "--timeouts", "meter"]);
    let evicted = |record: &&Record| record.end_reason == "lack of resources";
    let classes: Vec<_> = records
        .iter()
        .filter(evicted)
        .map(|record| (record.class.as_str(), record.sport))
        .collect();
    assert_eq!(classes[..3], [("closing", 3), ("new", 2), ("unreplied", 7)]);
    assert!(classes[3..].iter().all(|(class, _)| *class == "unreplied"), "{classes:?}");
    assert_eq!(classes.len(), 5);
    let last: Vec<_> = records.iter().filter(|record| record.class == "established").collect();
    assert_eq!((last.len(), last[0].summary()), (1, ([2, 1], "forced", "established")));
}
