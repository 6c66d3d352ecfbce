//! Where records go: to everything that wants them, and the largest are remembered.

use core::cmp::Reverse;
use std::io::{self, ErrorKind};

use flowtable::Timestamp;
use flowtable::flow_cache::EndReason;

use super::record::Record;

/// Something that takes records.
pub trait Sink {
    /// Writes a record, or keeps it until [`flush`](Self::flush).
    fn write(&mut self, record: &Record) -> io::Result<()>;

    /// Hands on all that was kept.
    fn flush(&mut self) -> io::Result<()>;

    /// What is known not to have arrived, in words.
    fn losses(&self) -> Option<String> {
        None
    }
}

/// What was taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub records: u64,
    /// Records of flows that lived on.
    pub reports: u64,
    /// Directions with packets.
    pub rows: u64,
}

/// Takes records.
pub struct Export {
    sinks: Vec<Box<dyn Sink>>,
    /// How many of the largest are wanted.
    top: usize,
    /// All of them, and at most as many again that are not.
    largest: Vec<Record>,
    counts: Counts,
    /// What was kept is queued on once in a second of the packets' time.
    flushed_s: u64,
}

impl Export {
    /// Hands records to `sinks`, and remembers the `top` largest.
    pub fn new(sinks: Vec<Box<dyn Sink>>, top: usize) -> Self {
        Self { sinks, top, largest: Vec::new(), counts: Counts::default(), flushed_s: 0 }
    }

    /// Takes a record. One without packets tells of a flow that was reported and silent since:
    /// nothing is left to say.
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

    /// Tells the time, so that no record waits long for company.
    pub fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        let second = now.as_nanos() / 1_000_000_000;
        if second == self.flushed_s {
            return Ok(());
        }
        self.flushed_s = second;
        self.flush()
    }

    /// Hands everything on.
    pub fn flush(&mut self) -> io::Result<()> {
        self.each(|sink| sink.flush())
    }

    /// Has all sinks do something. One that nobody reads any more is dropped, unless it is the
    /// last.
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

    /// What is known not to have arrived where it was sent to.
    pub fn losses(&self) -> Option<String> {
        self.sinks.iter().find_map(|sink| sink.losses())
    }

    /// The largest records by bytes, the largest first.
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
