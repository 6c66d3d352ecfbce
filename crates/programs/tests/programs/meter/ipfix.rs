//! IPFIX messages, as `netflow_parser` reads them.

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::{Path, PathBuf};

use capture::data::{ETHERNET, IP_AT, LITTLE, MICROSECONDS, pcap, tcp6, udp};
use netflow_parser::variable_versions::ipfix::lookup::{IANAIPFixField as Element, IPFixField};
use netflow_parser::variable_versions::ipfix::{FlowSetBody, IPFix};
use netflow_parser::{NetflowPacket, NetflowParser};

use super::Record;
use crate::run::Run;

/// The record of one direction of a flow in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Half {
    /// The row of CSV, with times in milliseconds.
    row: String,
    flags: u64,
    flow_id: u64,
    reason: u64,
    direction: u64,
}

/// The header fields of a message, and its records.
struct Message {
    sequence: u32,
    export_s: u32,
    templates: usize,
    halves: Vec<Half>,
    /// Type and code of ICMP of each record.
    icmp: Vec<u64>,
}

type Field = (IPFixField, netflow_parser::FieldValue);

/// Returns the bytes of a field.
fn bytes(fields: &[Field], element: Element) -> Option<Vec<u8>> {
    let mut bytes = vec![];
    let value = fields.iter().find(|(field, _)| *field == IPFixField::IANA(element));
    value?.1.write_be_bytes(&mut bytes).expect("a vector takes all");
    Some(bytes)
}

fn to_number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns type and code of ICMP of a record.
fn icmp(fields: &[Field]) -> u64 {
    let [v4, v6] = [Element::IcmpTypeCodeIpv4, Element::IcmpTypeCodeIpv6];
    let found = bytes(fields, v4).or_else(|| bytes(fields, v6));
    to_number(&found.expect("all templates have it"))
}

/// Converts a record.
fn half(fields: &[Field]) -> Half {
    let bytes = |element| bytes(fields, element);
    let number = |element| {
        to_number(&bytes(element).unwrap_or_else(|| panic!("no {element:?} in {fields:?}")))
    };
    let address = |v4, v6| match (bytes(v4), bytes(v6)) {
        (Some(v4), None) => Ipv4Addr::from(<[u8; 4]>::try_from(v4).expect("4 bytes")).to_string(),
        (None, Some(v6)) => Ipv6Addr::from(<[u8; 16]>::try_from(v6).expect("16 bytes")).to_string(),
        _ => panic!("not one address in {fields:?}"),
    };
    assert_eq!(fields.len(), 14, "{fields:?}");
    let row = [
        address(Element::SourceIpv4address, Element::SourceIpv6address),
        address(Element::DestinationIpv4address, Element::DestinationIpv6address),
        number(Element::ProtocolIdentifier).to_string(),
        number(Element::SourceTransportPort).to_string(),
        number(Element::DestinationTransportPort).to_string(),
        number(Element::PacketDeltaCount).to_string(),
        number(Element::OctetDeltaCount).to_string(),
        number(Element::FlowStartMilliseconds).to_string(),
        number(Element::FlowEndMilliseconds).to_string(),
    ];
    Half {
        row: row.join(","),
        flags: number(Element::TcpControlBits),
        flow_id: number(Element::FlowId),
        reason: number(Element::FlowEndReason),
        direction: number(Element::BiflowDirection),
    }
}

fn message(ipfix: &IPFix) -> Message {
    let mut message = Message {
        sequence: ipfix.header.sequence_number,
        export_s: ipfix.header.export_time,
        templates: 0,
        halves: vec![],
        icmp: vec![],
    };
    assert_eq!((ipfix.header.version, ipfix.header.observation_domain_id), (10, 1));
    for set in &ipfix.flowsets {
        match &set.body {
            FlowSetBody::Templates(templates) => message.templates += templates.len(),
            FlowSetBody::Data(data) => {
                message.halves.extend(data.fields.iter().map(|fields| half(fields)));
                message.icmp.extend(data.fields.iter().map(|fields| icmp(fields)));
                assert!(data.padding.is_empty());
            }
            other => panic!("a set that should not be: {other:?}"),
        }
    }
    message
}

/// Parses messages, and checks their lengths.
fn messages(parser: &mut NetflowParser, bytes: &[u8]) -> Vec<Message> {
    let result = parser.parse_bytes(bytes);
    assert!(result.error.is_none(), "{:?}", result.error);
    let ipfix = result.packets.iter().map(|packet| match packet {
        NetflowPacket::IPFix(ipfix) => ipfix,
        other => panic!("no IPFIX: {other:?}"),
    });
    ipfix
        .map(|ipfix| {
            assert!((32..=1400).contains(&ipfix.header.length), "{}", ipfix.header.length);
            message(ipfix)
        })
        .collect()
}

/// Asserts that sequence numbers and times of messages continue.
fn are_in_sequence(messages: &[Message]) {
    let (mut sequence, mut export_s) = (0, 0);
    for message in messages {
        assert_eq!(message.sequence, sequence);
        assert!(message.export_s >= export_s, "{} before {export_s}", message.export_s);
        assert_eq!(message.templates == 0, !message.halves.is_empty(), "templates are alone");
        sequence += message.halves.len() as u32;
        export_s = message.export_s;
    }
}

/// Returns the expected records of messages.
fn expected(records: &[Record]) -> Vec<Half> {
    let reasons = ["idle", "active", "ended", "forced", "lack of resources"];
    let halves = records.iter().flat_map(|record| {
        let reason = reasons.iter().position(|reason| *reason == record.end_reason);
        let reason = reason.expect("a reason of IPFIX") as u64 + 1;
        record.halves().map(move |(direction, key, half)| {
            let [first, last] = [half.first_ns, half.last_ns].map(|time| time / 1_000_000);
            Half {
                row: format!("{key},{},{},{first},{last}", half.packets, half.ip_bytes),
                flags: flags(&half.tcp_flags),
                flow_id: record.flow_id,
                reason,
                direction,
            }
        })
    });
    halves.collect()
}

/// Converts `CEUAPRSF` to bits.
fn flags(letters: &str) -> u64 {
    letters.chars().fold(0, |bits, letter| bits << 1 | u64::from(letter != '.'))
}

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Options that split the example's traffic into records differently.
const OPTION_SETS: [&[&str]; 4] = [
    &[],
    &["--timeouts", "meter"],
    &["--idle", "1", "--active", "0.02", "--linger", "0.1"],
    &["--capacity", "50"],
];

#[test]
fn a_file_of_messages_agrees_with_lines_of_json() {
    // A number after a colon is no port if a slash shows that this is a file.
    let file = place("a_file_of_messages:4739");
    for arguments in OPTION_SETS {
        let mut all = vec![OsStr::new("--json"), "-".as_ref(), "--ipfix".as_ref(), file.as_ref()];
        all.extend(arguments.iter().map(OsStr::new));
        let run = Run::with(&all);
        assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
        let bytes = fs::read(&file).expect("it was written");
        let messages = messages(&mut NetflowParser::default(), &bytes);
        are_in_sequence(&messages);
        let templates: Vec<usize> = messages.iter().map(|message| message.templates).collect();
        assert_eq!((templates[0], templates.iter().sum()), (2, 2), "{arguments:?}");
        let halves: Vec<Half> = messages.into_iter().flat_map(|message| message.halves).collect();
        let expected = expected(&Record::all(&run));
        assert!(halves == expected, "{arguments:?}: {} of {}", halves.len(), expected.len());
    }
}

/// Returns the datagrams that a collector receives for a capture, and the run.
fn collected(capture: &[u8]) -> (Vec<Vec<u8>>, Run) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a loopback");
    let address = socket.local_addr().expect("it is bound").to_string();
    let run = Run::piped(capture, usize::MAX, &["--json", "-", "--ipfix", &address]);
    assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
    // All datagrams are in the socket's buffer.
    socket.set_nonblocking(true).expect("it can be asked for");
    let mut buffer = vec![0; 65_536];
    let receive = || socket.recv(&mut buffer).ok().map(|length| buffer[..length].to_vec());
    (std::iter::from_fn(receive).collect(), run)
}

/// Type and code of the first message of each direction.
#[test]
fn icmp_has_a_type_and_a_code() {
    // The ports are where type and code are.
    let with_protocol = |mut frame: Vec<u8>, protocol_at: usize, protocol: u8| {
        frame[IP_AT + protocol_at] = protocol;
        frame
    };
    let frames = [
        with_protocol(udp(0x0304, 0, 0), 9, 1),
        with_protocol(tcp6(0x8001, 0), 6, 58),
        udp(5, 53, 0),
    ];
    let records: Vec<_> =
        (1..).zip(&frames).map(|(second, frame)| (second, 0, &frame[..])).collect();
    let (datagrams, _) = collected(&pcap(LITTLE, MICROSECONDS, ETHERNET, &records));
    let mut parser = NetflowParser::default();
    let all: Vec<_> =
        datagrams.iter().flat_map(|datagram| messages(&mut parser, datagram)).collect();
    let found: Vec<u64> = all.into_iter().flat_map(|message| message.icmp).collect();
    assert_eq!(found, [0x0304, 0x8001, 0]);
}

/// A thousand flows: few enough for their messages to fit into the buffer of a socket, so that none
/// is lost on a busy computer.
#[test]
fn a_collector_receives_a_message_in_each_datagram() {
    let frames: Vec<_> = (1..=1000)
        .map(|port| if port % 10 == 0 { tcp6(port, 443) } else { udp(port, 53, 0) })
        .collect();
    let records: Vec<_> =
        (1..).zip(&frames).map(|(second, frame)| (second, 0, &frame[..])).collect();
    let (datagrams, run) = collected(&pcap(LITTLE, MICROSECONDS, ETHERNET, &records));
    let mut parser = NetflowParser::default();
    let all: Vec<Message> = datagrams
        .iter()
        .flat_map(|datagram| {
            let messages = messages(&mut parser, datagram);
            assert_eq!(messages.len(), 1, "{} bytes", datagram.len());
            messages
        })
        .collect();
    are_in_sequence(&all);
    let templates: Vec<usize> = all.iter().map(|message| message.templates).collect();
    let is_due = |number| if number % 33 == 0 { 2 } else { 0 };
    assert_eq!(templates, (0..all.len()).map(is_due).collect::<Vec<usize>>());
    assert!(templates.len() > 33, "{}", templates.len());
    let halves: Vec<Half> = all.into_iter().flat_map(|message| message.halves).collect();
    assert_eq!(halves, expected(&Record::all(&run)));
    // A collector that was started late can parse messages from the next templates on.
    let mut late = NetflowParser::default();
    assert_eq!(messages(&mut late, &datagrams[33])[0].templates, 2);
    assert!(!messages(&mut late, &datagrams[34])[0].halves.is_empty());
}

/// A missing listener is reported, and is a failure; the report is printed all the same.
#[test]
#[cfg(target_os = "linux")]
fn a_missing_collector_is_a_failure() {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a loopback");
    let address = socket.local_addr().expect("it is bound").to_string();
    drop(socket);
    let run = Run::with(&["--ipfix", &address].map(OsStr::new));
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!((run.stderr.lines().count(), run.count("rows")), (1, 4918), "{run:?}");
    let losses = run.stderr.strip_prefix(&format!("flow_cache: {address} did not receive "));
    let numbers: Vec<&str> = losses.unwrap_or_default().split(' ').collect();
    assert!(numbers[0].parse().is_ok_and(|lost: u32| lost > 200), "{run:?}");
    // A refused message is detected with the next one, which is sent nevertheless.
    assert_eq!((numbers[0], numbers[1]), (numbers[2], "of"), "{run:?}");
}
