//! The table of `--live`: packet rate, occupancy, largest flows.

use core::cmp::Reverse;
use core::fmt;
use core::mem;
use std::time::Instant;

use flowtable::FlowKey;
use flowtable::flow_cache::{Class, Cursor, EndReason, Metrics};
use indicatif::HumanCount;

use super::key::KeyText;
use super::report::Scaled;
use super::{Biflow, Meter, Totals};

/// Labels of flows that ended before the capture.
const LEFT: [(EndReason, &str); 3] = [
    (EndReason::Idle, "were idle"),
    (EndReason::Ended, "were closed"),
    (EndReason::Resources, "evicted"),
];

/// The table, and its state between two drawings.
pub(crate) struct Table {
    /// Flows shown.
    flows: usize,
    last: Sample,
    /// The cursor of the current scan of the cache, and the largest flows that it has seen.
    scan: Cursor,
    seen: Vec<Talker>,
    /// The largest flows of the last complete scan.
    shown: Vec<Talker>,
}

/// Counts at one time.
#[derive(Clone, Copy)]
struct Sample {
    at: Instant,
    /// The clock of the packets.
    clock_ns: u64,
    packets: u64,
    bytes: u64,
}

#[derive(Clone, Copy)]
struct Talker {
    key: FlowKey,
    class: Class,
    counted: Biflow,
}

impl Table {
    /// Slots of the cache that one drawing scans: a large cache is scanned over several drawings,
    /// each of which is short.
    const WALK: usize = 100_000;

    /// Maximum number of flows shown: what fits on a screen of 24 lines.
    const MAX_FLOWS: usize = 12;

    pub(crate) fn new(flows: usize, now: Instant) -> Self {
        let flows = flows.min(Self::MAX_FLOWS);
        let last = Sample { at: now, clock_ns: 0, packets: 0, bytes: 0 };
        Self { flows, last, scan: Cursor::new(), seen: Vec::new(), shown: Vec::new() }
    }

    /// Returns the lines of the table.
    pub(crate) fn draw(&mut self, totals: &Totals, meter: &Meter, now: Instant) -> String {
        self.scan(meter);
        let sample = Sample {
            at: now,
            clock_ns: meter.cache().now().as_nanos(),
            packets: totals.packets,
            bytes: totals.wire_bytes,
        };
        let last = mem::replace(&mut self.last, sample);
        Picture { last, now: sample, metrics: meter.metrics(), talkers: &self.shown }.to_string()
    }

    /// Continues the scan of the cache.
    fn scan(&mut self, meter: &Meter) {
        let by_bytes = |talker: &Talker| Reverse(talker.counted.bytes());
        for flow in meter.cache().page(&mut self.scan, Self::WALK) {
            let ((_, key), class, counted) = (flow.key(), flow.class(), *flow.value());
            self.seen.push(Talker { key, class, counted });
            if self.seen.len() / 2 > self.flows {
                self.seen.sort_by_key(by_bytes);
                self.seen.truncate(self.flows);
            }
        }
        if self.scan.is_done() {
            self.seen.sort_by_key(by_bytes);
            self.seen.truncate(self.flows);
            self.shown = mem::take(&mut self.seen);
            self.scan = Cursor::new();
        }
    }
}

/// The contents of one drawing.
struct Picture<'a> {
    last: Sample,
    now: Sample,
    metrics: Metrics,
    talkers: &'a [Talker],
}

impl fmt::Display for Picture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rates(f)?;
        self.occupancy(f)?;
        self.talkers(f)
    }
}

impl Picture<'_> {
    fn rates(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (last, now) = (&self.last, &self.now);
        let packets = (now.packets - last.packets) as f64;
        let read = packets / now.at.duration_since(last.at).as_secs_f64();
        write!(f, "{} packets, {} read per second", HumanCount(now.packets), rate(read))?;
        // Before the first packet, the clock of packets is not set.
        let seconds = now.clock_ns.saturating_sub(last.clock_ns) as f64 / 1e9;
        if last.packets > 0 && seconds > 0.0 {
            let bits = 8.0 * (now.bytes - last.bytes) as f64 / seconds;
            let sent = packets / seconds;
            write!(f, "; by their clock {}, {}bit/s", rate(sent), scaled(bits))?;
        }
        writeln!(f)
    }

    fn occupancy(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metrics = &self.metrics;
        let (flows, capacity) = (metrics.flows as u64, metrics.capacity as u64);
        let (flows, full) = (HumanCount(flows), 100.0 * flows as f64 / capacity as f64);
        let (capacity, hits) = (HumanCount(capacity), 100.0 * metrics.hit_ratio().unwrap_or(0.0));
        writeln!(f, "{flows} flows, {full:.1} % of {capacity}; {hits:.1} % of packets hit\n")?;
        for class in Class::ALL.into_iter().rev() {
            let flows = HumanCount(metrics.flows_of(class) as u64).to_string();
            write!(f, "{flows:>7} {class}")?;
        }
        writeln!(f)?;
        for (reason, what) in LEFT {
            write!(f, "{:>7} {what}", HumanCount(metrics.removed_for(reason)).to_string())?;
        }
        writeln!(f, "{:>7} reported", HumanCount(metrics.reported).to_string())
    }

    fn talkers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{:>8} {:>8}  {:<11} largest flows", "bytes", "packets", "class")?;
        for Talker { key, class, counted } in self.talkers {
            let (bytes, packets) = (Scaled(counted.bytes()), Scaled(counted.packets()));
            let key = KeyText { key, indent: 31 };
            write!(f, "\n{bytes:>8} {packets:>8}  {class:<11} {key}")?;
        }
        Ok(())
    }
}

fn rate(value: f64) -> HumanCount {
    // A cast saturates, and NaN becomes 0.
    HumanCount(value as u64)
}

/// Formats a number with an SI prefix.
fn scaled(value: f64) -> String {
    let prefixes = ["", "k", "M", "G", "T"];
    let power = (value.max(1.0).log10() / 3.0) as usize;
    let power = power.min(prefixes.len() - 1);
    format!("{:.1} {}", value / 1000_f64.powi(power as i32), prefixes[power])
}
