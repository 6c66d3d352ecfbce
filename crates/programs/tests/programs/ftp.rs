//! The example `ftp`: its announcements, its firewall and its report.

use core::time::Duration;
use std::net::SocketAddrV4;

use flowtable::{TcpFlags, Timestamp};
use programs::ftp::announcement::{Malformed, of_client, of_server};
use programs::ftp::firewall::{Admitted, Ended, Firewall, Refused};
use programs::ftp::report::{Event, Report};
use programs::ftp::segment::Segment;
use programs::ftp::session;

const CLIENT: &str = "10.0.0.1:40000";
const SERVER: &str = "10.1.0.1:21";
const PASSIVE: &str = "227 Entering Passive Mode (10,1,0,1,195,80).\r\n";
/// The socket of [`PASSIVE`].
const DATA: &str = "10.1.0.1:50000";

fn socket(text: &str) -> SocketAddrV4 {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A firewall and its time.
struct Run {
    firewall: Firewall,
    now: Timestamp,
}

impl Run {
    fn new(most: usize) -> Self {
        let firewall = Firewall::new(most).expect("a number of flows");
        Self { firewall, now: Timestamp::from_secs(1000) }
    }

    /// Returns a firewall with an established control connection, whose server has announced a
    /// socket.
    fn passive(most: usize) -> Self {
        let mut run = Self::new(most);
        let control = run.packet(CLIENT, SERVER, TcpFlags::SYN, "");
        assert!(matches!(control, Ok(Admitted::Control(_))), "{control:?}");
        assert_eq!(run.packet(SERVER, CLIENT, TcpFlags::SYN | TcpFlags::ACK, ""), control);
        let announced = run.packet(SERVER, CLIENT, TcpFlags::ACK, PASSIVE);
        let Ok(Admitted::Control(control)) = control else { unreachable!("it was checked") };
        assert_eq!(announced, Ok(Admitted::Announcement(control, socket(DATA))));
        run
    }

    fn packet(
        &mut self,
        from: &str,
        to: &str,
        flags: TcpFlags,
        text: &str,
    ) -> Result<Admitted, Refused> {
        let segment = Segment::new(socket(from), socket(to), flags, text.as_bytes());
        self.firewall.admit(&segment, self.now)
    }

    fn syn(&mut self, from: &str, to: &str) -> Result<Admitted, Refused> {
        self.packet(from, to, TcpFlags::SYN, "")
    }

    /// Returns whether the first packet of a data connection is admitted.
    fn joins(&mut self, from: &str, to: &str) -> bool {
        match self.syn(from, to) {
            Ok(Admitted::Data(flow, parent)) => flow != parent,
            other => {
                assert_eq!(other, Err(Refused::NotExpected));
                false
            }
        }
    }
}

#[test]
fn announcements_have_six_numbers() {
    let right = Ok(socket("10.0.0.1:40003"));
    for text in ["PORT 10,0,0,1,156,67\r\n", "port 010,0,0,001,156,067\r\n"] {
        assert_eq!(of_client(text.as_bytes()), Some(right), "{text}");
        assert_eq!(of_server(text.as_bytes()), None, "{text}");
    }
    for rest in ["Passive (10,0,0,1,156,67).", "=10,0,0,1,156,67", "10,0,0,1,156,67 listens"] {
        let text = format!("227 {rest}\r\n");
        assert_eq!(of_server(text.as_bytes()), Some(right), "{text}");
        assert_eq!(of_client(text.as_bytes()), None, "{text}");
    }
    for other in ["", "PORT", "PORT\r\n", "PASV\r\n", "EPRT |1|10.0.0.1|40003|\r\n", "2270 1\r\n"] {
        assert_eq!((of_client(other.as_bytes()), of_server(other.as_bytes())), (None, None));
    }
}

#[test]
fn malformed_announcements_are_refused() {
    for (list, error) in [
        ("1,2,3", Malformed::Numbers),
        ("1,2,3,4,5,6,7", Malformed::Numbers),
        ("1,2,3,4,5,", Malformed::Numbers),
        (",,,,,", Malformed::Numbers),
        ("", Malformed::Numbers),
        ("1,2,3,4,5,0006", Malformed::Numbers),
        ("1,2,3,4,256,6", Malformed::Range),
        ("999,2,3,4,5,6", Malformed::Range),
    ] {
        let (command, reply) = (format!("PORT {list}\r\n"), format!("227 ({list})\r\n"));
        assert_eq!(of_client(command.as_bytes()), Some(Err(error)), "{command}");
        assert_eq!(of_server(reply.as_bytes()), Some(Err(error)), "{reply}");
    }
    for list in ["+1,2,3,4,5,6", "1,2,3,4,5,-6", " 1,2,3,4,5,6", "1,2,3,4,5,6 ", "1.2.3.4:5"] {
        let command = format!("PORT {list}\r\n");
        assert_eq!(of_client(command.as_bytes()), Some(Err(Malformed::Numbers)), "{command}");
    }
    // Any cut line: its last digits may be missing.
    for length in "PORT ".len().."PORT 10,0,0,1,156,67\r\n".len() {
        let cut = &b"PORT 10,0,0,1,156,67\r\n"[..length];
        assert_eq!(of_client(cut), Some(Err(Malformed::Cut)), "{length}");
    }
}

#[test]
fn each_number_is_a_byte() {
    for (at, value) in (0..6).flat_map(|at| (0..1000_u16).map(move |value| (at, value))) {
        let mut numbers = [10, 0, 0, 1, 156, 67];
        numbers[at] = value;
        let [a, b, c, d, high, low] = numbers;
        let expected = match u8::try_from(value) {
            Ok(_) => Ok(socket(&format!("{a}.{b}.{c}.{d}:{}", 256 * high + low))),
            Err(_) => Err(Malformed::Range),
        };
        let command = format!("PORT {a},{b},{c},{d},{high},{low}\r\n");
        assert_eq!(of_client(command.as_bytes()), Some(expected), "{command}");
    }
}

#[test]
fn an_announcement_admits_one_connection() {
    let mut run = Run::passive(100);
    // Other ports, other hosts, and the other direction.
    for (from, to) in [
        ("10.0.0.1:40001", "10.1.0.1:50001"),
        ("10.0.0.2:40001", DATA),
        ("10.0.0.1:40001", "10.1.0.2:50000"),
        (DATA, "10.0.0.1:40001"),
    ] {
        assert!(!run.joins(from, to), "{from} {to}");
    }
    assert!(run.joins("10.0.0.1:40001", DATA));
    assert!(!run.joins("10.0.0.1:40002", DATA));
    // Packets of both directions belong to the flow, which is a child of the control flow.
    let answer = run.packet(DATA, "10.0.0.1:40001", TcpFlags::SYN | TcpFlags::ACK, "");
    let control = run.packet(CLIENT, SERVER, TcpFlags::ACK, "NOOP\r\n");
    let (Ok(Admitted::Data(_, parent)), Ok(Admitted::Control(control))) = (answer, control) else {
        panic!("{answer:?} {control:?}")
    };
    assert_eq!(parent, control);
    // A line of a data connection announces nothing.
    let line = run.packet(DATA, "10.0.0.1:40001", TcpFlags::ACK, PASSIVE);
    assert_eq!(line, answer);
    assert!(!run.joins("10.0.0.1:40002", DATA));
}

#[test]
fn an_announcement_expires() {
    let last = Firewall::WITHIN - Duration::from_nanos(1);
    for (wait, is_joined) in [(Duration::ZERO, true), (last, true), (Firewall::WITHIN, false)] {
        let mut run = Run::passive(100);
        run.now = run.now + wait;
        assert_eq!(run.joins("10.0.0.1:40001", DATA), is_joined, "{wait:?}");
    }
}

#[test]
fn only_the_sides_themselves_are_announced() {
    let mut run = Run::passive(100);
    for (text, announced) in [
        ("PORT 10,0,0,2,156,67\r\n", "10.0.0.2:40003"),
        ("PORT 10,1,0,1,156,67\r\n", "10.1.0.1:40003"),
        ("PORT 10,0,0,1,3,255\r\n", "10.0.0.1:1023"),
    ] {
        let refused = run.packet(CLIENT, SERVER, TcpFlags::ACK, text);
        assert_eq!(refused, Err(Refused::Foreign(socket(announced))));
        assert!(!run.joins("10.1.0.1:20", announced));
    }
    let refused = run.packet(CLIENT, SERVER, TcpFlags::ACK, "PORT 1,2,3\r\n");
    assert_eq!(refused, Err(Refused::Malformed(Malformed::Numbers)));
    // Each side has its own line.
    for (from, to, text) in
        [(CLIENT, SERVER, "227 10,0,0,1,4,0\r\n"), (SERVER, CLIENT, "PORT 10,1,0,1,4,0\r\n")]
    {
        let seen = run.packet(from, to, TcpFlags::ACK, text);
        assert!(matches!(seen, Ok(Admitted::Control(_))), "{seen:?}");
    }
    assert!(!run.joins("10.1.0.1:20", "10.0.0.1:1024"));
    let seen = run.packet(CLIENT, SERVER, TcpFlags::ACK, "PORT 10,0,0,1,4,0\r\n");
    assert!(matches!(seen, Ok(Admitted::Announcement(..))), "{seen:?}");
    assert!(run.joins("10.1.0.1:20", "10.0.0.1:1024"));
}

#[test]
fn data_connections_end_with_their_parent() {
    let mut run = Run::passive(100);
    let data = "10.0.0.1:40001";
    assert!(run.joins(data, DATA));
    run.packet(DATA, data, TcpFlags::SYN | TcpFlags::ACK, "").expect("it is a flow");
    run.packet(data, DATA, TcpFlags::ACK, "").expect("it is a flow");
    // A second announcement, which no connection has used.
    run.packet(SERVER, CLIENT, TcpFlags::ACK, "227 10,1,0,1,195,81\r\n").expect("it is a flow");
    run.packet(CLIENT, SERVER, TcpFlags::RST, "").expect("it is a flow");
    assert_eq!(run.firewall.advance(run.now), []);
    run.now = run.now + Duration::from_secs(30);
    run.packet(data, DATA, TcpFlags::ACK, "").expect("it is a flow");
    // The time since creation ends no flow, the closed connection's timeout does.
    run.now = run.now + Duration::from_secs(120);
    let [control, child] = [(CLIENT, SERVER), (data, DATA)]
        .map(|(from, to)| Segment::new(socket(from), socket(to), TcpFlags::ACK, b"").key);
    assert_eq!(run.firewall.advance(run.now), [Ended { key: control, children: vec![child] }]);
    let dropped = run.packet(data, DATA, TcpFlags::ACK, "");
    assert_eq!(dropped, Err(Refused::NotExpected));
    assert!(!run.joins(data, "10.1.0.1:50001"));
    assert_eq!(run.firewall.advance(run.now), []);
}

/// The data connection evicts its parent, and ends with it.
#[test]
fn an_evicted_parent_ends_its_children() {
    let mut run = Run::passive(1);
    assert!(run.joins("10.0.0.1:40001", DATA));
    let dropped = run.packet("10.0.0.1:40001", DATA, TcpFlags::ACK, "");
    assert_eq!(dropped, Err(Refused::NotExpected));
    assert!(!run.joins("10.0.0.1:40002", DATA));
}

#[test]
fn segments_survive_packets() {
    for step in session::PACKETS {
        let packet = step.segment.packet();
        assert_eq!(Segment::read(&packet), Some(step.segment));
        for length in 0..packet.len() {
            assert_eq!(Segment::read(&packet[..length]), None, "{length} bytes");
        }
    }
    let udp = etherparse::PacketBuilder::ipv4([10, 0, 0, 1], [10, 1, 0, 1], 64).udp(21, 21);
    let mut packet = vec![];
    udp.write(&mut packet, b"PORT 10,0,0,1,4,0\r\n").expect("a vector takes all");
    assert_eq!(Segment::read(&packet), None);
}

#[test]
fn the_report_has_an_outcome_for_each_packet() {
    let report = Report::of(&session::PACKETS, session::END).expect("a number of flows");
    let (mut joined, mut dropped, mut ended) = (vec![], vec![], vec![]);
    for (_, event) in &report.events {
        match event {
            Event::Packet(segment, Ok(Admitted::Data(..))) => joined.push(segment.key.dport),
            Event::Packet(_, Ok(_)) => {}
            Event::Packet(segment, Err(refused)) => dropped.push((segment.key.dport, *refused)),
            Event::Ended(flow) => ended.push((flow.key.dport, flow.children.len())),
        }
    }
    assert_eq!(joined, [50_000, 40_001, 50_000, 40_003]);
    let foreign = |text| (21, Refused::Foreign(socket(text)));
    let malformed = |error| (21, Refused::Malformed(error));
    let expected = [
        (50_000, Refused::NotExpected),
        (40_009, Refused::NotExpected),
        (40_004, Refused::NotExpected),
        malformed(Malformed::Numbers),
        malformed(Malformed::Range),
        malformed(Malformed::Cut),
        foreign("10.0.0.9:40005"),
        foreign("10.0.0.1:22"),
    ];
    assert_eq!(dropped, expected);
    assert_eq!(ended, [(40_003, 0), (21, 1)]);
    let text = report.to_string();
    assert_eq!(text.lines().count(), 1 + report.events.len());
    assert!(text.lines().count() <= 24, "one screen: {text}");
    for words in [
        "flow 1 expects 10.1.0.1:50000\n",
        "flow 2, data of 1\n",
        "DROPPED: not six numbers\n",
        "DROPPED: a number above 255\n",
        "ended, and with it 10.0.0.1:40001 > 10.1.0.1:50000\n",
    ] {
        assert!(text.contains(words), "{words:?} in {text}");
    }
}
