//! The example as a flow meter: ends of flows, and exported records.

mod clocks;
mod damage;
mod endings;
mod errors;
mod floods;
#[cfg(target_os = "linux")]
mod interface;
mod ipfix;
mod live;
mod memory;
#[cfg(target_os = "linux")]
mod network;
#[cfg(unix)]
mod outputs;
#[cfg(unix)]
mod signals;
mod sums;
mod truth;
mod workers;

use capture::data::{ETHERNET, LITTLE, MICROSECONDS, pcap};
use serde::Deserialize;

use crate::run::Run;

/// A line of JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    flow_id: u64,
    src: String,
    dst: String,
    proto: u8,
    sport: u16,
    dport: u16,
    community_id: Option<String>,
    end_reason: String,
    class: String,
    forward: Option<Half>,
    reverse: Option<Half>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Half {
    packets: u64,
    ip_bytes: u64,
    first_ns: u64,
    last_ns: u64,
    tcp_flags: String,
    icmp_type: Option<u8>,
    icmp_code: Option<u8>,
}

impl Record {
    /// Parses the lines that a run printed.
    fn all(run: &Run) -> Vec<Self> {
        let line =
            |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        run.stdout.lines().map(line).collect()
    }

    /// Iterates over the directions with packets: number, five-tuple and counters; the initiator's
    /// has number 1.
    fn halves(&self) -> impl Iterator<Item = (u64, String, &Half)> {
        let Self { src, dst, proto, sport, dport, .. } = self;
        let there = format!("{src},{dst},{proto},{sport},{dport}");
        let back = format!("{dst},{src},{proto},{dport},{sport}");
        let halves = [(1, there, &self.forward), (2, back, &self.reverse)];
        halves.into_iter().filter_map(|(number, key, half)| Some((number, key, half.as_ref()?)))
    }

    /// Returns the equivalent rows of CSV.
    fn rows(&self) -> impl Iterator<Item = String> {
        self.halves().map(|(_, key, half)| {
            let Half { packets, ip_bytes, first_ns, last_ns, icmp_type, icmp_code, .. } = half;
            let flags = if self.proto == 6 { &half.tcp_flags } else { "" };
            let text = |number: &Option<u8>| number.map(|number| number.to_string());
            let [kind, code] = [icmp_type, icmp_code].map(|field| text(field).unwrap_or_default());
            let Self { end_reason, flow_id, .. } = self;
            let counts = format!("{packets},{ip_bytes},{first_ns},{last_ns}");
            format!("{key},{counts},{flags},{kind},{code},{end_reason},{flow_id}")
        })
    }

    /// Returns the packets of both directions.
    fn packets(&self) -> [u64; 2] {
        [&self.forward, &self.reverse].map(|half| half.as_ref().map_or(0, |half| half.packets))
    }

    /// Returns the packets of both directions, the end reason, and the class of the flow.
    fn summary(&self) -> ([u64; 2], &str, &str) {
        (self.packets(), &self.end_reason, &self.class)
    }
}

/// Returns the example's records for frames at these milliseconds.
fn metered(frames: &[(u32, Vec<u8>)], arguments: &[&str]) -> Vec<Record> {
    let times = |ms: u32| (ms / 1000, ms % 1000 * 1000);
    let records: Vec<_> =
        frames.iter().map(|(ms, frame)| (times(*ms).0, times(*ms).1, &frame[..])).collect();
    let capture = pcap(LITTLE, MICROSECONDS, ETHERNET, &records);
    let run = Run::piped(&capture, usize::MAX, &[&["--json", "-"], arguments].concat());
    assert_eq!((run.code, run.errors()), (Some(0), vec![]), "{run:?}");
    Record::all(&run)
}
