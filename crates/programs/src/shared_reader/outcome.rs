//! The counts of a run, and their consistency.

use core::time::Duration;

use super::Sums;
use super::control::Written;
use super::worker::Tally;

/// The counts of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub workers: Vec<Tally>,
    pub written: Written,
    pub elapsed: Duration,
    /// Packets that workers have taken.
    pub taken: u64,
    /// Flows in the map at the end, and the bytes of the map and of garbage.
    pub left: usize,
    pub allocated: usize,
    pub garbage: usize,
    /// Sums over all dropped flows, the last of them dropped with the map.
    pub ended: Sums,
}

impl Outcome {
    /// Returns the sums over all workers. The time is that of the slowest.
    pub fn total(&self) -> Tally {
        let add = |sum: Tally, tally: &Tally| Tally {
            packets: sum.packets + tally.packets,
            hits: sum.hits + tally.hits,
            hit_bytes: sum.hit_bytes + tally.hit_bytes,
            queued: sum.queued + tally.queued,
            dropped: sum.dropped + tally.dropped,
            elapsed: sum.elapsed.max(tally.elapsed),
        };
        self.workers.iter().fold(Tally::default(), add)
    }

    /// Returns the pairs of counts that should be equal and are not; empty if no packet was lost or
    /// counted twice.
    pub fn disagreements(&self) -> Vec<String> {
        let (total, written) = (self.total(), &self.written);
        let (inserted, removed) = (written.insertions.count(), written.removals.count());
        let taken_over = inserted + written.late;
        let pairs = [
            ("packets dealt out, looked up", self.taken, total.packets),
            (
                "packets looked up; found, queued or dropped",
                total.packets,
                total.hits + total.queued + total.dropped,
            ),
            ("packets queued; counted or refused", total.queued, taken_over + written.refused),
            ("packets counted, in flows", total.hits + taken_over, self.ended.packets),
            ("bytes counted, in flows", total.hit_bytes + written.bytes, self.ended.bytes),
            ("flows inserted; removed or left", inserted, removed + self.left as u64),
            ("flows inserted, dropped", inserted, self.ended.flows),
        ];
        let differ = pairs.into_iter().filter(|(_, one, other)| one != other);
        differ.map(|(what, one, other)| format!("{what}: {one}, {other}")).collect()
    }
}
