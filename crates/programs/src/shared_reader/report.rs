//! The report of a run.

use core::fmt;
use core::time::Duration;

use super::worker::Tally;
use super::{BURST, Latency, Outcome};
use crate::counts::form;

/// The tables of a run.
pub struct Report<'a> {
    /// The source of the packets.
    pub input: &'a dyn fmt::Display,
    pub outcome: &'a Outcome,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { workers, elapsed, .. } = self.outcome;
        let seconds = elapsed.as_secs_f64();
        let (count, what) = (workers.len(), form(workers.len() as u64, "worker", "workers"));
        writeln!(f, "{}: {count} {what}, {seconds:.3} s", self.input)?;
        self.workers(f)?;
        self.writer(f)?;
        self.map(f)?;
        let disagreements = self.outcome.disagreements();
        if disagreements.is_empty() {
            writeln!(f, "\nall counters agree: no packet was lost or counted twice")?;
        }
        disagreements.iter().try_for_each(|what| writeln!(f, "\nCOUNTERS DISAGREE: {what}"))
    }
}

impl Report<'_> {
    fn workers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:>10} {:>14} {:>10} {:>12} {:>10}  bursts of {BURST}",
            "worker", "lookups/s", "hit rate", "queued", "dropped"
        )?;
        /// Workers that one screen has space for.
        const MOST: usize = 8;
        let workers = &self.outcome.workers;
        if workers.len() <= MOST {
            workers.iter().zip(1..).try_for_each(|(tally, number)| row(f, &number, tally))?;
        } else {
            let packets = |tally: &&Tally| tally.packets;
            let extremes = [workers.iter().min_by_key(packets), workers.iter().max_by_key(packets)];
            for (name, tally) in ["slowest", "fastest"].into_iter().zip(extremes) {
                tally.map_or(Ok(()), |tally| row(f, &name, tally))?;
            }
        }
        row(f, &"all", &self.outcome.total())
    }

    fn writer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = &self.outcome.written;
        writeln!(
            f,
            "\n{:>10} {:>14} {:>10} {:>12} {:>10}  microseconds",
            "writer", "count", "mean", "99 of 100", "worst"
        )?;
        latency(f, "insertions", &written.insertions)?;
        latency(f, "removals", &written.removals)?;
        if written.refused > 0 {
            writeln!(f, "{:>10} {:>14}  too much garbage", "refused", written.refused)?;
        }
        Ok(())
    }

    fn map(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { left, allocated, garbage, written, .. } = self.outcome;
        let each = *allocated as f64 / (*left).max(1) as f64;
        writeln!(f, "\n{left:>10} flows in the map, {each:.1} bytes each")?;
        writeln!(f, "{garbage:>10} bytes of garbage, {} at most", written.most_garbage)
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &dyn fmt::Display, tally: &Tally) -> fmt::Result {
    let Tally { packets, hits, queued, dropped, elapsed, .. } = *tally;
    let rate = per_second(packets, elapsed);
    let hit_rate = 100.0 * hits as f64 / packets.max(1) as f64;
    writeln!(f, "{name:>10} {rate:>14.0} {hit_rate:>8.2} % {queued:>12} {dropped:>10}")
}

fn latency(f: &mut fmt::Formatter<'_>, name: &str, latency: &Latency) -> fmt::Result {
    let [mean, most, worst] = [latency.mean_ns(), latency.quantile_ns(0.99), latency.worst_ns()]
        .map(|ns| ns as f64 / 1000.0);
    writeln!(f, "{name:>10} {:>14} {mean:>10.2} {most:>12.2} {worst:>10.2}", latency.count())
}

fn per_second(count: u64, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
}
