//! Tables of PCBs as subjects: what is measured, and the loops, compiled for each table.

use std::hint::black_box;
use std::time::Instant;

use super::segments::{Client, Order};
use crate::subject::{Subject, Timed};

/// The least segments of a round for a list, however long the list is.
const MIN_SEGMENTS: usize = 128;

/// The state of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pcb {
    /// The client's, to check that the right PCB was found.
    pub(crate) id: u32,
    pub(crate) segments: u32,
}

/// The methods of a table of PCBs that are measured.
pub(crate) trait PcbTable {
    fn insert(&mut self, client: &Client, pcb: Pcb);
    fn remove(&mut self, client: &Client) -> Option<Pcb>;
    fn lookup(&mut self, client: &Client) -> Option<&mut Pcb>;

    /// PCBs examined by a lookup, if the table counts them.
    fn examined(&mut self, client: &Client) -> Option<u32>;
}

/// The benchmarks of one table.
pub(crate) trait DemuxBenchmark {
    /// The number of a round's segments for this table, if it may examine about `pcbs` PCBs.
    fn share(&self, n: usize, segments: usize, pcbs: usize) -> usize;

    fn fill(&mut self, clients: &[Client]);

    /// Removes all PCBs, then inserts all again, in these two orders.
    fn reinsert(&mut self, removals: &[Client], insertions: &[Client]);

    fn run(&mut self, order: Order, segments: &[Client]) -> Timed;

    /// The mean number of PCBs examined per segment, if the table counts them.
    fn examine(&mut self, segments: &[Client]) -> Option<f64>;
}

pub(crate) type DemuxSubject = Subject<dyn DemuxBenchmark>;

struct Loops<T> {
    /// The number of lists; zero for a table without lists.
    lists: usize,
    table: T,
}

/// Returns the benchmarks of a table with this number of lists; zero for a table without lists.
pub(crate) fn lists(lists: usize, table: impl PcbTable + 'static) -> Box<dyn DemuxBenchmark> {
    Box::new(Loops { lists, table })
}

impl<T: PcbTable> DemuxBenchmark for Loops<T> {
    fn share(&self, n: usize, segments: usize, pcbs: usize) -> usize {
        let length = (n / 2).checked_div(self.lists).unwrap_or(0) + 1;
        (pcbs / length).clamp(MIN_SEGMENTS, segments)
    }

    fn fill(&mut self, clients: &[Client]) {
        for client in clients {
            self.table.insert(client, Pcb { id: client.id, segments: 0 });
        }
    }

    fn reinsert(&mut self, removals: &[Client], insertions: &[Client]) {
        for client in removals {
            self.table.remove(client).expect("the client is connected");
        }
        self.fill(insertions);
    }

    fn run(&mut self, order: Order, segments: &[Client]) -> Timed {
        let start = Instant::now();
        let sum = black_box(match order {
            Order::Random | Order::Trains => receive(&mut self.table, segments),
            Order::Dependent => receive_dependent(&mut self.table, segments),
        });
        Timed::new(start.elapsed(), segments.len(), sum)
    }

    fn examine(&mut self, segments: &[Client]) -> Option<f64> {
        let each = segments.iter().map(|client| self.table.examined(client).map(u64::from));
        Some(each.sum::<Option<u64>>()? as f64 / segments.len() as f64)
    }
}

#[inline(never)]
fn receive<T: PcbTable>(table: &mut T, segments: &[Client]) -> u64 {
    let mut sum = 0;
    for client in segments {
        if let Some(pcb) = table.lookup(client) {
            pcb.segments = pcb.segments.wrapping_add(1);
            sum += u64::from(pcb.id);
        }
    }
    sum
}

/// Receives one segment after the other. The next index depends on the ID, whose top bit is always
/// clear, so the CPU cannot overlap lookups.
#[inline(never)]
fn receive_dependent<T: PcbTable>(table: &mut T, segments: &[Client]) -> u64 {
    let (mut at, mut sum) = (0, 0);
    while let Some(client) = segments.get(at) {
        let pcb = table.lookup(client).expect("the client is connected");
        pcb.segments = pcb.segments.wrapping_add(1);
        sum += u64::from(pcb.id);
        at += 1 + (pcb.id >> 31) as usize;
    }
    sum
}
