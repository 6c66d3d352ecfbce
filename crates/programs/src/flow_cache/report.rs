//! The report at the end of a run: within 80 columns and, with its ten largest records, 24 lines.

use core::fmt;
use core::time::Duration;

use capture::Reject;
use flowtable::flow_cache::{Class, EndReason, Metrics};

use super::export::Counts;
use super::key::{COLUMNS, KeyText};
use super::record::Record;
use super::{Times, Totals};
use crate::counts::form;

/// The summary of a run.
pub(crate) struct Report<'a> {
    /// The source of the packets.
    pub(crate) name: &'a str,
    pub(crate) reading: Reading,
    pub(crate) totals: &'a Totals,
    /// Counts of exported records.
    pub(crate) counts: Counts,
    pub(crate) largest: &'a [Record],
    /// Metrics of the cache after the last packet.
    pub(crate) metrics: Metrics,
}

/// Results of reading the captures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// Time for reading and metering.
    pub(crate) elapsed: Duration,
    /// Damaged records and blocks.
    pub(crate) damages: u64,
    /// Packets of interfaces that arrived too fast.
    pub(crate) dropped: u64,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.name)?;
        self.packets(f)?;
        self.flows(f)?;
        self.largest(f)?;
        self.cache(f)?;
        let seconds = self.reading.elapsed.as_secs_f64();
        let rate = self.totals.packets as f64 / seconds.max(f64::MIN_POSITIVE);
        writeln!(f, "{seconds:>12.3} s, {rate:.0} packets per second")
    }
}

impl Report<'_> {
    /// One packet of this number may be out of order without a remark.
    const FEW: u64 = 50;

    fn packets(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = self.totals;
        let packets = |count| form(count, "packet", "packets");
        let (count, what) = (totals.packets, packets(totals.packets));
        writeln!(f, "{count:>12} {what}, {} bytes on the wire", totals.wire_bytes)?;
        let (count, what) = (totals.ip_packets, packets(totals.ip_packets));
        let line = format!("{count:>12} IP {what}, {} bytes", totals.ip_bytes);
        let later = form(totals.later_fragments, "later fragment", "later fragments");
        let parts = [
            (totals.later_fragments, later),
            (totals.cut_ports, "cut before their ports"),
            (self.metrics.refused, "refused: there was no memory for their flows"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        list(f, &line, parts.map(|(count, what)| format!("{count} {what}")))?;
        if self.reading.dropped > 0 {
            let count = self.reading.dropped;
            let (what, are) = (packets(count), form(count, "is", "are"));
            writeln!(f, "{count:>12} {what} arrived too fast, and {are} lost")?;
        }
        if self.reading.damages > 0 {
            let count = self.reading.damages;
            let places = form(count, "place", "places");
            writeln!(f, "{count:>12} damaged {places} in the captures")?;
        }
        self.rejected(f)?;
        self.times(f)
    }

    /// Lists the packets without a flow, and those whose lengths are wrong.
    fn rejected(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = self.totals;
        let links = totals.parsed.rejected(|reason| matches!(reason, Reject::UnknownLink(_)));
        let kinds = [
            ("non-IP", false, (links, "of an unknown link type")),
            ("malformed", true, (totals.overlong, "longer than their frames")),
        ];
        for (what, is_malformed, last) in kinds {
            let count = totals.parsed.rejected(|reason| {
                !matches!(reason, Reject::UnknownLink(_)) && reason.is_malformed() == is_malformed
            });
            let count = count + last.0;
            if count == 0 {
                continue;
            }
            let mut parts = self.most_frequent(is_malformed);
            parts.extend((last.0 > 0).then(|| format!("{} {}", last.0, last.1)));
            let packets = form(count, "packet", "packets");
            list(f, &format!("{count:>12} {what} {packets}"), parts.into_iter())?;
        }
        let mut links = totals.parsed.rejects().filter_map(|(reason, count)| match reason {
            Reject::UnknownLink(link) => {
                let packets = form(count, "packet", "packets");
                Some(format!("{count} {packets} of link type {link}"))
            }
            _ => None,
        });
        match links.next() {
            Some(first) => list(f, &format!("{:>13}{first}", ""), links),
            None => Ok(()),
        }
    }

    /// Returns the most frequent reasons of a kind, apart from unknown link types, and the number
    /// of packets with others.
    fn most_frequent(&self, is_malformed: bool) -> Vec<String> {
        const SHOWN: usize = 8;
        let mut reasons: Vec<(Reject, u64)> = self.totals.parsed.rejects().collect();
        reasons.retain(|(reason, _)| {
            !matches!(reason, Reject::UnknownLink(_)) && reason.is_malformed() == is_malformed
        });
        reasons.sort_by_key(|(_, count)| core::cmp::Reverse(*count));
        let others: u64 = reasons.iter().skip(SHOWN).map(|(_, count)| *count).sum();
        let shown = reasons.iter().take(SHOWN);
        let mut parts: Vec<String> =
            shown.map(|(reason, count)| format!("{count} {reason}")).collect();
        parts.extend((others > 0).then(|| format!("{others} of other protocols")));
        parts
    }

    /// Prints how many packets were not in the order of their times. Timeouts are not exact then.
    fn times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals { times: Times { late, outliers, resets }, packets, .. } = *self.totals;
        let others = late + outliers;
        if others > 0 {
            let packets = form(others, "packet", "packets");
            write!(f, "{others:>12} {packets} out of order by more than 10 s: ")?;
            writeln!(f, "{late} late, {outliers} ahead")?;
        }
        if resets > 0 {
            let what = form(resets, "reset", "resets");
            writeln!(f, "{resets:>12} {what} of the clock of the packets")?;
        }
        if resets * Self::FEW > packets {
            writeln!(f, "{:>13}the packets have several clocks, which are followed in turn", "")?;
        } else if others * Self::FEW > packets {
            writeln!(f, "{:>13}the captures are not in order of time: timeouts are not exact", "")?;
        }
        Ok(())
    }

    fn flows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metrics = &self.metrics;
        let flows = form(metrics.created, "flow,", "flows, each");
        writeln!(f, "{:>12} {flows} of both directions:", metrics.created)?;
        let [idle, closed, evicted] = [EndReason::Idle, EndReason::Ended, EndReason::Resources]
            .map(|reason| metrics.removed_for(reason));
        let were = |count| form(count, "was", "were");
        let sockets = form(closed, "its sockets", "their sockets");
        write!(f, "{idle:>12} {} idle, ", were(idle))?;
        writeln!(f, "{closed} {} closed or {sockets} used again,", were(closed))?;
        let left = metrics.flows as u64;
        write!(f, "{evicted:>12} {} evicted, ", were(evicted))?;
        writeln!(f, "{left} {} left at the end", were(left))?;
        let Counts { records, reports, rows } = self.counts;
        let what = form(records, "record", "records");
        write!(f, "{records:>12} {what}, {reports} of them of flows that continued, ")?;
        writeln!(f, "in {rows} {}", form(rows, "row", "rows"))
    }

    fn largest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.largest.is_empty() {
            return Ok(());
        }
        writeln!(f, "{:>9} {:>8} {:>8}  largest records", "bytes", "back", "packets")?;
        for Record { key, counted, .. } in self.largest {
            let (there, back) = (&counted.forward, &counted.reverse);
            let (bytes, back) = (Scaled(there.bytes), Scaled(back.bytes));
            let packets = Scaled(counted.packets());
            writeln!(f, "{bytes:>9} {back:>8} {packets:>8}  {}", KeyText { key, indent: 29 })?;
        }
        Ok(())
    }

    fn cache(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Metrics { flows, capacity, bytes, .. } = self.metrics;
        let rate = 100.0 * self.metrics.hit_ratio().unwrap_or(0.0);
        let what = form(flows as u64, "flow", "flows");
        write!(f, "{flows:>12} {what} of {capacity}, {bytes} bytes of memory, ")?;
        writeln!(f, "{rate:.2} % hit rate")?;
        let [closing, new, unreplied, established] =
            Class::ALL.map(|class| self.metrics.flows_of(class));
        write!(f, "{established:>12} established, {unreplied} unreplied, {new} new, ")?;
        writeln!(f, "{closing} closing")
    }
}

/// Prints a line and the parts of its number, over several lines if they are long.
fn list(
    f: &mut fmt::Formatter<'_>,
    line: &str,
    parts: impl Iterator<Item = String>,
) -> fmt::Result {
    let mut line = line.to_owned();
    let mut separator = ": ";
    for part in parts {
        if line.len() + separator.len() + part.len() < COLUMNS {
            line.push_str(separator);
        } else {
            writeln!(f, "{line}{}", separator.trim_end())?;
            line = " ".repeat(15);
        }
        line.push_str(&part);
        separator = ", ";
    }
    writeln!(f, "{line}")
}

/// A number in at most six characters.
pub(crate) struct Scaled(pub(crate) u64);

impl fmt::Display for Scaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            number @ 0..100_000 => number.to_string(),
            number => {
                let power = (number.ilog10() / 3).min(6);
                let prefix = ["", "k", "M", "G", "T", "P", "E"][power as usize];
                format!("{:.1}{prefix}", number as f64 / 1000_f64.powi(power as i32))
            }
        };
        f.pad(&text)
    }
}
