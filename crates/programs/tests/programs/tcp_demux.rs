//! The example `tcp_demux`: its scripts, the agreement of its subjects, and its report.

use std::collections::HashSet;
use std::io::{self, ErrorKind};

use capture::data::{self, BIG, ETHERNET, IP_AT, MICROSECONDS, pcap};
use capture::{Capture, Numbers, Packet, synth};
use flowtable::demux::{Arrival, Demux, Found, NotFound, RejectedPcb, TrashDemux};
use flowtable::{FlowKey, TcpFlags};
use lexopt::Parser;
use programs::input::Input;
use programs::packet_counts::PacketCounts;
use programs::program::failure::{Failure, Kind};
use programs::program::{Call, Options as _, parse};
use programs::tcp_demux::{
    Comparison, Event, Examined, Host, Options, Pcb, Recorded, Report, Script, Seen, Segment,
    Subject, Tellers,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::conversation::Conversation;
use crate::conversation::Side::{self, Client, Server};

const SEED: u64 = 7;

const HANDSHAKE: [(Side, &str, u64); 3] = [(Client, "S", 0), (Server, "SA", 0), (Client, "A", 0)];
const CLOSE: [(Side, &str, u64); 3] = [(Client, "FA", 0), (Server, "FA", 0), (Client, "A", 0)];

fn played(segments: &[Segment]) -> (Script, Seen) {
    let mut host = Host::default();
    segments.iter().for_each(|segment| host.process(segment));
    host.finish().expect("there are segments")
}

/// Formats events: `?` and `=` arrive and find nothing or a PCB, with a `d` if there is data; `>`
/// is sent; `+` opens, `-` closes.
fn events(script: &Script) -> String {
    let word = |event: &Event| match *event {
        Event::Arrives { id, arrival, has_pcb } => {
            let data = if arrival == Arrival::Data { "d" } else { "" };
            format!("{}{id}{data}", if has_pcb { '=' } else { '?' })
        }
        Event::Sent(id) => format!(">{id}"),
        Event::Opens(id) => format!("+{id}"),
        Event::Closes(id) => format!("-{id}"),
    };
    script.events.iter().map(word).collect::<Vec<String>>().join(" ")
}

/// Returns the events of one connection, after all subjects have replayed them.
fn talk(said: &[(Side, &str, u64)]) -> String {
    let (script, _) = played(&Conversation::v4(40_000).all(said));
    assert_all_agree(&script);
    events(&script)
}

fn assert_all_agree(script: &Script) -> Comparison<'_> {
    let comparison = Comparison::new(script, Subject::all(script).0, || {});
    for score in &comparison.scores {
        assert_eq!(score.tally.first_wrong, None, "{}", score.name);
        assert_eq!(score.tally.examined.lookups(), script.lookups() as u64, "{}", score.name);
    }
    assert!(comparison.agrees() && comparison.scores.len() == 7);
    comparison
}

#[test]
fn a_connection_opens_with_the_answer_to_its_syn_and_closes_with_the_last_acknowledgement() {
    let data = [(Client, "A", 100), (Server, "A", 500), (Client, "A", 0)];
    let said = [&HANDSHAKE[..], &data, &CLOSE].concat();
    assert_eq!(talk(&said), "?0 +0 >0 =0 =0d >0 =0 =0 >0 =0 -0");
    let (script, seen) = played(&Conversation::v4(40_000).all(&said));
    assert_eq!((script.connections, script.most_open, script.keys.len()), (1, 1, 1));
    assert_eq!((seen.arrived, seen.sent, seen.segments()), (6, 3, 9));
    assert_eq!((seen.syn, seen.fin, seen.rst), (1, 2, 0));
    assert_eq!((seen.without_syn, seen.unanswered, seen.stray), (0, 0, 0));
    assert_eq!(script.pcb(0), Pcb { id: 0, segments: 5 });
    // The key is that of arriving segments.
    assert_eq!(script.keys[0].dport(), 443);
}

#[test]
fn data_with_the_fin_counts_as_data() {
    let said = [&HANDSHAKE[..], &[(Client, "FA", 9), (Server, "FA", 9), (Client, "A", 0)]].concat();
    assert_eq!(talk(&said), "?0 +0 >0 =0 =0d >0 =0 -0");
}

#[test]
fn fins_that_cross_are_both_acknowledged_before_the_end() {
    let mut line = Conversation::v4(40_000);
    let mut segments = line.all(&HANDSHAKE);
    segments.push(line.send(Server, "FA", 0));
    // Sent before the server's arrived: it does not acknowledge it.
    segments.push(line.crossing(Client, "FA", 0, 1));
    segments.push(line.send(Server, "A", 0));
    segments.push(line.send(Client, "A", 0));
    let (script, seen) = played(&segments);
    assert_eq!(events(&script), "?0 +0 >0 =0 >0 =0 >0 =0 -0");
    assert_eq!(seen.stray, 0);
}

#[test]
fn what_comes_after_the_end_finds_nothing() {
    let late = [(Client, "FA", 0), (Server, "R", 0)];
    let said = [&HANDSHAKE[..], &CLOSE, &late].concat();
    assert_eq!(talk(&said), "?0 +0 >0 =0 =0 >0 =0 -0 ?0");
    let (_, seen) = played(&Conversation::v4(40_000).all(&said));
    assert_eq!((seen.stray, seen.sent), (1, 3));
}

#[test]
fn a_reset_ends_a_connection_from_either_side() {
    let by = |side| talk(&[&HANDSHAKE[..], &[(side, "R", 0)], &[(Client, "A", 5)]].concat());
    assert_eq!(by(Client), "?0 +0 >0 =0 =0 -0 ?0d");
    assert_eq!(by(Server), "?0 +0 >0 =0 >0 -0 ?0d");
}

#[test]
fn an_unanswered_syn_leaves_no_pcb() {
    assert_eq!(talk(&[(Client, "S", 0), (Client, "S", 0)]), "?0 ?0");
    // There is no listener at first; then there is one.
    let said = [&[(Client, "S", 0), (Server, "RA", 0)], &HANDSHAKE[..]].concat();
    assert_eq!(talk(&said), "?0 ?1 +1 >1 =1");
    let (script, seen) = played(&Conversation::v4(40_000).all(&said));
    assert_eq!((script.connections, seen.unanswered, seen.syn), (1, 1, 2));
}

#[test]
fn a_repeated_syn_finds_what_there_is() {
    let said = [&[(Client, "S", 0)], &HANDSHAKE[..], &[(Client, "S", 0)]].concat();
    assert_eq!(talk(&said), "?0 ?0 +0 >0 =0 =0");
    let (script, seen) = played(&Conversation::v4(40_000).all(&said));
    assert_eq!((script.connections, seen.syn, seen.unanswered), (1, 3, 0));
}

#[test]
fn a_name_is_used_again_after_the_end() {
    let said = [&HANDSHAKE[..], &CLOSE, &HANDSHAKE].concat();
    assert_eq!(talk(&said), "?0 +0 >0 =0 =0 >0 =0 -0 ?1 +1 >1 =1");
    // Now the other side requests: the server is another.
    let back = [(Server, "S", 0), (Client, "SA", 0), (Server, "A", 0)];
    assert_eq!(
        talk(&[&HANDSHAKE[..], &CLOSE, &back].concat()),
        "?0 +0 >0 =0 =0 >0 =0 -0 ?1 +1 >1 =1"
    );
}

#[test]
fn a_syn_after_both_fins_does_not_wait_for_the_last_acknowledgement() {
    let said = [&HANDSHAKE[..], &CLOSE[..2], &HANDSHAKE].concat();
    assert_eq!(talk(&said), "?0 +0 >0 =0 =0 >0 -0 ?1 +1 >1 =1");
    // After one FIN it finds the old PCB.
    let said = [&HANDSHAKE[..], &CLOSE[..1], &HANDSHAKE[..1]].concat();
    assert_eq!(talk(&said), "?0 +0 >0 =0 =0 =0");
}

#[test]
fn syns_both_ways_are_an_answer() {
    let said = [(Client, "S", 0), (Server, "S", 0), (Client, "SA", 0), (Server, "SA", 0)];
    assert_eq!(talk(&said), "?0 +0 >0 =0 >0");
}

#[test]
fn an_answer_that_was_not_captured_shows_by_what_follows() {
    assert_eq!(talk(&[(Client, "S", 0), (Client, "A", 0), (Client, "A", 7)]), "?0 +0 =0 =0d");
    // Only the server's segments were captured.
    let said = [(Server, "SA", 0), (Server, "A", 9)];
    assert_eq!(talk(&said), "+0 >0 >0");
    let (script, seen) = played(&Conversation::v4(40_000).all(&said));
    assert_eq!((seen.without_syn, seen.unanswered, script.open_before.len()), (1, 0, 0));
    assert_eq!(script.keys[0].dport(), 443);
}

#[test]
fn without_a_syn_a_connection_was_open_before() {
    let mut early = Conversation::v4(40_000);
    let mut segments = early.all(&HANDSHAKE);
    // It appears later, and was open before. The host has the lower port.
    segments.extend(Conversation::v4(50_000).all(&[(Server, "A", 10), (Client, "A", 0)]));
    let (script, seen) = played(&segments);
    assert_all_agree(&script);
    assert_eq!(events(&script), "?0 +0 >0 =0 >1 =1");
    assert_eq!((&script.open_before[..], &script.open_after[..]), (&[1][..], &[0, 1][..]));
    assert_eq!((&script.to_close[..], &script.to_open[..]), (&[0][..], &[][..]));
    assert_eq!((script.connections, script.most_open, seen.without_syn), (2, 2, 1));
    assert_eq!(script.keys[1].dport(), 443);
    // With equal ports, the host is the receiver of the first segment.
    let mut peers = Conversation::new("10.0.0.1:179", "10.0.0.2:179");
    let (script, _) = played(&peers.all(&[(Server, "A", 1), (Client, "A", 0)]));
    assert_eq!((events(&script).as_str(), script.keys[0]), ("=0d >0", peers.key.reversed()));
    // It ends, too.
    let (script, _) = played(&Conversation::v4(1).all(&CLOSE));
    assert_eq!((events(&script).as_str(), &script.to_open[..]), (">0 =0 >0 -0", &[0][..]));
}

#[test]
fn a_reset_alone_opens_nothing() {
    let (script, seen) =
        played(&Conversation::v4(40_000).all(&[(Client, "R", 0), (Client, "A", 4)]));
    assert_eq!((events(&script).as_str(), script.connections), ("?0 ?0d", 0));
    assert_eq!((seen.rst, seen.stray, seen.without_syn), (1, 2, 0));
    assert_all_agree(&script);
}

#[test]
fn both_versions_of_ip_are_in_one_table() {
    let lines =
        [Conversation::v4(40_000), Conversation::new("[2001:db8::1]:40000", "[2001:db8::2]:443")];
    let [four, six] = lines.map(|mut line| line.all(&HANDSHAKE));
    let mixed: Vec<Segment> =
        four.into_iter().zip(six).flat_map(|(four, six)| [four, six]).collect();
    let (script, _) = played(&mixed);
    assert_eq!(events(&script), "?0 ?1 +0 >0 +1 >1 =0 =1");
    assert_eq!(script.most_open, 2);
    assert_all_agree(&script);
}

/// Returns implausible segments: any flags, any numbers, few sockets.
fn random_segments(rng: &mut StdRng, count: usize) -> Vec<Segment> {
    let mut lines: Vec<Conversation> =
        (0..rng.random_range(1..40)).map(|port| Conversation::v4(430 + port)).collect();
    lines.extend(
        (1..8).map(|n| Conversation::new(&format!("[2001:db8::{n}]:443"), "[2001:db8::]:443")),
    );
    let letters = ["S", "SA", "A", "A", "A", "FA", "FA", "R", "", "SF", "SR"];
    let segment = |_| {
        let line = rng.random_range(0..lines.len());
        let side = if rng.random_bool(0.5) { Client } else { Server };
        let letters = letters[rng.random_range(0..letters.len())];
        let (payload, crossing) = (rng.random_range(0..3), rng.random_range(0..3));
        lines[line].crossing(side, letters, payload, crossing)
    };
    (0..count).map(segment).collect()
}

#[test]
fn all_variants_agree_on_random_segments() {
    let mut rng = StdRng::seed_from_u64(SEED);
    let (mut connections, mut strays) = (0, 0);
    for _ in 0..100 {
        let (script, seen) = played(&random_segments(&mut rng, 400));
        assert_all_agree(&script);
        assert_eq!(seen.segments(), 400);
        connections += script.connections;
        strays += seen.stray;
    }
    assert!(connections > 1000 && strays > 100, "{connections}, {strays}");
}

#[test]
fn a_script_can_be_played_again() {
    let mut rng = StdRng::seed_from_u64(SEED);
    let recorded = played(&random_segments(&mut rng, 400)).0;
    let tellers = Tellers { connections: 20, lookups: 200, seed: SEED }.script();
    assert!(!recorded.to_open.is_empty() && !recorded.to_close.is_empty());
    for script in [recorded, tellers] {
        for mut subject in Subject::all(&script).0 {
            assert_eq!(subject.count(&script).wrong, 0);
            for _ in 0..3 {
                subject.rewind(&script);
                assert_eq!(subject.run(&script), script.sum(), "{}", subject.name);
            }
        }
    }
}

/// A demultiplexer with a fault.
struct Faulty {
    right: TrashDemux<Pcb, FlowKey>,
    fault: Fault,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Finds a PCB for what has none.
    Finds,
    /// Finds another PCB.
    Mixes,
    /// Looks up, and returns nothing.
    Misses,
    /// Does not remove PCBs.
    Keeps,
    /// Does not insert PCBs.
    Refuses,
}

impl Demux<Pcb, FlowKey> for Faulty {
    fn insert(&mut self, key: FlowKey, mut pcb: Pcb) -> Result<(), RejectedPcb<Pcb>> {
        match self.fault {
            Fault::Refuses => Ok(()),
            Fault::Mixes => {
                pcb.id ^= 1;
                self.right.insert(key, pcb)
            }
            _ => self.right.insert(key, pcb),
        }
    }

    fn lookup(&mut self, key: &FlowKey, arrival: Arrival) -> Found<'_, Pcb> {
        let name = match self.fault {
            Fault::Finds => self.right.map().keys().next().copied().unwrap_or(*key),
            _ => *key,
        };
        let found = self.right.lookup(&name, arrival);
        if matches!(self.fault, Fault::Misses) { Found { pcb: None, ..found } } else { found }
    }

    fn remove(&mut self, key: &FlowKey) -> Result<Pcb, NotFound> {
        match self.fault {
            Fault::Keeps => self.right.lookup(key, Arrival::Data).pcb.copied().ok_or(NotFound),
            _ => self.right.remove(key),
        }
    }

    fn len(&self) -> usize {
        self.right.len()
    }
}

#[test]
fn errors_are_noticed() {
    let mut lines = [Conversation::v4(40_000), Conversation::v4(40_001)];
    let mut segments: Vec<Segment> =
        lines.iter_mut().flat_map(|line| line.all(&HANDSHAKE)).collect();
    segments.extend(lines[0].all(&CLOSE));
    segments.push(lines[0].send(Client, "A", 1));
    let (script, _) = played(&segments);
    for (fault, words) in [
        (Fault::Finds, "PCB Some(0) for Arrives { id: 1"),
        (Fault::Mixes, "PCB Some(1) for Arrives { id: 0"),
        (Fault::Misses, "PCB None for Arrives { id: 0"),
        (Fault::Keeps, "PCB Some(0) for Arrives { id: 0"),
        (Fault::Refuses, "PCB None for Arrives { id: 0"),
    ] {
        let faulty = Faulty { right: TrashDemux::new(), fault };
        let (mut subjects, _) = Subject::all(&script);
        subjects.push(Subject::by_name("Faulty", faulty, &script));
        let comparison = Comparison::new(&script, subjects, || {});
        assert!(!comparison.agrees(), "{fault:?}");
        let first = comparison.scores[7].tally.first_wrong.as_deref().expect("it is wrong");
        assert!(first.starts_with(words), "{fault:?}: {first}");
        let report =
            Report { traffic: &"these", scores: &comparison.scores, left_out: &[] }.to_string();
        assert!(report.contains("PCBs DISAGREE: Faulty, ") && !report.contains("all found"));
    }
}

#[test]
fn tellers_are_as_the_paper_has_them() {
    let tellers = Tellers { connections: 100, lookups: 5000, seed: SEED };
    let script = tellers.script();
    assert_eq!((script.lookups(), script.connections, script.most_open), (5000, 100, 100));
    assert_eq!(script.events, tellers.script().events, "each run has the same");
    // 50 seconds of warm-up are some ten segments for each.
    let warm_up = script.events.len() - script.counted().len();
    assert!((1000..2000).contains(&warm_up), "{warm_up}");
    let comparison = assert_all_agree(&script);
    let mean = |name| {
        let score = comparison.scores.iter().find(|score| score.name == name);
        score.expect("it takes part").tally.examined.mean()
    };
    // 1 + (N² - 1) / 2N.
    assert!((mean("BsdList") - 51.0).abs() < 2.0, "{}", mean("BsdList"));
    assert!(mean("MoveToFront") < 35.0 && mean("Sequent") < 5.0);
    // A lookup compares up to 15 other tags of a group, and one in 128 is equal: 1.1 on average.
    // The connections are sequential, and under some seeds such keys have equal tags more often.
    assert!((1.0..2.5).contains(&mean("TrashDemux")), "{}", mean("TrashDemux"));
    assert_eq!(mean("ConnectionId"), 1.0);
    let words = tellers.to_string();
    assert!(
        words.contains("5000 segments") && words.contains("\n       100 connections"),
        "{words}"
    );
}

#[test]
fn quantiles_and_hits_are_counted() {
    let mut examined = Examined::default();
    assert_eq!((examined.mean(), examined.quantile(0.99), examined.most()), (0.0, 0, 0));
    assert_eq!(examined.hit_ratio(), 0.0);
    (1..=100).for_each(|pcbs| examined.add(pcbs, true));
    assert_eq!((examined.mean(), examined.most(), examined.lookups()), (50.5, 100, 100));
    assert_eq!([0.01, 0.5, 0.99, 1.0].map(|share| examined.quantile(share)), [1, 50, 99, 100]);
    assert_eq!(examined.hit_ratio(), 0.01);
    // An examined PCB of another connection is no hit; nor is none at all.
    examined.add(1, false);
    examined.add(0, false);
    assert_eq!((examined.hits, examined.lookups(), examined.quantile(0.001)), (1, 102, 0));
}

#[test]
fn the_report_has_a_line_for_each_variant() {
    let said = [&HANDSHAKE[..], &CLOSE].concat();
    let (script, seen) = played(&Conversation::v4(40_000).all(&said));
    let recorded = Recorded { script, seen };
    let mut comparison = assert_all_agree(&recorded.script);
    for (score, time) in comparison.scores.iter_mut().zip(1_u8..) {
        score.times_ns = [900.0, 7.25, 0.5].map(|ns| ns * f64::from(time)).to_vec();
    }
    comparison.scores[6].times_ns.clear();
    let traffic = format!("lab.pcap: {recorded}");
    let report =
        Report { traffic: &traffic, scores: &comparison.scores, left_out: &[] }.to_string();
    for words in [
        "lab.pcap: 6 TCP segments, 4 arrive at the host, 2 leave it",
        "\n         1 connections, 1 at once at most\n",
        "\n         1 SYN, 2 FIN, 0 RST\n",
        "\nBsdList                 0.75         1         1         1   75.00 %       7.2\n",
        "\nMoveToFront             0.75         1         1         1   75.00 %      14.5\n",
        "\nSendReceive ",
        "\nSequent ",
        "\nSequentMoveToFront ",
        "\nConnectionId ",
        "\nTrashDemux              0.75         1         1         1   75.00 %         -\n",
        "\nhits: the first PCB",
        "\nall found the same PCBs\n",
    ] {
        assert!(report.contains(words), "{words:?} in {report}");
    }
    assert!(!report.contains("not in the capture") && !report.contains("led to no connection"));
    let late = [(Client, "S", 0), (Server, "R", 0), (Client, "A", 0)];
    let (script, seen) = played(&Conversation::v4(40_000).all(&late));
    let words = Recorded { script, seen }.to_string();
    assert!(words.contains("\n         1 SYNs that led to no connection\n"), "{words}");
    assert!(words.contains("\n         1 segments that arrive for no connection\n"), "{words}");
    let (script, seen) = played(&Conversation::v4(40_000).all(&CLOSE));
    let words = Recorded { script, seen }.to_string();
    assert!(
        words.contains("\n         1 connections whose SYN is not in the capture\n"),
        "{words}"
    );
}

/// Parses an Ethernet frame.
fn packet(frame: &[u8]) -> Packet {
    cut_packet(frame, frame.len())
}

/// Parses an Ethernet frame that had this length on the wire.
fn cut_packet(frame: &[u8], wire_len: usize) -> Packet {
    let bytes = data::pcap_of_cut(ETHERNET, (1, 2, frame), wire_len);
    let mut capture = Capture::memory(bytes).unwrap_or_else(|error| panic!("a capture {error}"));
    Packet::of(&capture.next_frame().expect("there is a frame")).expect("it has a flow")
}

/// A TCP header of 32 bytes, with numbers and flags.
const TCP: [u8; 32] = [
    0x9c, 0x40, 1, 0xbb, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xf0, 0x80, 0x11, 0, 0, 0, 0, 0, 0, 1, 1, 8,
    10, 0, 0, 0, 1, 0, 0, 0, 2,
];

#[test]
fn numbers_of_segments_are_read() {
    let mut ethernet = [2; IP_AT];
    ethernet[12..].copy_from_slice(&[8, 0]);
    // 24 bytes with an option, 32 of TCP and 5 of payload, padded to the least length of a frame.
    let mut four =
        vec![0x46, 0, 0, 61, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 0];
    four.extend(TCP);
    let right = Some(Numbers { sequence: 9, acknowledgment: 0xffff_fff0, payload: 5 });
    let whole = [&ethernet[..], &four, b"12345000"].concat();
    let read = packet(&whole);
    assert_eq!((read.numbers, read.flags), (right, Some(TcpFlags(0x11))));
    // A capture that ends after the flags has all fields.
    let short = cut_packet(&whole[..IP_AT + 24 + 14], whole.len());
    assert_eq!(short, read);
    let cut = cut_packet(&whole[..IP_AT + 24 + 13], whole.len());
    assert_eq!((cut.numbers, cut.flags, Segment::of(&cut)), (None, None, None));
    let segment = Segment::of(&read).expect("it is one");
    assert_eq!((segment.end(), segment.arrival()), (9 + 5 + 1, Arrival::Data));
    assert!(segment.acknowledges(0xffff_fff0) && segment.acknowledges(0xffff_ffef));
    assert!(!segment.acknowledges(0xffff_fff1) && !segment.acknowledges(3));

    ethernet[12..].copy_from_slice(&[0x86, 0xdd]);
    // Eight bytes of hop-by-hop options, sixteen of destination options.
    let mut six = vec![0x60, 0, 0, 0, 0, 61, 0, 64];
    six.extend([0x20; 32]);
    six.extend([60, 0, 1, 4, 0, 0, 0, 0]);
    six.extend([6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    six.extend(TCP);
    assert_eq!(packet(&[&ethernet[..], &six, b"12345"].concat()).numbers, right);
    assert_eq!(packet(&data::udp(1, 2, 100)).numbers, None);
}

fn read(bytes: Vec<u8>) -> Option<Recorded> {
    let capture = Capture::memory(bytes);
    let mut capture = capture.unwrap_or_else(|error| panic!("a capture {error}"));
    Recorded::read(&mut capture, &mut PacketCounts::default())
}

#[test]
fn a_capture_without_tcp_is_none() {
    assert!(read(pcap(BIG, MICROSECONDS, ETHERNET, &[])).is_none());
    let [udp, stray] = [data::udp(1, 2, 3), vec![0xff; 40]];
    assert!(read(pcap(BIG, MICROSECONDS, ETHERNET, &[(1, 2, &udp), (3, 4, &stray)])).is_none());
    let with_one =
        read(pcap(BIG, MICROSECONDS, ETHERNET, &[(1, 2, &udp), (3, 4, &data::tcp6(5, 6))]));
    assert_eq!(with_one.expect("it has a segment").seen.segments(), 1);
}

#[test]
fn made_up_captures_are_played() {
    let recorded = read(synth::capture(SEED)).expect("it has TCP");
    assert_all_agree(&recorded.script);
    assert!(recorded.script.connections > 100 && recorded.seen.rst > 0, "{recorded}");
    assert_eq!(recorded.seen.without_syn, 0);
}

#[test]
fn captures_have_the_connections_that_they_are_known_to_have() {
    let Some(folder) = data::folder() else {
        return data::announce("tcp_demux", format_args!("SKIPPED: {}", data::NO_CAPTURES));
    };
    // Segments and keys as in the folder's README; connections, maximum at once, unanswered SYNs.
    for (name, right) in [
        ("oltp/lab-oltp-pg-400.pcap.gz", [73_404, 893, 893, 411, 0]),
        // 31 are answered only after their third SYN; by then others are closed.
        ("oltp/zeek-echo-connections-third.pcap.gz", [27_284, 165, 165, 134, 0]),
        // Keys are reused.
        ("mix/lab-http-churn-small.pcap.gz", [75_626, 6840, 7004, 47, 0]),
        // Connections that do not end in the capture stay open to its end.
        ("mix/mix-public.pcap.gz", [51_738, 615, 590, 194, 24]),
        // Scans of ports without listeners.
        ("mix/westermo-right-part1.pcap.gz", [3050, 3009, 20, 1, 2989]),
    ] {
        let Ok(mut capture) = Capture::open(&folder.join(name)) else {
            data::announce("tcp_demux", format_args!("SKIPPED: there is no {name}"));
            continue;
        };
        let Recorded { script, seen } =
            Recorded::read(&mut capture, &mut PacketCounts::default()).expect("it has TCP");
        let names: HashSet<FlowKey> = script.keys.iter().map(|key| key.normalized().0).collect();
        let Script { connections, most_open, .. } = script;
        let counts = [seen.segments(), names.len(), connections, most_open, seen.unanswered];
        assert_eq!(counts, right, "{name}");
        assert_all_agree(&script);
    }
    for path in data::captures(&folder) {
        let Ok(mut capture) = Capture::open(&path) else { continue };
        let recorded = Recorded::read(&mut capture, &mut PacketCounts::default());
        recorded.iter().for_each(|recorded| drop(assert_all_agree(&recorded.script)));
    }
}

#[test]
fn options_are_read() {
    let parse = |arguments: &[&str]| {
        let parsed = parse::<Options>(Parser::from_args(arguments));
        parsed.map(Call::options).map_err(|error| error.to_string())
    };
    let capture = |arguments: &[&str]| parse(arguments).map(|parsed| parsed.map(|it| it.capture));
    let connections =
        |arguments: &[&str]| parse(arguments).map(|parsed| parsed.map(|it| it.connections()));
    assert_eq!((capture(&[]), connections(&[])), (Ok(Some(None)), Ok(Some(2000))));
    assert_eq!(connections(&["--connections", "50"]), Ok(Some(50)));
    assert_eq!(capture(&["-"]), Ok(Some(Some(Input::Pipe))));
    assert_eq!(capture(&["a.pcap"]), Ok(Some(Some(Input::File("a.pcap".into())))));
    assert_eq!((parse(&["--help", "-"]), parse(&["-h", "--loud"])), (Ok(None), Ok(None)));
    for (arguments, words) in [
        (&["--connections", "0"][..], "--connections 0: not from 1 to 20000"),
        (&["--connections=20001"], "--connections 20001: not from 1 to 20000"),
        (&["--connections", "-3"], "--connections -3: not a number from"),
        (&["--connections", "many"], "--connections many: not a number from"),
        (&["--connections"], "missing argument for option '--connections'"),
        (&["a.pcap", "--connections", "5"], "--connections is for generated traffic"),
        (&["a.pcap", "b.pcap"], "unexpected argument \"b.pcap\""),
        (&["--loud"], "invalid option '--loud'"),
    ] {
        let error = parse(arguments).expect_err("it is refused");
        assert!(error.starts_with(words), "{error}");
    }
    assert!(Options::USAGE.contains("\n    --connections N "));
}

#[test]
fn failures_have_their_codes() {
    let closed = || io::Error::from(ErrorKind::BrokenPipe);
    let full = || io::Error::from(ErrorKind::StorageFull);
    for (failure, code, words) in [
        (Failure::from(closed()), 0, "the results cannot be written"),
        (Failure::from(full()), 1, "the results cannot be written"),
        (Failure::new(Kind::Results, "the PCBs disagree"), 1, "the PCBs disagree"),
        (Failure::from(lexopt::Error::from("x")), 2, "x (--help lists the options)"),
        (Failure::new(Kind::Input, "a is empty"), 2, "a is empty"),
    ] {
        assert_eq!(failure.code(), code, "{failure}");
        assert!(failure.to_string().starts_with(words), "{failure}");
    }
}
