//! Export of records to sinks, and selection of the largest.

use core::cmp::Reverse;
use std::io::{self, ErrorKind};

use flowtable::Timestamp;
use flowtable::flow_cache::EndReason;

use super::record::Record;

/// A destination of records.
pub trait Sink {
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
pub struct Counts {
    pub records: u64,
    /// Records of flows that continued.
    pub reports: u64,
    /// Directions with packets.
    pub rows: u64,
}

/// The exporter.
pub struct Export {
    sinks: Vec<Box<dyn Sink>>,
    /// Number of largest records to keep.
    top: usize,
    /// The largest records, and at most as many others.
    largest: Vec<Record>,
    counts: Counts,
    /// The second of the packets' time in which buffers were flushed last.
    flushed_s: u64,
}

impl Export {
    /// Creates an exporter to `sinks` that keeps the `top` largest records.
    pub fn new(sinks: Vec<Box<dyn Sink>>, top: usize) -> Self {
        Self { sinks, top, largest: Vec::new(), counts: Counts::default(), flushed_s: 0 }
    }

    /// Exports a record. Records without packets are skipped: their flow was reported, and silent
    /// since.
    pub fn take(&mut self, record: Record) -> io::Result<()> {
        if record.counted.packets() == 0 {
            return Ok(());
        }
        self.counts.records += 1;
        self.counts.reports += u64::from(record.reason == EndReason::Active);
        self.counts.rows += record.directions().count() as u64;
        self.each(|sink| sink.write(&record))?;
        self.largest.push(record);
        if self.largest.len() / 2 > self.top {
            self.drop_smaller();
        }
        Ok(())
    }

    pub fn take_all(&mut self, mut records: impl Iterator<Item = Record>) -> io::Result<()> {
        records.try_for_each(|record| self.take(record))
    }

    /// Advances the time, and flushes once per second.
    pub fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        let second = now.as_nanos() / 1_000_000_000;
        if second == self.flushed_s {
            return Ok(());
        }
        self.flushed_s = second;
        self.flush()
    }

    /// Flushes all sinks.
    pub fn flush(&mut self) -> io::Result<()> {
        self.each(|sink| sink.flush())
    }

    /// Applies an action to all sinks. A sink whose reader has closed its pipe is dropped, unless
    /// it is the last.
    fn each(&mut self, mut act: impl FnMut(&mut dyn Sink) -> io::Result<()>) -> io::Result<()> {
        let mut at = 0;
        while let Some(sink) = self.sinks.get_mut(at) {
            match act(&mut **sink) {
                Ok(()) => at += 1,
                Err(error) if error.kind() == ErrorKind::BrokenPipe && self.sinks.len() > 1 => {
                    drop(self.sinks.remove(at));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Describes the known losses of a sink.
    pub fn losses(&self) -> Option<String> {
        self.sinks.iter().find_map(|sink| sink.losses())
    }

    /// Returns the largest records by bytes, in descending order.
    pub fn largest(&mut self) -> &[Record] {
        self.drop_smaller();
        &self.largest
    }

    fn drop_smaller(&mut self) {
        self.largest.sort_unstable_by_key(|record| {
            let counted = &record.counted;
            (Reverse(counted.bytes()), counted.first_ns(), record.key, record.id)
        });
        self.largest.truncate(self.top);
    }
}
