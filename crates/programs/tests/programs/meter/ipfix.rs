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
    icmp: Vec<Option<u64>>,
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

/// Returns type and code of ICMP of a record; `None` for other protocols.
fn icmp(fields: &[Field]) -> Option<u64> {
    let [v4, v6] = [Element::IcmpTypeCodeIpv4, Element::IcmpTypeCodeIpv6];
    let found = bytes(fields, v4).or_else(|| bytes(fields, v6));
    found.map(|bytes| to_number(&bytes))
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
    let is_icmp = [1, 58].contains(&number(Element::ProtocolIdentifier));
    assert_eq!(icmp(fields).is_some(), is_icmp, "{fields:?}");
    assert_eq!(fields.len(), if is_icmp { 14 } else { 13 }, "{fields:?}");
    // In one byte: not all collectors read two.
    assert_eq!(bytes(Element::TcpControlBits).map(|flags| flags.len()), Some(1));
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
            assert!((32..=1232).contains(&ipfix.header.length), "{}", ipfix.header.length);
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
        all.push(OsStr::new("--overwrite"));
        all.extend(arguments.iter().map(OsStr::new));
        let run = Run::with(&all);
        assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
        let bytes = fs::read(&file).expect("it was written");
        let messages = messages(&mut NetflowParser::default(), &bytes);
        are_in_sequence(&messages);
        let templates: Vec<usize> = messages.iter().map(|message| message.templates).collect();
        assert_eq!((templates[0], templates.iter().sum()), (4, 4), "{arguments:?}");
        let halves: Vec<Half> = messages.into_iter().flat_map(|message| message.halves).collect();
        let expected = expected(&Record::all(&run));
        assert!(halves == expected, "{arguments:?}: {} of {}", halves.len(), expected.len());
    }
}

/// A collector on the loopback interface.
struct Listener {
    socket: UdpSocket,
    address: String,
}

impl Listener {
    fn new() -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a loopback");
        let address = socket.local_addr().expect("it is bound").to_string();
        Self { socket, address }
    }

    /// Returns the datagrams in its buffer.
    fn received(&self) -> Vec<Vec<u8>> {
        self.socket.set_nonblocking(true).expect("it can be asked for");
        let mut buffer = vec![0; 65_536];
        let receive = || self.socket.recv(&mut buffer).ok().map(|length| buffer[..length].to_vec());
        std::iter::from_fn(receive).collect()
    }
}

/// Returns the datagrams that a collector receives for a capture, and the run.
fn collected(capture: &[u8], arguments: &[&str]) -> (Vec<Vec<u8>>, Run) {
    let listener = Listener::new();
    let to_listener = ["--json", "-", "--ipfix", &listener.address];
    let run = Run::piped(capture, usize::MAX, &[&to_listener[..], arguments].concat());
    assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
    (listener.received(), run)
}

/// Returns a capture of this many flows of one packet.
fn flows(count: u16) -> Vec<u8> {
    let frames: Vec<_> = (1..=count)
        .map(|port| if port % 10 == 0 { tcp6(port, 443) } else { udp(port, 53, 0) })
        .collect();
    let records: Vec<_> =
        (1..).zip(&frames).map(|(second, frame)| (second, 0, &frame[..])).collect();
    pcap(LITTLE, MICROSECONDS, ETHERNET, &records)
}

/// All collectors and files have all records.
#[test]
fn several_collectors_receive_the_same() {
    let (listeners, file) = ([Listener::new(), Listener::new()], place("as well as collectors"));
    let _ = fs::remove_file(&file);
    let file_name = file.to_str().expect("the build folder has a name in UTF-8");
    let [one, other] = listeners.each_ref().map(|listener| listener.address.as_str());
    let arguments = ["--json", "-", "--ipfix", one, "--ipfix", file_name, "--ipfix", other];
    let run = Run::piped(&flows(300), usize::MAX, &arguments);
    assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
    let expected = expected(&Record::all(&run));
    let datagrams = listeners.map(|listener| listener.received().concat());
    for bytes in [&datagrams[0], &datagrams[1], &fs::read(&file).expect("it was written")] {
        let messages = messages(&mut NetflowParser::default(), bytes);
        let halves: Vec<Half> = messages.into_iter().flat_map(|message| message.halves).collect();
        assert!(halves == expected);
    }
}

/// The name of a collector that listens on one of its addresses only.
#[test]
fn another_address_of_a_name_is_tried() {
    let listener = Listener::new();
    let (_, port) = listener.address.rsplit_once(':').expect("it has a port");
    let name = format!("localhost:{port}");
    let run = Run::piped(&flows(300), usize::MAX, &["--json", "-", "--ipfix", &name]);
    let messages = messages(&mut NetflowParser::default(), &listener.received().concat());
    let halves: Vec<Half> = messages.into_iter().flat_map(|message| message.halves).collect();
    assert!(halves == expected(&Record::all(&run)), "{run:?}");
}

#[test]
fn messages_have_the_size_and_the_domain_of_the_options() {
    let capture = flows(300);
    for (size, most) in [("256", 256), ("512", 512), ("9000", 9000)] {
        let (datagrams, run) = collected(&capture, &["--message-size", size, "--domain", "77"]);
        let longest = datagrams.iter().map(Vec::len).max().expect("there are some");
        assert!((most - 100..=most).contains(&longest), "{size}: {longest}");
        assert!(datagrams.iter().all(|message| message[12..16] == 77_u32.to_be_bytes()), "{run:?}");
    }
}

/// The numbers of elements in the templates, and of the records, of the datagrams.
fn template_of(datagrams: &[Vec<u8>], id: u16) -> Option<Vec<(u16, u16, u32)>> {
    let word = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
    for datagram in datagrams {
        let mut rest = &datagram[16..];
        while word(rest) == 2 {
            let (mut set, after) = rest[4..].split_at(usize::from(word(&rest[2..])) - 4);
            while !set.is_empty() {
                let (found, count) = (word(set), word(&set[2..]));
                set = &set[4..];
                let mut fields = vec![];
                for _ in 0..count {
                    let is_reverse = word(set) & 0x8000 > 0;
                    let length = if is_reverse { 8 } else { 4 };
                    let number = if is_reverse { &set[4..8] } else { &[0; 4][..] };
                    let number = u32::from_be_bytes(number.try_into().expect("4 bytes"));
                    fields.push((word(set) & 0x7fff, word(&set[2..]), number));
                    set = &set[length..];
                }
                if found == id {
                    return Some(fields);
                }
            }
            if after.is_empty() {
                break;
            }
            rest = after;
        }
    }
    None
}

/// Returns the numbers of the reverse elements, which are the first ones: nfcapd reads most of them
/// as the forward ones, and keeps the last value of an element.
fn reverse_elements(fields: &[(u16, u16, u32)]) -> Vec<u16> {
    let count = fields.iter().take_while(|field| field.2 == 29_305).count();
    assert!(fields[count..].iter().all(|field| field.2 == 0), "{fields:?}");
    fields[..count].iter().map(|field| field.0).collect()
}

/// RFC 5103: one record with both directions, if both have packets.
#[test]
fn a_record_can_have_both_directions() {
    let back = |mut frame: Vec<u8>| {
        // Addresses and ports change places.
        frame[..12].rotate_left(6);
        frame[IP_AT + 12..IP_AT + 20].rotate_left(4);
        frame[IP_AT + 20..IP_AT + 24].rotate_left(2);
        frame
    };
    let frames = [udp(7, 53, 0), udp(7, 53, 10), back(udp(7, 53, 100)), udp(8, 53, 0)];
    let records: Vec<_> =
        (1..).zip(&frames).map(|(second, frame)| (second, 0, &frame[..])).collect();
    let capture = pcap(LITTLE, MICROSECONDS, ETHERNET, &records);
    assert_eq!(template_of(&collected(&capture, &[]).0, 260), None);
    let (datagrams, _) = collected(&capture, &["--biflow"]);
    let fields = template_of(&datagrams, 260).expect("there is a template of both directions");
    let reverse = [6, 2, 1, 152, 153];
    assert_eq!(reverse_elements(&fields), reverse);
    let of_icmp = template_of(&datagrams, 262).expect("there is one of ICMP");
    assert_eq!(reverse_elements(&of_icmp), [&reverse[..], &[32]].concat());
    let (datagrams, _) = collected(&capture, &["--biflow", "--mac"]);
    let with_macs = template_of(&datagrams, 260).expect("there is a template of both directions");
    let added: Vec<_> = with_macs.iter().filter(|field| !fields.contains(field)).collect();
    assert_eq!(added, [&(56, 6, 29_305), &(80, 6, 29_305), &(56, 6, 0), &(80, 6, 0)]);
    assert_eq!(reverse_elements(&with_macs), [&reverse[..], &[56, 80]].concat());
    let data = datagrams.last().expect("there are records");
    // The next values are the IP addresses, and the number of the flow.
    let back = [&frames[2][6..12], &frames[2][..6], &frames[0][IP_AT + 12..IP_AT + 20]].concat();
    let there = [&frames[0][6..12], &frames[0][..6], &1_u64.to_be_bytes()].concat();
    for macs in [back, there] {
        assert!(data.windows(macs.len()).any(|window| window == macs), "{macs:x?}: {data:x?}");
    }
    let (datagrams, _) = collected(&capture, &["--biflow"]);
    let data = datagrams.last().expect("there are records");
    // A set of one record of both directions, and one of one direction.
    let length: usize = fields.iter().map(|field| usize::from(field.1)).sum();
    assert_eq!((&data[16..18], data[19]), (&260_u16.to_be_bytes()[..], 4 + length as u8));
    let value = |element: u16, enterprise: u32| {
        let before = |field: &&(u16, u16, u32)| (field.0, field.2) != (element, enterprise);
        let at = 20 + fields.iter().take_while(before).map(|field| field.1).sum::<u16>() as usize;
        to_number(&data[at..at + 8])
    };
    let counts = [value(2, 0), value(1, 0), value(2, 29_305), value(1, 29_305)];
    assert_eq!(counts, [2, 28 + 38, 1, 128]);
    assert_eq!([value(152, 0), value(153, 0), value(152, 29_305)], [1000, 2000, 3000]);
    let second = 20 + length;
    assert_eq!(data[second..second + 2], 256_u16.to_be_bytes());
    assert_eq!(data.len(), second + 4 + 4 * 2 + 4 + 2 + 8 * 5 + 2);
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
    let (datagrams, _) = collected(&pcap(LITTLE, MICROSECONDS, ETHERNET, &records), &[]);
    let mut parser = NetflowParser::default();
    let all: Vec<_> =
        datagrams.iter().flat_map(|datagram| messages(&mut parser, datagram)).collect();
    let found: Vec<_> = all.into_iter().flat_map(|message| message.icmp).collect();
    assert_eq!(found, [Some(0x0304), Some(0x8001), None]);
}

/// A thousand flows: few enough for their messages to fit into the buffer of a socket, so that none
/// is lost on a busy computer.
#[test]
fn a_collector_receives_a_message_in_each_datagram() {
    let (datagrams, run) = collected(&flows(1000), &[]);
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
    let is_due = |number| if number % 33 == 0 { 4 } else { 0 };
    assert_eq!(templates, (0..all.len()).map(is_due).collect::<Vec<usize>>());
    assert!(templates.len() > 33, "{}", templates.len());
    let halves: Vec<Half> = all.into_iter().flat_map(|message| message.halves).collect();
    assert_eq!(halves, expected(&Record::all(&run)));
    // A collector that was started late can parse messages from the next templates on.
    let mut late = NetflowParser::default();
    assert_eq!(messages(&mut late, &datagrams[33])[0].templates, 4);
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
    // At once, and at the end.
    let [first, last] = run.errors()[..] else { panic!("not two lines: {run:?}") };
    let is_refused = format!("flow_cache: --ipfix {address} is not reached: Connection refused");
    assert!(first.starts_with(&is_refused) && run.count("rows") == 4918, "{run:?}");
    let losses = last.strip_prefix(&format!("flow_cache: {address} did not receive "));
    let numbers: Vec<&str> = losses.unwrap_or_default().split(' ').collect();
    assert!(numbers[0].parse().is_ok_and(|lost: u32| lost > 200), "{run:?}");
    // A refused message is detected with the next one, which is sent nevertheless.
    assert_eq!((numbers[0], numbers[1]), (numbers[2], "of"), "{run:?}");
}
