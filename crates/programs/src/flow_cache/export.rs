//! Export of records to sinks, and selection of the largest.

use core::cmp::Reverse;
use std::mem;

use flowtable::flow_cache::EndReason;

use super::record::Record;

/// The reader of an output has closed its pipe.
pub(crate) struct Closed;

/// A destination of records. It reports an error on standard error when it occurs, and tries again
/// later.
pub(crate) trait Sink: Send {
    /// Writes a record, or buffers it until [`flush`](Self::flush).
    fn write(&mut self, record: &Record) -> Result<(), Closed>;

    /// Writes all buffered records.
    fn flush(&mut self) -> Result<(), Closed>;

    /// Writes all buffered records for the last time: those that cannot be written are lost.
    fn finish(&mut self) -> Result<(), Closed> {
        self.flush()
    }

    /// Opens the file again, by its name.
    fn reopen(&mut self) {}

    /// Returns whether records wait for another attempt.
    fn is_waiting(&self) -> bool {
        false
    }

    /// Describes what is wrong now.
    fn state(&self) -> Option<String>;

    /// Describes known losses.
    fn losses(&self) -> Option<String>;
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

/// The exporter.
pub(crate) struct Export {
    outputs: Vec<Box<dyn Sink>>,
    /// Whether the reader of the last output has closed its pipe.
    is_closed: bool,
    largest: Largest,
    counts: Counts,
    /// Whether records were written since the last flush.
    is_dirty: bool,
}

impl Export {
    /// Creates an exporter that keeps the `top` largest records.
    pub(crate) fn new(outputs: Vec<Box<dyn Sink>>, top: usize) -> Self {
        Self {
            outputs,
            is_closed: false,
            largest: Largest::new(top),
            counts: Counts::default(),
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

    /// Flushes all sinks, if records were written or wait.
    pub(crate) fn flush(&mut self) {
        let is_waiting = self.outputs.iter().any(|output| output.is_waiting());
        if mem::take(&mut self.is_dirty) || is_waiting {
            self.each(|sink| sink.flush());
        }
    }

    /// Flushes all sinks for the last time.
    pub(crate) fn finish(&mut self) {
        self.each(|sink| sink.finish());
    }

    /// Opens all files again, by their names.
    pub(crate) fn reopen(&mut self) {
        self.outputs.iter_mut().for_each(|output| output.reopen());
    }

    /// Applies an action to all sinks. An output whose reader has gone is dropped, and the others
    /// continue.
    fn each(&mut self, mut act: impl FnMut(&mut dyn Sink) -> Result<(), Closed>) {
        let count = self.outputs.len();
        self.outputs.retain_mut(|output| act(&mut **output).is_ok());
        self.is_closed |= count > 0 && self.outputs.is_empty();
    }

    pub(crate) const fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns lines about outputs with losses, or that cannot be written now.
    pub(crate) fn failures(&self) -> Vec<String> {
        let outputs = self.outputs.iter();
        outputs.filter_map(|output| output.state().or_else(|| output.losses())).collect()
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
