//! What is printed about a capture.

use core::fmt;
use core::time::Duration;

use flowtable::{FlowKey, Shape};

use super::Totals;
use super::record::Record;
use crate::capture::Reject;

/// The summary of a run.
pub(crate) struct Report<'a> {
    /// Where the packets came from.
    pub(crate) input: &'a dyn fmt::Display,
    pub(crate) totals: &'a Totals,
    /// Blocks of a pcapng without a packet that could be read.
    pub(crate) skipped_blocks: u64,
    /// Records written, in all.
    pub(crate) records: u64,
    pub(crate) largest: &'a [(FlowKey, Record)],
    /// The cache at the end.
    pub(crate) shape: &'a Shape,
    /// The time that reading and metering took.
    pub(crate) elapsed: Duration,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.input)?;
        self.packets(f)?;
        self.flows(f)?;
        self.largest(f)?;
        writeln!(f, "\ntrie at the end: {}", self.shape)?;
        let seconds = self.elapsed.as_secs_f64();
        let rate = self.totals.packets as f64 / seconds.max(f64::MIN_POSITIVE);
        writeln!(f, "\n{seconds:.3} s, {rate:.0} packets per second")
    }
}

impl Report<'_> {
    fn packets(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = self.totals;
        writeln!(f, "\n{:>12} packets, {} bytes on the wire", totals.packets, totals.wire_bytes)?;
        writeln!(f, "{:>12} IP packets, {} bytes", totals.ip_packets, totals.ip_bytes)?;
        writeln!(f, "{:>12} later fragments", totals.later_fragments)?;
        writeln!(f, "{:>12} cut in front of their ports", totals.cut_ports)?;
        let rejected = |malformed| {
            let counted = Reject::ALL.into_iter().zip(totals.rejects);
            counted.filter(move |(reject, _)| reject.is_malformed() == malformed)
        };
        let non_ip: u64 = rejected(false).map(|(_, count)| count).sum();
        let malformed: u64 = rejected(true).map(|(_, count)| count).sum();
        writeln!(f, "{non_ip:>12} non-IP packets")?;
        reasons(f, rejected(false))?;
        writeln!(f, "{malformed:>12} malformed packets")?;
        reasons(f, rejected(true))?;
        if self.skipped_blocks > 0 {
            writeln!(
                f,
                "{:>12} blocks skipped: malformed, or of an unknown interface",
                self.skipped_blocks
            )?;
        }
        Ok(())
    }

    fn flows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = self.totals;
        writeln!(f, "\n{:>12} flow records", self.records)?;
        writeln!(f, "{:>12} of them in the cache at the end", self.shape.leaves)?;
        writeln!(f, "{:>12} collected before, as garbage", totals.evicted)?;
        writeln!(f, "{:>12} removed before, at the end of their connection", totals.ended)?;
        let rate = 100.0 * totals.hits as f64 / totals.ip_packets.max(1) as f64;
        writeln!(f, "{rate:>10.2} % hit rate: IP packets that found their flow in the cache")
    }

    fn largest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.largest.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{:>12} {:>9} {:>9}  largest flows", "bytes", "packets", "flags")?;
        for (key, record) in self.largest {
            let flags = record.flags.to_string();
            writeln!(f, "{:>12} {:>9} {flags:>9}  {key}", record.bytes, record.packets)?;
        }
        Ok(())
    }
}

fn reasons(f: &mut fmt::Formatter<'_>, counts: impl Iterator<Item = (Reject, u64)>) -> fmt::Result {
    let mut counts = counts.filter(|(_, count)| *count > 0);
    counts.try_for_each(|(reject, count)| writeln!(f, "{count:>20} {reject}"))
}
