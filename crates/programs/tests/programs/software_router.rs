//! The example `software_router`: its frames, its counters, its schedules and its report.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use capture::data::{self, ETHERNET, LITTLE, MICROSECONDS, pcap};
use capture::{Capture, synth};
use etherparse::Ipv4Header;
use flowtable::{FlowKey, Timestamp};
use lexopt::Parser;
use programs::input::Input;
use programs::packet_counts::PacketCounts;
use programs::program::{Call, Options as _, parse};
use programs::software_router::{
    Agreement, Classifier, Comparison, Costs, Datagram, Forwarder, Frame, Function, Options,
    Outcome, PathId, PathTally, Plan, Port, Refusal, Report, Router, Traffic, checksum,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::binary;
use crate::frames::{assert_right, ping, tcp, tcp_checksums, tcp6};

const SEED: u64 = 2001;

fn read(bytes: Vec<u8>) -> Option<Traffic> {
    let capture = Capture::memory(bytes);
    let mut capture = capture.unwrap_or_else(|error| panic!("a capture {error}"));
    Traffic::read(&mut capture, &mut PacketCounts::default())
}

/// Returns the generated traffic of the program.
fn made() -> &'static Traffic {
    static MADE: LazyLock<Traffic> =
        LazyLock::new(|| read(synth::capture(SEED)).expect("it has packets"));
    &MADE
}

/// Returns traffic of Ethernet frames, a millisecond apart.
fn traffic(frames: &[Vec<u8>]) -> Traffic {
    let records: Vec<_> =
        (0..).zip(frames).map(|(at, frame)| (1, 1000 * at, frame.as_slice())).collect();
    read(pcap(LITTLE, MICROSECONDS, ETHERNET, &records)).expect("it has packets")
}

fn run(plan: Plan, traffic: &Traffic, percent: u64) -> (Outcome, Vec<Frame>) {
    let rate = Costs::PAPER.capacity(traffic) * percent / 100;
    let mut frames = vec![];
    let outcome = Router::new(plan, &Costs::PAPER, traffic, rate).run(|frame| frames.push(frame));
    (outcome, frames)
}

const PLANS: [Plan; 6] = [
    Plan::Interrupts,
    Plan::Batch(1),
    Plan::Batch(16),
    Plan::Slice(50),
    Plan::Throttle(10),
    Plan::Throttle(2),
];

#[test]
fn no_packet_is_lost_without_being_counted() {
    for (plan, percent) in
        PLANS.into_iter().flat_map(|plan| [30, 110, 400].map(|percent| (plan, percent)))
    {
        let (outcome, frames) = run(plan, made(), percent);
        let Outcome { offered, card_drops, unread, unclassified, .. } = outcome;
        assert_eq!(offered, made().packets.len() as u64, "{plan:?}");
        let mut arrived = 0;
        for path in outcome.functions {
            let PathTally { input_drops, refused, sent, queued, .. } = path;
            assert_eq!(path.arrived, sent + input_drops + refused + queued);
            assert!(path.longest_input <= 128 && path.longest_output <= 128);
            arrived += path.arrived;
        }
        assert_eq!(offered, arrived + card_drops + unread + unclassified, "{plan:?}");
        assert_eq!(outcome.total().sent, frames.len() as u64, "{plan:?}");
        assert!(outcome.adds_up());
        // Under overload packets are dropped. Under low load, plans with few switches drop none.
        let lost = card_drops + outcome.total().input_drops;
        assert!(lost > 0 || percent < 100, "{plan:?}");
        let spares = !matches!(plan, Plan::Interrupts | Plan::Batch(1));
        assert!(lost == 0 || percent > 100 || !spares, "{plan:?}: {lost}");
    }
}

#[test]
fn a_missing_packet_is_detected() {
    let (outcome, _) = run(Plan::Batch(16), made(), 150);
    let path = outcome.functions[2];
    for wrong in [
        PathTally { arrived: path.arrived + 1, ..path },
        PathTally { sent: path.sent - 1, ..path },
        PathTally { input_drops: path.input_drops - 1, ..path },
        PathTally { refused: 1 + path.refused, ..path },
        PathTally { queued: path.queued + 1, ..path },
    ] {
        assert!(!wrong.adds_up());
        let mut outcome = outcome.clone();
        outcome.functions[2] = wrong;
        assert!(!outcome.adds_up());
    }
    assert!(!Outcome { offered: outcome.offered + 1, ..outcome.clone() }.adds_up());
    assert!(!Outcome { unclassified: outcome.unclassified + 1, ..outcome }.adds_up());
    let mut agreement = Agreement::new(2);
    [(0, b"ab"), (1, b"cd"), (0, b"ab")]
        .iter()
        .for_each(|(n, frame)| agreement.add(*n, &frame[..]));
    assert_eq!(agreement.disagreements, 0);
    agreement.add(1, b"ce");
    assert_eq!(agreement.disagreements, 1);
}

#[test]
fn schedules_send_the_same_frames_and_each_once() {
    let mut first: HashMap<u32, Frame> = HashMap::new();
    for plan in PLANS {
        let (_, frames) = run(plan, made(), 150);
        let mut numbers: Vec<u32> = frames.iter().map(|frame| frame.index).collect();
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{plan:?}");
        for frame in frames {
            let other = first.entry(frame.index).or_insert_with(|| frame.clone());
            assert_eq!(*other, frame, "{plan:?}");
        }
    }
}

#[test]
fn a_run_is_the_same_each_time() {
    for plan in PLANS {
        assert!(run(plan, made(), 150) == run(plan, made(), 150), "{plan:?}");
    }
}

#[test]
fn flows_stay_in_order() {
    for plan in PLANS {
        let mut last: HashMap<FlowKey, u32> = HashMap::new();
        for frame in run(plan, made(), 120).1 {
            let packet = &made().packets[frame.index as usize].packet;
            // Fragments take the general path, whatever their flow.
            if packet.is_plain() {
                let before = last.insert(packet.key, frame.index);
                assert!(before < Some(frame.index), "{plan:?}");
            }
        }
    }
}

#[test]
fn the_throttle_keeps_its_guarantee_under_overload() {
    for (percent, load) in [30, 20, 10, 5].into_iter().flat_map(|t| [(t, 150), (t, 400)]) {
        let (outcome, _) = run(Plan::Throttle(percent), made(), load);
        let guaranteed = 1.0 / (1.0 + f64::from(percent) / 100.0);
        let efficiency = outcome.efficiency();
        assert!(efficiency >= guaranteed - 0.005, "{percent} %, {load}: {efficiency}");
    }
    let efficiency = |plan| run(plan, made(), 150).0.efficiency();
    assert!(efficiency(Plan::Batch(1)) < 0.6);
    assert!(efficiency(Plan::Throttle(5)) > efficiency(Plan::Throttle(10)));
}

#[test]
fn without_a_schedule_more_packets_are_fewer() {
    let sent = |plan, percent| {
        let (outcome, _) = run(plan, made(), percent);
        outcome.rate(outcome.total().sent)
    };
    let loads = [50, 100, 200, 300, 400];
    let interrupts = loads.map(|load| sent(Plan::Interrupts, load));
    assert!(interrupts[1..].is_sorted_by(|more, less| more > less), "{interrupts:?}");
    assert!(interrupts[4] < 0.2 * interrupts[0], "{interrupts:?}");
    for plan in [Plan::Batch(16), Plan::Slice(50), Plan::Throttle(10)] {
        let polled = loads.map(|load| sent(plan, load));
        let most = polled.into_iter().fold(0.0, f64::max);
        assert!(polled[2..].iter().all(|rate| *rate > 0.9 * most), "{plan:?}: {polled:?}");
        assert!(polled[4] > 5.0 * interrupts[4]);
    }
}

#[test]
fn functions_share_a_link_by_what_frames_take_of_it() {
    // For a long packet of one function, thirty short ones of another.
    let short = tcp([10, 0, 0, 1], [203, 0, 113, 2], [1, 2], &[]);
    let mut long = ping(1, 64);
    long.truncate(14);
    long.extend(with_option(1500));
    let frame = |at| if at % 31 == 0 { long.clone() } else { short.clone() };
    let frames: Vec<_> = (0..9300).map(frame).collect();
    let traffic = traffic(&frames);
    assert_eq!(traffic.by_function, [9000, 300, 0, 0]);
    // The link has half of the time that all frames take.
    let costs = Costs { kilobyte: 800_000, ..Costs::PAPER };
    let outcome = Router::new(Plan::Batch(16), &costs, &traffic, 20_000).run(drop);
    let [short, long] = [0, 1].map(|at| outcome.functions[at].sent as f64);
    let ratio = short * (40.0 + 38.0) / (long * (1500.0 + 38.0));
    assert!(long > 100.0 && (0.9..1.1).contains(&ratio), "{short} and {long}: {ratio}");
}

/// Returns an IPv4 packet of this length, with an option.
fn with_option(length: u16) -> Vec<u8> {
    let mut ip = vec![0x46, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 203, 0, 113, 2];
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    ip.extend([1, 1, 1, 0]);
    let checksum = Ipv4Header::from_slice(&ip).expect("a header").0.calc_header_checksum();
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    let udp = [0, 1, 0, 2];
    ip.extend(udp);
    ip.extend((length - 24).to_be_bytes());
    ip.resize(length.into(), 0);
    ip
}

#[test]
fn turns_agree_with_the_plan() {
    let turns = |plan| run(plan, made(), 200).0.account.turns;
    let [one, sixteen, slice] = [Plan::Batch(1), Plan::Batch(16), Plan::Slice(50)].map(turns);
    assert!(one > 4 * sixteen && sixteen > slice, "{one} {sixteen} {slice}");
    // A port without packets is polled less and less often: there would be time for some 10,000
    // polls.
    let quiet = traffic(&(0..40).map(|number| ping(number, 64)).collect::<Vec<_>>());
    let outcome = Router::new(Plan::Batch(16), &Costs::PAPER, &quiet, 1000).run(drop);
    assert!((40..1500).contains(&outcome.empty_polls), "{outcome:?}");
    // With known queue lengths there are no empty polls.
    assert_eq!(run(Plan::Throttle(10), made(), 100).0.empty_polls, 0);
}

#[test]
fn frames_are_right() {
    let (outcome, frames) = run(Plan::Throttle(10), made(), 60);
    assert!(outcome.functions.iter().all(|path| path.sent > 100), "{outcome:?}");
    let mut summed = 0;
    for frame in &frames {
        assert_right(frame, &made().packets[frame.index as usize].packet);
        if let Some([checksum, right]) = tcp_checksums(&frame.bytes) {
            assert_eq!(checksum, right);
            summed += 1;
        }
    }
    assert!(summed > 10_000, "{summed}");
}

#[test]
fn frames_of_a_small_capture_are_right() {
    let [inside, outside] = [[10, 1, 2, 3], [203, 0, 113, 9]];
    let (host, server) = ("2001:db8:1::5", "2001:db8:9::5");
    let odd = b"an odd number of bytes, it is";
    let frames = [
        tcp(inside, outside, [5000, 443], odd),
        tcp(outside, inside, [443, 5000], b""),
        tcp(inside, outside, [5000, 22], odd),
        tcp6(host, server, [5000, 80], odd),
        tcp6(server, host, [80, 5000], b"1"),
        tcp6(server, host, [7, 8], b"22"),
        ping(1, 2),
        ping(2, 1),
        ping(1, 2),
        data::udp(53, 4000, 20),
    ];
    let small = traffic(&frames);
    // Their destinations are proxies, inside or outside.
    let ports = [2, 0, 1, 2, 0, 0, 1, 1, 1].map(|number| Port::ALL[number]);
    for plan in PLANS.into_iter().filter(|plan| !matches!(plan, Plan::Throttle(_))) {
        let outcome = Router::new(plan, &Costs::PAPER, &small, 1000);
        let mut sent = vec![];
        let outcome = outcome.run(|frame| sent.push(frame));
        assert!(outcome.adds_up() && outcome.total().refused == 2, "{plan:?}: {outcome:?}");
        assert!(sent.len() >= 7, "{plan:?}: {sent:?}");
        for frame in &sent {
            let number = frame.index as usize;
            assert_right(frame, &small.packets[number].packet);
            assert!(ports.get(number).is_none_or(|port| *port == frame.port), "{number}");
            assert!(number != 7 && number != 8, "it has expired, or come before");
            if let Some([checksum, right]) = tcp_checksums(&frame.bytes) {
                assert_eq!(checksum, right);
            }
        }
    }
}

#[test]
fn captures_are_forwarded() {
    let Some(folder) = data::folder() else {
        return data::announce("software_router", format_args!("SKIPPED: {}", data::NO_CAPTURES));
    };
    for path in data::captures(&folder) {
        let Ok(mut capture) = Capture::open(&path) else { continue };
        let Some(traffic) = Traffic::read(&mut capture, &mut PacketCounts::default()) else {
            continue;
        };
        for plan in [Plan::Interrupts, Plan::Batch(16), Plan::Throttle(10)] {
            let (outcome, frames) = run(plan, &traffic, 120);
            assert!(outcome.adds_up(), "{}: {plan:?}: {outcome:?}", path.display());
            for frame in frames {
                assert_right(&frame, &traffic.packets[frame.index as usize].packet);
            }
        }
    }
}

/// Returns the packet of a frame with this link type.
fn datagram(link: u32, frame: &[u8]) -> Option<Datagram> {
    let traffic = read(pcap(LITTLE, MICROSECONDS, link, &[(1, 0, frame)]))?;
    Some(traffic.packets[0].packet.clone())
}

#[test]
fn packets_begin_after_the_link_header_and_end_before_padding() {
    let frame = tcp([10, 0, 0, 1], [10, 0, 0, 2], [1, 2], b"");
    let ip = &frame[14..];
    let right = datagram(ETHERNET, &frame).expect("it is a packet");
    assert_eq!((&right.bytes[..], right.length, right.header_length()), (ip, 40, 20));
    assert!(right.is_plain() && right.is_segment() && right.is_v4());
    let vlan = [&frame[..12], &[0x81, 0, 0, 7, 8, 0], ip].concat();
    let cooked = [&[0; 14][..], &[8, 0], ip].concat();
    let padded = [&frame[..], &[0xee; 6]].concat();
    for (link, bytes) in [(1, vlan), (101, ip.to_vec()), (113, cooked), (1, padded)] {
        assert_eq!(datagram(link, &bytes), Some(right.clone()), "link {link}");
    }
    // Truncated: with or without a complete header.
    let cut = read(data::pcap_of_cut(ETHERNET, (1, 0, &frame[..40]), frame.len()));
    let cut = cut.expect("it is a packet").packets[0].packet.clone();
    assert_eq!(
        (cut.bytes.len(), cut.length, cut.is_plain(), cut.is_segment()),
        (26, 40, true, false)
    );
    assert_eq!(datagram(1, &frame[..30]), None);
    assert_eq!(datagram(1, &[0xff; 60]), None);
    assert_eq!(datagram(9, &[&[0, 0x21], ip].concat()), Some(right), "PPP");
}

/// Returns the result of a function for a packet.
fn forwarded(function: Function, packet: &Datagram) -> Result<Datagram, Refusal> {
    let mut packet = packet.clone();
    Forwarder::default().forward(function, &mut packet, Timestamp::ZERO).map(|()| packet)
}

#[test]
fn packets_are_refused_with_a_reason() {
    let packet = |bytes: &[u8]| datagram(101, bytes).expect("it is a packet");
    let frame = tcp([10, 0, 0, 1], [203, 0, 113, 2], [1, 2], b"x");
    let good = packet(&frame[14..]);
    for function in Function::ALL {
        assert!(forwarded(function, &good).is_ok());
        for (ttl, right) in [(0, Err(Refusal::Expired)), (1, Err(Refusal::Expired)), (2, Ok(1))] {
            let mut old = good.clone();
            old.bytes[8] = ttl;
            let left = forwarded(function, &old).map(|packet| packet.bytes[8]);
            assert_eq!(left, right, "{function:?}");
        }
    }
    let mut classifier = Classifier::default();
    let path = PathId { function: Function::Fast, port: Port::Outside };
    assert_eq!(classifier.classify(&good), Ok(path));
    let mut wrong = good.clone();
    wrong.bytes[10] ^= 1;
    assert_eq!(classifier.classify(&wrong), Err(Refusal::Malformed));
    let multicast = packet(&tcp([10, 0, 0, 1], [224, 0, 0, 1], [1, 2], b"x")[14..]);
    assert_eq!(classifier.classify(&multicast), Err(Refusal::NoRoute));
    assert_eq!(forwarded(Function::General, &multicast), Err(Refusal::NoRoute));
    let looped = packet(&tcp([127, 0, 0, 1], [203, 0, 113, 2], [1, 2], b"x")[14..]);
    assert_eq!(forwarded(Function::General, &looped), Err(Refusal::Malformed));
    assert_eq!(classifier.flows(), 1);
    // Repeated at once, and again after ten seconds.
    let (mut forwarder, mut again) = (Forwarder::default(), Vec::new());
    for seconds in [0, 9, 10] {
        let now = Timestamp::from_secs(seconds);
        again.push(forwarder.forward(Function::Active, &mut good.clone(), now));
    }
    assert_eq!(again, [Ok(()), Err(Refusal::Repeated), Ok(())]);
}

#[test]
fn packets_with_options_and_fragments_take_the_general_path() {
    let packet = |options: &[u8], fragment: u8| {
        let length = 20 + options.len();
        let mut ip = vec![0x40 | (length / 4) as u8, 0, 0, length as u8 + 8, 0, 0, fragment, 0];
        ip.extend([64, 17, 0, 0, 10, 0, 0, 1, 203, 0, 113, 2]);
        ip.extend(options);
        let checksum = Ipv4Header::from_slice(&ip).expect("a header").0.calc_header_checksum();
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        ip.extend([0, 1, 0, 2, 0, 8, 0, 0]);
        datagram(101, &ip).expect("it is a packet")
    };
    let mut classifier = Classifier::default();
    for (packet, function) in [
        (packet(&[], 0), Function::Fast),
        (packet(&[], 0x40), Function::Fast),
        (packet(&[], 0x20), Function::General),
        (packet(&[1, 1, 1, 0], 0), Function::General),
    ] {
        assert_eq!(classifier.classify(&packet).map(|path| path.function), Ok(function));
    }
    for (options, is_right) in [
        ([1, 1, 1, 1], true),
        ([7, 3, 4, 0], true),
        ([7, 4, 4, 0], true),
        ([7, 5, 4, 0], false),
        ([7, 1, 0, 0], false),
        ([1, 1, 1, 7], false),
        ([0, 7, 9, 9], true),
    ] {
        let general = forwarded(Function::General, &packet(&options, 0));
        assert_eq!(general.is_ok(), is_right, "{options:?}");
        if let Ok(packet) = general {
            let (header, _) = Ipv4Header::from_slice(&packet.bytes).expect("a header");
            assert_eq!(header.header_checksum, header.calc_header_checksum());
        }
    }
}

#[test]
fn a_checksum_after_a_change_is_that_of_all() {
    let mut rng = StdRng::seed_from_u64(SEED);
    for _ in 0..20_000 {
        let mut bytes: [u8; 40] = rng.random();
        bytes[10..12].fill(0);
        let before = checksum::of(&bytes);
        let (at, length) = (2 * rng.random_range(6..12_usize), 2 * rng.random_range(1..8_usize));
        let old = bytes[at..at + length].to_vec();
        rng.fill(&mut bytes[at..at + length]);
        assert_eq!(checksum::after(before, &old, &bytes[at..at + length]), checksum::of(&bytes));
    }
    assert_eq!(checksum::of(&[]), 0xffff);
    assert_eq!(checksum::of(&[1, 2, 3]), !0x0402);
}

#[test]
fn arrivals_keep_their_distances() {
    let frames: Vec<Vec<u8>> = (0..11).map(|port| data::udp(port, 9, 1)).collect();
    let traffic = traffic(&frames);
    let times: Vec<u64> = (0..11).filter_map(|index| traffic.time_ns(index, 1_100_000)).collect();
    assert_eq!(times[0], 0);
    for pair in times.windows(2) {
        assert!((109_999..=110_000).contains(&(pair[1] - pair[0])), "{times:?}");
    }
    assert!(times[10] < 1_100_000 && traffic.time_ns(11, 1_100_000).is_none());
    assert_eq!(traffic.duration_ns(1000), 11_000_000);
    // Simultaneous packets, and a single one.
    let at_once = [(1, 1, &frames[0][..]), (1, 1, &frames[1][..])];
    for records in [&at_once[..], &at_once[..1]] {
        let traffic = read(pcap(LITTLE, MICROSECONDS, ETHERNET, records)).expect("packets");
        assert_eq!(traffic.time_ns(records.len() - 1, 1000), Some(0));
        for plan in PLANS {
            let outcome = Router::new(plan, &Costs::PAPER, &traffic, 100).run(drop);
            assert!(outcome.adds_up() && outcome.offered == records.len() as u64);
        }
    }
    assert!(read(pcap(LITTLE, MICROSECONDS, ETHERNET, &[])).is_none());
    assert!(read(pcap(LITTLE, MICROSECONDS, ETHERNET, &[(1, 2, &[0xff; 60])])).is_none());
}

#[test]
fn costs_can_be_measured() {
    let frames: Vec<Vec<u8>> = (0..200).map(|port| data::udp(port, 9, 100)).collect();
    let traffic = traffic(&frames);
    let costs = Costs::measured(&traffic);
    assert!(costs.functions.iter().all(|cost| *cost > 0));
    assert!(costs.input > 0 && costs.output > 0 && costs.switch > 0);
    let comparison = Comparison::new(&traffic, &costs, 150, || {});
    comparison.verdict().expect("packets are accounted for");
    let report = Report { name: "udp", comparison: &comparison, has_paths: false }.to_string();
    assert!(report.contains("\nmeasured, and used "), "{report}");
}

#[test]
fn the_report_has_all_paths_and_plans() {
    let comparison = Comparison::new(made(), &Costs::PAPER, 150, || {});
    comparison.verdict().expect("packets are accounted for");
    assert_eq!((comparison.outcomes.len(), comparison.curve.len()), (5, 8));
    let [short, report] = [false, true]
        .map(|has_paths| Report { name: "made", comparison: &comparison, has_paths }.to_string());
    assert!(short.lines().count() <= 24 && short.lines().all(|line| line.len() <= 80), "{short}");
    for words in [
        "made: 53192 IP packets, 4716 flows; 100 other frames\n",
        "\nkpps sent ",
        "\nbatch of 1: E ",
        "\nbatch of 16: E ",
        "\nslice of 150 us: E ",
        "\nthrottle 10 %, 30 us: E ",
        "\ninterrupts: E ",
        "\n    IP, fast ",
        "\n    IP, general ",
        "\n    proxy ",
        "\n    active ",
        "\nrising load ",
    ] {
        assert!(report.contains(words), "{words:?} in {report}");
    }
    assert!(report.lines().all(|line| line.len() <= 87), "{report}");
}

#[test]
fn options_are_read() {
    let parse = |arguments: &[&str]| {
        let parsed = parse::<Options>(Parser::from_args(arguments));
        parsed.map(Call::options).map_err(|error| error.to_string())
    };
    let defaults = Options { capture: None, load: 150, measure: false, paths: false };
    assert_eq!(parse(&[]), Ok(Some(defaults)));
    assert_eq!(
        parse(&["-", "--load=9", "--measure", "--paths"]),
        Ok(Some(Options { capture: Some(Input::Pipe), load: 9, measure: true, paths: true }))
    );
    assert_eq!(parse(&["-", "--help"]), Ok(None));
    for (arguments, words) in [
        (&["--load", "0"][..], "--load 0: not from 1 to 1000"),
        (&["--load", "1001"], "--load 1001: not from 1 to 1000"),
        (&["--load", "much"], "--load much: not a number from"),
        (&["--load"], "missing argument for option '--load'"),
        (&["a.pcap", "b.pcap"], "unexpected argument \"b.pcap\""),
        (&["--fast"], "invalid option '--fast'"),
    ] {
        let error = parse(arguments).expect_err("it is refused");
        assert!(error.starts_with(words), "{error}");
    }
    assert!(["--load", "--measure"].iter().all(|option| Options::USAGE.contains(option)));
}

fn program(arguments: &[&str]) -> Output {
    let example = binary::of_example("software_router").unwrap_or_else(|why| panic!("{why}"));
    let mut command = Command::new(example);
    command.args(arguments).stdin(Stdio::null());
    command.output().expect("the example can be run")
}

#[test]
fn the_program_ends_with_the_right_code() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("software_router");
    std::fs::create_dir_all(&folder).expect("the build folder can be written");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).expect("it can be written");
        path.into_os_string().into_string().expect("the path is text")
    };
    let frames: Vec<Vec<u8>> = (0..300).map(|number| data::udp(number, 9, 10)).collect();
    let records: Vec<_> = (0..).zip(&frames).map(|(at, frame)| (1, at, &frame[..])).collect();
    let small = file("small.pcap", &pcap(LITTLE, MICROSECONDS, ETHERNET, &records));
    let cut = pcap(LITTLE, MICROSECONDS, ETHERNET, &records);
    let cut = file("cut.pcap", &cut[..cut.len() - 5]);
    let stray = [(1, 2, &[0xff; 60][..])];
    let stray = file("stray.pcap", &pcap(LITTLE, MICROSECONDS, ETHERNET, &stray));
    let text = file("text.pcap", b"this is not a capture of packets");
    for (arguments, code, words, message) in [
        (&["--help"][..], 0, "Usage: software_router", ""),
        (&[&small], 0, "300 IP packets, 300 flows", ""),
        (&[&small, "--load", "40", "--measure"], 0, "measured, and used", ""),
        (&[&cut], 0, "300 IP packets", "capture is cut after packet 299"),
        (&[&stray], 2, "", "has no IP packet to forward"),
        (&[&text], 2, "", "is no capture"),
        (&["-"], 2, "", "is empty, and no capture"),
        (&["there/is/none"], 2, "", "cannot be read"),
        (&["--load", "0"], 2, "", "not from 1 to 1000"),
        (&["--lode", "1"], 2, "", "invalid option"),
    ] {
        let output = program(arguments);
        let [stdout, stderr] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(
            stdout.contains(words) && stdout.is_empty() == words.is_empty(),
            "{arguments:?}: {stdout}"
        );
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
        assert_eq!(stderr.is_empty(), message.is_empty(), "{arguments:?}: {stderr}");
    }
    // Equal output in each run.
    let [first, second] = [program(&[]), program(&[])];
    assert_eq!((first.status.code(), first.stdout), (Some(0), second.stdout));
}
