//! The report of a run.

use core::fmt;
use core::time::Duration;

use capture::Reject;
use flowtable::flow_cache::{EndReason, Metrics};

use super::Totals;
use super::export::Counts;
use super::record::Record;

/// The summary of a run.
pub struct Report<'a> {
    /// The source of the packets.
    pub name: &'a str,
    pub reading: Reading,
    pub totals: &'a Totals,
    /// Counts of exported records.
    pub counts: Counts,
    pub largest: &'a [Record],
    /// Metrics of the cache after the last packet.
    pub metrics: &'a Metrics,
}

/// Results of reading a capture.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Time for reading and metering.
    pub elapsed: Duration,
    /// Blocks of a pcapng without a readable packet.
    pub skipped_blocks: u64,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.name)?;
        self.packets(f)?;
        self.flows(f)?;
        self.largest(f)?;
        writeln!(f, "\n{}", self.metrics)?;
        let seconds = self.reading.elapsed.as_secs_f64();
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
        writeln!(f, "{:>12} cut before their ports", totals.cut_ports)?;
        if totals.refused > 0 {
            writeln!(f, "{:>12} refused: the cache was full", totals.refused)?;
        }
        let rejected = |malformed| {
            let counted = Reject::ALL.into_iter().zip(totals.rejects);
            counted.filter(move |(reject, _)| reject.is_malformed() == malformed)
        };
        let non_ip: u64 = rejected(false).map(|(_, count)| count).sum();
        let malformed: u64 = rejected(true).map(|(_, count)| count).sum();
        writeln!(f, "{non_ip:>12} non-IP packets")?;
        parts(f, rejected(false))?;
        writeln!(f, "{malformed:>12} malformed packets")?;
        parts(f, rejected(true))?;
        if self.reading.skipped_blocks > 0 {
            writeln!(
                f,
                "{:>12} blocks skipped: malformed, or of an unknown interface",
                self.reading.skipped_blocks
            )?;
        }
        Ok(())
    }

    fn flows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metrics = self.metrics;
        writeln!(f, "\n{:>12} flows, each of both directions", metrics.created)?;
        for (reason, what) in [
            (EndReason::Idle, "were idle"),
            (EndReason::Ended, "were closed, or their sockets used again"),
            (EndReason::Resources, "were evicted from the full cache"),
        ] {
            writeln!(f, "{:>12} {what}", metrics.removed_for(reason))?;
        }
        writeln!(f, "{:>12} were left at the end", metrics.flows)?;
        let Counts { records, reports, rows } = self.counts;
        writeln!(f, "{records:>12} records, {reports} of them of flows that continued")?;
        writeln!(f, "{rows:>12} rows: their directions with packets")?;
        let rate = 100.0 * metrics.hit_ratio().unwrap_or(0.0);
        writeln!(f, "{rate:>10.2} % hit rate: IP packets that found their flow in the cache")
    }

    fn largest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.largest.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\n{:>12} {:>9} {:>12} {:>9} {:>9}  largest records",
            "bytes", "packets", "bytes back", "packets", "flags"
        )?;
        for Record { key, counted, .. } in self.largest {
            let (there, back) = (&counted.forward, &counted.reverse);
            let flags = (there.flags | back.flags).to_string();
            writeln!(
                f,
                "{:>12} {:>9} {:>12} {:>9} {flags:>9}  {key}",
                there.bytes, there.packets, back.bytes, back.packets
            )?;
        }
        Ok(())
    }
}

/// Prints the parts of a count.
fn parts<N: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    counts: impl Iterator<Item = (N, u64)>,
) -> fmt::Result {
    let mut counts = counts.filter(|(_, count)| *count > 0);
    counts.try_for_each(|(name, count)| writeln!(f, "{count:>20} {name}"))
}
