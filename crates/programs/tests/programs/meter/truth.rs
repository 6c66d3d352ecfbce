//! Records compared with those of nfdump's `nfpcapd` and of softflowd.
//!
//! Only directions of flows with equal sums of packets and bytes are compared record by record: the
//! others are keyed or counted differently, as the README of the data folder explains. nfpcapd
//! gives fragments the ports of the first one, ICMP its type as a port, and parses tunnels.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use capture::data::{NO_CAPTURES, announce, captures, folder, truth_file};

use super::{Half, Record};
use crate::run::Run;

/// Source, destination, protocol, ports.
type Key = [String; 5];

/// A record: packets, bytes, first and last millisecond.
type Part = [u64; 4];

/// The records of each direction of a flow, in the order of time, and its flags.
type Parts = BTreeMap<Key, (Vec<Part>, BTreeSet<String>)>;

/// Returns the records of another tool for a capture, if there are any.
fn theirs(data: &Path, capture: &Path, suffix: &str) -> Option<Parts> {
    let mut reader = csv::Reader::from_reader(truth_file(data, capture, suffix)?);
    let columns = reader.headers().expect("there is a header").clone();
    let at = |name| columns.iter().position(|column| column == name).expect("the column exists");
    let key = ["src", "dst", "proto", "sport", "dport"].map(at);
    let value = ["packets", "bytes", "first_ms", "last_ms"].map(at);
    let mut parts = Parts::new();
    for row in reader.records() {
        let row = row.expect("a row");
        let (of_key, flags) = parts.entry(key.map(|at| row[at].to_owned())).or_default();
        of_key.push(value.map(|at| row[at].parse().expect("a number")));
        flags.insert(row[at("tcp_flags")].to_owned());
    }
    parts.values_mut().for_each(|(parts, _)| parts.sort_by_key(|part| part[2]));
    Some(parts)
}

/// Returns the example's records of a capture.
fn ours(capture: &Path, arguments: &[&str]) -> Vec<Record> {
    let mut all = vec![capture.as_os_str(), "--json".as_ref(), "-".as_ref()];
    all.extend(arguments.iter().map(|argument| OsStr::new(*argument)));
    let run = Run::with(&all);
    assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{}", capture.display());
    Record::all(&run)
}

fn key(text: &str) -> Key {
    let mut fields = text.split(',').map(str::to_owned);
    std::array::from_fn(|_| fields.next().expect("a five-tuple has five fields"))
}

fn ms(ns: u64) -> u64 {
    ns / 1_000_000
}

fn sum(parts: &[Part]) -> [u64; 2] {
    parts.iter().fold([0, 0], |[packets, bytes], part| [packets + part[0], bytes + part[1]])
}

const IDLE_MS: u64 = 60_000;
const ACTIVE_MS: u64 = 300_000;

/// nfpcapd checks for idle flows periodically, not with each packet: a flow that was idle for a
/// little longer than the timeout continues.
const LATE_MS: u64 = 10_000;

/// The result of comparing the records of one direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// Identical: packets, bytes, first and last millisecond of each.
    Same,
    /// Theirs are ours, some of them merged across an idle time hardly longer than the timeout.
    Joined,
    /// The flow lasted longer than the active timeout. Ours reports every 300 s from its first
    /// packet on; nfpcapd restarts with the packet after a report.
    Reported,
    /// Messages of DNS, each of which is a record in nfpcapd.
    Dns,
    /// Other sums of packets and bytes, or no such flow.
    CountedOtherwise,
    /// None of these.
    Different,
}

fn verdict(key: &Key, ours: &[Part], theirs: &[Part]) -> Verdict {
    if sum(ours) != sum(theirs) {
        return Verdict::CountedOtherwise;
    }
    let lived_ms = |parts: &[Part]| parts[parts.len() - 1][3] - parts[0][2];
    if ours == theirs {
        Verdict::Same
    } else if are_joined(ours, theirs) {
        Verdict::Joined
    } else if key[3..].iter().any(|port| port == "53") {
        Verdict::Dns
    } else if ours.len() == theirs.len() && lived_ms(ours) > ACTIVE_MS {
        Verdict::Reported
    } else {
        Verdict::Different
    }
}

fn are_joined(ours: &[Part], theirs: &[Part]) -> bool {
    let mut ours = ours.iter();
    let are_whole = theirs.iter().all(|whole| {
        let Some(mut joined) = ours.next().copied() else { return false };
        while joined[0] < whole[0] {
            let Some(next) = ours.next() else { return false };
            if next[2] - joined[3] > IDLE_MS + LATE_MS {
                return false;
            }
            joined = [joined[0] + next[0], joined[1] + next[1], joined[2], next[3]];
        }
        joined == *whole
    });
    are_whole && ours.next().is_none()
}

/// The default timeouts of `nfpcapd`: 60 s idle, 300 s active. It counts directions separately, and
/// a FIN or a RST ends no flow in these captures; ours counts both together, and ignores these
/// flags here.
#[test]
fn records_are_those_of_nfdump() {
    const TEST: &str = "records_are_those_of_nfdump";
    let Some(folder) = folder() else {
        return announce(TEST, format_args!("SKIPPED: {NO_CAPTURES}"));
    };
    let (mut verdicts, mut cut) = (BTreeMap::new(), 0);
    for capture in captures(&folder) {
        let suffix = ".nfdump-a300-i60.csv.gz";
        let Some(theirs) = theirs(&folder, &capture, suffix) else { continue };
        let mut parts: BTreeMap<Key, Vec<Part>> = BTreeMap::new();
        for record in ours(&capture, &["--idle", "60", "--active", "300", "--linger", "off"]) {
            for (_, name, half) in record.halves() {
                let part = [half.packets, half.ip_bytes, ms(half.first_ns), ms(half.last_ns)];
                parts.entry(key(&name)).or_default().push(part);
            }
        }
        for (key, ours) in &mut parts {
            ours.sort_by_key(|part| part[2]);
            let theirs = theirs.get(key).map_or(&[][..], |(theirs, _)| theirs);
            let verdict = verdict(key, ours, theirs);
            *verdicts.entry(verdict).or_insert(0) += 1;
            cut += usize::from(verdict == Verdict::Same && ours.len() > 1);
        }
    }
    let count = |verdict| verdicts.get(&verdict).copied().unwrap_or(0);
    assert_eq!(count(Verdict::Different), 0, "{verdicts:?}");
    assert!(count(Verdict::Same) >= 21_156 && cut >= 13, "{verdicts:?}, {cut} of them cut");
    let others = [Verdict::Joined, Verdict::Reported, Verdict::Dns, Verdict::CountedOtherwise];
    let others: usize = others.into_iter().map(count).sum();
    assert!(others * 100 < count(Verdict::Same), "{verdicts:?}");
}

/// Directions of TCP and UDP that softflowd counts differently, and the reason.
const NOT_AS_SOFTFLOWD: [(&str, &str); 1] = [(
    "fe80::21f:f3ff:fecd:f617,ff02::fb,17,0,0",
    "later fragments of IPv6 are of protocol 0 there",
)];

/// softflowd has one table for both directions, as ours has, and its timeouts were inactive: so
/// nothing ends a flow here. It reports the times of the conversation for both of its directions,
/// and counts all bytes after the Ethernet header, with the padding of short frames.
#[test]
fn conversations_are_those_of_softflowd() {
    const TEST: &str = "conversations_are_those_of_softflowd";
    let Some(folder) = folder() else {
        return announce(TEST, format_args!("SKIPPED: {NO_CAPTURES}"));
    };
    let (mut same, mut padded, mut differing) = (0, 0, BTreeSet::new());
    for capture in captures(&folder) {
        let Some(theirs) = theirs(&folder, &capture, ".softflowd.csv.gz") else { continue };
        let records = ours(&capture, &[]);
        let halves =
            records.iter().filter(|record| [6, 17].contains(&record.proto)).flat_map(timed);
        for (name, times, half) in halves {
            let (parts, flags) = theirs.get(&key(&name)).cloned().unwrap_or_default();
            let is_same = |part: &Part| {
                let [packets, bytes, first, last] = *part;
                (packets, [first, last]) == (half.packets, times) && bytes >= half.ip_bytes
            };
            match parts[..] {
                [part] if is_same(&part) && flags.contains(&half.tcp_flags) => {
                    *if part[1] == half.ip_bytes { &mut same } else { &mut padded } += 1;
                }
                _ => _ = differing.insert(name),
            }
        }
    }
    let exceptions: BTreeSet<String> = NOT_AS_SOFTFLOWD.map(|(name, _why)| name.to_owned()).into();
    assert_eq!(differing, exceptions);
    assert!(same >= 18_004 && padded >= 3219, "{same} equal, {padded} with padding");
}

/// Returns the directions of a record, and the milliseconds of the first and last packet of the
/// conversation.
fn timed(record: &Record) -> Vec<(String, [u64; 2], &Half)> {
    let halves: Vec<_> = record.halves().collect();
    // Between sockets of one address softflowd treats the directions as two flows.
    let is_split = record.src == record.dst;
    let times = |name: &str| {
        let both = halves.iter().filter(|half| !is_split || half.1 == name);
        both.fold([u64::MAX, 0], |[first, last], (_, _, half)| {
            [first.min(ms(half.first_ns)), last.max(ms(half.last_ns))]
        })
    };
    halves.iter().map(|(_, name, half)| (name.clone(), times(name), *half)).collect()
}
