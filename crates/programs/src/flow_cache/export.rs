//! Export of records to sinks, and selection of the largest.

use core::cmp::Reverse;
use std::io::{self, ErrorKind};
use std::mem;

use flowtable::Timestamp;
use flowtable::flow_cache::EndReason;

use super::record::Record;

/// A destination of records.
pub(crate) trait Sink: Send {
    /// Writes a record, or buffers it until [`flush`](Self::flush).
    fn write(&mut self, record: &Record) -> io::Result<()>;

    /// Writes all buffered records.
    fn flush(&mut self) -> io::Result<()>;

    /// Describes known losses.
    fn losses(&self) -> Option<String> {
        None
    }
}

/// Counts of exported records.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) records: u64,
    /// Records of flows that continued.
    pub(crate) reports: u64,
    /// Directions with packets.
    pub(crate) rows: u64,
}

/// A sink, and the option that named it.
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) sink: Box<dyn Sink>,
}

/// The exporter.
pub(crate) struct Export {
    outputs: Vec<Output>,
    /// A line for each output that could not be written.
    failures: Vec<String>,
    /// Whether the reader of the last output has closed its pipe.
    is_closed: bool,
    largest: Largest,
    counts: Counts,
    /// The second of the packets' time in which buffers were flushed last.
    flushed_s: u64,
    /// Whether records were written since the last flush.
    is_dirty: bool,
}

impl Export {
    /// Creates an exporter that keeps the `top` largest records.
    pub(crate) fn new(outputs: Vec<Output>, top: usize) -> Self {
        Self {
            outputs,
            failures: Vec::new(),
            is_closed: false,
            largest: Largest::new(top),
            counts: Counts::default(),
            flushed_s: 0,
            is_dirty: false,
        }
    }

    /// Exports a record. Records without packets are skipped: their flow was reported, and silent
    /// since.
    pub(crate) fn take(&mut self, record: &Record) {
        if record.counted.packets() == 0 {
            return;
        }
        self.counts.records += 1;
        self.counts.reports += u64::from(record.reason == EndReason::Active);
        self.counts.rows += record.direction_count();
        self.largest.add(record);
        if !self.outputs.is_empty() {
            self.is_dirty = true;
            self.each(|sink| sink.write(record));
        }
    }

    /// Returns whether the reader of the last output has closed its pipe: then no result can reach
    /// it.
    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Advances the time, and flushes once per second.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        let second = now.as_nanos() / 1_000_000_000;
        if second != self.flushed_s {
            self.flushed_s = second;
            self.flush();
        }
    }

    /// Flushes all sinks, if records were written.
    pub(crate) fn flush(&mut self) {
        if mem::take(&mut self.is_dirty) {
            self.each(|sink| sink.flush());
        }
    }

    /// Flushes all sinks for the last time.
    pub(crate) fn finish(&mut self) {
        self.is_dirty = true;
        self.flush();
    }

    /// Applies an action to all sinks. An output that cannot be written is dropped, and the others
    /// continue.
    fn each(&mut self, mut act: impl FnMut(&mut dyn Sink) -> io::Result<()>) {
        let mut at = 0;
        while let Some(Output { name, sink }) = self.outputs.get_mut(at) {
            let Err(error) = act(&mut **sink) else {
                at += 1;
                continue;
            };
            if error.kind() == ErrorKind::BrokenPipe {
                self.is_closed = self.outputs.len() == 1 && self.failures.is_empty();
            } else {
                self.failures.push(format!("{name} cannot be written: {error}"));
            }
            drop(self.outputs.remove(at));
        }
    }

    pub(crate) const fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns lines about outputs that could not be written, or were not received.
    pub(crate) fn failures(&self) -> Vec<String> {
        let losses = self.outputs.iter().filter_map(|output| output.sink.losses());
        self.failures.iter().cloned().chain(losses).collect()
    }

    /// Returns the largest records by bytes, in descending order.
    pub(crate) fn largest(&mut self) -> &[Record] {
        self.largest.sorted()
    }
}

/// The largest records.
struct Largest {
    /// Number of records to keep.
    top: usize,
    /// The largest records, and at most as many others.
    records: Vec<Record>,
    /// Bytes that the largest ones have at least: smaller records are not added.
    least: u64,
}

impl Largest {
    const fn new(top: usize) -> Self {
        Self { top, records: Vec::new(), least: 0 }
    }

    fn add(&mut self, record: &Record) {
        if record.counted.bytes() < self.least || self.top == 0 {
            return;
        }
        self.records.push(*record);
        if self.records.len() / 2 > self.top {
            self.drop_smaller();
        }
    }

    fn sorted(&mut self) -> &[Record] {
        self.drop_smaller();
        &self.records
    }

    fn drop_smaller(&mut self) {
        self.records.sort_unstable_by_key(|record| {
            let counted = &record.counted;
            (Reverse(counted.bytes()), counted.first_ns(), record.key, record.id)
        });
        self.records.truncate(self.top);
        if self.records.len() == self.top {
            self.least = self.records.last().map_or(0, |record| record.counted.bytes());
        }
    }
}
