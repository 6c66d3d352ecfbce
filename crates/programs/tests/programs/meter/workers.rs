//! Several workers: the records of one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::net::IpAddr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use capture::data::{
    ETHERNET, LITTLE, MICROSECONDS, NO_CAPTURES, announce, captures, folder, pcap, tcp6, udp,
};
use flowtable::flow_cache::Steering;
use flowtable::hash::source_index::Toeplitz;
use flowtable::{FlowKey, FourTuple};
use programs::flow_cache::Card;
use proptest::prelude::*;

use super::Record;
use crate::run::{Run, example};

/// Numbers of workers that are compared with one.
const WORKERS: [&str; 3] = ["2", "3", "5"];

/// Checks the IDs of flows, and returns the lines of JSON without them, sorted.
fn sorted_lines(run: &Run) -> Vec<String> {
    let mut keys = BTreeMap::new();
    for record in Record::all(run) {
        let key = (record.src, record.dst, record.proto, record.sport, record.dport);
        assert_eq!(keys.entry(record.flow_id).or_insert_with(|| key.clone()), &key);
    }
    assert_eq!(keys.len() as u64, run.count("flows, each of both directions"));
    let without_id = |line: &str| line.split_once(",\"src\"").expect("an object").1.to_owned();
    let mut lines: Vec<String> = run.stdout.lines().map(without_id).collect();
    lines.sort();
    lines
}

/// Returns the counts of the report, without times and memory.
fn counts(run: &Run) -> Vec<&str> {
    let changes = |line: &&str| line.contains("bytes of memory") || line.contains("per second");
    run.stderr.lines().filter(|line| !changes(line)).collect()
}

/// Asserts that any number of workers has the records of one.
fn assert_same_records(run: impl Fn(&[&str]) -> Run, arguments: &[&str]) -> Vec<String> {
    let one = run(&[&["--json", "-"], arguments].concat());
    let expected = sorted_lines(&one);
    for workers in WORKERS {
        let several = run(&[&["--json", "-", "--workers", workers], arguments].concat());
        assert_eq!(several.code, Some(0), "{several:?}");
        assert_eq!(counts(&several), counts(&one), "{workers} {arguments:?}");
        assert!(sorted_lines(&several) == expected, "{workers} {arguments:?}");
    }
    expected
}

fn generated(arguments: &[&str]) -> Run {
    Run::with(&arguments.iter().map(OsStr::new).collect::<Vec<_>>())
}

#[test]
fn generated_traffic_has_the_same_records() {
    for arguments in [
        &[][..],
        &["--timeouts", "meter"],
        &["--timeouts", "conntrack", "--linger", "1"],
        &["--idle", "0.5", "--active", "0.7"],
    ] {
        let lines = assert_same_records(generated, arguments);
        assert!(lines.len() >= 2598, "{}", lines.len());
    }
}

/// Without timeouts the records are even in the same order: that of the first packets.
#[test]
fn the_records_at_the_end_are_in_order() {
    let without_id = |run: &Run| -> Vec<String> {
        let row = |line: &str| line.rsplit_once(',').expect("it has columns").0.to_owned();
        run.stdout.lines().map(row).collect()
    };
    let one = without_id(&generated(&["--csv", "-"]));
    for workers in WORKERS {
        assert_eq!(without_id(&generated(&["--csv", "-", "--workers", workers])), one);
    }
}

/// Long flows of both versions in a capture whose clock is set back, and ahead, by an hour.
#[test]
fn clocks_that_are_set_and_silence_change_nothing() {
    let mut frames = Vec::new();
    for tenth in 0..3000_u32 {
        let shown = 1_700_000_000 + tenth / 10 - if tenth / 1000 == 1 { 3600 } else { 0 };
        let shown = shown + if tenth >= 2500 { 7200 } else { 0 };
        let flow = (tenth * 7 % 20) as u16;
        let frame = if flow % 3 == 0 { tcp6(flow, 443) } else { udp(flow, 53, 0) };
        frames.push((shown, tenth % 10 * 100_000 + tenth * 37 % 9999, frame));
        frames.push((shown, tenth % 10 * 100_000 + 50_000, udp(1000 + tenth as u16, 53, 0)));
    }
    let records: Vec<_> = frames.iter().map(|(s, us, frame)| (*s, *us, &frame[..])).collect();
    let capture = pcap(LITTLE, MICROSECONDS, ETHERNET, &records);
    let run = |arguments: &[&str]| Run::piped(&capture, usize::MAX, arguments);
    let lines = assert_same_records(run, &["--idle", "3.3", "--active", "1.7"]);
    assert!(lines.iter().any(|line| line.contains("\"end_reason\":\"active\"")));
}

/// Real captures, if there are any.
#[test]
fn real_captures_have_the_same_records() {
    let Some(folder) = folder() else {
        return announce("real_captures_have_the_same_records", format_args!("{NO_CAPTURES}"));
    };
    let is_small = |path: &PathBuf| path.metadata().is_ok_and(|about| about.len() < 200_000);
    for path in captures(&folder).into_iter().filter(is_small) {
        let name = path.to_str().expect("a name in UTF-8");
        for timeouts in ["off", "meter"] {
            let arguments = [name, "--csv", "-", "--timeouts", timeouts];
            let one = generated(&arguments);
            let three = generated(&[&arguments[..], &["--workers", "3"]].concat());
            assert_eq!((three.code, counts(&three)), (one.code, counts(&one)), "{name}");
            if one.code == Some(0) && !one.stdout.is_empty() {
                assert!(three.rows() == one.rows(), "{name}");
            }
        }
    }
}

/// Each worker has its part of the flows; what does not fit is evicted, and written.
#[test]
fn the_capacity_is_divided_and_nothing_is_lost() {
    for (workers, capacity) in [("3", "300"), ("5", "7")] {
        let run = generated(&["--workers", workers, "--capacity", capacity, "--json", "-"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.stderr.contains(&format!("flows of {capacity}, ")), "{run:?}");
        let (evicted, left) = (run.count("were evicted"), run.count("were left at the end"));
        assert_eq!(evicted + left, run.count("flows, each of both directions"));
        assert!(left <= capacity.parse().expect("a number"), "{run:?}");
        let records = Record::all(&run);
        let packets: u64 = records.iter().flat_map(Record::packets).sum();
        assert_eq!(packets, run.count("IP packets, "));
        let ids: BTreeSet<u64> = records.iter().map(|record| record.flow_id).collect();
        assert_eq!(ids.len(), records.len());
    }
}

#[test]
fn what_workers_cannot_do_is_refused() {
    for (arguments, words) in [
        (&["--workers", "0"][..], "--workers 0: not from 1 to 128"),
        (&["--workers", "129"], "--workers 129: not from 1 to 128"),
        (&["--workers", "2", "--live"], "--live shows one cache: it cannot be used with --workers"),
        (&["--live", "--workers", "2"], "--live shows one cache: it cannot be used with --workers"),
        (&["--workers", "5", "--capacity", "4"], "--workers 5: more than the capacity, 4"),
        (&["--workers", "2", "--max-memory", "8400897"], "must be more than 10510336 bytes"),
    ] {
        generated(arguments).assert_refused(words);
    }
}

/// A reader that leaves early ends the run, and is no error.
#[test]
fn a_reader_that_leaves_is_no_error() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a_reader_that_leaves.pcap");
    let frames: Vec<_> = (0..60_000).map(|port| udp(port, 53, 0)).collect();
    let records: Vec<_> = frames.iter().zip(0..).map(|(frame, s)| (s, 0, &frame[..])).collect();
    std::fs::write(&path, pcap(LITTLE, MICROSECONDS, ETHERNET, &records)).expect("it is written");
    let mut command = Command::new(example());
    command.arg(&path).args(["--csv", "-", "--idle", "1", "--workers", "3"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the example can be run");
    drop(child.stdout.take());
    let run = Run::new(child.wait_with_output().expect("it ends"));
    assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
}

proptest! {
    /// The card has the formula of the library's [`Steering`] in tables.
    #[test]
    fn the_card_steers_as_the_library_does(
        (src, dst, ports, protocol) in any::<(u128, u128, [u16; 2], u8)>(),
        is_v4 in any::<bool>(),
        workers in 1..=128_usize,
    ) {
        let address = |bits: u128| match is_v4 {
            true => IpAddr::from((bits as u32).to_be_bytes()),
            false => IpAddr::from(bits.to_be_bytes()),
        };
        let [src, dst] = [src, dst].map(address);
        let [sport, dport] = ports;
        let key = FlowKey::new(src, dst, sport, dport, protocol).expect("one version");
        let workers = NonZero::new(workers).expect("some");
        let hash = |key: &FlowKey| match (key.src(), key.dst()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                Toeplitz::SYMMETRIC.hash(&FourTuple { src, dst, sport, dport })
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                Toeplitz::SYMMETRIC.hash(&FourTuple { src, dst, sport, dport })
            }
            _ => unreachable!("one version"),
        };
        let (card, steering) = (Card::new(workers), Steering::new(workers, hash));
        prop_assert_eq!(card.worker(&key), steering.worker(&key));
        prop_assert_eq!(card.worker(&key.reversed()), steering.worker(&key));
    }
}
