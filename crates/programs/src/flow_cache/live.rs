//! The table of `--live`: how much comes, how full the cache is, who talks most.

use core::cmp::Reverse;
use core::fmt;
use core::mem;
use std::time::Instant;

use flowtable::FlowKey;
use flowtable::flow_cache::{Class, Cursor, EndReason, Metrics};
use indicatif::{HumanBytes, HumanCount};

use super::{Biflow, Meter};

/// What is said of flows that left before the end.
const LEFT: [(EndReason, &str); 3] = [
    (EndReason::Idle, "were idle"),
    (EndReason::Ended, "were closed"),
    (EndReason::Resources, "evicted"),
];

/// What is drawn, and what is remembered from one drawing to the next.
pub(crate) struct Table {
    /// Flows shown.
    flows: usize,
    last: Sample,
    /// The walk through the cache that is under way, and the largest flows it has met.
    walk: Cursor,
    met: Vec<Talker>,
    /// The largest of the last whole walk.
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
    /// Slots of the cache that one drawing looks at: a large cache is walked over several drawings,
    /// none of which takes long.
    const WALK: usize = 100_000;

    /// A screen does not hold more.
    const MAX_FLOWS: usize = 20;

    pub(crate) fn new(flows: usize, now: Instant) -> Self {
        let flows = flows.min(Self::MAX_FLOWS);
        let last = Sample { at: now, clock_ns: 0, packets: 0, bytes: 0 };
        Self { flows, last, walk: Cursor::new(), met: Vec::new(), shown: Vec::new() }
    }

    /// The lines of the table.
    pub(crate) fn draw(&mut self, meter: &Meter, now: Instant) -> String {
        self.walk(meter);
        let totals = meter.totals();
        let sample = Sample {
            at: now,
            clock_ns: meter.cache().now().as_nanos(),
            packets: totals.packets,
            bytes: totals.wire_bytes,
        };
        let last = mem::replace(&mut self.last, sample);
        Picture { last, now: sample, metrics: meter.metrics(), talkers: &self.shown }.to_string()
    }

    /// Goes on with the walk through the cache.
    fn walk(&mut self, meter: &Meter) {
        let by_bytes = |talker: &Talker| Reverse(talker.counted.bytes());
        for flow in meter.cache().page(&mut self.walk, Self::WALK) {
            let (key, class, counted) = (*flow.key(), flow.class(), *flow.value());
            self.met.push(Talker { key, class, counted });
            if self.met.len() / 2 > self.flows {
                self.met.sort_by_key(by_bytes);
                self.met.truncate(self.flows);
            }
        }
        if self.walk.is_done() {
            self.met.sort_by_key(by_bytes);
            self.met.truncate(self.flows);
            self.shown = mem::take(&mut self.met);
            self.walk = Cursor::new();
        }
    }
}

/// What one drawing shows.
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
        // Before the first packet, the clock of packets says nothing.
        let seconds = now.clock_ns.saturating_sub(last.clock_ns) as f64 / 1e9;
        if last.packets > 0 && seconds > 0.0 {
            let bits = 8.0 * (now.bytes - last.bytes) as f64 / seconds;
            let sent = packets / seconds;
            write!(f, "; by their clock {} per second, {}bit/s", rate(sent), scaled(bits))?;
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
            write!(f, "{flows:>12} {class}")?;
        }
        writeln!(f)?;
        for (reason, what) in LEFT {
            write!(f, "{:>12} {what}", HumanCount(metrics.departed_for(reason)).to_string())?;
        }
        writeln!(f, "{:>12} reported", HumanCount(metrics.reported).to_string())
    }

    fn talkers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{:>12} {:>12}  {:<12} largest flows", "bytes", "packets", "class")?;
        for Talker { key, class, counted } in self.talkers {
            let bytes = HumanBytes(counted.bytes()).to_string();
            let packets = HumanCount(counted.packets()).to_string();
            write!(f, "\n{bytes:>12} {packets:>12}  {class:<12} {key}")?;
        }
        Ok(())
    }
}

fn rate(value: f64) -> HumanCount {
    // A cast saturates, and what is not a number is 0.
    HumanCount(value as u64)
}

/// A number with one of the prefixes of SI behind it.
fn scaled(value: f64) -> String {
    let prefixes = ["", "k", "M", "G", "T"];
    let power = (value.max(1.0).log10() / 3.0) as usize;
    let power = power.min(prefixes.len() - 1);
    format!("{:.1} {}", value / 1000_f64.powi(power as i32), prefixes[power])
}
