//! The example `shared_reader`: its traffic, its threads, and the consistency of its counters.

use core::time::Duration;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use capture::data::{BIG, ETHERNET, LITTLE, MICROSECONDS, pcap, small};
use capture::{Capture, synth};
use flowtable::FlowKey;
use lexopt::Parser;
use programs::input::Input;
use programs::packet_counts::PacketCounts;
use programs::program::{Call, Options as _, parse};
use programs::shared_reader::{
    BURST, Control, Ended, Feed, Flows, Generated, Latency, Options, Outcome, Packet, Plan,
    Recorded, Report, Sums, Traffic, run,
};

const SEED: u64 = 7;
const SECOND: u64 = 1_000_000_000;

fn generated(flows: u32) -> Traffic {
    Traffic::Generated(Generated::new(flows, SEED))
}

fn recorded(bytes: Vec<u8>) -> Option<Recorded> {
    let capture = Capture::memory(bytes);
    let mut capture = capture.unwrap_or_else(|error| panic!("a capture {error}"));
    Recorded::read(&mut capture, &mut PacketCounts::default())
}

/// Returns `count` packets from `first` on. Both are multiples of the length of a burst.
fn packets(traffic: &Traffic, first: usize, count: usize) -> Vec<Packet> {
    let bursts = (first..first + count).step_by(BURST);
    bursts.flat_map(|first| traffic.burst(first as u64)).collect()
}

fn keys(packets: &[Packet]) -> HashSet<FlowKey> {
    packets.iter().map(|packet| packet.key).collect()
}

#[test]
fn made_traffic_is_zipfs_and_the_same_each_time() {
    const FLOWS: usize = 1000;
    let traffic = generated(FLOWS as u32);
    let first = packets(&traffic, 0, 64 * FLOWS);
    assert_eq!(first, packets(&generated(FLOWS as u32), 0, 64 * FLOWS));
    assert!(first.is_sorted_by_key(|packet| packet.time_ns));
    let mut counts: HashMap<FlowKey, usize> = HashMap::new();
    first.iter().for_each(|packet| *counts.entry(packet.key).or_default() += 1);
    let mut counts: Vec<usize> = counts.into_values().collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    // A few flows have been replaced meanwhile.
    assert!((FLOWS * 9 / 10..FLOWS * 11 / 10).contains(&counts.len()), "{}", counts.len());
    // Zipf's distribution of exponent 1: of a thousand ranks, the first third in logarithms is ten.
    let head: usize = counts[..10].iter().sum();
    assert!((first.len() / 5..first.len() / 2).contains(&head), "{head} of {}", first.len());
    let versions = first.iter().filter(|packet| packet.key.src().is_ipv6()).count();
    assert!((1..first.len() / 2).contains(&versions));
}

#[test]
fn the_set_of_flows_changes_slowly() {
    let traffic = generated(1000);
    let [now, soon, later] = [0, 8, 200].map(|seconds| {
        // There are 50,000 packets in a second.
        keys(&packets(&traffic, seconds * 50_000, 10_000 / BURST * BURST))
    });
    let both = now.intersection(&soon).count();
    assert!(both > now.len() / 2, "{both} of {}", now.len());
    assert_eq!(now.intersection(&later).count(), 0);
}

#[test]
fn a_capture_is_dealt_out_over_and_over() {
    let recorded = recorded(small(LITTLE, MICROSECONDS)).expect("it has three packets");
    assert_eq!(recorded.packet_count(), 3);
    let dealt = packets(&Traffic::Recorded(recorded), 32, BURST);
    assert_eq!(keys(&dealt).len(), 2);
    let times: Vec<u64> = dealt[..4].iter().map(|packet| packet.time_ns).collect();
    // From 20 s to 30 s; the second packet is out of order. The next round follows after a third of
    // that.
    let length = 10 * SECOND + 992_000;
    let round = length + length / 3;
    // Index 32 is the last one of the eleventh round.
    assert_eq!(times, [length, round, round, round + length].map(|time| time + 10 * round));
}

#[test]
fn a_capture_without_flows_is_none() {
    let stray: &[u8] = &[0xff; 20];
    assert!(recorded(pcap(BIG, MICROSECONDS, ETHERNET, &[(1, 2, stray)])).is_none());
    assert!(recorded(pcap(BIG, MICROSECONDS, ETHERNET, &[])).is_none());
}

#[test]
fn all_is_dealt_out_once() {
    let traffic = generated(100);
    let feed = Feed::new(&traffic);
    let lot = Feed::LOT as usize;
    let dealt: Vec<Packet> = [feed.take(), feed.take()].into_iter().flatten().flatten().collect();
    assert_eq!((feed.taken(), dealt.len()), (2 * Feed::LOT, 2 * lot));
    assert_eq!(dealt, packets(&traffic, 0, 2 * lot));
    assert_eq!(feed.now(), dealt[lot].time_ns);
}

fn packet(number: u8, time_ns: u64) -> Packet {
    let [src, dst] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().expect("an address"));
    let key = FlowKey::new(src, dst, number.into(), 53, 17).expect("one version");
    Packet { key, bytes: 100, time_ns }
}

#[test]
fn a_silent_flow_ends_and_a_busy_one_does_not() {
    let (flows, ended) = (Flows::new(), Arc::new(Ended::default()));
    let mut control = Control::new(&flows, &ended, Duration::from_secs(10));
    control.round([packet(1, 0), packet(2, 0), packet(2, 0)].into_iter(), 0);
    assert_eq!(flows.len(), 2);
    for second in 1..=15 {
        let now = second * SECOND;
        // As a worker does.
        flows.pin().get(&packet(2, 0).key).expect("it is busy").count(&packet(2, now));
        control.round([].into_iter(), now);
        let is_there = flows.pin().get(&packet(1, 0).key).is_some();
        // It is checked every five seconds.
        assert_eq!(is_there, second < 10, "{second}");
    }
    let written = control.end();
    assert_eq!((written.insertions.count(), written.late, written.removals.count()), (2, 1, 1));
    assert_eq!(ended.sums(), Sums { flows: 1, packets: 1, bytes: 100 });
    drop(flows);
    assert_eq!(ended.sums(), Sums { flows: 2, packets: 18, bytes: 1800 });
}

#[test]
fn a_round_is_bounded() {
    const FLOWS: u32 = 10 * Control::ROUND as u32;
    let (flows, ended) = (Flows::new(), Arc::new(Ended::default()));
    let mut control = Control::new(&flows, &ended, Duration::from_secs(1));
    let traffic = generated(FLOWS);
    control.round(packets(&traffic, 0, FLOWS as usize).into_iter(), 0);
    let mut left = flows.len();
    assert!(left > 2 * Control::ROUND);
    while left > 0 {
        control.round([].into_iter(), 1000 * SECOND);
        assert_eq!(flows.len(), left.saturating_sub(Control::ROUND));
        left = flows.len();
    }
    control.end();
    assert_eq!(ended.sums().packets, u64::from(FLOWS));
}

fn run_shortly(traffic: &Traffic, workers: usize, timeout_ns: u64) -> Outcome {
    let (duration, timeout) = (Duration::from_millis(200), Duration::from_nanos(timeout_ns));
    let outcome = run(traffic, Plan { workers, duration, timeout }).expect("there are threads");
    assert_eq!(outcome.disagreements(), [""; 0], "{outcome:?}");
    assert!(outcome.workers.len() == workers && outcome.elapsed >= duration);
    outcome
}

#[test]
fn counters_agree() {
    let traffic = generated(1000);
    for workers in [1, 2, 5] {
        let outcome = run_shortly(&traffic, workers, SECOND / 10);
        let total = outcome.total();
        assert!(total.hits > 0 && outcome.written.insertions.count() > 0, "{outcome:?}");
        assert!(outcome.written.removals.count() > 0, "{outcome:?}");
    }
}

#[test]
fn counters_agree_when_the_control_thread_lags() {
    // All flows are new, and silent at once.
    let outcome = run_shortly(&generated(50_000_000), 3, 1);
    assert!(outcome.total().dropped > 0, "{outcome:?}");
    let outcome = run_shortly(
        &Traffic::Recorded(recorded(synth::capture(SEED)).expect("it has packets")),
        2,
        SECOND,
    );
    assert!(outcome.total().queued > 0, "{outcome:?}");
}

#[test]
fn a_lost_packet_is_noticed() {
    let outcome = run_shortly(&generated(100), 1, SECOND);
    let detects = |change: fn(&mut Outcome), words| {
        let mut wrong = outcome.clone();
        change(&mut wrong);
        let found = wrong.disagreements();
        assert!(found.iter().any(|what| what.starts_with(words)), "{found:?}");
        let report = Report { input: &"these", outcome: &wrong }.to_string();
        assert!(report.contains("COUNTERS DISAGREE: ") && !report.contains("agree:"), "{report}");
    };
    detects(|outcome| outcome.taken += 1, "packets dealt out");
    detects(|outcome| outcome.workers[0].dropped += 1, "packets looked up");
    detects(|outcome| outcome.written.late += 1, "packets queued");
    detects(|outcome| outcome.ended.packets -= 1, "packets counted");
    detects(|outcome| outcome.ended.bytes += 1, "bytes counted");
    detects(|outcome| outcome.left += 1, "flows inserted; removed");
    detects(|outcome| outcome.ended.flows -= 1, "flows inserted, dropped");
}

#[test]
fn the_report_has_all_tables() {
    let traffic = generated(1000);
    let outcome = run_shortly(&traffic, 2, SECOND);
    let report = Report { input: &traffic, outcome: &outcome }.to_string();
    for words in [
        "generated traffic of 1000 flows at a time: 2 workers, 0.",
        "lookups/s",
        "\n         2 ",
        "\n       all ",
        "\ninsertions ",
        "\n  removals ",
        "flows in the map",
        "bytes of garbage",
        "all counters agree",
    ] {
        assert!(report.contains(words), "{words:?} in {report}");
    }
}

#[test]
fn latencies_are_nearly_what_was_added() {
    let mut latency = Latency::default();
    assert_eq!((latency.mean_ns(), latency.quantile_ns(0.99), latency.worst_ns()), (0, 0, 0));
    (1..=1000).for_each(|ns| latency.add(Duration::from_nanos(ns)));
    assert_eq!((latency.count(), latency.mean_ns(), latency.worst_ns()), (1000, 500, 1000));
    for (share, ns) in [(0.001, 1), (0.015, 15), (0.031, 31)] {
        assert_eq!(latency.quantile_ns(share), ns);
    }
    for (share, ns) in [(0.5, 500), (0.9, 900), (0.99, 990)] {
        let found = latency.quantile_ns(share);
        assert!((ns..=ns + ns / 16).contains(&found), "{share}: {found}");
    }
    latency.add(Duration::MAX);
    assert_eq!((latency.quantile_ns(1.0), latency.worst_ns()), (u64::MAX, u64::MAX));
}

#[test]
fn options_are_read() {
    let parse = |arguments: &[&str]| {
        let parsed = parse::<Options>(Parser::from_args(arguments));
        parsed.map(Call::options).map_err(|error| error.to_string())
    };
    let parsed = |arguments: &[&str]| parse(arguments).expect("all are right").expect("no help");
    let options = parsed(&[]);
    assert_eq!((&options.capture, options.flows()), (&None, 100_000));
    assert!(options.plan.workers >= 1 && options.plan.duration == Duration::from_secs(2));
    let all = ["--threads", "3", "--flows=50", "--seconds", "0.2", "--timeout", "1.5"];
    let options = parsed(&all);
    let Plan { workers, duration, timeout } = options.plan;
    assert_eq!((workers, options.flows()), (3, 50));
    assert_eq!((duration, timeout), (Duration::from_millis(200), Duration::from_millis(1500)));
    assert_eq!(parsed(&["-"]).capture, Some(Input::Pipe));
    assert!(parse(&["--help", "-"]).expect("all are right").is_none());
    for (arguments, words) in [
        (&["--threads", "0"][..], "--threads 0: not from 1 to 1024"),
        (&["--threads", "x"], "--threads x: not a number from 1 to 1024"),
        (&["--flows", "100000001"], "--flows 100000001: not from 1 to 100000000"),
        (&["--seconds", "0"], "--seconds 0: --seconds needs a number of seconds above 0"),
        (&["--seconds", "nan"], "--seconds nan: --seconds needs a number of seconds above 0"),
        (&["--timeout", "1e9"], "--timeout 1e9: more than 1000000 seconds"),
        (&["a.pcap", "--flows", "5"], "--flows is for generated traffic"),
        (&["a.pcap", "b.pcap"], "unexpected argument \"b.pcap\""),
        (&["--loud"], "invalid option '--loud'"),
    ] {
        let error = parse(arguments).expect_err("it is refused");
        assert!(error.starts_with(words), "{error}");
    }
    for option in ["--threads", "--flows", "--seconds", "--timeout"] {
        assert!(Options::USAGE.contains(&format!("\n    {option} ")));
    }
}
